"""Makes every golden of the pack, or compares the committed ones with what this machine computes.

The values are computed in float64 from float32 weights and inputs and rounded once to float32, so
that a difference is the other side's own error; `pico_test_logits` alone is float32 throughout, as
the model is used. All scans are sequential.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from generator import generate_by_rule
from op_cases import all_op_goldens
from preprocess import PICO, preprocess
from tensor_file import read_tensors, write_tensors
from train import CLASSES, DEFAULT_DATA, PICO_DIR, accuracy, load_split, predict, to_inputs
from vmamba import VMamba, VMambaConfig, scan_sequential

GOLDEN_DIR = PICO_DIR.parent / "golden"
PROBE_CASES = 8
MAX_REL_L2 = 1e-5  # what float32 sums in another order may differ by, with a factor of ten to spare

Golden = tuple[dict[str, np.ndarray], dict[str, str]]


@dataclass(frozen=True)
class ReducedCase:
    """A whole model with generated weights, and the size of its generated input."""

    config: VMambaConfig
    height: int
    width: int
    seed: int


REDUCED = {
    "a": ReducedCase(VMambaConfig(3, 8, (1, 1, 2, 1), 7), 32, 48, seed=101),
    "b": ReducedCase(
        VMambaConfig(3, 8, (1, 1, 2, 1), 7, ssm_ratio=2.0, d_state=4), 32, 48, seed=102
    ),
    "c": ReducedCase(VMambaConfig(3, 16, (2, 1), 7), 64, 32, seed=103),
    "d": ReducedCase(VMambaConfig(3, 8, (1, 1), 7, forward_type="v05"), 32, 64, seed=104),
    "e": ReducedCase(
        VMambaConfig(3, 8, (1, 2), 5, ssm_ratio=2.0, d_state=16, forward_type="v05"),
        32, 24, seed=105,
    ),
}


def run_with_taps(model: VMamba, inputs: np.ndarray) -> dict[str, np.ndarray]:
    """One input [C,H,W] float32 through a float64 model: every tap, float32, without the batch
    dimension."""
    taps: dict[str, torch.Tensor] = {}
    with torch.no_grad():
        model(torch.from_numpy(inputs)[None].double(), taps)
    return {name: tap[0].contiguous().numpy().astype(np.float32) for name, tap in taps.items()}


def load_pico() -> tuple[VMamba, dict[str, str]]:
    """The committed model in evaluation mode, float32, and its metadata."""
    tensors, meta = read_tensors(PICO_DIR / "model.safetensors")
    model = VMamba(VMambaConfig.from_metadata(meta), scan_sequential)
    model.load_state_dict(
        {name: torch.from_numpy(array) for name, array in tensors.items()}, strict=True
    )
    return model.eval(), meta


def pico_probe(model: VMamba, images: np.ndarray, labels: np.ndarray) -> Golden:
    """The first test image of each of the first eight classes to appear, with its logits. `model`
    is float64."""
    firsts = sorted(int(np.flatnonzero(labels == c)[0]) for c in range(len(CLASSES)))[:PROBE_CASES]
    tensors: dict[str, np.ndarray] = {}
    meta = {"cases": str(PROBE_CASES)}
    for case, index in enumerate(firsts):
        tensors[f"case{case}.input.image"] = images[index]
        tensors[f"case{case}.output.logits"] = run_with_taps(model, preprocess(images[index]))[
            "logits"
        ]
        meta[f"case{case}.test_index"] = str(index)
        meta[f"case{case}.label"] = str(labels[index])
    return tensors, meta


def pico_test_logits(model: VMamba, images: np.ndarray, labels: np.ndarray) -> Golden:
    """Logits [10000,10] of all test images in file order. `model` is float32."""
    logits = predict(model, to_inputs(images))
    share = accuracy(logits, torch.from_numpy(labels.astype(np.int64)))
    return {"logits": logits.numpy()}, {
        "accuracy": f"{share:.4f}",
        "images": str(len(labels)),
        "dtype": "float32",
    }


def pico_stages(model: VMamba, image: np.ndarray, label: int) -> Golden:
    """Test image 0: `image`, `input` and the output of every block. `model` is float64."""
    inputs = preprocess(image)
    tensors = {"image": image, "input": inputs, **run_with_taps(model, inputs)}
    return tensors, {
        "test_index": "0",
        "label": str(label),
        **model.cfg.to_metadata(),
        **PICO.to_metadata(),
    }


def reduced_model(case: ReducedCase) -> Golden:
    """Stem, the output of each layer (after its downsample), features and logits."""
    model = VMamba(case.config, scan_sequential)
    shapes = {name: tuple(value.shape) for name, value in model.state_dict().items()}
    weights = {
        name: torch.from_numpy(generate_by_rule(name, shape, case.seed))
        for name, shape in shapes.items()
    }
    model.load_state_dict(weights, strict=True)
    inputs = generate_by_rule("input", (case.config.in_chans, case.height, case.width), case.seed)
    taps = run_with_taps(model.double().eval(), inputs)
    kept = {name: taps[name] for name in ("stem", "features", "logits")}
    for i, depth in enumerate(case.config.depths):
        kept[f"layers.{i}"] = taps.get(
            f"layers.{i}.downsample", taps[f"layers.{i}.blocks.{depth - 1}"]
        )
    meta = {
        **case.config.to_metadata(),
        "seed": str(case.seed),
        "height": str(case.height),
        "width": str(case.width),
    }
    return kept, {**meta, "input": "input"}


def make_all(data: Path) -> dict[Path, Golden]:
    """Every golden file by its path."""
    goldens = {GOLDEN_DIR / "ops.safetensors": all_op_goldens()}
    for name, case in REDUCED.items():
        goldens[GOLDEN_DIR / f"reduced_{name}.safetensors"] = reduced_model(case)
    images, labels = load_split(data, "t10k")
    model, _ = load_pico()
    goldens[GOLDEN_DIR / "pico_test_logits.safetensors"] = pico_test_logits(model, images, labels)
    model = model.double()
    goldens[GOLDEN_DIR / "pico_stages.safetensors"] = pico_stages(model, images[0], int(labels[0]))
    goldens[PICO_DIR / "golden.safetensors"] = pico_probe(model, images, labels)
    return goldens


def compare_tensor(label: str, want: np.ndarray, got: np.ndarray) -> bool:
    """Prints one line, `rel_l2` and the worst index; true when within the bound (bytes must be
    equal)."""
    if want.shape != got.shape or want.dtype != got.dtype:
        committed, computed = (f"{a.dtype}{list(a.shape)}" for a in (want, got))
        print(f"FAIL {label}: committed {committed}, computed {computed}")
        return False
    if want.dtype == np.uint8:
        good = bool((want == got).all())
        print(f"{'ok  ' if good else 'FAIL'} {label}: bytes {'equal' if good else 'differ'}")
        return good
    difference = np.abs(got.astype(np.float64) - want)
    norm = float(np.linalg.norm(want.astype(np.float64)))
    relative = float(np.linalg.norm(difference)) / max(norm, 1e-30)
    worst = np.unravel_index(int(difference.argmax()), want.shape)
    good = relative <= MAX_REL_L2  # false for NaN
    values = f"committed {want[worst]:.9g}, computed {got[worst]:.9g}"
    where = f"worst at {[int(i) for i in worst]}: {values}"
    print(f"{'ok  ' if good else 'FAIL'} {label}: rel_l2 {relative:.2e}, {where}")
    return good


def check(path: Path, golden: Golden) -> bool:
    """Compares one committed file with its recomputation: names, metadata, values."""
    if not path.exists():
        print(f"FAIL {path.name}: missing")
        return False
    (tensors, meta), (want, want_meta) = golden, read_tensors(path)
    good = True
    if meta != want_meta:
        changed = sorted(
            k for k in meta.keys() | want_meta.keys() if meta.get(k) != want_meta.get(k)
        )
        print(f"FAIL {path.name}: metadata differs in {changed}")
        good = False
    for name in sorted(tensors.keys() ^ want.keys()):
        print(
            f"FAIL {path.name}: {name} is {'not committed' if name in tensors else 'not computed'}"
        )
        good = False
    for name in sorted(tensors.keys() & want.keys()):
        good = compare_tensor(f"{path.name} {name}", want[name], tensors[name]) and good
    return good


def main() -> int:
    """Writes or checks; exit status 1 on a mismatch."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="python golden.py          write all goldens\n"
        "python golden.py --check  compare, exit 1 on a mismatch",
    )
    parser.add_argument(
        "--check", action="store_true", help="compare with the committed files, write nothing"
    )
    parser.add_argument(
        "--data", type=Path, default=DEFAULT_DATA, help="folder of the four .gz files (%(default)s)"
    )
    parser.add_argument(
        "--threads", type=int, default=1, help="CPU threads; other values change sums (default 1)"
    )
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    goldens = make_all(args.data)
    labels_path, labels_text = PICO_DIR / "labels.txt", "\n".join(CLASSES) + "\n"
    if args.check:
        results = [check(path, golden) for path, golden in goldens.items()]
        results.append(labels_path.exists() and labels_path.read_text() == labels_text)
        print(f"{'ok  ' if results[-1] else 'FAIL'} labels.txt")
        print("all goldens agree" if all(results) else "MISMATCH")
        return 0 if all(results) else 1
    for path, (tensors, meta) in goldens.items():
        print(f"{path.name}: {len(tensors)} tensors, {write_tensors(path, tensors, meta)} bytes")
    labels_path.write_text(labels_text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

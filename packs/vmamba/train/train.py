"""Trains vmamba-pico on Fashion-MNIST and writes packs/vmamba/pico/model.safetensors.

AdamW with a linear warm-up and a cosine decay, label smoothing, shifts of up to 2 pixels and
horizontal flips, and an exponential moving average of the weights. The averaged weights of the last
epoch are what is written: no checkpoint is chosen by test accuracy, which is computed once, at the
end. Fixed seed, one fixed order of batches.
"""

from __future__ import annotations

import argparse
import copy
import gzip
import math
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from preprocess import PICO, pad_and_normalise
from tensor_file import write_tensors
from vmamba import VMamba, VMambaConfig, scan_sequential, scan_whole_tensor

PICO_CONFIG = VMambaConfig(in_chans=1, embed_dim=12, depths=(2, 2, 2, 1), num_classes=10)
PICO_DIR = Path(__file__).resolve().parent.parent / "pico"
DEFAULT_DATA = Path("/usr/share/datasets/fashion-mnist")
CLASSES = (
    "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag",
    "Ankle boot",
)  # fmt: skip
MAX_SHIFT = 2
MAX_FILE_BYTES = 1_000_000


def read_idx(path: Path) -> np.ndarray:
    """A gzip-compressed IDX file of unsigned bytes: images [n,28,28] or labels [n]."""
    raw = gzip.decompress(path.read_bytes())
    if raw[:3] != b"\0\0\x08":
        raise ValueError(f"{path}: not an IDX file of unsigned bytes")
    rank = raw[3]
    shape = np.frombuffer(raw, ">u4", rank, 4)
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * rank).reshape(shape)


def load_split(data: Path, prefix: str) -> tuple[np.ndarray, np.ndarray]:
    """Images [n,28,28,1] uint8 and labels [n] uint8; prefix "train" or "t10k"."""
    images = read_idx(data / f"{prefix}-images-idx3-ubyte.gz")
    return images[..., None], read_idx(data / f"{prefix}-labels-idx1-ubyte.gz")


def to_inputs(images: np.ndarray) -> Tensor:
    """[n,28,28,1] uint8 -> [n,1,32,32] float32; these images need no resize and no crop."""
    return torch.from_numpy(pad_and_normalise(images.astype(np.float32), PICO))


def augment(batch: Tensor, generator: torch.Generator) -> Tensor:
    """[m,1,32,32] -> the same: each image shifted by -2..2 pixels along both axes and mirrored
    with probability 1/2.

    The margin of the network's input is 2 pixels wide, so a shift by rotation of the rows loses
    nothing of the picture.
    """
    count, _, height, width = batch.shape
    shift = torch.randint(-MAX_SHIFT, MAX_SHIFT + 1, (2, count, 1), generator=generator)
    mirrored = torch.rand(count, 1, generator=generator) < 0.5
    rows = (torch.arange(height) + shift[0]) % height
    columns = torch.arange(width).expand(count, width)
    columns = (torch.where(mirrored, width - 1 - columns, columns) + shift[1]) % width
    return batch[
        torch.arange(count)[:, None, None], 0, rows[:, :, None], columns[:, None, :]
    ].unsqueeze(1)


@torch.no_grad()
def predict(model: VMamba, inputs: Tensor, batch_size: int = 500) -> Tensor:
    """Logits [n,classes] in evaluation mode."""
    model.eval()
    return torch.cat([model(part) for part in inputs.split(batch_size)])


def accuracy(logits: Tensor, labels: Tensor) -> float:
    """Share of rows whose largest logit is the label."""
    return float((logits.argmax(1) == labels).double().mean())


def make_optimizer(model: VMamba, rate: float, weight_decay: float) -> torch.optim.AdamW:
    """AdamW that decays projections and convolutions only: not norms, biases, A_logs, Ds."""
    decayed, free = [], []
    for name, parameter in model.named_parameters():
        plain = parameter.dim() < 2 or name.endswith(("A_logs", "dt_projs_bias"))
        (free if plain else decayed).append(parameter)
    groups = [
        {"params": decayed, "weight_decay": weight_decay},
        {"params": free, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=rate, betas=(0.9, 0.99))


def rate_factor(step: int, total: int, warmup: int) -> float:
    """Linear warm-up to 1, then half a cosine to 0."""
    if step < warmup:
        return (step + 1) / warmup
    return 0.5 * (1.0 + math.cos(math.pi * (step - warmup) / max(1, total - warmup)))


@torch.no_grad()
def average_into(average: VMamba, model: VMamba, step: int, horizon: float) -> None:
    """average <- d * average + (1 - d) * model, with d growing to 1 - 1/horizon over the first
    steps."""
    keep = min(1.0 - 1.0 / horizon, (1.0 + step) / (10.0 + step))
    torch._foreach_lerp_(list(average.parameters()), list(model.parameters()), 1.0 - keep)


def train(args: argparse.Namespace) -> tuple[VMamba, float]:
    """The averaged model after the last epoch, and the minutes that it took."""
    torch.manual_seed(args.seed)
    generator = torch.Generator().manual_seed(args.seed)
    images, labels_u8 = load_split(args.data, "train")
    inputs, labels = to_inputs(images), torch.from_numpy(labels_u8.astype(np.int64))
    held_out = inputs[-args.held_out :], labels[-args.held_out :]
    count = len(inputs) - args.held_out
    model = VMamba(PICO_CONFIG, scan_whole_tensor)
    average = copy.deepcopy(model)
    optimizer = make_optimizer(model, args.rate, args.weight_decay)
    steps = count // args.batch
    total, step, start = steps * args.epochs, 0, time.monotonic()
    for epoch in range(args.epochs):
        model.train()
        order, running = torch.randperm(count, generator=generator), 0.0
        for index in order[: steps * args.batch].split(args.batch):
            for group in optimizer.param_groups:
                group["lr"] = args.rate * rate_factor(step, total, args.warmup)
            logits = model(augment(inputs[index], generator))
            loss = F.cross_entropy(logits, labels[index], label_smoothing=args.smoothing)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            average_into(average, model, step, args.ema_steps)
            running += loss.item()
            step += 1
            if step % 100 == 0:
                seconds = time.monotonic() - start
                print(
                    f"  step {step}/{total} {step * args.batch / seconds:.0f} images/s", flush=True
                )
        minutes = (time.monotonic() - start) / 60
        held = accuracy(predict(average, held_out[0]), held_out[1])
        print(
            f"epoch {epoch + 1}/{args.epochs} loss {running / steps:.4f} "
            f"held-out {held:.4f} {minutes:.1f} min",
            flush=True,
        )
    return average, minutes


def write_model(model: VMamba, path: Path, notes: dict[str, str]) -> int:
    """Writes the weights under the published key names, returns the size of the file in bytes."""
    tensors = {name: value.detach().numpy() for name, value in model.state_dict().items()}
    meta = {
        "model": "vmamba-pico",
        "forward_type": "v05_noz",
        **model.cfg.to_metadata(),
        **PICO.to_metadata(),
        **notes,
    }
    size = write_tensors(path, tensors, meta)
    if size >= MAX_FILE_BYTES:
        raise ValueError(f"{path}: {size} bytes, bound {MAX_FILE_BYTES}")
    return size


def parse_args() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="example: nice -n 5 python train.py --epochs 25\n"
        "a quick trial: python train.py --epochs 1 --out trial.safetensors\n"
        "afterwards: python golden.py, since every golden of the pico model depends on its weights",
    )
    parser.add_argument(
        "--epochs",
        type=int,
        default=25,
        help="passes over the training images (default %(default)s)",
    )
    parser.add_argument(
        "--threads", type=int, default=1, help="CPU threads; other values change sums (default 1)"
    )
    parser.add_argument(
        "--out", type=Path, default=PICO_DIR / "model.safetensors", help="file to write"
    )
    parser.add_argument(
        "--data", type=Path, default=DEFAULT_DATA, help="folder of the four .gz files (%(default)s)"
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=20240118,
        help="of weights, order and augmentation (%(default)s)",
    )
    parser.add_argument(
        "--batch", type=int, default=128, help="images per step (default %(default)s)"
    )
    parser.add_argument(
        "--rate", type=float, default=4e-3, help="peak learning rate (default %(default)s)"
    )
    parser.add_argument("--weight-decay", type=float, default=0.05, help="default %(default)s")
    parser.add_argument(
        "--smoothing", type=float, default=0.05, help="label smoothing (default %(default)s)"
    )
    parser.add_argument(
        "--warmup", type=int, default=500, help="steps of linear warm-up (default %(default)s)"
    )
    parser.add_argument(
        "--ema-steps", type=float, default=1000, help="horizon of the weight average (%(default)s)"
    )
    parser.add_argument(
        "--held-out",
        type=int,
        default=1000,
        help="last training images kept to watch progress only",
    )
    return parser.parse_args()


def main() -> None:
    """Trains, measures once on the test images with the sequential scan, writes."""
    args = parse_args()
    torch.set_num_threads(args.threads)
    torch.set_flush_denormal(True)
    model, minutes = train(args)
    for module in model.modules():
        if hasattr(module, "scan"):
            module.scan = scan_sequential
    images, labels = load_split(args.data, "t10k")
    test = accuracy(predict(model, to_inputs(images)), torch.from_numpy(labels.astype(np.int64)))
    notes = {
        "provenance.dataset": "Fashion-MNIST (Zalando Research), MIT licence",
        "provenance.weights_licence": "MIT",
        "provenance.seed": str(args.seed),
        "provenance.epochs": str(args.epochs),
        "provenance.test_accuracy": f"{test:.4f}",
        "provenance.test_images": str(len(labels)),
    }
    size = write_model(model, args.out, notes)
    parameters = sum(p.numel() for p in model.parameters())
    print(
        f"test accuracy {test:.4f}, {parameters} parameters, {size} bytes, "
        f"{minutes:.1f} min -> {args.out}"
    )


if __name__ == "__main__":
    main()

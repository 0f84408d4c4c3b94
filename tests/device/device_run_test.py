"""go.sh and report.py over a bundle whose programs are stand-ins: what is run, told, summed up, and how it ends."""

import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "verify/run"))
import tensors  # noqa: E402

MK = """#!/usr/bin/env python3
import json, sys
launch = lambda kernel, us, b=0, f=0, t=0: dict(kernel=kernel, measured_us=us, bytes=b, flops=f, tensor_flops=t)
if sys.argv[2].endswith("roof"):
    assert "X=1" in sys.argv
    launches = [launch("mk_roof_copy", 1, b=1 << 20), launch("mk_roof_copy", 100, b=64 << 20),
                launch("mk_roof_tensor", 10, t=10**9), launch("mk_roof_fp32", 10, f=10**8), launch("mk_roof_copy", 2, b=2048)]
else:
    launches = [launch("mk_norm", 2, b=1 << 20), launch("mk_gemm", 5, b=1 << 19, t=2 * 10**8), launch("mk_gemm", 5, b=1 << 19, t=2 * 10**8)]
print(json.dumps([dict(launches=launches, measured=dict(median_us=16.0))]))
"""
RUNNER = """#!/usr/bin/env python3
import shutil, sys
word, path = input().split(" ", 1)
shutil.copy("answers-" + ("cpu" if sys.argv[4] == "cpu" else "gpu"), path)
print('{"ready": {}}')
"""


class Bundle:
    """A folder as run.sh makes it, with programs that pretend."""

    def __init__(self, folder: Path):
        self.folder = folder
        for name in ("bin", "lib", "repository/roof", "repository/vmamba-pico", "golden"):
            (folder / name).mkdir(parents=True)
        for file in ("tests/device/go.sh", "tests/device/report.py", "tests/device/torch_bench.py", "verify/run/tensors.py",
                     "verify/run/compare.py", "verify/run/machine.py"):  # fmt: skip
            shutil.copy(ROOT / file, folder)
        (folder / "commit.txt").write_text("0123abcd\n")
        self.program("roof_test", "#!/bin/sh\nexit 0\n")
        self.program("foo_f16_test", '#!/bin/sh\necho "on $MK_OP_DEVICE"\n')
        self.program("mk", MK)
        self.program("pack_runner", RUNNER)
        self.answers("cpu", [[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]])
        self.answers("gpu", [[1.0, 2.001, 3.0], [3.0, 2.0, 1.0]])

    def program(self, name: str, text: str) -> None:
        path = self.folder / "bin" / name
        path.write_text(text)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def answers(self, which: str, rows: list) -> None:
        import struct

        cases = {f"case{i}.output.logits": tensors.Tensor("F32", (3,), struct.pack("<3f", *row)) for i, row in enumerate(rows)}
        tensors.write(self.folder / f"answers-{which}", cases)

    def go(self, *arguments: str):
        return subprocess.run([self.folder / "go.sh", "--out", self.folder / "out", *arguments], capture_output=True, text=True,
                              env={**os.environ, "PATH": "/usr/bin:/bin"})  # fmt: skip

    def summary(self) -> dict:
        return json.loads((self.folder / "out/summary.json").read_text())


class DeviceRun(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(temporary.cleanup)
        self.bundle = Bundle(Path(temporary.name) / "bundle")

    def test_runs_everything_and_sums_it_up(self):
        ended = self.bundle.go("--board", "h200")
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
        summary = self.bundle.summary()
        words = {s["step"]: s["word"] for s in summary["steps"]}
        self.assertEqual(words["foo_f16_test"], "ok")
        self.assertEqual(words["vmamba-pico on cuda"], "ok")
        self.assertEqual(words["measure roof"], "ok")
        self.assertEqual(words["compute-sanitizer"], "skipped")
        self.assertEqual((self.bundle.folder / "out/tests/foo_f16_test.log").read_text(), "on cuda\n")
        parity = summary["parity"]
        self.assertEqual((parity["cases"], parity["same_class"], parity["ok"]), (2, 2, True))
        self.assertAlmostEqual(parity["worst_rel_l2"], 0.001 / 14**0.5, places=6)
        # The small copy is the roof of what stays as small, tensor cores of the GEMM: 2 of 5 us.
        kernels = {k["kernel"]: k for k in summary["kernels"]}
        self.assertAlmostEqual(kernels["mk_norm"]["share"], 0.5)
        self.assertAlmostEqual(kernels["mk_gemm"]["share"], 0.4)
        self.assertEqual(kernels["mk_gemm"]["launches"], 2)
        self.assertAlmostEqual(kernels["(a run)"]["share"], 5 / 16)
        self.assertIn("0123abcd", summary["facts"])
        self.assertIn("| mma.sync fp16, fp32 accumulation | 100.0 TFLOPS |", (self.bundle.folder / "out/summary.md").read_text())

    def test_a_failing_op_test_fails_the_run_and_names_itself(self):
        self.bundle.program("foo_f16_test", '#!/bin/sh\necho "[  FAILED  ] Foo.Bar"\nexit 1\n')
        ended = self.bundle.go()
        self.assertEqual(ended.returncode, 1)
        self.assertIn("failed   foo_f16_test: exit code 1; [  FAILED  ] Foo.Bar", ended.stdout)

    def test_wrong_answers_fail_the_run(self):
        self.bundle.answers("gpu", [[1.0, 2.1, 3.0], [3.0, float("nan"), 1.0]])
        self.assertEqual(self.bundle.go().returncode, 1)
        self.assertFalse(self.bundle.summary()["parity"]["ok"])

    def test_without_a_device_nothing_is_run(self):
        self.bundle.program("roof_test", '#!/bin/sh\necho "no libcuda.so.1"\nexit 1\n')
        ended = self.bundle.go()
        self.assertEqual(ended.returncode, 1)
        self.assertIn("no libcuda.so.1", ended.stderr)
        self.assertIn("no device 'cuda' here", ended.stderr)
        self.assertFalse((self.bundle.folder / "out/summary.json").exists())

    def test_emulated_leaves_the_measurements_out_aloud(self):
        ended = self.bundle.go("--device", "emulated")
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
        self.assertIn("skipped  measurements: the device is emulated", ended.stdout)
        self.assertEqual((self.bundle.folder / "out/tests/foo_f16_test.log").read_text(), "on emulated\n")
        self.assertIsNone(self.bundle.summary()["roof"])
        self.assertTrue((self.bundle.folder / "out/summary.md").read_text().startswith("# On the emulator: nothing was measured"))

    def test_the_minutes_end_it(self):
        self.bundle.program("foo_f16_test", "#!/bin/sh\nsleep 30\n")
        ended = self.bundle.go("--minutes", "0")
        self.assertEqual(ended.returncode, 0)
        self.assertIn("skipped  foo_f16_test: the 0 minutes are over", ended.stdout)

    def test_teaches(self):
        self.assertEqual(self.bundle.go("--wrong").returncode, 2)
        help_text = subprocess.run([ROOT / "tests/device/run.sh", "--help"], capture_output=True, text=True)
        self.assertIn("--bundle-only", help_text.stdout)


if __name__ == "__main__":
    unittest.main()

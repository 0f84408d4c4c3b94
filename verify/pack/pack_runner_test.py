"""Level 4 with the real thing: the pack vmamba-pico behind the line protocol, judged as mk verify judges it."""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).absolute().parent
TREE = HERE.parent.parent
sys.path[:0] = [str(TREE / "verify/run"), str(TREE / "results")]
import child  # noqa: E402
import compare  # noqa: E402
import models  # noqa: E402
import tensors  # noqa: E402

RUNNER, REPOSITORY = str(HERE / "pack_runner"), str(TREE / "packs/vmamba/repository")
SPEC = models.VMAMBA_PICO


class PackRunner(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.place = pathlib.Path(holder.name)

    def open(self, *changes):
        repository = self.place / "packs"  # a copy: the loader follows no links out of a pack's folder
        if not repository.exists():
            shutil.copytree(REPOSITORY, repository)
        arguments = [str(repository), SPEC.pack, str(TREE / SPEC.golden), "cpu", "1"]
        for i, value in changes:
            arguments[i] = value
        return child.Server([RUNNER, *arguments], child.Caps(seconds=120), self.place / "log")

    def test_answers_are_the_goldens(self):
        server = self.open()
        self.assertTrue(server.facts["runtime"].startswith("mergekernel "))
        path = self.place / "answers.safetensors"
        self.assertEqual(server.ask(f"answers {path}"), {})
        golden = tensors.cases_of(tensors.read(TREE / SPEC.golden)[0])
        judged = compare.compare(golden, tensors.read(path)[0], compare.limits_of(SPEC.limits), SPEC.task)
        self.assertTrue(judged["pass"], judged)
        self.assertEqual((judged["cases"], judged["task"]["score"]), (8, 1.0))
        self.assertLess(judged["rel_l2"], 1e-5)
        for word in ("time", "cold"):
            seconds = server.ask(f"{word} 9")["seconds"]
            self.assertEqual(len(seconds), 9)
            self.assertTrue(all(0 < s < 60 for s in seconds))
        self.assertTrue(server.close().ok)

    def test_a_golden_of_other_numbers_fails(self):
        server = self.open()
        path = self.place / "answers.safetensors"
        server.ask(f"answers {path}")
        golden = tensors.cases_of(tensors.read(TREE / SPEC.golden)[0])
        logits = golden[3]["output"]["logits"]
        golden[3]["output"]["logits"] = tensors.floats(logits.shape, [v * 1.01 for v in logits.values()])
        judged = compare.compare(golden, tensors.read(path)[0], compare.limits_of(SPEC.limits), SPEC.task)
        self.assertFalse(judged["pass"])
        self.assertIn("case3.output.logits", judged["why"])
        server.close()

    def test_refusals_are_answers(self):
        other = self.place / "other.safetensors"
        tensors.write(other, {"case0.input.image": tensors.floats((1,), [1]), "case0.output.logits": tensors.floats((1,), [1])})
        for change, text in (
            ((0, str(self.place)), "vmamba-pico"), ((1, "nothing"), "nothing"), ((2, "/nowhere.safetensors"), "cannot read"),
            ((2, str(other)), "image"), ((3, "tpu"), "tpu"),
        ):  # fmt: skip
            server = self.open(change)
            self.assertIsNotNone(server.refusal, change)
            self.assertIn(text, server.refusal["failed"]["text"], change)
        for line in ("dance", "time 0", "time x", "time 9999999999"):
            self.assertIn("not understood", self.open().ask(line)["failed"]["text"])

    def test_wrong_usage(self):
        self.assertEqual(subprocess.run([RUNNER], capture_output=True, check=False).returncode, 2)


class OneCommand(unittest.TestCase):
    def run_script(self, *arguments):
        return subprocess.run([str(TREE / "verify/verify_official.sh"), *arguments], capture_output=True, text=True, check=False)

    def test_steps_are_told(self):
        with tempfile.TemporaryDirectory() as place:
            done = self.run_script("--dry-run", "--out", place, "--levels", "L4")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("would run: bazel build", done.stdout)
            self.assertIn(f"main.py vmamba-pico --out {place}/vmamba-pico --levels L4", done.stdout)
            self.assertIn("== 3/3", done.stdout)
        self.assertEqual(self.run_script("--what").returncode, 2)
        self.assertIn("--no-build", self.run_script("--help").stdout)

    def test_a_whole_run_ends_in_an_archive_and_rows_that_results_takes(self):
        with tempfile.TemporaryDirectory() as place:
            tree = pathlib.Path(place) / "tree"
            for name in ("verify", "results", "packs"):
                (tree / name).parent.mkdir(exist_ok=True)
                (tree / name).symlink_to(TREE / name)
            bin_ = tree / "bazel-bin"
            (bin_ / "verify/pack").mkdir(parents=True)
            (bin_ / "verify/pack/pack_runner").symlink_to(RUNNER)
            shutil.copytree(REPOSITORY, bin_ / "packs/vmamba/repository")
            out = pathlib.Path(place) / "out"
            script = [str(tree / "verify/verify_official.sh"), "--no-build", "--levels", "L4", "--device", "cpu", "--out", str(out)]
            done = subprocess.run(script, capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            names = subprocess.run(["tar", "tzf", out / "send-back.tar.gz"], capture_output=True, text=True, check=True).stdout.split()
            self.assertIn("vmamba-pico/records.json", names)
            self.assertFalse([name for name in names if "work" in name])
            record = json.loads((out / "vmamba-pico/records.json").read_text())[0]
            self.assertTrue(record["accuracy"]["pass"])
            self.assertGreater(record["speed"]["p50_ms"], 0)


if __name__ == "__main__":
    unittest.main()

"""The runner end to end, without PyTorch, TensorRT or a board: levels with fake children."""

import json
import os
import pathlib
import sys
import unittest
from unittest import mock

HERE = pathlib.Path(__file__).absolute().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent / "results")]
import machine  # noqa: E402
import main as verify  # noqa: E402
import models  # noqa: E402
import records  # noqa: E402
import schema  # noqa: E402
import tensors  # noqa: E402
from folders import Folders  # noqa: E402
from tensors import floats  # noqa: E402


FAKE_TORCH = """
import json, sys
sys.path.insert(0, {here!r})
import tensors
golden = sys.argv[sys.argv.index('--golden') + 1] if '--golden' in sys.argv else None
if golden is None:
    if 'modelopt' in sys.argv[-1]: sys.exit(1)
    print('torch 0.0'); sys.exit(0)
configuration = sys.argv[sys.argv.index('--configuration') + 1]
if '--export' in sys.argv:
    open(sys.argv[sys.argv.index('--export') + 1], 'w').write('onnx')
    tensors.write(sys.argv[sys.argv.index('--inputs') + 1], {{'case0.input.x': tensors.floats((1,), [1])}})
if {mode!r} == 'nokernels':
    print(json.dumps({{'skipped': {{'class': 'pytorch-without-kernels-for-this-board', 'text': 'sm_87'}}}})); sys.exit(0)
if {mode!r} == 'keyerror' and configuration.startswith('compile'):
    print(json.dumps({{'failed': {{'class': 'KeyError', 'text': 'complex64'}}}})); sys.exit(0)
print(json.dumps({{'ready': {{'runtime': 'PyTorch 0.0', 'graph_breaks': 0}}}}), flush=True)
off = 0.1 if {mode!r} == 'wrong' else 0
for line in sys.stdin:
    word, rest = line.split()
    if word == 'answers':
        tensors.write(rest, {{'case0.output.y': tensors.floats((2,), [1 + off, 2])}})
        print('{{}}', flush=True)
    else:
        print(json.dumps({{'seconds': [{seconds}] * int(rest)}}), flush=True)
"""
FAKE_TRTEXEC = """
import json, os, sys, time
options = dict(a.lstrip('-').partition('=')[::2] for a in sys.argv[1:])
print('&&&& RUNNING TensorRT.trtexec [TensorRT v100300] # trtexec')
if 'saveEngine' in options:
    mode = {build!r}
    if mode == 'killed': sys.stdout.flush(); os._exit(137)
    if mode == 'hang': time.sleep(60)
    if mode == 'crash': os.abort()
    if mode == 'noimpl':
        print('[W] Skipping tactic 0x1 due to insufficient memory on requested size of 4294967296 detected for tactic 0.')
        print('[E] Error[10]: Could not find any implementation for node {{ForeignNode[/a/b...c]}}.')
        sys.exit(1)
    if mode == 'parse':
        print('[E] [TRT] ModelImporter.cpp:948: While parsing node number 12 [If -> "out"]:')
        print('[E] [TRT] (OnnxConditional) IIfConditionalOutputLayer inputs must have the same shape.')
        sys.exit(1)
    if mode == 'skips':
        print('[W] Skipping tactic 0x1 due to insufficient memory on requested size of 4294967296 detected for tactic 0.')
    open(options['saveEngine'], 'w').write('engine')
elif 'exportOutput' in options:
    off = {off}
    json.dump([{{'name': 'y', 'dimensions': '1x2', 'values': [1 + off, 2]}}], open(options['exportOutput'], 'w'))
elif 'exportTimes' in options:
    json.dump([{{'latencyMs': {ms}}}] * int(options['iterations']), open(options['exportTimes'], 'w'))
"""


class WholeRuns(Folders):
    """The runner end to end with children of its own."""

    def setUp(self):
        super().setUp()
        self.golden = self.place / "golden.safetensors"
        tensors.write(self.golden, {"case0.input.x": floats((1,), [1]), "case0.output.y": floats((2,), [1, 2])})
        (self.place / "packs/fake").mkdir(parents=True)
        self.spec = models.ModelSpec(
            "fake", "x 1", str(self.golden), torch=("eager-plain", "compile-plain"), torch_model="fake", batch_dims=1,
            export_configuration="eager-plain", pack="fake",
        )  # fmt: skip
        self.out = self.place / "run"

    def fake_torch(self, mode="", seconds=0.001):
        return self.script("fake_torch", FAKE_TORCH.format(here=str(HERE), mode=mode, seconds=seconds))

    def fake_trt(self, build="", off=0, ms=1.0):
        return self.script("fake_trtexec", FAKE_TRTEXEC.format(build=build, off=off, ms=ms))

    def go(self, *more, torch="", trt="", ours="", state=None, code=0):
        """Runs `mk verify fake`; returns the words by "L1 eager-plain", the official one under "official"."""
        torch, trt, ours = torch or "/nowhere/python", trt or "/nowhere/trtexec", ours or "/nowhere/runner"
        argv = ["fake", "--out", str(self.out), "--python", torch, "--trtexec", trt, "--pack-runner", ours, "--repository",
                str(self.place / "packs"), "--device", "cpu", "--json", "--passes", "5", "--build-cap", "2", *more]  # fmt: skip
        pace = iter(state) if state else None
        with mock.patch.dict(models.MODELS, {"fake": self.spec}), mock.patch("sys.stdout") as out, mock.patch("sys.stderr"), \
                mock.patch.object(machine, "commit", lambda *_: "0123abc"), \
                mock.patch.object(machine, "pace", (lambda: next(pace)) if pace else (lambda: 100.0)):  # fmt: skip
            text = []
            out.write.side_effect = text.append
            self.assertEqual(verify.main(argv), code)
        if not (self.out / "records.json").exists() or code == 2:
            return {}
        judged = json.loads("".join(text))
        words = {f"{w['level']} {w['configuration']}": w for w in judged["words"]}
        words["official"] = judged["official"]
        rows, found = schema.read(self.out / "rows.csv")
        self.assertEqual(found + schema.breaches(rows), [])
        return words

    def test_nothing_is_there(self):
        words = self.go(code=1)
        self.assertEqual(words["official"]["verdict"], "inconclusive")
        self.assertIn("no-pytorch", words["L1 compile-plain"]["reason"])
        self.assertIn("trtexec", words["L2 trt-fp32"]["reason"])

    def test_all_levels_and_ours_is_faster(self):
        words = self.go(torch=self.fake_torch(seconds=0.003), trt=self.fake_trt(ms=2.0), ours=self.fake_ours())
        self.assertIn("3.00 times our time", words["L1 compile-plain"]["reason"])
        self.assertIn("2.00 times our time", words["L3 trt-fp32"]["reason"])
        self.assertIn("AutoCast", words["L3 trt-strong"]["reason"])  # skipped, so the path was not tried in full
        self.assertEqual(words["official"]["verdict"], "inconclusive")
        self.assertIn("so far L3 trt-fp", words["official"]["reason"])
        kept = json.loads((self.out / "records.json").read_text())
        for record in kept:
            for key in ("platform", "stack", "model", "shapes", "commit", "golden_sha256", "caps", "time", "state"):
                self.assertIn(key, record)
        built = next(r for r in kept if (r["level"], r["configuration"]) == ("L2", "trt-fp16"))
        self.assertEqual(built["runtime"], "TensorRT 10.3.0")
        self.assertGreater(built["memory"]["peak_resident_bytes"], 0)

    def fake_ours(self, seconds=0.001):
        text = FAKE_TORCH.format(here=str(HERE), mode="", seconds=seconds)
        text = text.replace("golden = sys.argv[sys.argv.index('--golden') + 1] if '--golden' in sys.argv else None", "golden = 'x'")
        text = text.replace("configuration = sys.argv[sys.argv.index('--configuration') + 1]", "configuration = 'pack'")
        return self.script("fake_ours", text.replace("PyTorch 0.0", "mergekernel 0.1.0"))

    def test_official_as_fast_as_ours_is_competitive(self):
        words = self.go(torch=self.fake_torch(), trt=self.fake_trt(ms=1.1), ours=self.fake_ours())
        self.assertEqual(words["official"]["verdict"], "competitive")

    def test_builds_that_fail(self):  # field case C15, D08, D09
        table = [
            ("killed", "unsupported", "out-of-memory"), ("noimpl", "unsupported", "{ForeignNode[/a/b...c]}"),
            ("hang", "unsupported", "timeout: not done within 2 s"), ("crash", "unsupported", "builder-crashed"),
            ("parse", "unsupported", "conditional-rank-mismatch"),
        ]  # fmt: skip
        for mode, verdict, why in table:
            with self.subTest(mode):
                self.out = self.place / mode
                words = self.go("--levels", "L2,L3", torch=self.fake_torch(), trt=self.fake_trt(build=mode))
                self.assertEqual(words["L2 trt-fp32"]["verdict"], verdict)
                self.assertIn(why, words["L2 trt-fp32"]["reason"])
                self.assertNotIn("L3 trt-fp32", words)  # it is no second failure

    def test_a_build_with_fewer_tactics_goes_on(self):
        words = self.go("--levels", "L2,L3", torch=self.fake_torch(), trt=self.fake_trt(build="skips"))
        self.assertIn("L3 trt-fp32", words)
        kept = json.loads((self.out / "records.json").read_text())
        built = next(r for r in kept if (r["level"], r["configuration"]) == ("L2", "trt-fp32"))
        self.assertEqual(built["facts"]["notes"], ["reduced-tactics"])

    def test_wrong_answers_are_degraded_however_fast(self):
        words = self.go(torch=self.fake_torch(mode="wrong", seconds=0.0001), trt=self.fake_trt(off=0.5, ms=0.1), ours=self.fake_ours())
        self.assertEqual(words["L3 trt-fp16"]["verdict"], "degraded")
        self.assertIn("accuracy", words["L3 trt-fp16"]["reason"])
        self.assertIn("accuracy", words["L1 compile-plain"]["reason"])

    def test_pytorch_without_kernels_is_its_own_reason(self):
        words = self.go("--levels", "L1", torch=self.fake_torch(mode="nokernels"), code=1)
        self.assertEqual(words["L1 compile-plain"]["verdict"], "inconclusive")
        self.assertIn("without-kernels-for-this-board", words["L1 compile-plain"]["reason"])

    def test_a_compiler_that_raises(self):  # field case D26
        words = self.go("--levels", "L1,L4", torch=self.fake_torch(mode="keyerror"), ours=self.fake_ours())
        self.assertEqual(words["L1 compile-plain"]["verdict"], "unsupported")
        self.assertIn("KeyError", words["L1 compile-plain"]["reason"])

    def test_moving_clocks_withhold_the_word(self):  # field case C12
        paces = [100.0] * 10 + [70.0] * 100
        words = self.go("--levels", "L1,L4", torch=self.fake_torch(), ours=self.fake_ours(), state=paces)
        self.assertEqual(words["L1 compile-plain"]["verdict"], "inconclusive")
        self.assertIn("clocks moved", words["L1 compile-plain"]["reason"])

    def test_processes_of_their_own_for_each_block(self):
        words = self.go("--levels", "L1,L4", "--alternate", "process", torch=self.fake_torch(seconds=0.002), ours=self.fake_ours())
        self.assertIn("2.00 times our time", words["L1 compile-plain"]["reason"])

    def test_a_bare_onnx_file(self):
        onnx = self.place / "Detector v2.onnx"
        onnx.write_text("onnx")
        mk = self.script("mk", "print('{\"inputs\": [{\"name\": \"x\", \"type\": \"float\", \"shape\": \"[n]\"}]}')\n")
        argv = [str(onnx), "--out", str(self.out), "--golden", str(self.golden), "--device", "cpu", "--passes", "5",
                "--trtexec", self.fake_trt(ms=1.0), "--python", "/nowhere"]  # fmt: skip
        with mock.patch.dict(os.environ, {"MK_PROGRAM": mk}), mock.patch("sys.stdout"), mock.patch("sys.stderr") as err, \
                mock.patch.object(machine, "commit", lambda *_: "0123abc"):  # fmt: skip
            self.assertEqual(verify.main(argv), 2)
            self.assertIn("shapes needed for x (n of n)", str(err.mock_calls))
            self.assertEqual(verify.main([*argv, "--shapes", "x=1"]), 0)
        kept = {(r["level"], r["configuration"]): r for r in json.loads((self.out / "records.json").read_text())}
        self.assertEqual(kept["L1", "compile"]["reason"]["class"], "no-pytorch-source")
        self.assertIn("--shapes=x:1", kept["L2", "trt-fp32"]["command"])
        self.assertEqual(kept["L4", "pack"]["reason"]["class"], "no-pack")
        self.assertEqual(kept["L3", "trt-fp32"]["shapes"], "x 1")
        self.assertIn("shape [1, 2], must be [2]", kept["L3", "trt-fp32"]["accuracy"]["why"])  # its golden has no batch

    def test_a_second_start_goes_on(self):
        torch, ours = self.fake_torch(), self.fake_ours()
        self.go("--levels", "L1,L4", torch=torch, ours=ours)
        first = (self.out / "records.json").read_text()
        self.go("--levels", "L1,L4", torch="/nowhere/python", ours="/nowhere/x")  # nothing is started again
        self.assertEqual((self.out / "records.json").read_text(), first)
        words = self.go("--levels", "L1,L4", "--again", "L4", torch=torch, ours=ours)
        self.assertIn("L1 compile-plain", words)
        self.go("--threads", "2", torch=torch, ours=ours, code=2)  # another question, another folder

    def test_what_is_sent_back_names_no_place_of_the_machine(self):
        self.go("--levels", "L4", ours=self.fake_ours())
        log = self.out / "logs/L4-pack.log"
        ada, root = "/" + "home/ada", "/" + "root"  # no file of the tree holds such places
        log.write_text(f"{ada}/x.py:3 {root}/y '{ada}' {HERE}/main.py {root}ed")
        records.scrub(self.out)
        self.assertEqual(log.read_text(), "~/x.py:3 ~/y '~' verify/run/main.py /rooted")
        about = json.loads((self.out / "run.json").read_text())
        self.assertRegex(about["name"], r"^fake-x86-64-cpu-[0-9a-f]{8}$|^fake-aarch64-cpu-[0-9a-f]{8}$")

    def test_a_foreign_folder_is_left_alone(self):
        self.out.mkdir()
        (self.out / "thesis.txt").write_text("mine")
        self.go(code=2)
        self.assertEqual([p.name for p in self.out.iterdir()], ["thesis.txt"])


if __name__ == "__main__":
    unittest.main()

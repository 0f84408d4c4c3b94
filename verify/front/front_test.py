"""The front end to end, with stand-ins for PyTorch and transformers: its flags, caps, answers, and the doors it keeps shut."""

import json
import os
import pathlib
import subprocess
import sys
import unittest
from unittest import mock

HERE = pathlib.Path(__file__).absolute().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "run")]
import archives  # noqa: E402
import main as front  # noqa: E402
from folders import Folders  # noqa: E402

TORCH = """
import contextlib, os, sys, time, types
MODE = os.environ.get('STAND_IN', '')
if MODE == 'no-torch': raise ModuleNotFoundError("No module named 'torch'", name='torch')
if MODE == 'broken': raise OSError('libtorch_cpu.so: cannot open shared object file')
__version__ = '0.0'
def module(name, **more):
    sys.modules[name] = made = types.ModuleType(name)
    vars(made).update(more)
    return made
@contextlib.contextmanager
def no_grad(): yield
def load(file, weights_only=None): raise RuntimeError(f'weights_only={weights_only}')
_C = types.SimpleNamespace(_pickle_load_obj=lambda b: print('RAN'))
class GuardOnDataDependentSymNode(Exception): pass
class Made:
    model = 'graph'
    def save(self, path, external_data):
        with open(path, 'wb') as out: out.write(b'onnx')
def write(model, inputs, dynamo=None, **more):
    if MODE == 'data': raise GuardOnDataDependentSymNode('Could not guard on data-dependent expression Eq(u0, 1)')
    if MODE == 'slow': time.sleep(60)
    if MODE == 'big':
        kept = []
        while True: kept.append(bytearray(8 << 20)); time.sleep(.01)
    if MODE == 'crash': os.abort()
    if MODE == 'exit': print('last words', flush=True); os._exit(3)
    if MODE == 'network': print(sorted(l.split(':')[0].strip() for l in open('/proc/net/dev') if ':' in l), flush=True)
    return Made()
onnx = module('torch.onnx', export=write)
import pickle, sympy
spec = types.SimpleNamespace(kind=types.SimpleNamespace(name='USER_INPUT'), arg=types.SimpleNamespace(name='x'))
def load_pt2(path):
    if MODE == 'pickle': _package.pickle.loads(b'')
    if MODE == 'object': _C._pickle_load_obj(b'')
    if MODE == 'aoti': _package._load_aoti(path)
    if MODE == 'sympify': sympy.sympify("__import__('os')")
    if MODE == 'weights': load('x', weights_only=False)
    if MODE == 'sample': raise pickle.UnpicklingError('Weights only load failed')
    if MODE == 'none': return types.SimpleNamespace(exported_programs={})
    made = types.SimpleNamespace(graph_signature=types.SimpleNamespace(input_specs=[spec]), _guards_code=['exec'])
    return types.SimpleNamespace(exported_programs={'model': made})
_package = module('torch.export.pt2_archive._package', load_pt2=load_pt2, pickle=pickle, _load_aoti=lambda *_: print('RAN'))
export = module('torch.export')
export.pt2_archive = module('torch.export.pt2_archive', _package=_package)
"""
OPTIMIZER = "class optimizer:\n    @staticmethod\n    def optimize_ir(model, should_fold): assert model == 'graph'\n"
SYMPY = "def sympify(text, **more): return eval(text)\n"
MISSING = "import os\nif os.environ.get('STAND_IN') == 'no-{0}': raise ModuleNotFoundError(\"No module named '{0}'\", name='{0}')\n"


class Fronts(Folders):
    """Runs of main.py whose child meets stand-ins."""

    def setUp(self):
        super().setUp()
        self.modules = self.place / "modules"
        self.modules.mkdir()
        for name, text in (("torch", TORCH), ("sympy", SYMPY), ("onnx", MISSING.format("onnx")), ("onnxscript", MISSING.format("onnxscript") + OPTIMIZER),
                           ("transformers", MISSING.format("transformers"))):  # fmt: skip
            (self.modules / f"{name}.py").write_text(text)
        self.source = self.place / "m.pt2"
        self.source.write_bytes(archives.program())
        self.out = self.place / "out"

    def go(self, *more, mode="", source=None, code=0):
        env = {"PYTHONPATH": str(self.modules), "STAND_IN": mode}
        with mock.patch.dict(os.environ, env), mock.patch("sys.stdout") as out:
            text = []
            out.write.side_effect = text.append
            self.assertEqual(front.main([str(source or self.source), "--out", str(self.out), *more]), code, "".join(text))
        return json.loads("".join(text))

    def refused(self, *more, code=2, **how):
        answer = self.go(*more, code=code, **how)
        self.assertEqual(answer["understood"], code == 1)
        return answer["refused"]

    def test_a_program_is_exported(self):
        made = self.go()["exported"]
        self.assertEqual(made["onnx"], str(self.out / "model.onnx"))
        self.assertEqual((made["kind"], made["exporter"], made["inputs"], made["hidden"]),
                         ("torch.export program", "torch.onnx.export(dynamo=True) of PyTorch 0.0", "x", []))  # fmt: skip
        self.assertGreater(made["peak_resident_bytes"], 0)
        self.assertEqual(sorted(p.name for p in self.out.iterdir()), ["export.log", "model.onnx"])
        self.assertEqual(self.refused()["kind"], "flags")  # what is there is left alone

    def test_what_is_missing_is_named(self):
        for mode, kind, words in (("no-torch", "package-missing", "torch is not installed"), ("broken", "package-broken", "libtorch_cpu.so"),
                                  ("no-onnx", "package-missing", "onnx is not installed"), ("no-onnxscript", "package-missing", "onnxscript is")):  # fmt: skip
            with self.subTest(mode):
                found = self.refused(mode=mode)
                self.assertEqual(found["kind"], kind)
                self.assertIn(words, found["text"])
        config = self.place / "config.json"
        config.write_text('{"model_type": "vit"}')
        found = self.refused(mode="no-transformers", source=config)
        self.assertIn("transformers is not installed", found["text"])
        self.assertIn("--python", found["hint"])
        self.assertIn("transformers is", self.refused(mode="no-transformers", source=self.place)["text"])  # its folder

    def test_doors_that_stay_shut(self):
        for mode, words in (("pickle", "unpickled"), ("object", "unpickled"), ("aoti", "compiled code"), ("sympify", "no plain arithmetic"),
                            ("sample", "no plain tensors")):  # fmt: skip
            with self.subTest(mode):
                found = self.refused(mode=mode)
                self.assertEqual(found["kind"], "untrusted")
                self.assertIn(words, found["text"])
                self.assertNotIn("RAN", (self.out / "export.log").read_text())
        self.assertIn("weights_only=True", self.refused(mode="weights")["text"])
        self.assertEqual(self.refused(mode="none")["kind"], "no-program")

    def test_what_depends_on_data_points_at_a_blind_spot(self):
        found = self.refused(mode="data", code=1)
        self.assertEqual((found["kind"], found["spot"], found["stage"]), ("data-dependent", "S1", "export by the new exporter"))
        self.assertFalse((self.out / "model.onnx").exists())

    def test_caps(self):
        found = self.refused("--seconds", "3", mode="slow", code=1)
        self.assertEqual((found["kind"], found["stage"]), ("timeout", "export by the new exporter"))
        found = self.refused("--memory", "0.2", mode="big", code=1)
        self.assertEqual(found["kind"], "out-of-memory")
        self.assertIn("the cap is 204 MiB", found["text"])
        self.assertEqual(self.refused(mode="crash", code=1)["kind"], "crashed")
        self.assertIn("exit code 3: last words", self.refused(mode="exit", code=1)["text"])
        self.assertEqual([p.name for p in self.out.iterdir()], ["export.log"])  # nothing half made

    def test_no_network(self):
        self.go(mode="network")
        if "['lo']" not in (self.out / "export.log").read_text():
            import child

            self.assertFalse(child.network_can_be_cut())
            print("skipped: no network namespace may be made here")

    def test_flags_and_files(self):
        for more in (["--exporter", "old"], ["--layers", "2"], ["--shapes", "x=1x2"], ["--shapes", "x"]):
            self.assertEqual(self.refused(*more)["kind"], "flags")
        for source in ("none.pt2", "modules"):
            self.assertEqual(self.refused(source=self.place / source)["kind"], "no-file")
        for name, kind in (("a.json", "no-config"), ("a.pt2", "no-program")):
            (self.place / name).write_text("no")
            self.assertEqual(self.refused(source=self.place / name)["kind"], kind)

    def test_as_a_program(self):
        done = subprocess.run([sys.executable, "-B", str(HERE / "main.py"), "--out", str(self.out), "--", "-x.pt2"], capture_output=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertEqual(json.loads(done.stdout)["refused"]["kind"], "no-file")


if __name__ == "__main__":
    unittest.main()

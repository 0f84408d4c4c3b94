"""Levels 2 and 3 by TensorRT's Python API, which is a stand-in here, as is cuda-python: what is asked of both, and how failures
become reasons. No real TensorRT has met trt_child.py yet."""

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
import tensors  # noqa: E402
from folders import Folders  # noqa: E402
from tensors import Tensor, floats  # noqa: E402

# Names and signatures as in the bindings 8.6.1, 10.3.0, 10.16.0 and 11.4.0; the engine doubles its input "x".
TENSORRT = """
import array, ctypes, enum, json, os
__version__ = os.environ.get('STAND_IN_VERSION', '10.3.0')
MODE = os.environ.get('STAND_IN', '')
class ILogger:
    def __init__(self): pass
class IOutputAllocator:
    def __init__(self): pass
class Severity(enum.Enum): ERROR = 1; WARNING = 2; INFO = 3; VERBOSE = 4
class NetworkDefinitionCreationFlag(enum.IntEnum): EXPLICIT_BATCH = 0; STRONGLY_TYPED = 1
class BuilderFlag(enum.IntEnum): FP16 = 0
class TensorIOMode(enum.Enum): INPUT = 0; OUTPUT = 1
class DataType(enum.Enum): FLOAT = 0; INT64 = 1; FP4 = 2
def init_libnvinfer_plugins(logger, space): return True
class Tensor_:
    def __init__(self, name, shape, is_shape_tensor): self.name, self.shape, self.is_shape_tensor = name, shape, is_shape_tensor
class Network:
    inputs = [Tensor_('x', (-1,), False)] + ([Tensor_('size', (1,), True)] if MODE == 'shape' else [])
    num_inputs = len(inputs)
    def get_input(self, i): return self.inputs[i]
class Profile(dict):
    def set_shape(self, name, least, best, most): self[name] = [tuple(least), tuple(best), tuple(most)]
    def set_shape_input(self, name, least, best, most): self[name] = [list(least), list(best), list(most)]
class Config:
    def __init__(self): self.said = {'flags': [], 'level': None, 'profile': None}
    def set_flag(self, flag): self.said['flags'].append(flag.name)
    builder_optimization_level = property(None, lambda self, n: self.said.update(level=n))
    def create_timing_cache(self, content): self.said['cache'] = len(content); return self
    def set_timing_cache(self, cache, ignore_mismatch): pass
    def get_timing_cache(self): return self
    def serialize(self): return b'timing'
    def add_optimization_profile(self, profile): self.said['profile'] = profile
class Builder:
    def __init__(self, logger):
        self.logger = logger
        if MODE == 'nogpu':
            logger.log(Severity.ERROR, 'CUDA initialization failure with error: 35.')
            raise TypeError('pybind11::init(): factory function returned nullptr')
    def create_network(self, flags): self.flags = flags; return Network()
    def create_builder_config(self): return Config()
    def create_optimization_profile(self): return Profile()
    def build_serialized_network(self, network, config):
        self.logger.log(Severity.VERBOSE, 'not shown')
        if MODE == 'memory':
            self.logger.log(Severity.ERROR, 'Error[10]: Could not find any implementation for node {ForeignNode[/a...b]} due to insufficient workspace.')
            return None
        return json.dumps({**config.said, 'network': self.flags}).encode()
class Error:
    def node(self): return 12
    def node_name(self): return '/a/If'
    def node_operator(self): return 'If'
    def func(self): return 'parseNode'
    def desc(self): return '(OnnxConditional) IIfConditionalOutputLayer inputs must have the same shape.'
class OnnxParser:
    num_errors = 1
    def __init__(self, network, logger): pass
    def parse_from_file(self, path): return MODE != 'parse'
    def get_error(self, i): return Error()
class Context:
    def __init__(self): self.at, self.shapes, self.allocator = {}, {}, None
    def set_tensor_address(self, name, pointer): self.at[name] = pointer; return True
    def set_input_shape(self, name, shape): self.shapes[name] = tuple(shape); return True
    def get_tensor_shape(self, name): return (-1,) if MODE == 'free' else self.shapes['x']
    def set_output_allocator(self, name, allocator): self.allocator = allocator; return True
    def execute_async_v3(self, stream):
        count = self.shapes['x'][0]
        if self.allocator:
            self.at['y'] = self.allocator.reallocate_output('y', 0, 4 * count, 1)
            self.allocator.notify_shape('y', (count,))
        x = (ctypes.c_float * count).from_address(self.at['x'])
        y = (ctypes.c_float * count).from_address(self.at['y'])
        off = 0 if MODE != 'wrong' else .5
        for i in range(count): y[i] = 2 * x[i] + off
        return MODE != 'norun'
class Engine:
    names = ['x', *(['size'] if MODE == 'shape' else []), 'y']
    num_io_tensors = len(names)
    def get_tensor_name(self, i): return self.names[i]
    def get_tensor_mode(self, name): return TensorIOMode.OUTPUT if name == 'y' else TensorIOMode.INPUT
    def get_tensor_dtype(self, name): return DataType.FP4 if MODE == 'fp4' else DataType.FLOAT
    def get_tensor_shape(self, name): return (-1,)
    def is_shape_inference_io(self, name): return name == 'size'
    def create_execution_context(self): return Context()
class Runtime:
    def __init__(self, logger): pass
    def deserialize_cuda_engine(self, content): return Engine()
"""
CUDA = """
import ctypes, os
class cudaMemcpyKind: cudaMemcpyHostToDevice = 1; cudaMemcpyDeviceToHost = 2
class cudaStreamCaptureMode: cudaStreamCaptureModeGlobal = 0
kept = []
def cudaStreamCreate(): return (100 if os.environ.get('STAND_IN') == 'nocuda' else 0, 7)
def cudaMalloc(n): kept.append((ctypes.c_char * n)()); return 0, ctypes.addressof(kept[-1])
def cudaMemcpyAsync(to, source, n, kind, stream): ctypes.memmove(to, source, n); return (0,)
def cudaStreamSynchronize(stream): return (0,)
def cudaStreamBeginCapture(stream, mode): return (900,)  # some engines cannot be recorded
"""


class PythonApi(Folders):
    def setUp(self):
        super().setUp()
        modules = self.place / "modules"
        (modules / "cuda/bindings").mkdir(parents=True)
        (modules / "tensorrt.py").write_text(TENSORRT)
        (modules / "cuda/bindings/runtime.py").write_text(CUDA)
        (modules / "torch.py").write_text("raise ImportError('no torch here')\n")
        self.python = self.script("python", "import os, sys\nos.environ['PYTHONPATH'] = %r\nos.execv(sys.executable, [sys.executable, *sys.argv[1:]])\n" % str(modules))
        self.golden = self.place / "golden.safetensors"
        self.cases({"case0.input.x": floats((2,), [1, 2]), "case0.output.y": floats((2,), [2, 4])})
        (self.place / "m.onnx").write_text("onnx")
        self.report = {"inputs": [{"name": "x", "type": "float", "shape": "[n]"}], "spots": []}
        self.out = self.place / "run"

    def cases(self, values):
        tensors.write(self.golden, values)

    def go(self, mode="", more=(), code=0, python=None, version="10.3.0"):
        """Records by (level, configuration)."""
        mk = self.script("mk", f"print({json.dumps(self.report)!r})\n")
        argv = [str(self.place / "m.onnx"), "--out", str(self.out), "--golden", str(self.golden), "--device", "cpu", "--passes", "1", "--rounds", "1", "--levels", "L2,L3",
                "--shapes", "x=2", "--python", python or self.python, "--trtexec", "/nowhere/trtexec", *more]  # fmt: skip
        env = {"MK_PROGRAM": mk, "STAND_IN": mode, "STAND_IN_VERSION": version}
        with mock.patch.dict(os.environ, env), mock.patch("sys.stdout"), mock.patch("sys.stderr") as err, \
                mock.patch.object(machine, "commit", lambda *_: "0123abc"):  # fmt: skip
            self.assertEqual(verify.main(argv), code, str(err.mock_calls))
        if code == 2:
            return str(err.mock_calls)
        return {(r["level"], r["configuration"]): r for r in json.loads((self.out / "records.json").read_text())}

    def test_builds_runs_and_is_timed(self):
        kept = self.go()
        built = kept["L2", "trt-fp16"]
        self.assertEqual((built["outcome"], built["runtime"], built["facts"]["tool"]), ("ok", "TensorRT 10.3.0", "Python API"))
        said = json.loads((self.out / "work/trt-fp16.engine").read_text())
        self.assertEqual(said, {"flags": ["FP16"], "level": 5, "profile": {"x": [[2], [2], [2]]}, "cache": 0, "network": 0})
        self.assertEqual((self.out / "work/trt-fp16.timing").read_bytes(), b"timing")
        judged = kept["L3", "trt-fp32"]
        self.assertTrue(judged["accuracy"]["pass"], judged)
        self.assertGreater(judged["speed"]["p50_ms"], 0)
        self.assertIn("no CUDA graph", (self.out / "logs/L3-trt-fp32.log").read_text())
        self.assertEqual(kept["L2", "trt-strong"]["reason"]["class"], "tool-missing")  # AutoCast

    def test_outputs_whose_shape_follows_from_data(self):
        self.assertTrue(self.go("free")["L3", "trt-fp32"]["accuracy"]["pass"])

    def test_wrong_answers_are_seen(self):
        self.assertFalse(self.go("wrong")["L3", "trt-fp32"]["accuracy"]["pass"])

    def test_failures_have_their_reasons(self):
        for mode, level, outcome, kind in (
            ("parse", "L2", "failed", "conditional-rank-mismatch"), ("memory", "L2", "failed", "no-implementation"),
            ("nogpu", "L2", "skipped", "device-missing"), ("nocuda", "L3", "failed", "device-missing"), ("norun", "L3", "failed", "exit-code"),
            ("fp4", "L3", "failed", "exit-code"),
        ):  # fmt: skip
            with self.subTest(mode):
                self.out = self.place / mode
                found = self.go(mode, code=1 if outcome == "skipped" else 0)[level, "trt-fp32"]
                self.assertEqual((found["outcome"], found["reason"]["class"]), (outcome, kind), found["reason"])
        self.out = self.place / "parse"
        self.assertIn("/a/If", self.go("parse")["L2", "trt-fp32"]["reason"]["node"])

    def test_version_8_wants_explicit_batch_and_11_has_no_fp16(self):
        self.go(version="8.6.1")
        self.assertEqual(json.loads((self.out / "work/trt-fp32.engine").read_text())["network"], 1)
        self.out = self.place / "eleven"
        self.assertEqual(self.go(version="11.4.0")["L2", "trt-fp16"]["reason"]["class"], "not-in-this-version")

    def test_neither_is_there(self):
        kept = self.go(python="/nowhere/python", code=1)
        self.assertIn("trtexec is neither", kept["L2", "trt-fp32"]["reason"]["text"])
        self.assertIn("/nowhere/python has no tensorrt", kept["L2", "trt-fp32"]["reason"]["text"])

    def shape_input(self, *values):
        self.report = {"inputs": [{"name": "x", "type": "float", "shape": "[n]"}, {"name": "size", "type": "int64", "shape": "[1]"}],
                       "spots": [{"id": "S1", "structures": [{"kind": "a value becomes a shape", "note": "the shape follows from what 'size' holds"}]}]}  # fmt: skip
        cases = {}
        for k, value in enumerate(values):
            cases.update({f"case{k}.input.x": floats((2,), [1, 2]), f"case{k}.output.y": floats((2,), [2, 4])})
            if value is not None:
                cases[f"case{k}.input.size"] = Tensor("I64", (1,), value.to_bytes(8, "little", signed=True))
        self.cases(cases)

    def test_inputs_whose_value_is_a_shape(self):
        self.shape_input(64, 64)
        kept = self.go("shape")
        self.assertEqual(json.loads((self.out / "work/trt-fp32.engine").read_text())["profile"], {"x": [[2]] * 3, "size": [[64]] * 3})
        self.assertIn("--shapes=x:2,size:64", kept["L2", "trt-fp32"]["command"])
        self.assertEqual(kept["L2", "trt-fp32"]["shapes"], "x 2, size 1, size = 64")
        self.assertTrue(kept["L3", "trt-fp32"]["accuracy"]["pass"])

    def test_values_that_an_engine_cannot_be_built_for(self):
        for values, words in (((64, 32), "several values ([64], [32])"), ((-1,), "[-1] is none"), ((None,), "no value for it")):
            self.shape_input(*values)
            self.assertIn(words, self.go("shape", code=2))

    def test_only_whole_numbers_of_one_dim_become_shapes(self):
        structure = {"kind": "a value becomes a shape", "note": "the shape follows from what 'a' holds"}
        for kind, shape, expected in (("int64", "[2]", ["a"]), ("int32", "[]", ["a"]), ("float", "[2]", []), ("int64", "[2, 2]", [])):
            report = {"inputs": [{"name": "a", "type": kind, "shape": shape}], "spots": [{"id": "S1", "structures": [structure]}]}
            self.assertEqual(models.value_inputs(report), expected)
        self.assertEqual(models.value_inputs({"inputs": []}), [])


if __name__ == "__main__":
    unittest.main()

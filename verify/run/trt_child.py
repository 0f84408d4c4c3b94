"""TensorRT's Python API behind the options of trtexec that level_trt.py uses, for machines that have the one without the other.

  trt_child.py --onnx=F --saveEngine=F [--fp16] [--stronglyTyped] [--shapes=NAME:1x3,...] [--builderOptimizationLevel=N] [--timingCacheFile=F]
  trt_child.py --loadEngine=F --loadInputs=NAME:F,... [--shapes=...] [--iterations=N] [--warmUp=MS] [--exportOutput=F] [--exportTimes=F]

Prints what TensorRT says, as trtexec does, so that trtlog.py reads both. Needs tensorrt; to run an engine also PyTorch with CUDA, or
cuda-python. Exit code 1: it failed, and the log says why.
"""

from __future__ import annotations

import ctypes
import json
import math
import sys
import time
from pathlib import Path

HERE = Path(__file__).absolute().parent
sys.path.insert(0, str(HERE))

from tensors import SIZES, Tensor  # noqa: E402

NAMES = {"FLOAT": "F32", "HALF": "F16", "BF16": "BF16", "INT32": "I32", "INT64": "I64", "INT8": "I8", "UINT8": "U8", "BOOL": "BOOL"}


class Failed(Exception):
    """Why; the log has TensorRT's own words."""


def say(level: str, text: str) -> None:
    print(f"[{level}] [TRT] {text}", flush=True)


def options_of(argv: list[str]) -> dict[str, str]:
    return dict(one.lstrip("-").partition("=")[::2] for one in argv)


def pairs(text: str) -> dict[str, str]:
    """"a:1x2,b:3" """
    return dict(one.partition(":")[::2] for one in text.split(",") if one)


def shapes_of(options: dict[str, str]) -> dict[str, tuple[int, ...]]:
    return {name: tuple(int(d) for d in dims.split("x") if d) for name, dims in pairs(options.get("shapes", "")).items()}


def address_of(buffer: bytearray) -> int:
    return ctypes.addressof((ctypes.c_char * len(buffer)).from_buffer(buffer))


def logger_of(trt):
    """A logger that prints as trtexec does."""

    class Log(trt.ILogger):
        def __init__(self):
            trt.ILogger.__init__(self)

        def log(self, severity, message):
            level = {"INTERNAL_ERROR": "E", "ERROR": "E", "WARNING": "W", "INFO": "I"}.get(str(severity).rpartition(".")[2])
            if level:
                say(level, message)

    return Log()


def parse(trt, builder, logger, options: dict[str, str]):
    """(network, parser) of the ONNX file; the parser owns what the network refers to."""
    kinds, flags = trt.NetworkDefinitionCreationFlag, 0
    for name, wanted in (("EXPLICIT_BATCH", int(trt.__version__.split(".")[0]) < 10), ("STRONGLY_TYPED", "stronglyTyped" in options)):
        if wanted and hasattr(kinds, name):
            flags |= 1 << int(getattr(kinds, name))
    network = builder.create_network(flags)
    parser = trt.OnnxParser(network, logger)
    if not parser.parse_from_file(options["onnx"]):
        for i in range(parser.num_errors):
            error = parser.get_error(i)
            told = f" with name: {error.node_name()} and operator: {error.node_operator()}" if hasattr(error, "node_operator") else ""
            say("E", f"In node {error.node()}{told} ({error.func()}): {error.desc()}")
        raise Failed("Failed to parse ONNX file")
    return network, parser


def profile_of(builder, network, given: dict[str, tuple[int, ...]]):
    """An optimization profile where the network has free dims or inputs whose values are a shape; else None."""
    profile, free = builder.create_optimization_profile(), False
    for i in range(network.num_inputs):
        tensor = network.get_input(i)
        if tensor.is_shape_tensor:
            if tensor.name not in given:
                raise Failed(f"{tensor.name}: dynamic or shape inputs, but no optimization profile has been defined")
            profile.set_shape_input(tensor.name, *[list(given[tensor.name])] * 3)
        elif -1 in tuple(tensor.shape):
            if tensor.name not in given:
                raise Failed(f"{tensor.name}: dynamic or shape inputs, but no optimization profile has been defined")
            profile.set_shape(tensor.name, *[given[tensor.name]] * 3)
        else:
            continue
        free = True
    return profile if free else None


def build(trt, options: dict[str, str]) -> None:
    """The engine as a file."""
    logger = logger_of(trt)
    trt.init_libnvinfer_plugins(logger, "")
    builder = trt.Builder(logger)
    network, parser = parse(trt, builder, logger, options)
    config = builder.create_builder_config()
    if options.get("builderOptimizationLevel"):
        config.builder_optimization_level = int(options["builderOptimizationLevel"])
    if "fp16" in options:
        config.set_flag(trt.BuilderFlag.FP16)
    kept = Path(options["timingCacheFile"]) if options.get("timingCacheFile") else None
    cache = config.create_timing_cache(kept.read_bytes() if kept and kept.is_file() else b"")
    config.set_timing_cache(cache, False)
    profile = profile_of(builder, network, shapes_of(options))
    if profile is not None:
        config.add_optimization_profile(profile)
    engine = builder.build_serialized_network(network, config)
    del parser
    if engine is None:
        raise Failed("Engine could not be created from network")
    Path(options["saveEngine"]).write_bytes(bytes(engine))
    if kept:
        kept.write_bytes(bytes(config.get_timing_cache().serialize()))


class TorchMemory:
    """Device memory, a stream and graphs by PyTorch."""

    name = "PyTorch"

    def __init__(self):
        import torch

        if not torch.cuda.is_available():
            raise Failed("no CUDA-capable device for PyTorch")
        self.torch, self.stream, self.kept = torch, torch.cuda.Stream(), []

    @property
    def handle(self) -> int:
        return self.stream.cuda_stream

    def take(self, count: int) -> int:
        self.kept.append(self.torch.empty(max(count, 1), dtype=self.torch.uint8, device="cuda"))
        return self.kept[-1].data_ptr()

    def host(self, content: bytes | int):
        """Pinned memory with `content`, or of that many bytes."""
        count = content if isinstance(content, int) else len(content)
        made = self.torch.empty(max(count, 1), dtype=self.torch.uint8, pin_memory=True)
        if not isinstance(content, int) and count:
            made[:count] = self.torch.frombuffer(bytearray(content), dtype=self.torch.uint8)
        return made

    def _device(self, pointer: int):
        return next(one for one in self.kept if one.data_ptr() == pointer)

    def copy_in(self, pointer: int, host) -> None:
        with self.torch.cuda.stream(self.stream):
            self._device(pointer)[: host.numel()].copy_(host, non_blocking=True)

    def copy_out(self, host, pointer: int) -> None:
        with self.torch.cuda.stream(self.stream):
            host.copy_(self._device(pointer)[: host.numel()], non_blocking=True)

    def bytes_of(self, host, count: int) -> bytes:
        return bytes(host[:count].tolist())

    def wait(self) -> None:
        self.stream.synchronize()

    def graph(self, launch):
        """`launch` recorded; a function that replays it."""
        graph = self.torch.cuda.CUDAGraph()
        with self.torch.cuda.graph(graph, stream=self.stream):
            launch()

        def replay() -> None:
            with self.torch.cuda.stream(self.stream):
                graph.replay()

        return replay


class CudaMemory:
    """The same by cuda-python."""

    name = "cuda-python"

    def __init__(self):
        try:
            from cuda.bindings import runtime
        except ImportError:
            from cuda import cudart as runtime
        self.api = runtime
        self.handle = self._ok(runtime.cudaStreamCreate())

    def _ok(self, answer):
        error, *rest = answer
        if int(error) != 0:
            raise Failed(f"CUDA error {error}")
        return rest[0] if rest else None

    def take(self, count: int) -> int:
        return int(self._ok(self.api.cudaMalloc(max(count, 1))))

    def host(self, content: bytes | int):
        return bytearray(content)

    def copy_in(self, pointer: int, host) -> None:
        if host:
            self._ok(self.api.cudaMemcpyAsync(pointer, address_of(host), len(host), self.api.cudaMemcpyKind.cudaMemcpyHostToDevice, self.handle))

    def copy_out(self, host, pointer: int) -> None:
        if host:
            self._ok(self.api.cudaMemcpyAsync(address_of(host), pointer, len(host), self.api.cudaMemcpyKind.cudaMemcpyDeviceToHost, self.handle))

    def bytes_of(self, host, count: int) -> bytes:
        return bytes(host[:count])

    def wait(self) -> None:
        self._ok(self.api.cudaStreamSynchronize(self.handle))

    def graph(self, launch):
        self._ok(self.api.cudaStreamBeginCapture(self.handle, self.api.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal))
        launch()
        made = self._ok(self.api.cudaGraphInstantiate(self._ok(self.api.cudaStreamEndCapture(self.handle)), 0))
        return lambda: self._ok(self.api.cudaGraphLaunch(made, self.handle))


def memory():
    """PyTorch's where it has CUDA, else cuda-python's."""
    why = []
    for kind in (TorchMemory, CudaMemory):
        try:
            return kind()
        except (ImportError, OSError, Failed, RuntimeError) as error:
            why.append(f"{kind.name}: {error}")
    raise Failed("device memory: no CUDA-capable device is reached by " + "; ".join(why))


def allocator_of(trt, memory_):
    """For outputs whose shape follows from data."""

    class Outputs(trt.IOutputAllocator):
        def __init__(self):
            trt.IOutputAllocator.__init__(self)
            self.pointers, self.shapes, self.sizes = {}, {}, {}

        def reallocate_output(self, name, old, size, alignment):
            if size > self.sizes.get(name, -1):
                self.pointers[name], self.sizes[name] = memory_.take(size), size
            return self.pointers[name]

        def reallocate_output_async(self, name, old, size, alignment, stream):
            return self.reallocate_output(name, old, size, alignment)

        def notify_shape(self, name, shape):
            self.shapes[name] = tuple(shape)

    return Outputs()


class Engine:
    """An engine with its tensors on the device."""

    def __init__(self, trt, options: dict[str, str]):
        self.trt, self.memory, logger = trt, memory(), logger_of(trt)
        trt.init_libnvinfer_plugins(logger, "")
        self.runtime = trt.Runtime(logger)
        self.engine = self.runtime.deserialize_cuda_engine(Path(options["loadEngine"]).read_bytes())
        if self.engine is None:
            raise Failed("Engine deserialization failed")
        self.context = self.engine.create_execution_context()
        self.allocator = allocator_of(trt, self.memory)
        files, shapes = pairs(options.get("loadInputs", "")), shapes_of(options)
        names = [self.engine.get_tensor_name(i) for i in range(self.engine.num_io_tensors)]
        inputs = [n for n in names if self.engine.get_tensor_mode(n) == trt.TensorIOMode.INPUT]
        self.outputs, self.moves, self.results, self.kept = [n for n in names if n not in inputs], [], {}, []
        for name in inputs:
            self._input(name, Path(files[name]) if name in files else None, shapes)
        for name in self.outputs:
            self._output(name)

    def _kind(self, name: str) -> str:
        kind = str(self.engine.get_tensor_dtype(name)).rpartition(".")[2]
        if kind not in NAMES:
            raise Failed(f"{name}: elements of {kind} are not read here")
        return NAMES[kind]

    def _input(self, name: str, path: Path | None, shapes: dict) -> None:
        if path is None:
            raise Failed(f"{name}: --loadInputs names no file for it")
        content = path.read_bytes()
        if self.engine.is_shape_inference_io(name):
            self.kept.append(bytearray(content))
            self.context.set_tensor_address(name, address_of(self.kept[-1]))  # such values are read on the host
            return
        shape = shapes.get(name) or tuple(self.engine.get_tensor_shape(name))
        need = math.prod(shape) * SIZES[self._kind(name)]
        if need != len(content):
            raise Failed(f"{name}: {len(content)} bytes in {path.name}, {'x'.join(map(str, shape))} of {self._kind(name)} has {need}")
        if not self.context.set_input_shape(name, shape):
            raise Failed(f"{name}: the engine does not take {'x'.join(map(str, shape))}")
        pointer = self.memory.take(need)
        self.moves.append((pointer, self.memory.host(content)))
        self.context.set_tensor_address(name, pointer)

    def _output(self, name: str) -> None:
        shape = tuple(self.context.get_tensor_shape(name))
        if -1 in shape:
            self.context.set_output_allocator(name, self.allocator)
            return
        size = math.prod(shape) * SIZES[self._kind(name)]
        pointer = self.memory.take(size)
        self.context.set_tensor_address(name, pointer)
        self.results[name] = (pointer, self.memory.host(size), shape)

    def launch(self) -> None:
        if not self.context.execute_async_v3(self.memory.handle):
            raise Failed("the engine did not run")

    def once(self, run) -> float:
        """Seconds of one pass with its copies in and out."""
        began = time.perf_counter()
        for pointer, host in self.moves:
            self.memory.copy_in(pointer, host)
        run()
        for pointer, host, _ in self.results.values():
            self.memory.copy_out(host, pointer)
        self.memory.wait()
        return time.perf_counter() - began

    def runner(self, wants_graph: bool):
        """`launch`, or its graph where it can be recorded."""
        if not wants_graph or len(self.results) != len(self.outputs):
            return self.launch
        try:
            return self.memory.graph(self.launch)
        except Exception as error:  # noqa: BLE001, some engines synchronise while they run
            say("W", f"no CUDA graph: {error}")
            return self.launch

    def answers(self) -> list[dict]:
        out = []
        for name in self.outputs:
            if name in self.results:
                _, host, shape = self.results[name]
            else:
                shape = self.allocator.shapes[name]
                host = self.memory.host(math.prod(shape) * SIZES[self._kind(name)])
                self.memory.copy_out(host, self.allocator.pointers[name])
                self.memory.wait()
            count = math.prod(shape) * SIZES[self._kind(name)]
            values = Tensor(self._kind(name), shape, self.memory.bytes_of(host, count)).values()
            out.append({"name": name, "dimensions": "x".join(map(str, shape)), "values": list(map(float, values))})
        return out


def run(trt, options: dict[str, str]) -> None:
    """Passes of an engine; its answers and times as files."""
    engine = Engine(trt, options)
    engine.once(engine.launch)
    passes, end = engine.runner("useCudaGraph" in options), time.monotonic() + float(options.get("warmUp") or 0) / 1e3
    while time.monotonic() < end:
        engine.once(passes)
    times = [engine.once(passes) for _ in range(int(options.get("iterations") or 1))]
    say("I", f"{len(times)} passes, memory by {engine.memory.name}, {'no ' if passes == engine.launch else ''}CUDA graph")
    if options.get("exportOutput"):
        Path(options["exportOutput"]).write_text(json.dumps(engine.answers()), encoding="utf-8")
    if options.get("exportTimes"):
        Path(options["exportTimes"]).write_text(json.dumps([{"latencyMs": 1e3 * t} for t in times]), encoding="utf-8")


def main(argv: list[str]) -> int:
    options = options_of(argv)
    try:
        import tensorrt as trt
    except Exception as error:  # noqa: BLE001, a broken installation may fail in any way
        say("E", f"tensorrt cannot be imported: {error}")
        return 1
    print(f"&&&& RUNNING TensorRT.python # TensorRT version: {trt.__version__}", flush=True)
    try:
        if "saveEngine" in options:
            build(trt, options)
        elif "loadEngine" in options:
            run(trt, options)
        return 0
    except Failed as error:
        say("E", str(error))
    except Exception as error:  # noqa: BLE001
        say("E", f"{type(error).__name__}: {error}")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

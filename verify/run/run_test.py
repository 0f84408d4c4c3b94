"""The runner without PyTorch, TensorRT or a board: pure parts by tables, levels with fake children."""

import json
import math
import os
import pathlib
import signal
import stat
import sys
import tempfile
import time
import unittest
from unittest import mock

HERE = pathlib.Path(__file__).absolute().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent / "results")]
import child  # noqa: E402
import compare  # noqa: E402
import level_ours  # noqa: E402
import level_torch  # noqa: E402
import level_trt  # noqa: E402
import machine  # noqa: E402
import main as verify  # noqa: E402
import models  # noqa: E402
import records  # noqa: E402
import schema  # noqa: E402
import tensors  # noqa: E402
import timing  # noqa: E402
from level import Job  # noqa: E402
from tensors import Tensor, floats  # noqa: E402

NAN, INF = float("nan"), float("inf")


class Folders(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.place = pathlib.Path(holder.name)

    def script(self, name, text):
        """An executable Python program."""
        path = self.place / name
        path.write_text(f"#!{sys.executable}\n{text}")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return str(path)


class Comparing(unittest.TestCase):
    def judge(self, want, got, limits=compare.Limits()):
        return compare.compare_tensor(want, got, limits)

    def test_nan_and_infinity(self):  # field case D27
        table = [
            ("all NaN", [1, 2], [NAN, NAN], False, "must be 1"),
            ("both NaN", [1, NAN], [1, NAN], False, "not finite"),
            ("inf where inf", [1, INF], [1, INF], True, ""),
            ("inf of the other sign", [1, INF], [1, -INF], False, "must be inf"),
            ("finite where inf", [1, INF], [1, 2], False, "must be inf"),
            ("zero for small", [1e-6] * 4, [0] * 4, False, "rel_l2"),
            ("minus zero", [0.0, 1], [-0.0, 1], True, ""),
            ("zeros", [0.0, 0.0], [0.0, 0.0], True, ""),
        ]
        for name, want, got, good, why in table:
            with self.subTest(name):
                answer = self.judge(floats((len(want),), want), floats((len(got),), got))
                self.assertEqual(answer["pass"], good, answer)
                self.assertIn(why, answer["why"])

    def test_one_wrong_element_of_many(self):
        want = [math.sin(i) for i in range(100_000)]
        got = list(want)
        got[77_777] += 0.1  # rel_l2 4e-4 would pass
        answer = self.judge(floats((100_000,), want), floats((100_000,), got))
        self.assertLess(answer["rel_l2"], 1e-3)
        self.assertFalse(answer["pass"])
        self.assertEqual(answer["worst"], 77_777)

    def test_shapes_types_and_absence(self):
        want = floats((2, 2), [1, 2, 3, 4])
        self.assertIn("must be [2, 2]", self.judge(want, floats((4,), [1, 2, 3, 4]))["why"])
        self.assertIn("missing", self.judge(want, None)["why"])
        self.assertIn("empty", self.judge(floats((0,), []), floats((0,), []))["why"])
        ids = Tensor("I32", (2,), b"\1\0\0\0\2\0\0\0")
        self.assertTrue(self.judge(ids, ids)["pass"])
        self.assertIn("element 1 is 3", self.judge(ids, Tensor("I32", (2,), b"\1\0\0\0\3\0\0\0"))["why"])
        self.assertIn("type", self.judge(ids, floats((2,), [1, 2]))["why"])

    def test_tasks(self):
        self.assertEqual(compare.top_k([1, 3, 3, NAN, 2], 3), [1, 2, 4])
        self.assertEqual(compare.iou_of_masks([1, 1, -1, NAN], [1, -1, 1, 1]), 0.25)
        self.assertEqual(compare.iou_of_masks([-1], [-1]), 1.0)
        self.assertEqual(compare.iou_of_boxes([0, 0, 2, 2], [1, 0, 3, 2]), 1 / 3)
        self.assertEqual(compare.iou_of_boxes([0, 0, 2, 2], [NAN, 0, 3, 2]), 0)
        box = [0, 0, 2, 2]
        self.assertEqual(compare.match_boxes([box], [box], 0.5), 1)
        self.assertEqual(compare.match_boxes([box], [box, box], 0.5), 0.5)  # surplus costs
        self.assertEqual(compare.match_boxes([], [], 0.5), 1)

    def test_a_task_that_fails_fails_what_the_numbers_pass(self):
        golden = [{"input": {}, "output": {"logits": floats((3,), [1.0, 1.001, 0])}}]
        task = {"kind": "top-k", "output": "logits", "k": 1, "least": 1.0}
        loose = compare.Limits(rel_l2=0.1, max_rel=0.1)
        answer = compare.compare(golden, {"case0.output.logits": floats((3,), [1.001, 1.0, 0])}, loose, task)
        self.assertEqual((answer["pass"], answer["task"]["score"]), (False, 0))
        self.assertFalse(compare.compare(golden, {}, loose, task)["pass"])
        self.assertFalse(compare.compare([{"input": {}, "output": {}}], {}, loose, None)["pass"])


class Files(Folders):
    def test_safetensors_round(self):
        path = self.place / "a.safetensors"
        given = {"a": floats((2,), [1, 2]), "b": Tensor("U8", (3,), b"\1\2\3"), "h": Tensor("F16", (1,), b"\0\x3c"),
                 "g": Tensor("BF16", (1,), b"\x80\x3f")}  # fmt: skip
        tensors.write(path, given, {"k": "v"})
        self.assertEqual(tensors.read(path), (given, {"k": "v"}))
        self.assertEqual(given["h"].values() + given["g"].values(), [1.0, 1.0])

    def test_malformed_files_are_refused(self):
        path = self.place / "a.safetensors"
        entry = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
        for change in ({"dtype": "F12"}, {"shape": [3]}, {"shape": [-2]}, {"data_offsets": [0, 9]}, {"shape": None}):
            text = json.dumps({"a": {**entry, **change}}).encode()
            path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(8))
            with self.assertRaises(tensors.Malformed, msg=change):
                tensors.read(path)
        for bytes_ in (b"", b"\xff" * 8, b"\4\0\0\0\0\0\0\0nope"):
            path.write_bytes(bytes_)
            with self.assertRaises(tensors.Malformed):
                tensors.read(path)

    def test_cases(self):
        one = floats((1,), [1])
        cases = tensors.cases_of({"case0.input.x": one, "case0.output.y": one, "case1.output.y.z": one})
        self.assertEqual(list(cases[1]["output"]), ["y.z"])
        for name in ("case1.input.x", "other", "case0.middle.x"):
            with self.assertRaises(tensors.Malformed):
                tensors.cases_of({name: one})


class Children(Folders):
    def run_python(self, text, **caps):
        log = self.place / "log"
        return child.run([sys.executable, "-c", text], child.Caps(**{"seconds": 60, **caps}), log), log

    def test_end_log_and_peak(self):
        ended, log = self.run_python("import sys; x = bytearray(60 << 20); print('out'); print('err', file=sys.stderr); sys.exit(3)")
        self.assertEqual((ended.cause, ended.code), ("exited", 3))
        self.assertIn("out", log.read_text())
        self.assertIn("err", log.read_text())
        self.assertGreater(ended.memory["peak_resident_bytes"], 60 << 20)

    def test_time_cap_ends_the_whole_group(self):
        text = ("import subprocess, sys, time; p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']);"
                "print(p.pid, flush=True); time.sleep(60)")  # fmt: skip
        began = time.monotonic()
        ended, log = self.run_python(text, seconds=1)
        self.assertEqual(ended.cause, "timeout")
        self.assertIn("1 s", ended.text)
        self.assertLess(time.monotonic() - began, 20)
        grandchild = int(log.read_text().split()[-1])
        for _ in range(100):  # it is reaped by whoever adopted it
            try:
                state = pathlib.Path(f"/proc/{grandchild}/stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                return
            if state == "Z":
                return
            time.sleep(0.05)
        self.fail("the grandchild lives on")

    def test_memory_cap(self):
        ended, _ = self.run_python("import time\nx = []\nwhile True: x.append(bytearray(8 << 20)); time.sleep(.01)", memory_bytes=200 << 20)
        self.assertEqual(ended.cause, "memory")
        self.assertIn("the cap is 200 MiB", ended.text)

    def test_floor_of_the_machine(self):
        ended, _ = self.run_python("import time; time.sleep(60)", floor_bytes=1 << 60)
        self.assertEqual(ended.cause, "floor")

    def test_signals_and_absence(self):
        ended, _ = self.run_python("import os; os.kill(os.getpid(), 11)")
        self.assertEqual((ended.cause, ended.code), ("signal", -signal.SIGSEGV))
        ended = child.run(["/nowhere/trtexec"], child.Caps(), self.place / "log")
        self.assertEqual(ended.cause, "no-program")

    def test_no_network(self):
        if not child.network_can_be_cut():
            print("skipped: no network namespace may be made here")
            return
        text = "print(sorted(l.split(':')[0].strip() for l in open('/proc/net/dev') if ':' in l))"
        _, log = self.run_python(text)
        self.assertIn("['lo']", log.read_text())

    SERVER = "import sys\nprint('{\"ready\": {\"a\": 1}}', flush=True)\nfor line in sys.stdin: %s"

    def server(self, body):
        return child.Server([sys.executable, "-c", self.SERVER % body], child.Caps(seconds=20), self.place / "log")

    def test_server(self):
        server = self.server("print('{\"n\": %d}' % len(line), flush=True)")
        self.assertEqual((server.facts, server.ask("abc")), ({"a": 1}, {"n": 4}))
        self.assertTrue(server.close().ok)

    def test_the_cap_of_a_server_is_that_of_an_answer(self):
        server = child.Server([sys.executable, "-c", self.SERVER % "import time; time.sleep(.4); print('{}', flush=True)"],
                              child.Caps(seconds=5), self.place / "log")  # fmt: skip
        server.child.since -= 4.8  # as if it had lived long
        self.assertEqual([server.ask("x"), server.ask("x")], [{}, {}])
        server.child.caps = child.Caps(seconds=0.1)
        with self.assertRaises(child.Gone) as caught:
            server.ask("x")
        self.assertEqual(caught.exception.ended.cause, "timeout")

    def test_servers_that_break_off(self):
        for body, cause, text in (
            ("sys.exit(5)", "exited", ""),
            ("print('no json', flush=True)", "exited", "no answer"),
            ("print('[1]', flush=True)", "exited", "no answer"),
            ("import os; os.abort()", "signal", "SIGABRT"),
        ):
            with self.subTest(body), self.assertRaises(child.Gone) as caught:
                self.server(body).ask("x")
            self.assertEqual(caught.exception.ended.cause, cause)
            self.assertIn(text, caught.exception.ended.text)


class Timing(unittest.TestCase):
    def read(self):
        return {"clocks": {"gpu_hz": 5, "emc_hz": 6, "cpu_hz": None}, "pace": 100.0, "power_mode": "MAXN"}

    def test_strict_alternation_and_warm_ups_apart(self):
        calls = []

        def make(name):
            def block(passes, cold):
                calls.append((name, passes, cold))
                return [0.001 * (i + 1) for i in range(passes)]

            return block

        plan = timing.Plan(rounds=5, passes=50, warm_ups=30)
        series = timing.alternate({"a": make("a"), "b": make("b")}, plan, self.read)
        timed = [c[0] for c in calls if c[1] == 10 and not c[2]]
        self.assertEqual(timed, list("ab" "ba" "ab" "ba" "ab"))
        speed = timing.summary(series["a"])
        self.assertEqual((speed["rounds"], speed["passes"], speed["cold_passes"]), (5, 50, 10))
        self.assertAlmostEqual(speed["p50_ms"], 5)
        self.assertAlmostEqual(speed["p99_ms"], 10)
        self.assertEqual(timing.quartiles([100] * 5 + [70] * 5), [70, 100])  # a drop half way
        self.assertEqual(timing.quartiles([100] * 9 + [40]), [100, 100])  # one reading that was disturbed
        self.assertEqual(speed["clocks"], {"gpu_hz": [5, 5], "emc_hz": [6, 6], "cpu_hz": None})

    def test_one_that_fails_leaves_the_others(self):
        def broken(passes, cold):
            if passes == 10:
                raise RuntimeError("gone")
            return [0.001] * passes

        series = timing.alternate({"a": broken, "b": lambda n, cold: [0.001] * n}, timing.Plan(passes=50), self.read)
        self.assertEqual(series["a"].failed, "gone")
        self.assertEqual(len(series["b"].blocks), 5)

    def test_passes_follow_the_budget(self):
        plan = timing.Plan(rounds=5, passes=100, budget_seconds=40)
        self.assertEqual([timing.passes_per_block(t, plan) for t in (0, 0.001, 1.0, 100.0)], [20, 20, 8, 1])

    def test_percentile(self):
        self.assertEqual([timing.percentile([4, 1, 3, 2], q) for q in (0, 0.5, 0.75, 0.99, 1)], [1, 2, 3, 4, 4])


class Machine(Folders):
    def tree(self, files):
        for name, text in files.items():
            path = self.place / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return str(self.place)

    def test_a_jetson(self):
        root = self.tree({
            "etc/nv_tegra_release": "# R36 (release), REVISION: 4.3, GCID: 1, BOARD: generic, EABI: aarch64\n",
            "proc/device-tree/model": "NVIDIA Jetson Orin NX Engineering Reference Developer Kit\0",
            "proc/meminfo": "MemTotal: 7900000 kB\nMemAvailable: 6000000 kB\n",
            "proc/cpuinfo": "processor : 0\nFeatures : fp asimd asimdhp\nCPU part : 0xd42\n",
            "sys/class/devfreq/17000000.gpu/cur_freq": "918000000\n",
            "sys/kernel/debug/bpmp/debug/clk/emc/rate": "3199000000\n",
            "sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq": "1984000\n",
            "sys/class/thermal/thermal_zone0/temp": "45500\n",
            "sys/class/thermal/thermal_zone0/type": "cpu-thermal\n",
        })  # fmt: skip
        answers = {("nvpmodel", "-q"): "NV Power Mode: MAXN\n0\n", ("dpkg-query", "libnvinfer-bin"): "10.3.0.30-1+cuda12.5",
                   ("jetson_clocks", "--show"): "SOC family:tegra234\n"}  # fmt: skip
        facts = machine.fingerprint(root, lambda *argv: answers.get((argv[0], argv[-1])))
        self.assertEqual((facts["l4t"], facts["jetpack"]), ("R36.4.3", "6.2"))
        self.assertEqual(facts["board"], "NVIDIA Jetson Orin NX Engineering Reference Developer Kit")
        self.assertEqual(facts["state"]["power_mode"], "MAXN (0)")
        self.assertEqual(facts["state"]["clocks"], {"gpu_hz": 918000000, "emc_hz": 3199000000, "cpu_hz": 1984000000})
        self.assertEqual(facts["state"]["temperatures"], {"cpu-thermal": 45.5})
        self.assertEqual(machine.platform_of(facts, "cuda"), "orin-nx-8gb")
        self.assertEqual(records.stack_of(facts), "JetPack 6.2, TensorRT 10.3.0.30-1+cuda12.5")

    def test_any_machine(self):
        facts = machine.fingerprint()
        self.assertGreater(facts["cpu"]["cores"], 0)
        self.assertIn(machine.platform_of(facts, "cpu"), schema.PLATFORMS)
        self.assertGreater(machine.pace(1), 0)
        self.assertTrue(json.dumps(facts))

    def test_nothing_is_guessed(self):
        facts = machine.fingerprint(self.tree({"empty": ""}), lambda *argv: None)
        self.assertEqual((facts["l4t"], facts["jetpack"], facts["gpu"], facts["cuda"]), (None, None, None, None))
        self.assertEqual(facts["state"]["clocks"], {"gpu_hz": None, "emc_hz": None, "cpu_hz": None})

    def test_names(self):
        self.assertEqual(machine.l4t_of("# R35 (release), REVISION: 4.1, GCID"), "R35.4.1")
        self.assertEqual([machine.jetpack_of(v, None) for v in ("R36.4.0", "R36.4.99", None)], ["6.1", None, None])
        self.assertEqual(machine.jetpack_of("R36.4.3", "6.2+b77"), "6.2")


class Shapes(unittest.TestCase):
    free = [{"name": "image", "shape": "[1, 3, max_h, W]"}, {"name": "mask", "shape": "[1, 4]"}]

    def test_free_dims_are_asked_for_never_guessed(self):  # field case D23
        with self.assertRaises(models.Refused) as caught:
            models.fill_shapes(self.free, {})
        self.assertIn("shapes needed for image (max_h, W of 1x3xmax_hxW)", str(caught.exception))
        given = models.parse_shapes(["image=1x3x224x224"])
        self.assertEqual(models.fill_shapes(self.free, given), {"image": [1, 3, 224, 224], "mask": [1, 4]})

    def test_refusals(self):
        for text in ("image", "image=", "image=1x-3", "=1x2", "image=1x0"):
            with self.assertRaises(models.Refused):
                models.parse_shapes([text])
        for given in ({"image": [1, 3, 2]}, {"image": [1, 4, 2, 2]}, {"image": [1, 3, 2, 2], "other": [1]}):
            with self.assertRaises(models.Refused):
                models.fill_shapes(self.free, given)


class TrtFiles(Folders):
    def test_outputs_as_trtexec_writes_them(self):
        path = self.place / "out.json"
        path.write_text('[\n  { "name" : "inf-nan"\n  , "dimensions" : "1x5"\n  , "values" : [ 1.5, -nan, inf, -inf, nan ]\n  }\n]\n')
        values = level_trt.read_outputs(path)["inf-nan"].values()
        self.assertEqual([str(v) for v in values], ["1.5", "nan", "inf", "-inf", "nan"])
        for text in ("", "{", "[{}]", '[{"name": "a", "dimensions": "2", "values": [1]}]', '[{"name": "a", "dimensions": "x", "values": []}]'):
            path.write_text(text)
            with self.assertRaises(tensors.Malformed):
                level_trt.read_outputs(path)

    def test_times(self):
        path = self.place / "times.json"
        path.write_text('[\n  { "startEnqMs" : 1, "latencyMs" : 2.5, "endToEndMs" : 3 }\n, { "latencyMs" : 2 }\n]\n')
        self.assertEqual(level_trt.read_times(path), [0.0025, 0.002])

    def test_whole_numbers_stay_whole(self):
        spec = models.ModelSpec("m", "x", "g", batch_dims=1)
        job = Job(spec, None, {}, child.Caps())
        golden = Tensor("I32", (2,), b"\1\0\0\0\2\0\0\0")
        self.assertEqual(level_trt.as_golden(job, floats((1, 2), [1, 2]), golden), golden)
        self.assertEqual(level_trt.as_golden(job, floats((1, 2), [1, 2.5]), golden).dtype, "F32")
        self.assertEqual(level_trt.as_golden(job, floats((1, 2), [1, NAN]), None).shape, (2,))

    def test_flags_follow_the_version(self):
        self.assertEqual(level_trt.flags("trt-fp16", "10.3.0"), (["--fp16"], ""))
        self.assertIsNone(level_trt.flags("trt-fp16", "11.4.1")[0])
        self.assertEqual(level_trt.flags("trt-strong", "10.3.0")[0], ["--stronglyTyped"])
        self.assertEqual(level_trt.flags("trt-strong", "11.4.1")[0], [])
        self.assertIsNone(level_trt.flags("trt-strong", "8.6.1")[0])


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

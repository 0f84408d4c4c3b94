"""The parts of the runner: comparing, files, children, timing, the fingerprint, shapes, trtexec's files."""

import json
import math
import pathlib
import signal
import sys
import time
import unittest

HERE = pathlib.Path(__file__).absolute().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent / "results")]
import child  # noqa: E402
import compare  # noqa: E402
import level_trt  # noqa: E402
import machine  # noqa: E402
import models  # noqa: E402
import records  # noqa: E402
import schema  # noqa: E402
import tensors  # noqa: E402
import timing  # noqa: E402
from level import Job  # noqa: E402
from folders import Folders  # noqa: E402
from tensors import Tensor, floats  # noqa: E402

NAN, INF = float("nan"), float("inf")


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


if __name__ == "__main__":
    unittest.main()

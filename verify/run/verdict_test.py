"""The words by tables of records."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).absolute().parent))
import verdict  # noqa: E402


def speed(ms, **changes):
    return {"p50_ms": ms, "rounds": 5, "power_modes": ["MAXN"], "pace": [100, 101],
            "clocks": {"gpu_hz": [900, 900], "emc_hz": [3000, 3000], "cpu_hz": None}, **changes}  # fmt: skip


def record(level, configuration, ms=None, good=True, outcome="ok", **changes):
    out = {"model": "m", "platform": "agx-orin-64gb", "stack": "JetPack 6.2", "shapes": "x 1", "level": level, "device": "cuda",
           "configuration": configuration, "outcome": outcome, "reason": None, "facts": {}}  # fmt: skip
    if ms is not None:
        out["speed"] = speed(ms)
    if level != "L2" and outcome == "ok":
        out["accuracy"] = {"pass": good, "why": "" if good else "rel_l2 0.1 > 0.001"}
    if outcome != "ok":
        out["reason"] = {"class": "out-of-memory" if outcome == "failed" else "tool-missing", "text": "told"}
    return {**out, **changes}


def official(*records):
    return verdict.judge(list(records))["official"]


def word(one, *others):
    judged = verdict.judge([*others, one])
    return next(w for w in judged["words"] if (w["level"], w["configuration"]) == (one["level"], one["configuration"]))


OURS = record("L4", "pack", 28.0)
EAGER = record("L1", "eager", 40.0)


class One(unittest.TestCase):
    def test_ratios(self):  # field case D02
        slow = word(record("L3", "trt-fp16", 100.0), OURS, record("L1", "compile", 30.0))
        self.assertEqual(slow["verdict"], "degraded")
        self.assertIn("3.57 times our time", slow["reason"])
        self.assertIn("1.15", slow["reason"])  # the threshold is told
        self.assertAlmostEqual(word(record("L3", "trt-fp16", 100.0), OURS, record("L1", "eager", 30.0))["ratio_to_eager"], 100 / 30)
        self.assertEqual(word(record("L3", "trt-fp16", 31.0), OURS)["verdict"], "competitive")

    def test_level_1(self):  # field case D26
        breaks = record("L1", "compile", 77.7, facts={"graph_breaks": 41})
        table = [
            (record("L1", "compile", outcome="failed", reason={"class": "KeyError", "text": "complex64"}), "unsupported", "KeyError"),
            (breaks, "degraded", "41 graph breaks"),
            (record("L1", "compile", outcome="failed", reason={"class": "timeout", "text": "not done within 1200 s"}), "unsupported", "timeout"),
            (record("L1", "compile", 5.0, good=False), "degraded", "accuracy"),
            (record("L1", "compile", 30.0, facts={"fallback": "complex operators"}), "degraded", "fallback"),
            (record("L1", "compile", outcome="skipped", reason={"class": "pytorch-without-kernels-for-this-board", "text": "sm_87"}),
             "inconclusive", "without-kernels"),
        ]  # fmt: skip
        for one, verdict_, why in table:
            got = word(one, OURS, EAGER)
            self.assertEqual(got["verdict"], verdict_, got)
            self.assertIn(why, got["reason"])
        self.assertIn("1.94 times the time of eager", word(breaks, OURS, EAGER)["reason"])

    def test_a_build_is_no_word(self):
        self.assertEqual(word(record("L2", "trt-fp16"), OURS)["verdict"], "inconclusive")
        self.assertIn("node7", word(record("L2", "x", outcome="failed", reason={"class": "c", "text": "t", "node": "node7"}))["reason"])

    def test_fairness(self):  # field case C12
        table = [
            ("clocks fell", speed(30, clocks={"gpu_hz": [630, 900], "emc_hz": [3000, 3000], "cpu_hz": None}), "clocks moved: gpu_hz by 30%"),
            ("clocks differ between levels", speed(30, clocks={"gpu_hz": [800, 800], "emc_hz": [3000, 3000]}), "clocks moved"),
            ("clocks unknown", speed(30, clocks={"gpu_hz": None, "emc_hz": [3000, 3000]}), "clocks unknown: gpu_hz"),
            ("within 5 %", speed(30, clocks={"gpu_hz": [860, 900], "emc_hz": [3000, 3000]}), ""),
            ("power mode changed", speed(30, power_modes=["15W"]), "power mode changed: 15W, MAXN"),
            ("too few rounds", speed(30, rounds=4), "4 rounds"),
        ]  # fmt: skip
        for name, one, why in table:
            with self.subTest(name):
                got = word(record("L3", "trt-fp16", speed=one), OURS)
                self.assertEqual(got["verdict"], "inconclusive" if why else "competitive", got)
                self.assertIn(why, got["reason"])

    def test_on_the_cpu_the_pace_counts(self):
        cpu = dict(device="cpu", platform="x86-64-cpu")
        ours = record("L4", "pack", 28.0, **cpu)
        self.assertEqual(word(record("L1", "compile", speed=speed(100), **cpu), ours)["verdict"], "degraded")
        moved = word(record("L1", "compile", speed=speed(100, pace=[80, 100]), **cpu), ours)
        self.assertIn("clocks moved: pace", moved["reason"])

    def test_nothing_to_compare_with(self):
        one = record("L3", "trt-fp16", 30.0)
        self.assertIn("nothing of ours", word(one)["reason"])
        self.assertIn("nothing of ours", word(one, record("L4", "pack", outcome="failed"))["reason"])
        self.assertIn("ours is not accurate", word(one, record("L4", "pack", 1.0, good=False))["reason"])
        self.assertIn("not timed", word(record("L3", "trt-fp16"), OURS)["reason"])


class Official(unittest.TestCase):
    no = staticmethod(lambda level, name: record(level, name, outcome="failed"))
    skip = staticmethod(lambda level, name: record(level, name, outcome="skipped"))

    def test_the_best_accurate_configuration_counts(self):
        got = official(OURS, record("L1", "compile", 90.0), record("L2", "trt-fp16"), record("L3", "trt-fp16", 10.0, good=False),
                       record("L2", "trt-strong"), record("L3", "trt-strong", 50.0))  # fmt: skip
        self.assertEqual((got["verdict"], got["best"]), ("degraded", "L3 trt-strong"))

    def test_one_competitive_settles_it(self):
        got = official(OURS, self.skip("L1", "compile"), self.no("L2", "trt-fp16"), record("L2", "trt-fp32"), record("L3", "trt-fp32", 29.0))
        self.assertEqual((got["verdict"], got["best"]), ("competitive", "L3 trt-fp32"))

    def test_unsupported_says_that_all_was_tried(self):
        self.assertEqual(official(OURS, EAGER, self.no("L1", "compile"), self.no("L2", "trt-fp32"))["verdict"], "unsupported")
        got = official(OURS, self.no("L1", "compile"), self.skip("L2", "trt-fp32"), self.skip("L3", "trt-fp32"))
        self.assertEqual(got["verdict"], "inconclusive")
        self.assertIn("not tried: L3 trt-fp32", got["reason"])

    def test_degraded_in_accuracy_alone(self):
        got = official(OURS, self.no("L1", "compile"), record("L2", "trt-fp16"), record("L3", "trt-fp16", 10.0, good=False))
        self.assertEqual(got["verdict"], "degraded")
        self.assertIn("accuracy", got["reason"])

    def test_nothing_tried(self):
        self.assertEqual(official(OURS)["verdict"], "inconclusive")
        self.assertEqual(official(OURS, EAGER)["verdict"], "inconclusive")  # eager alone is the base, not the path

    def test_unfair_timing_withholds_the_word(self):
        got = official(OURS, record("L1", "compile", speed=speed(90, rounds=1)), self.no("L2", "trt-fp32"))
        self.assertEqual(got["verdict"], "inconclusive")

    def test_machines_are_never_mixed(self):  # field case D28
        for change in ({"platform": "thor"}, {"stack": "JetPack 7.2"}, {"model": "n"}, {"shapes": "x 2"}):
            with self.assertRaises(verdict.Refused):
                verdict.judge([OURS, record("L3", "trt-fp16", 30.0, **change)])
        with self.assertRaises(verdict.Refused):
            verdict.judge([record("L3", "trt-fp16", 30.0, platform=None)])

    def test_the_same_records_the_same_words(self):
        records = [OURS, EAGER, self.no("L2", "a"), record("L2", "b"), record("L3", "b", 70.0)]
        self.assertEqual(verdict.judge(records)["official"], verdict.judge(records[::-1])["official"])


if __name__ == "__main__":
    unittest.main()

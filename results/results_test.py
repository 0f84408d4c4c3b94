"""The committed verdict.csv keeps to its format, the READMEs show its matrix, and the rules refuse what they must."""

import contextlib
import io
import json
import pathlib
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).absolute().parent
sys.path.insert(0, str(HERE))
import page  # noqa: E402
import predict  # noqa: E402
import render  # noqa: E402
import schema  # noqa: E402
from matrix import markdown  # noqa: E402

GOOD = dict(
    platform="agx-orin-64gb", model="sam3", level="L3", configuration="trt-fp16", source="reported", verdict="degraded",
    reason="accuracy: iou", latency_ms="12.5", statistic="mean", p99_ms="-", per_second="-", peak_memory_mib="-",
    accuracy_metric="iou", accuracy_value="0.5", shapes="1x3x8x8", runtime="TensorRT 10.3", jetpack="JetPack 6.2",
    cuda="12.6", power_mode="MAXN", date="2026-11-30", commit="-", evidence="a page", note="-",
)  # fmt: skip


def row(**changes):
    return {**GOOD, **changes}


PREDICTED = dict(source="predicted", verdict="-", reason="-", statistic="roofline", evidence="results/evidence/x")
MEASURED = dict(source="measured", statistic="p50", commit="0123abc", evidence="results/evidence/x")


class Schema(unittest.TestCase):
    def only(self, column, rule, **changes):
        """`changes` break exactly one rule, and the message names row, column, value and rule."""
        found = schema.breaches([row(), row(model="other", **changes) if "model" not in changes else row(**changes)])
        self.assertEqual([(b.line, b.column) for b in found], [(3, column)], found)
        self.assertIn(rule, str(found[0]))
        self.assertIn(repr(found[0].value), str(found[0]))

    def test_a_good_row_passes(self):
        self.assertEqual(schema.breaches([row()]), [])
        self.assertEqual(schema.breaches([row(**MEASURED)]), [])

    def test_each_refusal(self):
        self.only("platform", "must be one of", platform="xavier")
        self.only("model", "lower-case", model="SAM 3")
        self.only("configuration", "lower-case", configuration="TRT fp16")
        self.only("level", "must be one of", level="L5")
        self.only("source", "must be one of", source="guessed")
        self.only("verdict", "must be one of", verdict="bad")
        self.only("reason", "must be given", reason="-")
        self.only("latency_ms", "must be a number", latency_ms="12 ms")
        self.only("latency_ms", "above 0", latency_ms="nan")
        self.only("latency_ms", "above 0", latency_ms="-3")
        self.only("statistic", "must say what latency_ms is", statistic="-")
        self.only("accuracy_value", "exactly where", accuracy_value="-")
        self.only("p99_ms", "above 0", p99_ms="inf")
        self.only("runtime", "must name TensorRT", runtime="PyTorch 2.8")
        self.only("date", "YYYY-MM-DD", date="30.11.2026")
        self.only("date", "YYYY-MM-DD", date="2026-02-30")
        self.only("commit", "hexadecimal", commit="main")
        self.only("evidence", "name the source", evidence="-")
        self.only("note", "filled", note="")
        self.only("note", "spaces", note=" x")
        self.only("note", "characters", note="x" * 401)
        self.only("note", "one line", note="a\nb")

    def test_measured_rows_say_more(self):
        self.only("evidence", "below results/evidence/", **{**MEASURED, "evidence": "somewhere"})
        self.only("evidence", "below results/evidence/", **{**MEASURED, "evidence": "results/evidence/../../x"})
        self.only("commit", "must be given", **{**MEASURED, "commit": "-"})
        self.only("statistic", "must be p50", **{**MEASURED, "statistic": "mean"})
        self.only("power_mode", "must be known", **{**MEASURED, "power_mode": "unknown"})
        self.only("runtime", "must be known", **{**MEASURED, "runtime": "TensorRT unknown"})

    def test_evidence_must_be_there(self):
        with tempfile.TemporaryDirectory() as folder:
            found = schema.breaches([row(**MEASURED)], pathlib.Path(folder))
            self.assertEqual([b.column for b in found], ["evidence"])

    def test_words_judge_the_official_path_alone(self):
        self.only("verdict", "must be '-' for L4", level="L4", configuration="pack")
        self.only("verdict", "must be '-' for a predicted row", **{**PREDICTED, "verdict": "competitive"})

    def test_predicted_rows(self):
        self.assertEqual(schema.breaches([row(**PREDICTED)]), [])
        self.only("statistic", "must be roofline for a predicted row", **{**PREDICTED, "statistic": "p50"})
        self.only("statistic", "must not be roofline", statistic="roofline")
        self.only("evidence", "below results/evidence/", **{**PREDICTED, "evidence": "a page"})

    def test_the_same_row_twice(self):
        found = schema.breaches([row(), row(latency_ms="13")])
        self.assertEqual(len(found), 1)
        self.assertIn("must not repeat line 2", str(found[0]))
        self.assertEqual(schema.breaches([row(), row(jetpack="JetPack 7.2")]), [])  # another stack is another row

    def test_head_and_length(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "v.csv"
            path.write_text("platform,model\n")
            self.assertIn("must be the head", str(schema.read(path)[1][0]))
            path.write_text(",".join(schema.COLUMNS) + "\na,b\n")
            self.assertIn("not 2", str(schema.read(path)[1][0]))
            schema.write(path, [row(note='a, "b"')])
            self.assertEqual(schema.read(path), ([row(note='a, "b"')], []))


class Rendering(unittest.TestCase):
    rows = [
        row(),
        row(level="L4", configuration="pack", verdict="-", reason="-", runtime="mergekernel 0.1.0", latency_ms="3", **MEASURED),
        row(level="official", configuration="all", runtime="-", verdict="degraded", reason="4.2 times slower", **MEASURED),
        row(model="m|x", source="predicted", verdict="-", reason="-", level="L4", runtime="mergekernel 0.1.0"),
        row(platform="h200", model="sam3", verdict="-", reason="-", evidence="<script>"),
    ]

    def test_sources_are_apart_in_the_matrix(self):
        text = markdown(self.rows)
        line = next(line for line in text.splitlines() if "`sam3`" in line)
        self.assertIn("**measured** degraded: 4.2 times slower<br>**measured** ours: 3 ms (p50), iou 0.5", line)
        self.assertIn("_reported_ degraded, TensorRT 10.3, trt-fp16: 12.5 ms, iou 0.5", line)
        self.assertIn("~ predicted ours", text)
        self.assertNotIn("H200", text)  # no board of this project
        self.assertIn("2 measured, 1 reported, 1 predicted", text)

    def test_a_row_of_others_is_never_called_ours(self):
        text = markdown([row(level="L4", configuration="pack", verdict="-", reason="-", runtime="owner's kernels")])
        self.assertNotIn("ours", text)

    def test_page(self):
        text = page.html(self.rows, markdown(self.rows))
        self.assertIn("url(#hatch)", text)
        self.assertIn("stroke-dasharray", text)
        self.assertNotIn("<script", text)
        self.assertNotIn("http", text)
        self.assertEqual(text.count("<svg"), text.count("</svg>"))

    def test_readme_drift_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "README.md").write_text("no markers\n")
            self.assertEqual(len(render.readme_breaches(root, "T\n")), 1)
            (root / "README.md").write_text(f"a\n{render.BEGIN}\n\nold\n\n{render.END}\nb\n")
            self.assertIn("run `mk results --readme`", render.readme_breaches(root, "T\n")[0])
            text = render.put_between((root / "README.md").read_text(), "T\n")
            (root / "README.md").write_text(text)
            self.assertEqual(render.readme_breaches(root, "T\n"), [])
            self.assertTrue(text.startswith("a\n") and text.endswith("b\n"))


class Taking(unittest.TestCase):
    def test_a_folder_comes_in_replaces_its_rows_and_bad_ones_change_nothing(self):
        with tempfile.TemporaryDirectory() as name:
            root = pathlib.Path(name)
            (root / "results").mkdir()
            schema.write(root / "results/verdict.csv", [row()])
            folder = root / "run-1"
            (folder / "logs").mkdir(parents=True)
            (folder / "records.json").write_text(json.dumps([]))
            (folder / "run.json").write_text(json.dumps({"name": "../../run-1"}))
            (folder / "logs/a.log").write_text("x")
            (folder / "golden.bin").write_text("not taken")

            def add():
                with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as err:
                    return render.main(["--root", str(root), "--add", str(folder)]), err.getvalue()

            self.assertIn("rows.csv is not there", add()[1])
            schema.write(folder / "rows.csv", [row(**{**MEASURED, "commit": "-"})])
            self.assertEqual(add()[0], 1)
            (folder / "run.json").write_text(json.dumps({"name": "run-1"}))
            self.assertIn("must be given for a measured row", add()[1])
            self.assertEqual(schema.read(root / "results/verdict.csv")[0], [row()])
            schema.write(folder / "rows.csv", [row(**MEASURED)])
            self.assertEqual(add()[0], 0)
            self.assertEqual(add()[0], 0)  # the same again replaces
            rows = schema.read(root / "results/verdict.csv")[0]
            self.assertEqual([r["evidence"] for r in rows], ["a page", "results/evidence/run-1"])
            self.assertTrue((root / "results/evidence/run-1/logs/a.log").exists())
            self.assertFalse((root / "results/evidence/run-1/golden.bin").exists())


class Predicting(unittest.TestCase):
    launch = {"kernel": "mk_a", "bytes": 1, "flops": 2, "tensor_flops": 3, "predicted_us": 400.0}
    one = {
        "source": "predicted", "pack": "vmamba-tiny 1", "board": "orin-nx-8gb", "inputs": [{"name": "image", "datatype": "UINT8", "shape": [8, 8, 3]}],
        "predicted_us": 812.3, "roofline_us": 812.3, "assumed_launch_us": 0.0, "bytes": 1, "flops": 2, "tensor_flops": 3, "weights_bytes": 1 << 20,
        "scratch_peak_bytes": 1 << 19, "rates": {"dram_basis": "scaled", "tensor_basis": "scaled"},
        "launches": [launch, {**launch, "predicted_us": 412.3}],
    }  # fmt: skip

    def add(self, root, found, *more):
        path = root / "explain.json"
        path.write_text(found if isinstance(found, str) else json.dumps(found))
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as err:
            return render.main(["--root", str(root), "--predict", str(path), *more]), err.getvalue()

    def test_predictions_come_in_and_replace_their_rows(self):
        with tempfile.TemporaryDirectory() as name:
            root = pathlib.Path(name)
            (root / "results").mkdir()
            schema.write(root / "results/verdict.csv", [row()])
            self.assertEqual(self.add(root, [self.one, {**self.one, "board": "agx-orin-64gb"}], "--note", "random weights")[0], 0)
            self.assertEqual(self.add(root, self.one)[0], 0)
            rows, found = schema.read(root / "results/verdict.csv")
            self.assertEqual(found + schema.breaches(rows, root), [])
            mine = next(r for r in rows if r["platform"] == "orin-nx-8gb")
            self.assertEqual([mine[c] for c in ("model", "source", "latency_ms", "statistic", "shapes", "verdict", "peak_memory_mib")],
                             ["vmamba-tiny", "predicted", "0.81", "roofline", "image 8x8x3", "-", "-"])  # fmt: skip
            self.assertEqual(mine["evidence"], "results/evidence/predicted-vmamba-tiny-1-8x8x3")
            self.assertTrue(any(r["note"].endswith("; random weights") for r in rows))
            kept = json.loads((root / mine["evidence"] / "explain.json").read_text())
            self.assertEqual(kept[0]["kernels"], [{"kernel": "mk_a", "launches": 2, "bytes": 2, "flops": 4, "tensor_flops": 6, "predicted_us": 812.3}])
            text = markdown(rows)
            self.assertIn("~ predicted ours on Orin NX 8GB, image 8x8x3: ~ 0.81 ms (roofline)", text)
            self.assertIn("~ 0.81 ms, predicted", page.html(rows, text))

    def test_others_change_nothing(self):
        with tempfile.TemporaryDirectory() as name:
            root = pathlib.Path(name)
            (root / "results").mkdir()
            schema.write(root / "results/verdict.csv", [row()])
            for found, words in (
                ("{", "explain"), ([], "no predictions"), ({**self.one, "source": "measured"}, "no predictions"), ({"source": "predicted"}, "KeyError"),
                ({**self.one, "pack": "../x 1"}, "column model"), ({**self.one, "board": "orin-nx-9gb"}, "column platform"),
                ([self.one, {**self.one, "pack": "other 1"}], "several packs"), (5, "TypeError"),
            ):  # fmt: skip
                code, text = self.add(root, found)
                self.assertEqual(code, 1)
                self.assertIn(words, text)
            self.assertEqual(schema.read(root / "results/verdict.csv")[0], [row()])
            self.assertFalse((root / "results/evidence").exists())

    def test_two_digits(self):
        for microseconds, text in ((935.2, "0.94"), (8010.0, "8.0"), (9960.0, "10"), (12345.0, "12"), (5.1, "0.0051"), (123456.0, "123")):
            self.assertEqual(predict.milliseconds(microseconds), text)


class Committed(unittest.TestCase):
    def test_the_file_keeps_to_its_format(self):
        rows, found = render.load(HERE.parent)
        self.assertEqual(found, [])
        self.assertGreater(len(rows), 20)

    def test_the_readmes_show_it(self):
        rows, _ = render.load(HERE.parent)
        self.assertEqual(render.readme_breaches(HERE.parent, markdown(rows)), [])


if __name__ == "__main__":
    unittest.main()

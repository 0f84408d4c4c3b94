"""The front's own judgement, without PyTorch: archives, configs, example inputs, and what an export died of."""

import io
import json
import pathlib
import sys
import unittest
import zipfile

HERE = pathlib.Path(__file__).absolute().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "run")]
import archives  # noqa: E402
import config  # noqa: E402
import inputs  # noqa: E402
import pt2  # noqa: E402
import reasons  # noqa: E402
from folders import Folders  # noqa: E402
from refused import NOT_EXPORTED, Refused  # noqa: E402


class Archives(Folders):
    def check(self, **changes):
        path = self.place / "m.pt2"
        path.write_bytes(archives.program(**changes))
        return pt2.check(path)

    def refused(self, **changes):
        with self.assertRaises(Refused) as caught:
            self.check(**changes)
        return caught.exception.kind, str(caught.exception)

    def test_a_program_passes(self):
        self.assertEqual(self.check(), {"torch_version": "2.13.0"})

    def test_what_loading_would_run_is_refused(self):
        for name, words in (
            ("data/aotinductor/model/x.so", "compiled code"), ("data/weights/model.pt", "pickled"),
            ("data/constants/model.pt", "pickled"), ("data/constants/custom_obj_0", "pickled objects"),
            ("data/constants/opaque_obj_0", "pickled objects"), ("data/executorch/m", "another runtime"),
        ):  # fmt: skip
            with self.subTest(name):
                kind, text = self.refused(more={name: b"x"})
                self.assertEqual(kind, "untrusted")
                self.assertIn(words, text)
        pickled = {"config": {"w": {"path_name": "weight_0", "use_pickle": True}}}
        self.assertEqual(self.refused(weights=pickled)[0], "untrusted")
        for path in ("../weight_0", "weight_0/../x", "custom_obj_0", None):
            self.assertEqual(self.refused(weights={"config": {"w": {"path_name": path, "use_pickle": False}}})[0], "untrusted")
        self.assertEqual(self.refused(root="", more={"serialized_exported_program.json": b"{}"})[0], "untrusted")

    def test_only_known_operators_are_let_through(self):
        for target in ("torch.os.system", "torch.load", "torch.ops.aten.from_file.default", "torch.ops.evil.run.default",
                       "_operator.attrgetter", "_operator.call", "math.__loader__", "#x:y", "os.system", 3, "torch.ops.aten.a.b.c"):  # fmt: skip
            with self.subTest(target):
                self.assertEqual(self.refused(nodes=[{"target": target, "inputs": []}])[0], "foreign-operator")
        self.assertEqual(self.refused(nodes=[{"target": "_operator.add", "inputs": [{"arg": {"as_operator": "torch.load"}}]}])[0],
                         "foreign-operator")  # fmt: skip
        nested = {"as_graph": {"graph": {"nodes": [{"target": "torch.load", "inputs": []}]}}}
        self.assertEqual(self.refused(nodes=[{"target": "torch.ops.higher_order.cond", "inputs": [{"arg": nested}]}])[0], "foreign-operator")
        self.check(nodes=[{"target": "torch.ops.higher_order.cond", "inputs": []}, {"target": "torch.sym_max", "inputs": []}])

    def test_expressions(self):
        for text in ("Symbol('s77', positive=True, integer=True)", "2*s0 + 1", "FloorDiv(s0, 2)", "Mod(s0 + u3, 4)", "s0**2", "0.5*s0",
                     "Max(1, Min(s0, 64))", "Eq(u0, 1)", "(s0 + 1)//2", "CeilToInt(IntTrueDiv(s0, 2))", "oo", "-int_oo"):  # fmt: skip
            self.assertTrue(pt2.is_plain_expression(text), text)
        for text in ("__import__('os').system('x')", "eval(chr(95))", "s0.__class__", "open('x')", "Symbol('__import__(1)')", "s0[0]",
                     "lambda: 1", "exec(s0)", "().__class__", "Symbol('s0').subs(1, 2)", "9**9**999999", "{1}", "s0;s1", "'a'", "print(1)"):  # fmt: skip
            self.assertFalse(pt2.is_plain_expression(text), text)
        self.assertEqual(self.refused(sizes=[{"as_expr": {"expr_str": "exec(1)"}}])[0], "untrusted")
        self.assertEqual(self.refused(sizes=[{"as_expr": {"expr_str": 7}}])[0], "untrusted")

    def test_modules_named_by_an_enumeration(self):
        spec = json.dumps([1, {"type": "builtins.dict", "context": '[{"__enum__": true, "fqn": "os:x"}]'}])
        self.assertEqual(self.refused(in_spec=spec)[0], "untrusted")

    def test_other_files(self):
        path = self.place / "m.pt2"
        for content, words in ((b"", "no zip archive"), (b"text", "no zip archive"), (archives.zipped({"a/data.pkl": b"x"}), "TorchScript"),
                               (archives.zipped({"word/document.xml": b"x"}), "another zip archive"), (archives.zipped({}), "another zip")):  # fmt: skip
            path.write_bytes(content)
            with self.assertRaises(Refused) as caught:
                pt2.check(path)
            self.assertEqual(caught.exception.kind, "no-program")
            self.assertIn(words, str(caught.exception))
        for changes, words in (({"more": {"models/other.json": b"{}"}}, "'model'"), ({"more": {"surplus": b""}}, "surplus"),
                               ({"method": zipfile.ZIP_DEFLATED}, "compressed"), ({"model": b"{"}, "model.json"), ({"model": b"[]"}, "graph_module"),
                               ({"model": b"[" * 100000}, "model.json"), ({"weights": []}, "'config'"), ({"without": "models/model.json"}, "missing")):  # fmt: skip
            self.assertIn(words, self.refused(**changes)[1])

    def test_broken_archives_end_in_a_reason(self):
        whole = archives.program()
        path = self.place / "m.pt2"
        for cut in range(0, len(whole), 37):
            for content in (whole[:cut], whole[:cut] + bytes([whole[cut] ^ 0x5A]) + whole[cut + 1 :]):
                path.write_bytes(content)
                try:
                    pt2.check(path)
                except Refused:
                    pass

    def test_a_name_twice(self):
        bytes_ = io.BytesIO(archives.program())
        with zipfile.ZipFile(bytes_, "a") as archive, self.assertWarns(UserWarning):
            archive.writestr("m/models/model.json", b"{}")
        (self.place / "m.pt2").write_bytes(bytes_.getvalue())
        with self.assertRaises(Refused):
            pt2.check(self.place / "m.pt2")


class Configs(Folders):
    def read(self, text):
        path = self.place / "config.json"
        path.write_text(text if isinstance(text, str) else json.dumps(text))
        return config.read(path)

    def test_what_is_taken(self):
        found = self.read({"model_type": "vit", "architectures": ["ViTModel", 3], "hidden_size": 8, "dtype": "float16",
                           "auto_map": {"AutoModel": "x.Y"}, "vision_config": {"quantization_config": {"bits": 4}, "image_size": 4},
                           "attn_implementation": "someone/kernels", "use_pretrained_backbone": True})  # fmt: skip
        self.assertEqual((found.model_type, found.architectures, found.own_code), ("vit", ["ViTModel"], True))
        self.assertEqual(found.values, {"model_type": "vit", "architectures": ["ViTModel", 3], "hidden_size": 8,
                                        "vision_config": {"image_size": 4}, "use_pretrained_backbone": False})  # fmt: skip
        self.assertEqual(found.notes, ["auto_map: the code that comes with the model is not used",
                                       "quantization_config: weights are random and not quantized"])  # fmt: skip

    def test_refusals(self):
        for text in ("", "[]", "{", "{}", '{"model_type": 3}', '{"model_type": ""}', "[" * 100000):
            with self.assertRaises(Refused) as caught:
                self.read(text)
            self.assertEqual(caught.exception.kind, "no-config")

    def test_layers(self):
        values = {"num_hidden_layers": 24, "encoder_layers": 6, "decoder_layers": 1, "hidden_size": 24, "text": {"n_layer": 12},
                  "back": {"depths": [2, 2, 6, 2], "num_layers": 4}, "layer_types": ["a", "b", "a"], "num_layers": True}  # fmt: skip
        cut = config.cut_layers(values, 2)
        self.assertEqual(cut, ["num_hidden_layers 24", "encoder_layers 6", "text.n_layer 12", "back.depths 2-2-6-2"])
        self.assertEqual(values["back"], {"depths": [2, 2, 2, 2], "num_layers": 4})
        self.assertEqual((values["layer_types"], values["decoder_layers"], values["hidden_size"]), (["a", "b"], 1, 24))


class Inputs(unittest.TestCase):
    def make(self, parameters, values, main, given=None):
        made, notes = inputs.make([(p.rstrip("!"), p.endswith("!")) for p in parameters], values, main, given or {})
        return [one.text() for one in made], notes

    def test_kinds(self):
        table = [
            (["pixel_values", "labels"], {"image_size": 64, "num_channels": 1}, "pixel_values", ["pixel_values 1x1x64x64"]),
            (["pixel_values"], {"backbone_config": {"image_size": [32, 48]}}, "pixel_values", ["pixel_values 1x3x32x48"]),
            (["input_ids", "attention_mask", "labels"], {"vocab_size": 50}, "input_ids", ["input_ids 1x16", "attention_mask 1x16"]),
            (["input_ids"], {"max_position_embeddings": 8}, "input_ids", ["input_ids 1x8"]),
            (["pixel_values!", "input_ids!", "attention_mask"], {"image_size": 8}, "pixel_values", ["pixel_values 1x3x8x8", "input_ids 1x16"]),
            (["input_ids", "decoder_input_ids"], {"is_encoder_decoder": True}, "input_ids", ["input_ids 1x16", "decoder_input_ids 1x16"]),
            (["input_values!"], {}, "input_values", ["input_values 1x16000"]),
            (["input_values"], {"num_mel_bins": 128, "max_length": 1024}, "input_values", ["input_values 1x1024x128"]),
            (["input_features"], {"num_mel_bins": 80, "max_source_positions": 1500, "model_type": "whisper"}, "input_features", ["input_features 1x80x3000"]),
            (["pixel_values"], {"num_frames": 4, "model_type": "videomae", "image_size": 8}, "pixel_values", ["pixel_values 1x4x3x8x8"]),
            (["pixel_values_videos!"], {"frames_per_clip": 2, "image_size": 8}, "pixel_values_videos", ["pixel_values_videos 1x2x3x8x8"]),
        ]  # fmt: skip
        for parameters, values, main, expected in table:
            with self.subTest(parameters):
                self.assertEqual(self.make(parameters, values, main), (expected, []))

    def test_what_is_not_told_is_said(self):
        self.assertEqual(self.make(["pixel_values"], {}, "pixel_values")[1], ["the config tells no image size: 224x224 was taken"])
        for parameters, main in ((["past_values!"], "past_values"), (["pixel_values", "session!"], "pixel_values"), (["x"], "nothing")):
            with self.assertRaises(Refused) as caught:
                self.make(parameters, {}, main)
            self.assertEqual(caught.exception.kind, "example-inputs")
            self.assertIn(parameters[-1].rstrip("!"), str(caught.exception))

    def test_shapes_of_the_user(self):
        made, _ = self.make(["past_values!", "past_mask"], {}, "past_values", {"past_values": [1, 5], "past_mask": [1, 5]})
        self.assertEqual(made, ["past_values 1x5", "past_mask 1x5"])
        made = inputs.make([("ids", True), ("input_ids", False), ("a_mask", False)], {"vocab_size": 9}, "input_ids",
                           {"input_ids": [1, 3], "a_mask": [1, 3], "ids": [2]})[0]  # fmt: skip
        self.assertEqual([(one.name, one.high) for one in made], [("ids", 0), ("input_ids", 9), ("a_mask", 1)])
        with self.assertRaises(Refused):
            self.make(["x"], {}, "x", {"y": [1]})


class Reasons(unittest.TestCase):
    def test_table(self):
        table = [
            (["TorchExportError: step 1/3", "GuardOnDataDependentSymNode: Could not guard on data-dependent expression Eq(u0, 1) (unhinted: Eq(u0, 1))."],
             "data-dependent", "Could not guard on data-dependent expression Eq", "S1"),
            (["UserError: Dynamic control flow is not supported at the moment."], "data-dependent", "Dynamic control flow", "S1"),
            (["ConversionError: x", "DispatchError: No ONNX function found for <OpOverload(op='aten.unsqueeze', overload='default')>. "
              "Failure message: No decompositions registered for the complex-valued input"], "no-translation", "complex numbers", "S3"),
            (["DispatchError: No ONNX function found for <OpOverload(op='aten.cummax', overload='default')>. Failure message: No decompositions "
              "registered for the real-valued input"], "no-translation", "aten.cummax has no translation", ""),
            (["UnsupportedOperatorError: Exporting the operator 'aten::cummax' to ONNX opset version 17 is not supported."],
             "no-translation", "aten.cummax has no translation", ""),
            (["RuntimeError: [enforce fail at alloc_cpu.cpp:1] DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes."],
             "out-of-memory", "can't allocate", ""),
            (["ModuleNotFoundError: No module named 'timm'"], "package-missing", "timm is not installed", ""),
            (["ImportError: TimmBackbone requires the timm library but it was not found"], "package-missing", "timm is not installed", ""),
            (["OSError: [Errno 28] No space left on device"], "no-space", "No space", ""),
            (["OSError: We couldn't connect to 'https://example' to load this file"], "needs-files", "connect", ""),
            (["ValueError: \x1b[31mfirst\n\nsecond"], "export-failed", "ValueError: ", ""),
        ]  # fmt: skip
        for texts, kind, words, spot in table:
            with self.subTest(texts):
                found = reasons.of_exception("a stage", texts)
                self.assertEqual((found.kind, found.stage, found.spot), (kind, "a stage", spot))
                self.assertIn(words, found.text)
                self.assertNotIn("\n", found.text)

    def test_the_place_in_the_model(self):
        text = ("GuardOnDataDependentSymNode: Could not guard on data-dependent expression u0 > 1\n\nThe following call raised this error:\n"
                '  File "/x/y/modeling_z.py", line 12, in forward\n    if mask.any():\n')  # fmt: skip
        self.assertIn("(modeling_z.py:12 in forward: if mask.any():)", reasons.of_exception("s", [text]).text)

    def test_chains_end(self):
        a, b = ValueError("\x1b[1ma"), KeyError("b")
        a.__cause__, b.__cause__ = b, a
        self.assertEqual(reasons.chain(a), ["ValueError: a", "KeyError: 'b'"])
        self.assertEqual(reasons.chain(None), [])

    def test_ends(self):
        for cause, code, kind in (("timeout", 0, "timeout"), ("memory", 0, "out-of-memory"), ("floor", 0, "out-of-memory"), ("exited", 137, "out-of-memory"),
                                  ("signal", -11, "crashed"), ("exited", 3, "export-failed"), ("no-program", 127, "no-python")):  # fmt: skip
            found = reasons.of_end("s", cause, code, "text", "last")
            self.assertEqual(found.kind, kind)
            self.assertEqual(found.kind in NOT_EXPORTED, kind != "no-python")


if __name__ == "__main__":
    unittest.main()

"""What a failed build died of, from excerpts of logs written for this test in the style of trtexec's."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).absolute().parent))
import trtlog  # noqa: E402

HEAD = "&&&& RUNNING TensorRT.trtexec [TensorRT v{}] # trtexec --onnx=m.onnx\n[11/30/2026-10:00:00] [I] === Model Options ===\n"
E = "[11/30/2026-10:00:01] [E] "

# name, log, class, part of the text, node
FAILURES = [
    ("no importer", E + "[TRT] ModelImporter.cpp:779: While parsing node number 7 [NonZero -> \"idx\"]:\n"
     + E + "[TRT] ModelImporter.cpp:785: ERROR: builtin_op_importers.cpp:4951 In function importFallbackPluginImporter:\n"
     "[6] No importer registered for op: NonZero", "unsupported-operator", "No importer registered", "idx"),
    ("no plugin", E + "[TRT] 3: getPluginCreator could not find plugin: MultiscaleDeformableAttnPlugin_TRT version: 1",
     "unsupported-operator", "MultiscaleDeformableAttnPlugin_TRT", "MultiscaleDeformableAttnPlugin_TRT"),
    ("branches", E + "[TRT] While parsing node number 212 [If -> \"/dec/out\"]:\n" + E
     + "[TRT] ERROR: onnxOpImporters.cpp:6122 In function importIf:\n[8] IIfConditionalOutputLayer inputs must have the same shape. "
     "Shapes are [1,256] and [1,1,256].", "conditional-rank-mismatch", "same shape", "If /dec/out"),
    ("foreign node", E + "Error[9]: Skipping tactic... ForeignNode does not support data-dependent shape for now.",
     "data-dependent-shape", "data-dependent", ""),
    ("complex", E + "[TRT] ScalarType ComplexFloat is an unexpected tensor scalar type", "unsupported-type", "ComplexFloat", ""),
    ("top-k", E + "[TRT] TopK_45: K exceeds the maximum value allowed (3840).", "operator-limit", "3840", "TopK"),
    ("k from a shape", E + "[TRT] In node 31 with name: /topk and operator: TopK (importTopK): UNSUPPORTED_NODE: Assertion failed: "
     "(inputs.at(1).is_weights()) && \"This version of TensorRT only supports input K as an initializer: not an initializer\"",
     "operator-limit", "initializer", "TopK /topk"),
    ("profile", E + "Error Code 4: API Usage Error (Network has dynamic or shape inputs, but no optimization profile has been "
     "defined.)", "shapes-needed", "optimization profile", ""),
    ("no tactic", E + "Error[10]: [optimizer.cpp::computeCosts::4048] Error Code 10: Internal Error (Could not find any implementation "
     "for node {ForeignNode[/backbone/norm.../backbone/Add_3]} due to insufficient workspace. See verbose log)",
     "no-implementation", "Could not find any implementation", "{ForeignNode[/backbone/norm.../backbone/Add_3]}"),
    ("no memory", E + "[TRT] 2: [utils.cpp::checkMemLimit::380] Error Code 2: OutOfMemory (Requested size was 4294967296 bytes.)",
     "out-of-memory", "OutOfMemory", ""),
    ("no contiguous memory", "NvMapMemAllocInternalTagged: 1075072515 error 12\nNvMapMemHandleAlloc: error 0", "out-of-memory",
     "NvMap", ""),
    ("unsupported node", E + "In node 9 with name: /roi and operator: RoiAlign (parseNode): UNSUPPORTED_NODE: mode half_pixel",
     "unsupported-node", "UNSUPPORTED_NODE", "RoiAlign /roi"),
    ("assertion", E + "[TRT] ModelImporter.cpp:773: ERROR: builtin_op_importers.cpp:2201 In function importGridSample: Assertion failed: "
     "mode", "parser-assertion", "importGridSample", ""),
    ("not parsed", E + "Failed to parse ONNX model from file: m.onnx", "parser-error", "Failed to parse", ""),
    ("old board", E + "Error: Target GPU SM 53 is not supported by this TensorRT release.", "unsupported-device", "SM 53", ""),
    ("old driver", E + "CUDA initialization failure with error: 35", "device-missing", "CUDA", ""),
    ("flag", E + "Unknown option: --fp16", "flag-unknown", "--fp16", "--fp16"),
    ("myelin", E + "Error Code 1: Internal Error (Myelin error [autotuner] no valid kernel)", "internal-error", "Myelin", "1"),
]  # fmt: skip


class Classes(unittest.TestCase):
    def test_logs(self):
        for name, log, kind, text, node in FAILURES:
            with self.subTest(name):
                reason = trtlog.classify(HEAD.format(100300) + log + "\n&&&& FAILED TensorRT.trtexec\n", "exited", 1)
                self.assertEqual(reason.kind, kind, reason)
                self.assertIn(text, reason.text)
                self.assertIn(node, reason.node)
                self.assertFalse(reason.text.startswith("["))

    def test_every_class_of_the_table_is_tried_or_named_here(self):
        untried = {"network-invalid", "engine-not-read"}
        self.assertEqual({row[0] for row in trtlog.FAILURES} - {row[2] for row in FAILURES}, untried)

    def test_ends_without_words(self):
        table = [
            (("exited", 137), "out-of-memory"), (("signal", -9), "out-of-memory"), (("signal", -11), "builder-crashed"),
            (("exited", 139), "builder-crashed"), (("timeout", -9), "timeout"), (("memory", -9), "out-of-memory"),
            (("floor", -9), "out-of-memory"), (("exited", 1), "exit-code"),
        ]  # fmt: skip
        for (cause, code), kind in table:
            self.assertEqual(trtlog.classify("quiet\n", cause, code).kind, kind, (cause, code))

    def test_a_log_that_names_memory_while_it_hangs_is_a_timeout(self):
        self.assertEqual(trtlog.classify("OutOfMemory", "timeout", -9, "not done within 5 s").kind, "timeout")

    def test_notes_are_no_failures(self):
        log = ("[W] [TRT] Skipping tactic 0x0 due to insufficient memory on requested size of 4294967296 detected for tactic 0.\n" * 3
               + "[W] [TRT] Your ONNX model has been generated with INT64 weights\n"
               "[W] [TRT] Running layernorm after self-attention with FP16 Reduce or Pow may cause overflow.\n")
        self.assertEqual(trtlog.notes_of(log), ("reduced-tactics", "fp16-layernorm-warning", "int64-cast"))
        self.assertEqual(trtlog.notes_of("fine"), ())

    def test_versions(self):
        for text, version in (("8601", "8.6.1"), ("8502", "8.5.2"), ("100300", "10.3.0"), ("101600", "10.16.0"), ("110401", "11.4.1")):
            self.assertEqual(trtlog.version_of(HEAD.format(text)), version)
        self.assertEqual(trtlog.version_of("[I] TensorRT version: 10.13.3"), "10.13.3")
        self.assertEqual(trtlog.version_of("nothing"), "")

    def test_any_bytes_are_judged(self):
        for log in ("", "\0" * 100, "[" * 5000, "While parsing node number"):
            self.assertEqual(trtlog.classify(log, "exited", 1).kind, "exit-code")


if __name__ == "__main__":
    unittest.main()

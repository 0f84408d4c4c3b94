"""What a TensorRT build that failed died of, from its log and how it ended. A table; pure.

The patterns are texts that TensorRT, its ONNX parser and trtexec print; versions are those they were reported for and
do not limit the match. The first row that fits decides, so the specific ones stand first.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

# (class, pattern, whether it is a limit of the model's structure). A group called `node` or `op` is shown.
FAILURES = (
    ("conditional-rank-mismatch", r"IIfConditionalOutputLayer inputs must have the same shape", True),
    ("data-dependent-shape", r"does not support data-dependent shape", True),
    ("unsupported-operator", r"No importer registered for op: (?P<op>[\w.]+)", True),
    ("unsupported-operator", r"(?:getPluginCreator could not find plugin:?|Plugin not found[^\n]*?(?:for op|op_type:)?)\s*(?P<op>[A-Za-z_]\w+)?",
     True),
    ("unsupported-type", r"(?:ScalarType ComplexFloat|ComplexDouble|unsupported ONNX data type: COMPLEX\w+|Found unsupported datatype \((?:14|15)\))", True),
    ("operator-limit", r"(?P<op>TopK)[^\n]*(?:3840|not an initializer|K (?:should|must|exceeds))", True),
    ("operator-limit", r"not an initializer|must be an initializer|must be build-time constant", True),
    ("shapes-needed", r"dynamic or shape inputs, but no optimization profile has been defined|no optimization profile", False),
    ("unsupported-device", r"Target GPU SM \d+ is not supported by this TensorRT release|SM \d+ is not supported", False),
    ("device-missing", r"no CUDA-capable device|CUDA driver version is insufficient|CUDA initialization failure", False),
    ("no-implementation", r"(?:Could not find any implementation|no implementation) for node (?P<node>[^\n]+?)(?:\.\s|\.?$|\s+due to|\)\s*$)", True),
    ("out-of-memory", r"(?:OutOfMemory|out of memory|std::bad_alloc|insufficient (?:GPU |device )?memory|NvMapMemAllocInternalTagged[^\n]*error 12|Cannot allocate memory)", False),
    ("unsupported-node", r"UNSUPPORTED_NODE(?:_\w+)?", True),
    ("parser-assertion", r"(?:parseGraph|parseNode|ModelImporter)[^\n]*(?:Assertion failed|INVALID_NODE|INVALID_GRAPH)[^\n]*", True),
    ("parser-error", r"(?:Failed to parse (?:ONNX )?(?:file|model)|Parsing model failed|failed to parse)", True),
    ("network-invalid", r"(?:Network validation failed|kOPT values for profile|Error Code 4[^\n]*)", True),
    ("internal-error", r"Error Code (?P<op>\d+)[^\n]*(?:Internal Error|Myelin)[^\n]*|Myelin error[^\n]*", True),
    ("engine-not-read", r"(?:deserializ\w+ failed|engine plan file is not compatible|Engine deserialization failed)", False),
    ("flag-unknown", r"Unknown option: (?P<op>\S+)", False),
)  # fmt: skip
NODES = (
    r"While parsing node number \d+ \[(?P<op>\w+) -> \"(?P<node>[^\"]*)\"",
    r"In node \d+ with name: (?P<node>.*?) and operator: (?P<op>\w+)",
    r"In node \d+ \((?P<op>\w+)\)",
    r"--- Begin node ---[\s\S]{0,2000}?name: \"(?P<node>[^\"]*)\"",
)
NOTES = (
    ("reduced-tactics", r"[Ss]kipping tactic[^\n]*(?:memory|workspace)"),
    ("reduced-tactics", r"Tactic Device request: [^\n]*(?:is not enough|[Ss]kipped|not enough memory)"),
    ("fp16-layernorm-warning", r"(?:Running layernorm after self-attention|layernorm[^\n]*FP16)"),
    ("int64-cast", r"INT64 weights|Your ONNX model has been generated with INT64 weights"),
    ("fp16-subnormal", r"subnormal FP16 values"),
    ("clocks-unstable", r"(?:GPU compute time is unstable|Throughput may be bound by)"),
)
VERSION = re.compile(r"\[TensorRT v(\d+)\]|TensorRT version: (\d+(?:\.\d+)+)")


@dataclass(frozen=True)
class Reason:
    """Why a build failed. `kind`: a class of FAILURES, or timeout, memory-cap, builder-crashed, exit-code."""

    kind: str
    text: str
    node: str = ""
    structural: bool = False
    notes: tuple = field(default_factory=tuple)

    def record(self) -> dict:
        return {"class": self.kind, "text": self.text, "node": self.node}


def version_of(log: str) -> str:
    """TensorRT's version as the log tells it: "8.6.1", "10.3.0"; "" where it does not. trtexec prints v8601 (one digit
    each behind the major) up to 8, v100300 (two digits each) from 10 on."""
    found = VERSION.search(log)
    if not found:
        return ""
    if found[2]:
        return found[2]
    digits = found[1]
    if len(digits) == 4:
        return f"{digits[0]}.{digits[1]}.{int(digits[2:])}"
    if len(digits) == 6:
        return f"{digits[:2]}.{int(digits[2:4])}.{int(digits[4:])}"
    return digits


def notes_of(log: str) -> tuple[str, ...]:
    """Remarks that do not fail a build: classes of NOTES, each once."""
    return tuple(dict.fromkeys(name for name, pattern in NOTES if re.search(pattern, log)))


def _line_around(log: str, place: int) -> str:
    begin = log.rfind("\n", 0, place) + 1
    end = log.find("\n", place)
    line = log[begin : len(log) if end < 0 else end].strip()
    line = re.sub(r"^(?:\[[^\]]*\]\s*)+", "", line)  # dates and levels
    return line[:300]


def _node(log: str) -> str:
    for pattern in NODES:
        found = re.search(pattern, log)
        if found:
            parts = found.groupdict()
            return " ".join(part for part in (parts.get("op"), parts.get("node")) if part)[:200]
    return ""


def classify(log: str, cause: str, code: int, text: str = "") -> Reason:
    """Why a build or run that did not end well failed. `cause`, `code`, `text`: of child.Ended."""
    notes = notes_of(log)
    if cause == "timeout":
        return Reason("timeout", text, _node(log), notes=notes)
    if cause in ("memory", "floor"):
        return Reason("out-of-memory", f"{text} (ended by the runner)", notes=notes)
    for kind, pattern, structural in FAILURES:
        found = re.search(pattern, log)
        if found:
            parts = found.groupdict()
            node = parts.get("node") or _node(log) or parts.get("op") or ""
            return Reason(kind, _line_around(log, found.start()), node.strip()[:200], structural, notes)
    if code in (137, -9):
        return Reason("out-of-memory", "killed (SIGKILL), by all likelihood by the kernel for want of memory", notes=notes)
    if cause == "signal" or code in (134, 139):
        return Reason("builder-crashed", text or f"exit code {code}", _node(log), notes=notes)
    return Reason("exit-code", f"exit code {code}, and nothing in the log that is known", _node(log), notes=notes)

"""Why a source was not exported: one class, one stage, one line."""

from __future__ import annotations

from dataclasses import asdict, dataclass

# Classes for which the model was understood but not exported: exit code 1. All others: the file, the flags or the Python
# are wrong, exit code 2.
NOT_EXPORTED = ("data-dependent", "no-translation", "out-of-memory", "timeout", "crashed", "export-failed", "model-failed")


@dataclass
class Refused(Exception):
    """`spot`: the blind spot that the failure itself hints at, or ""."""

    kind: str
    stage: str
    text: str
    hint: str = ""
    spot: str = ""

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"

    def record(self) -> dict:
        return asdict(self)


def line(text: object, limit: int = 300) -> str:
    """`text` on one line."""
    flat = " ".join(str(text).split())
    return flat if len(flat) <= limit else flat[: limit - 3] + "..."

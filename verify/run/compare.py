"""How far an answer is from the golden one: per tensor and per task, NaN-aware. Pure.

Floating-point tensors: NaN and infinity must stand in the same places, a golden one that is not finite proves nothing
and fails, and with d = answer - golden over n finite elements

    ||d||_2 <= rel_l2 * ||golden||_2 + floor * sqrt(n)      and      max |d| <= max_rel * max |golden| + floor

so that one wrong element of a million is seen too. All other tensors must be equal.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

from tensors import Tensor


@dataclass(frozen=True)
class Limits:
    """The bounds; stated in every record."""

    rel_l2: float = 1e-3
    max_rel: float = 1e-2
    floor: float = 1e-7

    def text(self) -> str:
        return f"rel_l2 <= {self.rel_l2:g}, max |d| <= {self.max_rel:g} max |golden|, floor {self.floor:g}"


def _fail(why: str, **facts) -> dict:
    return {"pass": False, "why": why, **facts}


def compare_tensor(golden: Tensor, answer: Tensor | None, limits: Limits) -> dict:
    """{"pass", "why", and for floats "rel_l2", "max_abs", "cosine", "worst"}."""
    if answer is None:
        return _fail("it is missing")
    if answer.shape != golden.shape:
        return _fail(f"shape {list(answer.shape)}, must be {list(golden.shape)}")
    if answer.is_float != golden.is_float:
        return _fail(f"type {answer.dtype}, must be {golden.dtype}")
    want, got = golden.values(), answer.values()
    if not want:
        return _fail("it is empty: nothing was compared")
    if not golden.is_float:
        for i, (w, g) in enumerate(zip(want, got)):
            if w != g:
                return _fail(f"element {i} is {g}, must be {w}", differ=sum(a != b for a, b in zip(want, got)))
        return {"pass": True, "why": ""}
    return _compare_floats(want, got, limits)


def _compare_floats(want: list[float], got: list[float], limits: Limits) -> dict:
    if any(math.isnan(w) for w in want):
        return _fail("the golden is not finite: NaN proves nothing")
    error = norm = norm_got = dot = worst = largest = 0.0
    worst_index = 0
    for i, (w, g) in enumerate(zip(want, got)):
        if not (math.isfinite(w) and math.isfinite(g)):
            if w == g:
                continue
            return _fail(f"element {i} is {g}, must be {w}", worst=i)
        d = g - w
        error += d * d
        norm += w * w
        norm_got += g * g
        dot += w * g
        if abs(d) > worst:
            worst, worst_index = abs(d), i
        largest = max(largest, abs(w))
    facts = {
        "rel_l2": math.sqrt(error / norm) if norm > 0 else (0.0 if error == 0 else math.inf),
        "max_abs": worst,
        "cosine": dot / math.sqrt(norm * norm_got) if norm > 0 and norm_got > 0 else float(norm == norm_got),
        "worst": worst_index,
    }
    if math.sqrt(error) > limits.rel_l2 * math.sqrt(norm) + limits.floor * math.sqrt(len(want)):
        return _fail(f"rel_l2 {facts['rel_l2']:.3g} > {limits.rel_l2:g}", **facts)
    if worst > limits.max_rel * largest + limits.floor:
        return _fail(f"element {worst_index} is off by {worst:.3g}, more than {limits.max_rel:g} of {largest:.3g}", **facts)
    return {"pass": True, "why": "", **facts}


def top_k(values: list[float], k: int) -> list[int]:
    """The places of the k largest, the first of equals first; NaN last."""
    return sorted(range(len(values)), key=lambda i: (math.isnan(values[i]), -values[i] if values[i] == values[i] else 0))[:k]


def iou_of_masks(a: list[float], b: list[float], threshold: float = 0.0) -> float:
    """Intersection over union of what lies above the threshold; 1 for two empty masks. NaN is not above it."""
    both = sum(x > threshold and y > threshold for x, y in zip(a, b))
    either = sum(x > threshold or y > threshold for x, y in zip(a, b))
    return both / either if either else 1.0


def iou_of_boxes(a, b) -> float:
    """Of two boxes x0, y0, x1, y1; 0 where one is not finite or inside out."""
    if not all(math.isfinite(v) for v in (*a, *b)):
        return 0.0
    area = [max(0.0, r[2] - r[0]) * max(0.0, r[3] - r[1]) for r in (a, b)]
    across = max(0.0, min(a[2], b[2]) - max(a[0], b[0])) * max(0.0, min(a[3], b[3]) - max(a[1], b[1]))
    union = area[0] + area[1] - across
    return across / union if union > 0 else 0.0


def match_boxes(want: list, got: list, least: float) -> float:
    """Share of the golden boxes that have an answer's box of their own with IoU >= least, best pairs first, over the
    larger of both counts: surplus boxes cost as missing ones do. 1 for none on both sides."""
    pairs = sorted(((iou_of_boxes(w, g), i, j) for i, w in enumerate(want) for j, g in enumerate(got)), reverse=True)
    used_w: set[int] = set()
    used_g: set[int] = set()
    for iou, i, j in pairs:
        if iou >= least and i not in used_w and j not in used_g:
            used_w.add(i)
            used_g.add(j)
    most = max(len(want), len(got))
    return len(used_w) / most if most else 1.0


def task_score(task: dict, golden: Tensor, answer: Tensor) -> float:
    """One number in 0..1 by `task`: {"kind": "top-k", "k"}, {"kind": "iou", "threshold"} (mask above the threshold),
    {"kind": "boxes", "iou"} (rows of four)."""
    want, got = golden.values(), answer.values()
    if task["kind"] == "top-k":
        return float(top_k(want, task["k"]) == top_k(got, task["k"]))
    if task["kind"] == "iou":
        return iou_of_masks(want, got, task.get("threshold", 0.0))
    if task["kind"] == "boxes":
        rows = [[v[i : i + 4] for i in range(0, len(v), 4)] for v in (want, got)]
        return match_boxes(rows[0], rows[1], task.get("iou", 0.5))
    raise ValueError(f"task {task['kind']!r} is not known")


def compare(golden: list, answers: dict[str, Tensor], limits: Limits, task: dict | None) -> dict:
    """All cases (tensors.cases_of) against `answers` by their full names. {"pass", "why", "limits", "cases", the worst of
    "rel_l2", "max_abs" and "cosine", "task": {"kind", "output", "score", "least", "pass"}, "tensors": [...]}."""
    out = {"pass": True, "why": "", "limits": limits.text(), "cases": len(golden), "tensors": []}
    scores = []
    for k, case in enumerate(golden):
        for name, want in case["output"].items():
            full = f"case{k}.output.{name}"
            one = compare_tensor(want, answers.get(full), limits)
            out["tensors"].append({"name": full, **one})
            if not one["pass"] and out["pass"]:
                out.update({"pass": False, "why": f"{full}: {one['why']}"})
            if task and task["output"] == name:
                answer = answers.get(full)
                fits = answer is not None and answer.shape[-len(want.shape) :] == want.shape or task["kind"] == "boxes"
                scores.append(task_score(task, want, answer) if answer is not None and fits else 0.0)
    if not out["tensors"]:
        out.update({"pass": False, "why": "the golden has no output: nothing was compared"})
    for key, worst in (("rel_l2", max), ("max_abs", max), ("cosine", min)):
        seen = [t[key] for t in out["tensors"] if key in t]
        if seen:
            out[key] = worst(seen)
    if task:
        score = sum(scores) / len(scores) if scores else 0.0
        good = bool(scores) and score >= task["least"]
        out["task"] = {"kind": task["kind"], "output": task["output"], "score": score, "least": task["least"], "pass": good}
        if not good and out["pass"]:
            out.update({"pass": False, "why": f"{task['kind']} {score:g} < {task['least']:g}"})
    return out


def limits_of(entry: dict) -> Limits:
    """Limits from a model's description."""
    return Limits(**{**asdict(Limits()), **entry})

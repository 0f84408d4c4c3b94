"""The words, from the records alone. Pure: the same records give the same words, on any machine and at any time.

A record (records.py) has "level", "configuration", "outcome" (ok, failed, skipped), "reason" {"class", "text", "node"},
"accuracy" {"pass", "why", ...}, "speed" (timing.summary), "facts" and "platform", "stack". Records of different
platforms or stacks are never compared: `judge` takes those of one.
"""

from __future__ import annotations

# "No worse than ours": what the official path may take longer before it counts as slower. Two builds of the same code
# differ by less; it leans to the official path's side.
NO_WORSE = 1.15
CLOCKS_MAY_DIFFER = 0.05
LEAST_ROUNDS = 5
OFFICIAL = ("L1", "L2", "L3")


class Refused(ValueError):
    """Why records cannot be judged."""


def p50(record: dict | None) -> float | None:
    """Its latency in milliseconds; None where it was not timed."""
    return (record or {}).get("speed", {}).get("p50_ms")


def spread(spans: list) -> float | None:
    """By how much of the largest the smallest is below it, over [min, max] spans; None where one is not known."""
    if not spans or any(s is None for s in spans):
        return None
    low, high = min(s[0] for s in spans), max(s[1] for s in spans)
    return (high - low) / high if high else None


def unfair(a: dict, b: dict) -> str:
    """Why the speeds of two records must not be compared; "" where they may."""
    for record in (a, b):
        if record["speed"]["rounds"] < LEAST_ROUNDS:
            return f"{record['speed']['rounds']} rounds, at least {LEAST_ROUNDS} are needed"
    modes = {mode for record in (a, b) for mode in record["speed"]["power_modes"]}
    if len(modes) > 1:
        return "power mode changed: " + ", ".join(sorted(modes))
    needed = ("gpu_hz", "emc_hz") if "cuda" in (a.get("device", "cpu") + b.get("device", "cpu")) else ("pace",)
    optional = ("cpu_hz",)
    for key in needed + optional:
        spans = [r["speed"]["pace"] if key == "pace" else r["speed"]["clocks"].get(key) for r in (a, b)]
        differ = spread(spans)
        if differ is None and key in needed:
            return f"clocks unknown: {key}"
        if differ is not None and differ > CLOCKS_MAY_DIFFER:
            return f"clocks moved: {key} by {differ:.0%}, at most {CLOCKS_MAY_DIFFER:.0%}"
    return ""


def _word(verdict: str, reason: str, **facts) -> dict:
    return {"verdict": verdict, "reason": reason, **facts}


def judge_one(record: dict, ours: dict | None, eager: dict | None = None) -> dict:
    """{"verdict", "reason", "ratio"?: of the official latency to ours, "ratio_to_eager"?} of one record of L1 to L3."""
    why = record.get("reason") or {}
    about = why.get("class", "") + (f": {why['text']}" if why.get("text") else "")
    if record["outcome"] == "skipped":
        return _word("inconclusive", f"skipped: {about}")
    if record["outcome"] == "failed":
        node = f" ({why['node']})" if why.get("node") else ""
        return _word("unsupported", about + node)
    facts = record.get("facts", {})
    breaks = facts.get("graph_breaks", 0)
    if facts.get("fallback"):
        return _word("degraded", f"fallback: {facts['fallback']}")
    accuracy = record.get("accuracy")
    if accuracy is not None and not accuracy["pass"]:
        return _word("degraded", f"accuracy: {accuracy['why']}")
    if record["level"] == "L2":
        return _word("inconclusive", "an engine was built; L3 tells what it is worth")
    if accuracy is None:
        return _word("inconclusive", "accuracy was not compared")
    broken = f", {breaks} graph breaks" if breaks else ""
    ratios = {}
    if eager is not None and eager is not record and p50(record) and p50(eager) and not unfair(record, eager):
        ratios["ratio_to_eager"] = p50(record) / p50(eager)
        if ratios["ratio_to_eager"] > NO_WORSE and record["level"] == "L1":
            return _word("degraded", f"{ratios['ratio_to_eager']:.2f} times the time of eager{broken}", **ratios)
    if p50(record) is None:
        return _word("inconclusive", "it was not timed", **ratios)
    if ours is None or ours["outcome"] != "ok" or p50(ours) is None:
        return _word("inconclusive", "there is nothing of ours to compare with", **ratios)
    if not (ours.get("accuracy") or {}).get("pass"):
        return _word("inconclusive", "ours is not accurate here", **ratios)
    why_not = unfair(record, ours)
    if why_not:
        return _word("inconclusive", why_not, **ratios)
    ratio = p50(record) / p50(ours)
    if ratio <= NO_WORSE:
        return _word("competitive", f"{ratio:.2f} times our time{broken}", ratio=ratio, **ratios)
    return _word("degraded", f"{ratio:.2f} times our time (over {NO_WORSE:g} is slower){broken}", ratio=ratio, **ratios)


def judge(records: list[dict]) -> dict:
    """{"words": [one per record of L1 to L3, {"level", "configuration", "verdict", ...}], "official": {"verdict",
    "reason", "best"?}} of the records of one model on one machine. Raises Refused where they are not that."""
    for key in ("model", "platform", "stack", "shapes"):
        values = {str(record.get(key)) for record in records}
        if len(values) > 1:
            raise Refused(f"records of more than one {key}: {', '.join(sorted(values))}")
        if values & {"None", "", "[]"}:
            raise Refused(f"a record does not tell its {key}")
    ours = next((r for r in records if r["level"] == "L4"), None)
    eagers = [r for r in records if r["level"] == "L1" and r["configuration"].startswith("eager") and p50(r)]
    eager = min((r for r in eagers if (r.get("accuracy") or {}).get("pass")), key=p50, default=None)
    words = []
    for record in records:
        if record["level"] in OFFICIAL:
            words.append({"level": record["level"], "configuration": record["configuration"],
                          "outcome": record["outcome"], "p50_ms": p50(record), **judge_one(record, ours, eager)})  # fmt: skip
    return {"words": words, "official": _official(words)}


def _official(words: list[dict]) -> dict:
    """The word over all official configurations. The best accurate one is the official result: one that is competitive
    settles it; `degraded` and `unsupported` say that all of the path was tried."""
    def named(word: dict) -> str:
        return f"{word['level']} {word['configuration']}"

    competitive = [w for w in words if w["verdict"] == "competitive"]
    if competitive:
        best = min(competitive, key=lambda w: w["ratio"])
        return _word("competitive", f"{named(best)}: {best['reason']}", best=named(best))
    compiled = [w for w in words if not (w["level"] == "L1" and w["configuration"].startswith("eager"))]
    untried = [w for w in compiled if w["outcome"] == "skipped" and w["level"] != "L2"]
    if not compiled or all(w["outcome"] == "skipped" for w in compiled):
        return _word("inconclusive", "the official path was not tried: neither torch.compile nor TensorRT")
    slower = [w for w in compiled if w["verdict"] == "degraded" and "ratio" in w]
    best = min(slower, key=lambda w: w["ratio"], default=None)
    stand = f"; so far {named(best)}: {best['reason']}" if best else ""
    if untried:
        return _word("inconclusive", "not tried: " + ", ".join(sorted({named(w) for w in untried})) + stand)
    open_words = [w for w in compiled if w["verdict"] == "inconclusive" and w["level"] != "L2" and w["outcome"] == "ok"]
    if open_words:
        return _word("inconclusive", f"{named(open_words[0])}: {open_words[0]['reason']}" + stand)
    if best:
        return _word("degraded", f"{named(best)}: {best['reason']}", best=named(best))
    inaccurate = [w for w in compiled if w["verdict"] == "degraded"]
    if inaccurate:
        return _word("degraded", f"{named(inaccurate[0])}: {inaccurate[0]['reason']}")
    failed = [w for w in compiled if w["verdict"] == "unsupported"]
    return _word("unsupported", "; ".join(f"{named(w)}: {w['reason']}" for w in failed[:3]))

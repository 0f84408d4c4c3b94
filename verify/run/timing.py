"""Speed: strict alternation of contestants in rounds, percentiles, and what the clocks did meanwhile.

A contestant is a function `block(passes, cold) -> [seconds]` of passes that come one after the other; warm-up passes go
before each block and are not counted. In every round each contestant has one block, the order turning by one from
round to round. `pace` and clocks are read before each block, outside of what is timed.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import Callable

ROUNDS = 5  # the least: a median of fewer is no basis for a word
WARM_UPS = 30
PASSES = 100


@dataclass
class Plan:
    """How much is timed."""

    rounds: int = ROUNDS
    passes: int = PASSES  # of each contestant in all, at least, where the budget allows
    warm_ups: int = WARM_UPS  # before the first block; a tenth before each later one
    budget_seconds: float = 40.0  # for one contestant's warm passes


@dataclass
class Series:
    """What one contestant took."""

    blocks: list[list[float]] = field(default_factory=list)
    cold: list[float] = field(default_factory=list)
    clocks: list[dict] = field(default_factory=list)
    paces: list[float] = field(default_factory=list)
    power_modes: list = field(default_factory=list)
    failed: str = ""


def percentile(values: list[float], q: float) -> float:
    """Nearest rank. REQUIRES: values are there."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(q * len(ordered)) - 1)]


def span(values: list) -> list | None:
    """[min, max]; None where one is not known."""
    return None if not values or any(value is None for value in values) else [min(values), max(values)]


def quartiles(values: list[float]) -> list | None:
    """[first, third]: of a reading that single outliers disturb; a change that lasts still shows."""
    return [percentile(values, 0.25), percentile(values, 0.75)] if values else None


def passes_per_block(first: float, plan: Plan) -> int:
    """By the time of one pass: the plan's passes spread over the rounds, as far as the budget reaches; at least one."""
    wanted = math.ceil(plan.passes / plan.rounds)
    if first <= 0:
        return wanted
    return max(1, min(wanted, int(plan.budget_seconds / plan.rounds / first)))


def warm_ups(first: float, wanted: int, budget_seconds: float) -> int:
    """Warm-up passes: as many as wanted, as far as a quarter of the budget reaches; at least one."""
    return max(1, min(wanted, int(budget_seconds / 4 / first) if first > 0 else wanted))


def alternate(contestants: dict[str, Callable], plan: Plan, read: Callable[[], dict], progress=None) -> dict[str, Series]:
    """Times all contestants in turn. `read` gives {"clocks", "pace", "power_mode"}. A contestant that fails is left out
    of the rounds to come, and its `failed` says why."""
    series = {name: Series() for name in contestants}
    first: dict[str, float] = {}
    for name, block in contestants.items():
        try:
            first[name] = min(block(2, False))
            block(warm_ups(first[name], plan.warm_ups, plan.budget_seconds), False)
        except Exception as error:  # noqa: BLE001, whatever it was, it is a record and not the end of the run
            series[name].failed = str(error) or type(error).__name__
    names = list(contestants)
    for turn in range(plan.rounds):
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            own = series[name]
            if own.failed:
                continue
            count = passes_per_block(first[name], plan)
            try:
                contestants[name](warm_ups(first[name], max(1, plan.warm_ups // 10), plan.budget_seconds / plan.rounds), False)
                state = read()
                own.blocks.append(list(contestants[name](count, False)))
                after = read()
                if turn == plan.rounds - 1:
                    own.cold = list(contestants[name](min(20, count), True) or [])
            except Exception as error:  # noqa: BLE001
                own.failed = str(error) or type(error).__name__
                continue
            for seen in (state, after):
                own.clocks.append(seen["clocks"])
                own.paces.append(seen["pace"])
                own.power_modes.append(seen["power_mode"])
        if progress:
            progress(turn + 1, plan.rounds)
    return series


def summary(series: Series) -> dict:
    """A record's "speed". Times in milliseconds; `p50_ms` is the median of the blocks' medians."""
    every = [seconds * 1e3 for block in series.blocks for seconds in block]
    medians = [percentile(block, 0.5) * 1e3 for block in series.blocks]
    out = {
        "rounds": len(series.blocks),
        "passes": len(every),
        "min_ms": min(every),
        "p50_ms": percentile(medians, 0.5),
        "p90_ms": percentile(every, 0.9),
        "p99_ms": percentile(every, 0.99),
        "max_ms": max(every),
        "block_medians_ms": medians,
        "clocks": {key: span([c.get(key) for c in series.clocks]) for key in ("gpu_hz", "emc_hz", "cpu_hz")},
        "pace": quartiles([round(p, 2) for p in series.paces]),
        "power_modes": sorted({mode or "none" for mode in series.power_modes}),
    }
    if series.cold:
        out["cold_p50_ms"] = percentile(series.cold, 0.5) * 1e3
        out["cold_passes"] = len(series.cold)
    return out


def now() -> str:
    """UTC, to the second."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())

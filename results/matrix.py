"""The platform x model matrix of verdict.csv as Markdown. Pure: rows in, text out."""

from __future__ import annotations

import schema

# How a cell's lines tell where they are from. Measured alone is bold; nothing else is.
MARKS = {"measured": "**measured**", "reported": "_reported_", "predicted": "~ predicted"}
RANK = {source: i for i, source in enumerate(schema.SOURCES)}
WORST_FIRST = ("unsupported", "degraded", "inconclusive", "competitive", "-")


def family(platform: str) -> str:
    """The column of a platform: its board, whatever memory or module."""
    for prefix, name in (("agx-orin", "AGX Orin"), ("orin-nx", "Orin NX"), ("orin-nano", "Orin Nano"),
                         ("thor", "Thor"), ("x86-64-cpu", "x86-64 CPU"), ("aarch64-cpu", "Arm CPU"),
                         ("orin", "Orin, not told which")):  # fmt: skip
        if platform.startswith(prefix):
            return name
    return schema.PLATFORMS[platform][0]


def numbers(row: dict[str, str]) -> str:
    """Latency, rate and accuracy of a row, as far as it has any."""
    parts = []
    if row["latency_ms"] != "-":
        kind = {"p50": " (p50)", "roofline": " (roofline)"}.get(row["statistic"], "")
        parts.append(("~ " if row["source"] == "predicted" else "") + f"{row['latency_ms']} ms{kind}")
    if row["per_second"] != "-":
        parts.append(f"{row['per_second']}/s")
    if row["accuracy_metric"] != "-":
        parts.append(f"{row['accuracy_metric']} {row['accuracy_value']}")
    return ", ".join(parts)


def runtime(row: dict[str, str]) -> str:
    """What ran, in words of a table; "ours" is this project's own code alone."""
    if row["level"] == "L4" and row["runtime"].startswith(("mergekernel ", "mergekernel,")):
        return "ours"
    return row["runtime"].replace(" unknown (", " (version not told, ").replace(" unknown", " (version not told)")


def line(row: dict[str, str]) -> str:
    """One row as one line of a cell."""
    if row["level"] == "official":
        text = row["verdict"] + ": " + row["reason"] if row["reason"] != "-" else row["verdict"]
        return f"{MARKS[row['source']]} {text}"
    who = runtime(row) if row["configuration"] == "pack" else f"{runtime(row)}, {row['configuration']}"
    if row["source"] == "predicted":
        who += f" on {schema.PLATFORMS[row['platform']][0]}, {row['shapes']}"  # a column holds several
    word = "" if row["verdict"] == "-" else row["verdict"] + ", "
    tail = numbers(row) or (row["reason"] if row["reason"] != "-" else "")
    return f"{MARKS[row['source']]} {word}{who}" + (f": {tail}" if tail else "")


def cell(rows: list[dict[str, str]], most: int = 4) -> str:
    """The lines of one cell: the official word first, then ours, measured before reported before predicted."""
    if not rows:
        return ""

    def key(row):
        level = {"official": 0, "L4": 1}.get(row["level"], 2)
        return (RANK[row["source"]], level, WORST_FIRST.index(row["verdict"]), row["configuration"], row["shapes"])

    ordered = sorted(rows, key=key)
    lines = [line(row).replace("|", "\\|") for row in ordered[:most]]
    if len(ordered) > most:
        lines.append(f"and {len(ordered) - most} more rows")
    return "<br>".join(lines)


def markdown(rows: list[dict[str, str]]) -> str:
    """The matrix over this project's own boards; models that ours serves or that were judged there."""
    rows = [row for row in rows if schema.PLATFORMS[row["platform"]][2]]
    models = []
    for name in sorted({row["model"] for row in rows}):
        if any(row["verdict"] != "-" or row["level"] == "L4" for row in rows if row["model"] == name):
            models.append(name)
    rows = [row for row in rows if row["model"] in models]
    order = list(schema.PLATFORMS)
    columns: list[str] = []
    for row in sorted(rows, key=lambda row: order.index(row["platform"])):
        if family(row["platform"]) not in columns:
            columns.append(family(row["platform"]))
    if not rows:
        return "No rows.\n"
    out = ["| model | " + " | ".join(columns) + " |", "| --- |" + " --- |" * len(columns)]
    for model in models:
        cells = []
        for column in columns:
            cells.append(cell([r for r in rows if r["model"] == model and family(r["platform"]) == column]) or "-")
        out.append(f"| `{model}` | " + " | ".join(cells) + " |")
    counts = {source: sum(row["source"] == source for row in rows) for source in schema.SOURCES}
    out += [
        "",
        "**measured** by `mk verify`, records in `results/evidence/`; _reported_ by others, not repeated here; ~ predicted,"
        " nothing was run. Rows here: "
        + ", ".join(f"{counts[source]} {source}" for source in schema.SOURCES)
        + ". Sources, versions and what else was reported: [results/verdict.csv](results/verdict.csv), `mk results --html`.",
    ]
    return "\n".join(out) + "\n"

"""One self-contained HTML page of verdict.csv: the matrix' words, plots as inline SVG, every row with its source.

Measured bars are filled, reported ones hatched, predicted ones an outline. No script, nothing is fetched.
"""

from __future__ import annotations

from html import escape

import schema
from matrix import runtime

STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:1100px;margin:2em auto;padding:0 1em;color:#1c1c1c;background:#fff}
h1{font-size:1.6em}h2{font-size:1.15em;margin-top:2em}svg{display:block;max-width:100%}svg text{font-size:12px;fill:#1c1c1c}
table{border-collapse:collapse;font-size:13px}td,th{border:1px solid #ccc;padding:3px 7px;text-align:left;vertical-align:top}
.b{border-radius:3px;padding:0 5px;white-space:nowrap}.measured{background:#14532d;color:#fff}
.reported{border:1px solid #92400e;color:#92400e}.predicted{border:1px dashed #555;color:#555}
.wide{overflow-x:auto}.legend span{margin-right:1em}
"""
FILL = {"measured": "#15803d", "reported": "url(#hatch)", "predicted": "none"}
STROKE = {"measured": "#15803d", "reported": "#92400e", "predicted": "#555"}
DEFS = (
    '<defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<rect width="6" height="6" fill="#fff7ed"/><rect width="2" height="6" fill="#c2763a"/></pattern></defs>'
)
LEFT, WIDTH, BAR, GAP = 430, 1060, 16, 7


def milliseconds(row: dict[str, str]) -> float | None:
    """Latency; None where the row tells none (a rate is not turned into one: pipelines overlap)."""
    return None if row["latency_ms"] == "-" else float(row["latency_ms"])


def bars(rows: list[dict[str, str]]) -> str:
    """Horizontal bars of the latencies of one model, on one linear scale."""
    rows = [row for row in rows if milliseconds(row) is not None]
    order = list(schema.PLATFORMS)
    rows.sort(key=lambda row: (order.index(row["platform"]), row["level"], milliseconds(row)))
    top = max(milliseconds(row) for row in rows)
    height = len(rows) * (BAR + GAP) + 8
    out = [f'<svg viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img">']
    for i, row in enumerate(rows):
        y, value = 4 + i * (BAR + GAP), milliseconds(row)
        length = max(2.0, value / top * (WIDTH - LEFT - 190))
        label = f"{schema.PLATFORMS[row['platform']][0]}: {runtime(row)}, {row['configuration']}"
        if len(label) > 64:
            label = label[:63] + "…"
        dash = ' stroke-dasharray="4 3"' if row["source"] == "predicted" else ""
        out.append(
            f'<text x="{LEFT - 8}" y="{y + 12}" text-anchor="end">{escape(label)}</text>'
            f'<rect x="{LEFT}" y="{y}" width="{length:.1f}" height="{BAR}" fill="{FILL[row["source"]]}"'
            f' stroke="{STROKE[row["source"]]}"{dash}><title>{escape(row["evidence"])}</title></rect>'
            f'<text x="{LEFT + length + 6:.1f}" y="{y + 12}">{"~ " if row["source"] == "predicted" else ""}{escape(row["latency_ms"])} ms, {row["source"]}'
            + (f", {row['shapes']}" if row["shapes"] not in ("unknown", "-") and len(row["shapes"]) < 20 else "")
            + "</text>"
        )
    return "".join(out) + "</svg>"


def table(rows: list[dict[str, str]]) -> str:
    """Every column of every row."""
    head = "".join(f"<th>{escape(column)}</th>" for column in schema.COLUMNS)
    body = []
    for row in rows:
        cells = []
        for column in schema.COLUMNS:
            text = escape(row[column])
            cells.append(f'<td><span class="b {text}">{text}</span></td>' if column == "source" else f"<td>{text}</td>")
        body.append("<tr>" + "".join(cells) + "</tr>")
    return f'<div class="wide"><table><tr>{head}</tr>{"".join(body)}</table></div>'


def matrix_table(markdown: str) -> str:
    """The Markdown matrix as an HTML table; its marks become badges."""
    lines = [line for line in markdown.splitlines() if line.startswith("|")]
    out = []
    for i, line in enumerate(lines):
        if i == 1:
            continue
        tag = "th" if i == 0 else "td"
        row = []
        for text in line.strip("|").split(" | "):
            text = escape(text.strip(" `")).replace("&lt;br&gt;", "<br>")
            for mark, source in (("**measured**", "measured"), ("_reported_", "reported"), ("~ predicted", "predicted")):
                text = text.replace(mark, f'<span class="b {source}">{source}</span>')
            row.append(f"<{tag}>{text}</{tag}>")
        out.append("<tr>" + "".join(row) + "</tr>")
    return '<div class="wide"><table>' + "".join(out) + "</table></div>"


def html(rows: list[dict[str, str]], markdown: str) -> str:
    """The page."""
    legend = "".join(
        f'<span><span class="b {source}">{source}</span> {text}</span>'
        for source, text in (
            ("measured", "by mk verify, records in results/evidence"),
            ("reported", "by others, not repeated here"),
            ("predicted", "computed, nothing was run"),
        )
    )
    counts = ", ".join(f"{sum(row['source'] == s for row in rows)} {s}" for s in schema.SOURCES)
    parts = [
        '<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>mergekernel: results</title>',
        f"<style>{STYLE}</style><h1>What the official path makes of these models, and what ours does</h1>",
        f'<p class="legend">{legend}</p><p>{len(rows)} rows: {counts}.</p>',
        f'<svg width="0" height="0">{DEFS}</svg>',
        "<h2>Platform by model</h2>", matrix_table(markdown),
    ]  # fmt: skip
    for model in sorted({row["model"] for row in rows}):
        own = [row for row in rows if row["model"] == model]
        if any(milliseconds(row) is not None for row in own):
            parts += [f"<h2>{escape(model)}: latency</h2>", bars(own)]
    parts += ["<h2>Every row</h2>", table(rows), "</html>\n"]
    return "\n".join(parts)

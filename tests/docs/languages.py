"""A page and its translation say the same commands and the same tables: used by docs_test.py. Standard library only."""

import re

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
CODE = re.compile(r"`([^`]+)`")
NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")
TRANSLATED = re.compile(r"\.zh-CN(?=\.md)")


def blocks(text):
    """Fenced blocks; in those of commands what stands behind `#` is for people."""
    out = []
    for kind, body in FENCE.findall(text):
        lines = [re.sub(r"\s+#.*$", "", line) if kind == "sh" else line for line in body.splitlines()]
        out.append("\n".join(line.rstrip() for line in lines))
    return out


def tables(text):
    """Every table as rows of cells: its inline code and numbers, which no language changes."""
    found, rows = [], []
    for line in FENCE.sub("", text).splitlines() + [""]:
        if line.startswith("|"):
            rows.append([facts(cell) for cell in re.split(r"(?<!\\)\|", line.strip()[1:-1])])
        elif rows:
            found.append(rows)
            rows = []
    return found


def facts(cell):
    code = sorted(TRANSLATED.sub("", c) for c in CODE.findall(cell))
    return code, sorted(NUMBER.findall(CODE.sub("", cell)))


def differences(name, original, translation):
    """One line per difference."""
    left, right = blocks(original), blocks(translation)
    if len(left) != len(right):
        yield f"{name}: {len(right)} fenced blocks, the original has {len(left)}"
    for i, (a, b) in enumerate(zip(left, right), 1):
        if a != b:
            yield f"{name}: fenced block {i} differs from the original's"
    headings = [len(re.findall(r"^##+ ", FENCE.sub("", text), re.M)) for text in (original, translation)]
    if headings[0] != headings[1]:
        yield f"{name}: {headings[1]} headings, the original has {headings[0]}"
    left, right = tables(original), tables(translation)
    if [len(t) for t in left] != [len(t) for t in right]:
        yield f"{name}: tables of {[len(t) for t in right]} rows, the original's have {[len(t) for t in left]}"
        return
    for t, (a, b) in enumerate(zip(left, right), 1):
        for r, (x, y) in enumerate(zip(a, b), 1):
            if x != y:
                yield f"{name}: table {t}, row {r}: {y}, the original has {x}"


def self_test():
    """The checks see what they are for."""
    page = "## a\n```sh\nmk x  # why\n```\n| a | `b` |\n| --- | --- |\n| 1 | 2.5 ms |\n"
    assert list(differences("x", page, page.replace("why", "because").replace("ms", "毫秒"))) == []
    for old, new in (("mk x", "mk y"), ("2.5", "2.6"), ("`b`", "`c`"), ("## a", "a"), ("| 1 | 2.5 ms |\n", "")):
        assert list(differences("x", page, page.replace(old, new))), (old, new)

"""Checks what the pages say against the tree: links, files named in the README's map, scripts, and forbidden text.

Usage: docs_test.py ROOT. Standard library only. Prints one line per breach.
"""

import pathlib
import re
import subprocess
import sys

import languages

LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")
MAP_ROW = re.compile(r"^\| `([\w_/]+)` \|.*\| `([\w_./]+)` \|$")
# Texts that no file of the tree may hold: places of one machine.
FORBIDDEN = re.compile(r"(?<![\w.$}])/(?:root|home)/(?!\})")
MAX_BYTES = 2_000_000


def tracked(root):
    names = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, check=True).stdout
    return [root / name for name in names.decode().split("\0") if name and (root / name).is_file()]


def broken_links(root, page):
    for target in LINK.findall(page.read_text()):
        if "://" not in target and not (page.parent / target).exists():
            yield f"{page.relative_to(root)}: link to {target}, which is not there"


def readme_breaches(root):
    text = (root / "README.md").read_text()
    rows = [MAP_ROW.match(line) for line in text.splitlines()]
    rows = [row for row in rows if row]
    if len(rows) < 10:
        yield "README.md: the map of the repository was not found"
    for row in rows:
        for name in row.groups():
            if not (root / name).exists():
                yield f"README.md: the map names {name}, which is not there"
    for command in re.findall(r"^((?:deploy|tests)/[\w./-]+\.sh)", text, re.M):
        if not (root / command).exists():
            yield f"README.md: prints the command {command}, which is not there"


def translation_breaches(root, files):
    """Every page X.zh-CN.md against X.md; both guides for people with a board are in both languages."""
    pages = [path for path in files if path.name.endswith(".zh-CN.md")]
    for path in pages:
        original = path.with_name(path.name.replace(".zh-CN", ""))
        if not original.exists():
            yield f"{path.relative_to(root)}: there is no {original.name}"
        else:
            yield from languages.differences(str(path.relative_to(root)), original.read_text(), path.read_text())
    names = {str(path.relative_to(root)) for path in pages}
    for name in ("README.zh-CN.md", "docs/HANDOFF.zh-CN.md"):
        if name not in names:
            yield f"{name} is missing"


def format_breaches(root):
    """docs/HANDOFF.md section 4 fixes the columns of verdict.csv; results/schema.py says the same."""
    sys.path.insert(0, str(root / "results"))
    import schema

    section = (root / "docs/HANDOFF.md").read_text().split("\n## 4.")[1].split("\n## ")[0]
    told = tuple(re.findall(r"^\| `(\w+)` \|", section, re.M))
    if told != schema.COLUMNS:
        yield f"docs/HANDOFF.md section 4 tells the columns {told}, results/schema.py {schema.COLUMNS}"


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    found = list(readme_breaches(root))
    files = tracked(root)
    languages.self_test()
    found += [*translation_breaches(root, files), *format_breaches(root)]
    for path in files:
        if path.stat().st_size > MAX_BYTES:
            found.append(f"{path.relative_to(root)}: {path.stat().st_size} bytes, the limit is {MAX_BYTES}")
        if path.suffix == ".md":
            found += broken_links(root, path)
        if path.suffix in {".safetensors", ".png"} or path == pathlib.Path(__file__).resolve():
            continue
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            if FORBIDDEN.search(line):
                found.append(f"{path.relative_to(root)}:{number}: holds a path of one machine")
    print("\n".join(found))
    print(f"docs: {len(found)} breaches in {len(files)} files")
    return 1 if found or not files else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""layers_test.py ROOT: every quoted #include of our sources is a header of the target itself or of one that it names in deps.

What clang's layering_check judges while it compiles, read from `bazel query` in a few seconds and without clang. Headers that
no target lists are not judged.
"""
import collections
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
LISTS = ("srcs", "hdrs", "textual_hdrs", "deps")
ROOMS = ("core", "server", "packs", "kernels", "verify", "tests", "proto")


def query(root):
    pattern = " + ".join(f"//{room}/..." for room in ROOMS)
    done = subprocess.run(
        ["bazel", "query", "--output=xml", "--noimplicit_deps", "--nohost_deps", "--noshow_progress",
         f'kind("cc_(library|binary|test)", {pattern})'], cwd=root, capture_output=True, check=False)
    if done.returncode != 0:
        sys.exit("layers: bazel query failed:\n" + done.stderr.decode(errors="replace")[-2000:])
    rules = {}
    for rule in ElementTree.fromstring(done.stdout).findall("rule"):
        rules[rule.get("name")] = {
            entry.get("name"): [item.get("value") for item in entry]
            for entry in rule.findall("list") if entry.get("name") in LISTS
        }
    return rules


def file_of(label):
    return label[2:].replace(":", "/").lstrip("/") if label.startswith("//") else ""


def headers(rule):
    return {file_of(label) for name in ("hdrs", "textual_hdrs") for label in rule.get(name, [])}


def breaches(root, rules):
    owners = collections.defaultdict(set)
    for name, rule in rules.items():
        for header in headers(rule):
            owners[header].add(name)
    found = []
    for name, rule in sorted(rules.items()):
        allowed = headers(rule) | {file_of(label) for label in rule.get("srcs", [])}
        for dep in rule.get("deps", []):
            allowed |= headers(rules.get(dep, {}))
        for label in rule.get("srcs", []) + rule.get("hdrs", []):
            path = root / file_of(label)
            if path.suffix not in (".cc", ".h", ".c") or not path.is_file():
                continue  # generated
            for include in INCLUDE.findall(path.read_text(encoding="utf-8")):
                if include in owners and include not in allowed:
                    found.append(f"{name}: {file_of(label)} includes {include}, but deps lack {sorted(owners[include])[0]}")
    return found


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    rules = query(root)
    if len(rules) < 50:
        sys.exit(f"layers: only {len(rules)} targets were found; the query is wrong")
    found = breaches(root, rules)
    print("\n".join(found))
    print(f"layers: {len(found)} breaches in {len(rules)} targets")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()

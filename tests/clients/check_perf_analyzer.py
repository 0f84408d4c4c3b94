"""A stock perf_analyzer profiles echo and vmamba-pico at concurrency 1 and 8. Standard library only.

Usage: check_perf_analyzer.py --program PATH --address HOST:PORT
"""

import argparse
import csv
import json
import pathlib
import subprocess
import tempfile

from checks import Checks, expect, expect_equal

CONCURRENCY = ("1", "8")
# What the daemon says of itself, by ModelStatistics, in whole microseconds.
SERVER = ("Server Queue", "Server Compute Input", "Server Compute Infer", "Server Compute Output")


def profile(program, address, pack, flags):
    """Rows of perf_analyzer's own table, one per concurrency."""
    with tempfile.TemporaryDirectory() as folder:
        rows = []
        for concurrency in CONCURRENCY:
            table = pathlib.Path(folder, f"{concurrency}.csv")
            # Three windows of a second, however much they differ: on a shared machine figures need not settle.
            command = [program, "-m", pack, "-u", address, "-i", "grpc", "--concurrency-range", concurrency,
                       "-p", "1000", "-r", "3", "-s", "999", "-f", str(table)] + flags
            done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=folder)
            expect(done.returncode == 0, f"exit code {done.returncode}:\n{(done.stdout + done.stderr)[-1500:]}")
            with table.open(newline="") as file:
                rows += list(csv.DictReader(file))
    return rows


def check(program, address, pack, flags):
    rows = profile(program, address, pack, flags)
    expect_equal([row["Concurrency"] for row in rows], list(CONCURRENCY), "concurrencies measured")
    notes = []
    for row in rows:
        rate, p50_us = float(row["Inferences/Second"]), float(row["p50 latency"])
        expect(rate > 0 and p50_us > 0, f"measured nothing: {row}")
        expect(sum(float(row[column]) for column in SERVER) > 0, f"no statistics of the server: {row}")
        notes.append(f"{rate:.0f}/s and p50 {p50_us:.0f} us at concurrency {row['Concurrency']}")
    return ", ".join(notes)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--program", required=True)
    parser.add_argument("--address", required=True)
    flags = parser.parse_args()
    checks = Checks("perf_analyzer")
    with tempfile.TemporaryDirectory() as folder:
        pictures = pathlib.Path(folder, "pictures.json")
        grey = [(y * 9 + x * 5) % 256 for y in range(28) for x in range(28)]
        pictures.write_text(json.dumps({"data": [{"image": {"content": grey, "shape": [28, 28, 1]}}]}))
        checks.run("echo, 1 KiB", check, flags.program, flags.address, "echo", ["--shape", "INPUT0:1024"])
        checks.run("vmamba-pico", check, flags.program, flags.address, "vmamba-pico", ["--input-data", str(pictures)])
    checks.finish()


if __name__ == "__main__":
    main()

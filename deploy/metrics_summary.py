"""Latency and memory of one pack from a daemon's /metrics: metrics_summary.py ADDRESS PACK. Standard library only."""

import re
import sys
import urllib.request

LINE = re.compile(r"^(\w+)\{(.*)\} (\S+)$")


def series(text, name, **labels):
    """(labels, value) of every series of `name` that carries `labels`."""
    for line in text.splitlines():
        match = LINE.match(line)
        if match and match[1] == name:
            found = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', match[2]))
            if all(found.get(key) == value for key, value in labels.items()):
                yield found, float(match[3])


def quantile(buckets, q):
    """A quantile of a cumulative histogram, linear inside the bucket, as Prometheus reckons it."""
    rank, below, edge = q * buckets[-1][1], 0.0, 0.0
    for bound, count in buckets:
        if count >= rank:
            if bound == float("inf"):
                return edge
            return edge + (bound - edge) * (rank - below) / max(count - below, 1e-9)
        below, edge = count, bound
    return edge


def main():
    address, pack = sys.argv[1], sys.argv[2]
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    stage = "mergekernel_request_stage_seconds_bucket"
    for name, what in (("request", "in the daemon, whole request"), ("run", "in the pack")):
        buckets = sorted((float(l["le"].replace("+Inf", "inf")), v) for l, v in series(text, stage, pack=pack, stage=name))
        if not buckets or buckets[-1][1] == 0:
            raise SystemExit(f"/metrics has no {stage} of pack {pack}, stage {name}")
        p50, p99 = (quantile(buckets, q) * 1e3 for q in (0.5, 0.99))
        print(f"  latency {what:30} p50 {p50:7.2f} ms   p99 {p99:7.2f} ms   ({buckets[-1][1]:.0f} requests)")
    peaks = {l["region"]: v for l, v in series(text, "mergekernel_memory_peak_bytes", pack=pack)}
    shown = ", ".join(f"{region} {value / 1024:.0f} KiB" for region, value in sorted(peaks.items()))
    print(f"  peak memory of the pack: {sum(peaks.values()):.0f} bytes ({shown})")


if __name__ == "__main__":
    main()

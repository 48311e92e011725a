"""Checks recorded files by value: every device op has its call in the same window.

Usage: check_trace.py IDLESCOPE FILE…     (IDLESCOPE: the program, for its `dump`)
       check_trace.py IDLESCOPE --kill FOLDER   (what kill_jobs.sh left)
Out: one line a file; exit code 1 if a file is unreadable or fewer than 99.5 % are joined.
"""
import glob
import json
import os
import statistics
import struct
import subprocess
import sys


def read(program, path):
    out = subprocess.run([program, "dump", path], capture_output=True)
    if out.returncode != 0:
        raise ValueError(out.stderr.decode())
    ops, calls, windows, losses, chunks, footer = [], [], 0, 0, 0, {}
    for line in out.stdout.splitlines():
        packet = json.loads(line)
        for kind, rows in (("gpu_ops", ops), ("host_calls", calls)):
            if kind in packet:
                window = packet[kind]["window_id"]
                rows += [(window, r["correlation_id"], r["end_ns"])
                         for r in packet[kind]["records"]]
        windows += "window_begin" in packet
        losses += int(packet.get("loss", {}).get("count", 0))
        footer = packet.get("footer", footer)
    return ops, calls, windows, losses, footer


def unjoined(ops, calls):
    known = {c[:2] for c in calls}
    return sum(o[:2] not in known for o in ops)


def main():
    program, failed = sys.argv[1], False
    if sys.argv[2] == "--kill":
        host_ms, missing, readable, total = [], [], 0, 0
        for progress in sorted(glob.glob(os.path.join(sys.argv[3], "*.progress"))):
            total += 1
            with open(progress, "rb") as file:
                first, second, last0, last1 = struct.unpack("<QQqq", file.read(32))
            for path in glob.glob(progress[:-len(".progress")] + "/*.istrace"):
                ops, calls, _, _, _ = read(program, path)
                readable += 1
                failed |= unjoined(ops, calls) > 2
                missing.append(first + second - len(ops))
                if calls:
                    host_ms.append((max(last0, last1) - max(c[2] for c in calls)) / 1e6)
        print("%d of %d readable; device records missing: median %d, worst %d; calls missing: "
              "median %.0f ms, worst %.0f ms" % (readable, total, statistics.median(missing),
                                                 max(missing), statistics.median(host_ms),
                                                 max(host_ms)))
        return failed or readable != total
    for path in sys.argv[2:]:
        ops, calls, windows, losses, footer = read(program, path)
        bad = unjoined(ops, calls)
        failed |= bad > 0.005 * len(ops)
        self = footer.get("self", {})
        wall = int(self.get("wall_ns", 0))
        print("%s: %d ops, %d calls, %d not joined, %d windows, %d lost, cost %.2f %% of %.1f s" % (
            path, len(ops), len(calls), bad, windows, losses,
            100 * int(self.get("estimated_cost_ns", 0)) / wall if wall else 0, wall / 1e9))
    return failed


sys.exit(1 if main() else 0)

"""Nothing accumulates: a job that starts and ends loaders of all kinds, steps, saves and fails,
for a long time, holds no more memory, descriptors, mappings and threads at the end than in
the middle; neither does the launcher beside it, nor a worker that lives on. The same job runs
without the library at the same time, so that what PyTorch itself accumulates is known.

IDLESCOPE_SOAK_SECONDS=900 for the long form; CI runs 15 seconds.
"""

import json
import os
import statistics
import subprocess
import unittest

import harness

SECONDS = float(os.environ.get("IDLESCOPE_SOAK_SECONDS", "15"))
JOB = os.path.join(os.path.dirname(os.path.abspath(__file__)), "soak_job.py")
RESIDENT = ("RssAnon", "RssFile", "RssShmem")


def growth(rounds, process, names):
    """Median over the last third less the median over the third before it."""
    third = max(len(rounds) // 3, 1)
    values = [sum(r[process][n] for n in names) for r in rounds]
    return statistics.median(values[-third:]) - statistics.median(values[-2 * third:-third])


class Soak(harness.Scratch):
    python = None

    def start(self, recorded):
        command = [self.python, JOB, str(SECONDS)]
        if recorded:
            command = [harness.BIN, "record", "-o", self.path("out"), "--no-report", "--"] + command
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                cwd=self.folder, env=harness.clean_environment())

    def test_nothing_accumulates(self):
        if self.python is None:
            self.skipTest("no Python with PyTorch")
        jobs = [self.start(recorded) for recorded in (False, True)]
        said = [job.communicate(timeout=SECONDS + 240) for job in jobs]
        self.assertEqual([job.returncode for job in jobs], [0, 0], said)
        plain, recorded = ([json.loads(line) for line in out.splitlines() if line[:1] == b"{"]
                           for out, _ in said)
        self.assertGreaterEqual(min(len(plain), len(recorded)), 3)
        print("\n    %d rounds plain, %d recorded; %d files, %d bytes" % (
            len(plain), len(recorded), len(self.traces()),
            sum(os.path.getsize(p) for p in self.traces())))
        for process in ("job", "worker", "parent"):
            print("    %-6s first %s\n           middle %s\n           last %s" % (
                process, recorded[0][process], recorded[len(recorded) // 2][process],
                recorded[-1][process]))
            ours = growth(recorded, process, RESIDENT)
            theirs = growth(plain, process, RESIDENT) if process != "parent" else 0
            print("           resident growth %.0f kB, plain %.0f kB" % (ours, theirs))
            # Room for a chunk more or less that is mapped at the moment, and for malloc.
            self.assertLess(ours - max(theirs, 0), 3000)
            for name, room in (("descriptors", 1), ("mappings", 6), ("Threads", 1)):
                self.assertLessEqual(growth(recorded, process, [name]), room, (process, name))


def load_tests(loader, tests, pattern):
    return harness.for_each_torch(loader, Soak)


if __name__ == "__main__":
    harness.main()

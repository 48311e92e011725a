"""PyTorch's own test_dataloader.py has the same outcome of each test with and without the
library. The file is PyTorch's and not part of this repository; it is looked for in

* IDLESCOPE_PYTORCH_TEST_DATALOADER: one file for all Pythons, or a colon-separated list with one
  for each of IDLESCOPE_TEST_PYTHONS;
* test/test_dataloader.py beside the installed torch (a source checkout of PyTorch).

What it imports (expecttest, hypothesis, psutil, numpy) comes from the Python itself or from
IDLESCOPE_TEST_PACKAGES. The tests are dealt out to IDLESCOPE_SUITE_SHARDS runs (1 by default), each
plain and recorded side by side; IDLESCOPE_SUITE_ONLY=3,7 runs only these. A test whose outcome
differs is run alone three times each way: several depend on how fast the machine is.
IDLESCOPE_SUITE_LOGS=DIR keeps the logs. Takes ten minutes a PyTorch on a quiet machine."""

import concurrent.futures
import os
import re
import subprocess
import time
import unittest

import harness
import trace_events

GIVEN = os.environ.get("IDLESCOPE_PYTORCH_TEST_DATALOADER", "").split(":")
LOGS = os.environ.get("IDLESCOPE_SUITE_LOGS", "")
SHARDS = int(os.environ.get("IDLESCOPE_SUITE_SHARDS", "1"))
ONLY = [int(n) for n in os.environ.get("IDLESCOPE_SUITE_ONLY", "").split(",") if n]
LIST = """
import os, sys, unittest
sys.path.insert(0, os.path.dirname(sys.argv[1]))
module = __import__(os.path.splitext(os.path.basename(sys.argv[1]))[0])
for name, value in vars(module).items():
    if isinstance(value, type) and issubclass(value, unittest.TestCase):
        for test in unittest.TestLoader().getTestCaseNames(value):
            print("LISTED", name + "." + test)
"""
SECONDS = 1500  # the longest a shard may take


def suite_file(python):
    """PyTorch's test file for this Python, or None."""
    pythons = harness.torch_pythons()
    given = GIVEN[0] if len(GIVEN) == 1 else dict(zip(pythons, GIVEN)).get(python, "")
    if given:
        return given if os.path.exists(given) else None
    where = harness.run_python(python, "import os, torch; print(os.path.dirname(torch.__file__))")
    beside = os.path.join(os.path.dirname(where or "/"), "test", "test_dataloader.py")
    return beside if os.path.exists(beside) else None


def outcomes(log):
    """Class.test → ok, FAIL, ERROR or skipped, from unittest's verbose output. What workers write
    may stand between the name and the outcome. No outcome: it was cut off, "none"."""
    out = {}
    name = None
    for line in log.decode(errors="replace").splitlines():
        begins = re.match(r"(test_\w+) \(([\w.]+)\)", line)
        if begins:
            test, where = begins.groups()
            parts = [p for p in where.split(".") if p not in ("__main__", test)]
            name = ".".join(parts + [test])
            out.setdefault(name, "none")
        ends = re.search(r"(?:^|\.\.\. .*?|\s)(ok|FAIL|ERROR|skipped .*|expected failure)$", line)
        if name and ends and out[name] == "none":
            out[name] = ends.group(1).split()[0]
    return out


class DataLoaderSuite(harness.Scratch):
    python = None

    def environment(self, recorded):
        env = {"PYTHONPATH": os.environ.get("IDLESCOPE_TEST_PACKAGES", "")}
        if recorded:
            env.update(LD_PRELOAD=harness.LIBRARY, IDLESCOPE_OUTPUT=self.path("out"))
        return env

    def listed(self, suite):
        done = self.run_command([self.python, "-c", LIST, suite], env=self.environment(False))
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return [line.split()[1] for line in done.stdout.decode().splitlines()
                if line.startswith("LISTED ")]

    def run_tests(self, suite, tests, recorded, log):
        """Outcome of each test; (exit code or "timed out", seconds)."""
        begin = time.monotonic()
        try:
            done = self.run_command([self.python, suite, "-v", *tests], timeout=SECONDS,
                                    env=self.environment(recorded))
            code, output = done.returncode, done.stderr
        except subprocess.TimeoutExpired as timeout:
            code, output = "timed out", timeout.stderr or b""
        if LOGS:
            with open(os.path.join(LOGS, "%s_%s_%s.log" % (
                    harness.torch_version(self.python), log,
                    "recorded" if recorded else "plain")), "wb") as file:
                file.write(output)
        found = outcomes(output)
        return {t: found.get(t, "none") for t in tests}, code, time.monotonic() - begin

    def both_ways(self, suite, tests, log):
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            return list(pool.map(lambda recorded: self.run_tests(suite, tests, recorded, log),
                                 (False, True)))

    def differs_alone(self, suite, test):
        """The outcomes of three runs each way; None where they have one in common."""
        found = [set(), set()]
        for number in range(3):
            for which, (outcome, _, _) in enumerate(
                    self.both_ways(suite, [test], "%s_%d" % (test, number))):
                found[which].add(outcome[test])
        print("    %s alone: plain %s, recorded %s" % (test, *map(sorted, found)), flush=True)
        return None if found[0] & found[1] - {"none"} else found

    def test_same_outcomes(self):
        suite = suite_file(self.python) if self.python else None
        if suite is None:
            self.skipTest("no test_dataloader.py: IDLESCOPE_PYTORCH_TEST_DATALOADER is not set")
        tests = self.listed(suite)
        self.assertGreater(len(tests), 100)
        plain, recorded, seconds = {}, {}, [0, 0]
        for shard in ONLY or range(SHARDS):
            (a, code_a, time_a), (b, code_b, time_b) = self.both_ways(
                suite, tests[shard::SHARDS], "shard%d" % shard)
            plain.update(a)
            recorded.update(b)
            seconds = [seconds[0] + time_a, seconds[1] + time_b]
            print("    shard %d of %d: %d tests, exit codes %s and %s, %.0f and %.0f s, differ: %s"
                  % (shard, SHARDS, len(a), code_a, code_b, time_a, time_b,
                     [t for t in a if a[t] != b[t]]), flush=True)
        version = harness.torch_version(self.python)
        for name, found, took in (("plain", plain, seconds[0]), ("recorded", recorded, seconds[1])):
            counts = {o: sum(1 for x in found.values() if x == o) for o in set(found.values())}
            print("    %s %s: %d of %d tests in %.0f s, %s" % (
                version, name, len(found), len(tests), took, counts), flush=True)
        traces = trace_events.read_directory(self.path("out"))
        print("    %d files, %d bytes; next %d, fetch %d, put %d" % (
            len(traces), sum(os.path.getsize(p) for p in self.traces()),
            *(sum(t.count(kind) for t in traces) for kind in ("next", "fetch", "put"))),
            flush=True)
        different = {t: self.differs_alone(suite, t) for t in plain if plain[t] != recorded[t]}
        self.assertEqual({t: found for t, found in different.items() if found}, {})
        self.assertLess(sum(o == "none" for o in plain.values()), len(plain) / 20)
        self.assertGreater(sum(t.count("next") for t in traces), 10_000 * len(plain) / len(tests))


def load_tests(loader, tests, pattern):
    return harness.for_each_torch(loader, DataLoaderSuite)


if __name__ == "__main__":
    harness.main()

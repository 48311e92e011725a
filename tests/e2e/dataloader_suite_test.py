"""PyTorch's own test_dataloader.py has the same outcome of each test with and without the
library. The file is PyTorch's and not part of this repository; it is looked for in

* IDLESCOPE_PYTORCH_TEST_DATALOADER: one file for all Pythons, or a colon-separated list with one
  for each of IDLESCOPE_TEST_PYTHONS;
* test/test_dataloader.py beside the installed torch (a source checkout of PyTorch).

What it imports (expecttest, hypothesis, psutil, numpy) comes from the Python itself or from
IDLESCOPE_TEST_PACKAGES. IDLESCOPE_SUITE_LOGS=DIR keeps both logs. Takes five minutes a PyTorch on
a quiet machine."""

import os
import re
import time
import unittest

import harness
import trace_events

GIVEN = os.environ.get("IDLESCOPE_PYTORCH_TEST_DATALOADER", "").split(":")
LOGS = os.environ.get("IDLESCOPE_SUITE_LOGS", "")


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
    """Test id → ok, FAIL, ERROR or skipped, from unittest's verbose output. What workers write
    may stand between the name and the outcome."""
    out = {}
    name = None
    for line in log.decode(errors="replace").splitlines():
        begins = re.match(r"(test_\w+) \(([\w.]+)\)", line)
        if begins:
            name = begins.group(2) + "." + begins.group(1)
        ends = re.search(r"(?:^|\.\.\. .*?|\s)(ok|FAIL|ERROR|skipped .*)$", line)
        if name and ends:
            out.setdefault(name, ends.group(1).split()[0])
    return out


class DataLoaderSuite(harness.Scratch):
    python = None

    def run_suite(self, suite, log, env):
        packages = os.environ.get("IDLESCOPE_TEST_PACKAGES", "")
        begin = time.monotonic()
        done = self.run_command([self.python, suite, "-v"], timeout=3600,
                                env=dict(env, PYTHONPATH=packages))
        if LOGS:
            name = "%s_%s.log" % (harness.torch_version(self.python), log)
            with open(os.path.join(LOGS, name), "wb") as file:
                file.write(done.stderr)
        found = outcomes(done.stderr)
        counts = {o: sum(1 for x in found.values() if x == o) for o in set(found.values())}
        print("    %s %s: exit code %d, %d tests in %.0f s, %s" % (
            harness.torch_version(self.python), log, done.returncode, len(found),
            time.monotonic() - begin, counts), flush=True)
        return done.returncode, found

    def test_same_outcomes(self):
        suite = suite_file(self.python) if self.python else None
        if suite is None:
            self.skipTest("no test_dataloader.py: IDLESCOPE_PYTORCH_TEST_DATALOADER is not set")
        code, plain = self.run_suite(suite, "plain", {})
        self.assertGreater(len(plain), 100)
        with_us = self.run_suite(suite, "recorded", {"LD_PRELOAD": harness.LIBRARY,
                                                     "IDLESCOPE_OUTPUT": self.path("out")})
        traces = trace_events.read_directory(self.path("out"))
        print("    %d files, %d bytes; next %d, fetch %d, put %d" % (
            len(traces), sum(os.path.getsize(p) for p in self.traces()),
            *(sum(t.count(kind) for t in traces) for kind in ("next", "fetch", "put"))),
            flush=True)
        self.maxDiff = None
        self.assertEqual(with_us, (code, plain))
        self.assertGreater(sum(t.count("next") for t in traces), 10_000)


def load_tests(loader, tests, pattern):
    return harness.for_each_torch(loader, DataLoaderSuite)


if __name__ == "__main__":
    harness.main()

"""PyTorch's own test_dataloader.py has the same outcome of each test with and without the
library. The file is PyTorch's and not part of this repository:
IDLESCOPE_PYTORCH_TEST_DATALOADER=/path/to/test_dataloader.py (and what it imports, as expecttest,
in IDLESCOPE_TEST_PACKAGES). Takes about five minutes a PyTorch on a quiet machine."""

import os
import re
import unittest

import harness
import trace_events

SUITE = os.environ.get("IDLESCOPE_PYTORCH_TEST_DATALOADER", "")


def outcomes(log):
    """Test name → ok, FAIL, ERROR or skipped, from unittest's verbose output."""
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

    def run_suite(self, env):
        packages = os.environ.get("IDLESCOPE_TEST_PACKAGES", "")
        done = self.run_command([self.python, SUITE, "-v"], timeout=3600,
                                env=dict(env, PYTHONPATH=packages))
        return done.returncode, outcomes(done.stderr)

    def test_same_outcomes(self):
        if not os.path.exists(SUITE) or self.python is None:
            self.skipTest("IDLESCOPE_PYTORCH_TEST_DATALOADER is not set")
        code, plain = self.run_suite({})
        self.assertGreater(len(plain), 100)
        with_us = self.run_suite({"LD_PRELOAD": harness.LIBRARY,
                                  "IDLESCOPE_OUTPUT": self.path("out")})
        self.maxDiff = None
        self.assertEqual(with_us, (code, plain))
        traces = trace_events.read_directory(self.path("out"))
        self.assertGreater(sum(t.count("next") for t in traces), 10_000)


def load_tests(loader, tests, pattern):
    return harness.for_each_torch(loader, DataLoaderSuite)


if __name__ == "__main__":
    harness.main()

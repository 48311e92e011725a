"""The recorder built with AddressSanitizer and UBSan inside PyTorch jobs: no error, no leak of
ours, and the events of every batch. Only in sanitized builds: ctest gives the library and the
compiler, whose runtime is preloaded before the library.
"""

import glob
import json
import os
import re
import signal
import subprocess
import sys
import unittest

import harness
import loader_events_test
import trace_events

HERE = os.path.dirname(os.path.abspath(__file__))
COMPILER = os.environ.get("IDLESCOPE_COMPILER", "c++")
# Frames of an allocation within which the recorder counts as its maker; deeper are the job's own
# functions that run under a wrapper of ours.
OUR_DEPTH = 4
# The sanitizer's allocator knows no fork: a worker that is forked while a queue's feeder thread
# allocates waits for a lock that nobody holds any more (seen: a child in malloc under linecache,
# g++ 12, without a frame of ours).
ATTEMPTS, ATTEMPT_SECONDS = 3, 140
OURS = re.compile(r"libidlescope|/profiler/(emit|host|session|cuda)/")  # with symbols, the source


def runtime():
    """The sanitizer's shared libraries of this compiler, in the order to preload them."""
    found = []
    for name in ("libclang_rt.asan-x86_64.so", "libasan.so", "libubsan.so", "libstdc++.so.6"):
        path = subprocess.run([COMPILER, "-print-file-name=" + name], capture_output=True,
                              text=True, check=True).stdout.strip()
        if os.path.isabs(path) and os.path.exists(path):
            # clang's has everything in it; a second runtime would refuse to start.
            if "clang_rt" in path:
                return [os.path.realpath(path)]
            found.append(os.path.realpath(path))
    return found


def our_leaks(log):
    """Stacks of leaked allocations that the recorder made itself."""
    out = []
    for stack in re.findall(r"leak of .*?\n((?:\s+#\d+ .*\n)+)", log):
        if any(OURS.search(frame) for frame in stack.splitlines()[:OUR_DEPTH]):
            out.append(stack)
    return out


class SanitizedBridge(harness.Scratch):
    python = None

    def run_job(self, *command, leaks=False):
        if self.python is None:
            self.skipTest("no Python with PyTorch")
        if not runtime():
            self.skipTest("no shared sanitizer runtime beside " + COMPILER)
        for attempt in range(ATTEMPTS):
            done = self.attempt(self.path(str(attempt)), command, leaks)
            if done:
                return done
        self.fail("the job hung %d times" % ATTEMPTS)

    def attempt(self, folder, command, leaks):
        """Output, sanitizer logs and traces of one run; None where it hung."""
        os.mkdir(folder)
        options = "log_path=%s/sanitizer:halt_on_error=1" % folder
        out = os.path.join(folder, "out")
        env = {"LD_PRELOAD": " ".join(runtime() + [harness.LIBRARY]),
               "IDLESCOPE_OUTPUT": out, "PYTHONMALLOC": "malloc",
               "ASAN_OPTIONS": options + ":verify_asan_link_order=0:detect_leaks=%d" % leaks,
               # Leaks of Python's do not change the exit code.
               "LSAN_OPTIONS": "exitcode=0",
               "UBSAN_OPTIONS": options + ":print_stacktrace=1"}
        with subprocess.Popen([self.python, *command], cwd=folder, start_new_session=True,
                              env=harness.clean_environment(env), stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as job:
            try:
                output, errors = job.communicate(timeout=ATTEMPT_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(job.pid, signal.SIGKILL)
                return None
        logs = ""
        for path in glob.glob(os.path.join(folder, "sanitizer.*")):
            with open(path, errors="replace") as file:
                logs += file.read()
        self.assertEqual(job.returncode, 0, errors.decode()[-3000:] + logs[:3000])
        for sign in ("ERROR: AddressSanitizer", "runtime error:"):
            self.assertNotIn(sign, logs)
        return output, logs, trace_events.read_directory(out)

    def test_loaders(self):
        out, _, traces = self.run_job(os.path.join(HERE, "loader_job.py"), "-",
                                      *sorted(loader_events_test.SLOW))
        delivered = sum(len(case[2]) for case in json.loads(out).values() if case[2])
        self.assertEqual(sum(t.count("next") for t in traces), delivered)

    def test_leaks(self):
        out, logs, traces = self.run_job(os.path.join(HERE, "soak_job.py"), "1", leaks=True)
        rounds = out.count(b"{\"round\"")
        self.assertGreaterEqual(rounds, 3)
        self.assertEqual(sum(t.count("step") for t in traces), 64 * rounds)
        self.assertEqual(our_leaks(logs), [])


def load_tests(loader, tests, pattern):
    return harness.for_each_torch(loader, SanitizedBridge)


if __name__ == "__main__":
    if sys.platform != "linux":
        sys.exit(harness.SKIPPED)
    harness.main()

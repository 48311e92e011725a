"""C++ jobs: NVTX ranges without a change, idlescope/annotate.h and loader.h with one; the same
program runs without the recorder."""

import os
import unittest

import harness
import trace_events

PROGRAM = os.environ.get("IDLESCOPE_ANNOTATED_PROGRAM", "")


class LinkedApi(harness.Scratch):
    def recorded(self):
        done = self.run_command(
            [PROGRAM], env={"LD_PRELOAD": harness.LIBRARY, "IDLESCOPE_OUTPUT": self.path("out")})
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"46\n", b""))
        (trace,) = trace_events.read_directory(self.path("out"))
        return trace

    def test_without_the_recorder(self):
        done = self.run_command([PROGRAM])
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"46\n", b""))
        self.assertFalse(os.path.exists(self.path("out")))

    def test_nvtx(self):
        trace = self.recorded()
        ranges = [(trace.names[e.a], e.c) for e in trace.of("range") if e.b == 1]
        self.assertEqual(ranges[:5], [("inner", 1), ("outer", 0), ("across threads", 0),
                                      ("registered", 0), ("größe", 0)])
        self.assertEqual(ranges[5:], [("deep", d) for d in range(23, -1, -1)])
        inner, outer = trace.of("range")[:2]
        self.assertLessEqual(outer.begin, inner.begin)
        self.assertLessEqual(inner.end, outer.end)
        self.assertGreaterEqual(inner.end - inner.begin, 1_000_000)
        self.assertEqual([trace.names[e.a] for e in trace.of("mark")], ["a mark"])

    def test_annotations(self):
        trace = self.recorded()
        body = [e for e in trace.of("range") if e.b == 0]
        self.assertEqual([trace.names[e.a] for e in body], ["body"] * 5)
        self.assertEqual([(e.a, e.b) for e in trace.of("step")], [(2, i) for i in range(1, 6)])

    def test_loader(self):
        trace = self.recorded()
        self.assertEqual(trace.count("create"), 1)
        self.assertEqual([e.batch for e in trace.of("next")], list(range(5)))
        self.assertEqual(trace.count("wait"), 5)
        self.assertEqual(trace.count("end"), 1)
        for event in trace.of("next"):  # 2 ms each, the first one too
            self.assertGreaterEqual(event.end - event.begin, 2_000_000)
        self.assertEqual(trace.count("fetch"), 1)


if __name__ == "__main__":
    harness.main()

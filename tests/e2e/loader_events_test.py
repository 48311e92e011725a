"""Every batch that PyTorch delivered is in the recording, once, with its stages: start
methods × dataset kinds, 0 and several workers, persistent workers, several loaders, loaders
that are left early or raise.
"""

import collections
import json
import os
import unittest

import harness
import trace_events

# Starting Python and PyTorch anew for each worker takes seconds: left out unless asked for.
SLOW = {"persistent_spawn", "persistent_iterable_spawn", "unbatched_spawn", "iterable_forkserver",
        "persistent_forkserver", "persistent_iterable_forkserver", "unbatched_forkserver"}
FULL = os.environ.get("IDLESCOPE_TEST_FULL") == "1"
JOB = os.path.join(os.path.dirname(os.path.abspath(__file__)), "loader_job.py")

# Cases whose test is not called like them.
TEST_OF_CASE = {"collate_main": "own_collate_in_main", "two_at_once": "two_loaders_at_once",
                "broken_off": "a_loop_that_is_left", "failing": "a_sample_that_raises"}


class Recorded:
    """One case: what the job said, what the files say about that stretch of time."""

    def __init__(self, case, traces):
        begin, end, self.delivered = case
        self.main = trace_events.main_of(traces).between(begin, end)
        started = {e.b for e in self.main.of("worker_started")}
        self.workers = [t for t in traces if t.role == "worker" and t.pid in started]

    def counts(self):
        """Events beside what PyTorch delivered, for tables."""
        makers = self.workers or [self.main]
        return {
            "delivered": len(self.delivered),
            "next": self.main.count("next"),
            "fetch": sum(1 for t in makers for e in t.of("fetch") if e.a > 0),
            "all fetches": sum(t.count("fetch") for t in makers),
            "put": sum(t.count("put") for t in self.workers),
            "workers": self.main.count("worker_started"),
            "end": self.main.count("end"),
            "shutdown": self.main.count("shutdown"),
        }


class LoaderEvents(harness.Scratch):
    python = None
    runs = {}  # one job a Python runs all cases: importing PyTorch takes longer than they do

    def case(self, name):
        if self.python is None:
            self.skipTest("no Python with PyTorch")
        if self.python not in self.runs:
            self.runs[self.python] = self.run_job()
        cases, traces = self.runs[self.python]
        if name not in cases:
            self.skipTest("no time: IDLESCOPE_TEST_FULL=1 runs it" if FULL else
                          "slow: IDLESCOPE_TEST_FULL=1 runs it")
        if cases[name][2] is None:
            self.skipTest("not in this PyTorch")
        return Recorded(cases[name], traces)

    def run_job(self):
        done = self.run_command(
            [self.python, JOB] + ([] if FULL else ["-"] + sorted(SLOW)), timeout=600,
            env={"LD_PRELOAD": harness.LIBRARY, "IDLESCOPE_OUTPUT": self.path("out"),
                 "LOADER_JOB_SECONDS": os.environ.get("LOADER_JOB_SECONDS", "500")})
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        self.assertNotIn(b"idlescope", done.stderr)
        return json.loads(done.stdout), trace_events.read_directory(self.path("out"))

    def check_workers(self, got, epochs=1, raised=0):
        """Counts of a loader with worker processes."""
        main, delivered = got.main, got.delivered
        self.assertEqual(main.count("next"), len(delivered))
        per_worker = collections.Counter(pid for pid in delivered if pid)
        fetched = collections.Counter()
        for trace in got.workers:
            fetched[trace.pid] = sum(1 for e in trace.of("fetch") if e.a > 0)
        # A worker may have prepared more than was delivered when the loop was left early.
        for pid, count in per_worker.items():
            self.assertGreaterEqual(fetched[pid], count)
        started = {e.b for e in main.of("worker_started")}
        self.assertEqual(started, {t.pid for t in got.workers})
        for trace in got.workers:
            # A fetch that ends an iterable dataset delivers nothing, but is put.
            self.assertEqual(trace.count("put"), trace.count("fetch"))
            # An index that comes after the end of an iterable dataset is not fetched.
            waits = collections.Counter(e.batch for e in trace.of("index_wait"))
            self.assertFalse(collections.Counter(e.batch for e in trace.of("fetch")) - waits)
        return per_worker, fetched

    def check_batch_path(self, got):
        """Each delivered batch: worker's fetch, put, then the end of next(), in this order."""
        puts = collections.defaultdict(list)
        for trace in got.workers:
            for put in trace.of("put"):
                puts[put.batch].append(put)
        for event in got.main.of("next"):
            self.assertTrue(any(p.begin <= event.end for p in puts[event.batch]), event)

    def worker_case(self, name, loaders, epochs):
        got = self.case(name)
        per_worker, fetched = self.check_workers(got)
        self.assertEqual(fetched, per_worker)
        self.check_batch_path(got)
        self.assertEqual(got.main.count("create"), loaders)
        self.assertEqual(got.main.count("end"), epochs)
        self.assertEqual(got.main.count("shutdown"), loaders)
        self.assertEqual(got.main.count("site"), loaders)
        for event in got.main.of("site"):
            self.assertIn("loader_job.py:", got.main.names[event.a])
        for trace in got.workers:
            self.assertEqual(trace.count("loop"), 1)
            self.assertEqual([e.b for e in trace.of("exit")], [0])
            self.assertEqual(trace.of("loop")[0].b, got.main.pid)
        return got

    def main_case(self, name, epochs, fetches_per_epoch):
        got = self.case(name)
        main = got.main
        self.assertEqual(got.workers, [])
        self.assertEqual(main.count("next"), len(got.delivered))
        self.assertEqual(sum(1 for e in main.of("fetch") if e.a > 0), len(got.delivered))
        self.assertEqual(main.count("fetch"), epochs * fetches_per_epoch)
        self.assertEqual(main.count("wait"), len(got.delivered))
        self.assertEqual(main.count("end"), epochs)
        for event, fetch in zip(main.of("next"), [e for e in main.of("fetch") if e.a > 0]):
            self.assertEqual((event.iterator, event.batch), (fetch.iterator, fetch.batch))
            self.assertLessEqual(event.begin, fetch.begin)
            self.assertGreaterEqual(event.end, fetch.end)
            self.assertEqual(fetch.c, -1)
        return got

    # One method a case: they can fail and be skipped apart.
    def test_map_fork(self):
        got = self.worker_case("map_fork", loaders=2, epochs=2)
        first = got.main.of("create")[0].iterator
        batches = [(e.iterator - first, e.batch) for e in got.main.of("next")]
        self.assertEqual(batches, [(i, b) for i in (0, 1) for b in range(6)])
        self.assertTrue(all(e.c & 16 for e in got.main.of("create")))

    def test_map_spawn(self):
        got = self.worker_case("map_spawn", loaders=2, epochs=2)
        self.assertTrue(all(e.c & 32 for e in got.main.of("create")))

    def test_map_forkserver(self):
        got = self.worker_case("map_forkserver", loaders=2, epochs=2)
        self.assertTrue(all(e.c & 64 for e in got.main.of("create")))

    def iterable(self, name):
        got = self.worker_case(name, loaders=1, epochs=1)
        self.assertTrue(all(e.c & 4 for e in got.main.of("create")))
        empty = [e.a for t in got.workers for e in t.of("empty")]
        self.assertEqual(empty, [1])  # the second worker has no sample
        # 4 + 0 + 2 batches and the end of each worker.
        self.assertEqual(len(got.delivered), 6)
        self.assertEqual(sum(t.count("fetch") for t in got.workers), 9)

    def test_iterable_fork(self):
        self.iterable("iterable_fork")

    def test_iterable_spawn(self):
        self.iterable("iterable_spawn")

    def test_iterable_forkserver(self):
        self.iterable("iterable_forkserver")

    def persistent(self, name):
        got = self.worker_case(name, loaders=1, epochs=3)
        self.assertTrue(all(e.c & 2 for e in got.main.of("create")))
        batches = [(e.epoch, e.batch) for e in got.main.of("next")]
        self.assertEqual(batches, [(e, b) for e in range(3) for b in range(4)])
        self.assertEqual([e.epoch for e in got.main.of("reset")], [0, 1, 2])

    def test_persistent_fork(self):
        self.persistent("persistent_fork")

    def test_persistent_spawn(self):
        self.persistent("persistent_spawn")

    def test_persistent_forkserver(self):
        self.persistent("persistent_forkserver")

    def test_persistent_iterable_fork(self):
        self.worker_case("persistent_iterable_fork", loaders=1, epochs=2)

    def test_persistent_iterable_spawn(self):
        self.worker_case("persistent_iterable_spawn", loaders=1, epochs=2)

    def test_unbatched_fork(self):
        got = self.worker_case("unbatched_fork", loaders=1, epochs=1)
        self.assertTrue(all(e.a == 1 for t in got.workers for e in t.of("fetch")))

    def test_persistent_iterable_forkserver(self):
        self.worker_case("persistent_iterable_forkserver", loaders=1, epochs=2)

    def test_unbatched_spawn(self):
        self.worker_case("unbatched_spawn", loaders=1, epochs=1)

    def test_unbatched_forkserver(self):
        self.worker_case("unbatched_forkserver", loaders=1, epochs=1)

    def test_map_main(self):
        self.main_case("map_main", epochs=2, fetches_per_epoch=6)

    def test_iterable_main(self):
        # A fetch that only finds the end raises; it is recorded with 0 samples.
        self.main_case("iterable_main", epochs=2, fetches_per_epoch=6)

    def test_unbatched_main(self):
        self.main_case("unbatched_main", epochs=1, fetches_per_epoch=5)

    def test_own_collate_in_main(self):
        got = self.main_case("collate_main", epochs=1, fetches_per_epoch=3)
        name = got.main.names[got.main.of("dataset")[0].c]
        self.assertIn("loader_job.py", name)
        self.assertTrue(name.endswith(" first"), name)
        self.assertTrue(all(0 < e.b < e.end - e.begin for e in got.main.of("fetch")))

    def test_two_loaders_at_once(self):
        got = self.case("two_at_once")
        numbers = collections.Counter(e.iterator for e in got.main.of("next"))
        self.assertEqual(sorted(numbers.values()), [3, 3])
        self.check_workers(got)

    def test_a_loop_that_is_left(self):
        got = self.case("broken_off")
        self.assertEqual([e.batch for e in got.main.of("next")], [0, 1, 2])
        self.assertEqual(got.main.count("end"), 0)
        self.check_workers(got)

    def test_a_sample_that_raises(self):
        got = self.case("failing")
        self.assertEqual([e.batch for e in got.main.of("next")], list(range(8)))
        self.assertEqual([e.batch for e in got.main.of("next") if e.c], [4])
        failed = [e for t in got.workers for e in t.of("fetch") if e.a == 0]
        self.assertEqual([e.batch for e in failed], [4])

    def test_out_of_order(self):
        got = self.case("out_of_order")
        self.assertEqual(sorted(e.batch for e in got.main.of("next")), list(range(12)))
        self.assertTrue(all(e.c & 8 for e in got.main.of("create")))
        # The worker that is said to have made a batch is the one whose pid is in it.
        made = {e.batch: t.pid for t in got.workers for e in t.of("fetch")}
        self.assertEqual([made[e.batch] for e in got.main.of("next")], got.delivered)


def load_tests(loader, tests, pattern):
    return harness.for_each_torch(loader, LoaderEvents)


if __name__ == "__main__":
    harness.main()

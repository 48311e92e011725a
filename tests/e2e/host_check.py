"""The host timeline checked on another machine: three tables, one command each.

    python3 host_check.py kills    --library lib/libidlescope.so [--program bin/idlescope]
    python3 host_check.py loaders  --library lib/libidlescope.so
    python3 host_check.py counters --library lib/libidlescope.so

kills     SIGKILL of the main process and of workers at random moments: no committed event lost
loaders   start methods × dataset kinds: events equal to what PyTorch delivered
counters  cold read, cold mmap, warm read, CPU, too few cores, held GIL, sleep, socket told apart

Needs python3 with PyTorch and numpy and a built library; neither ctest nor cmake. The same
checks run in CI (surviving_test.py, loader_events_test.py, counters_test.py); here they end within
--budget seconds and the table comes last. Exit code 1: a check failed; 77: nothing was checked.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import shutil
import sys
import tempfile
import time
import unittest


def parse():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("check", choices=("kills", "loaders", "counters"))
    parser.add_argument("--library", required=True)
    parser.add_argument("--program", help="kills: `idlescope report` must read each recording")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--budget", type=float, default=220, metavar="SECONDS")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--parallel", type=int, help="kills: jobs at a time")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", metavar="FILE", help="the numbers of the table")
    options = parser.parse_args()
    for path in (options.library, options.program):
        if path and not os.path.exists(path):
            parser.error(path + " is not there")
    options.library = os.path.abspath(options.library)
    options.program = os.path.abspath(options.program) if options.program else None
    return options


def print_table(header, rows):
    rows = [header] + [[str(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(header))]
    for row in rows:
        print("  ".join(cell.ljust(width) if i == 0 else cell.rjust(width)
                        for i, (cell, width) in enumerate(zip(row, widths))).rstrip())


def kills(options):
    """Jobs are started until all are done or the budget ends; those under way are waited for."""
    import killed_job
    folder = tempfile.mkdtemp(prefix="idlescope_kills_")
    end = time.monotonic() + options.budget - 30
    parallel = options.parallel or max(1, min(8, len(os.sched_getaffinity(0)) // 2))

    def one(number):
        if time.monotonic() > end:
            return None
        outcome = killed_job.kill_once(
            options.python, options.library, os.path.join(folder, str(number)), number,
            options.seed, options.program)
        for sentence in outcome.lost:
            print("kill %d (%s): %s" % (number, outcome.moment, sentence), flush=True)
        if number % 20 == 19:
            print("kill %d" % (number + 1), flush=True)
        return outcome

    try:
        with concurrent.futures.ThreadPoolExecutor(parallel) as pool:
            done = [o for o in pool.map(one, range(options.kills)) if o]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    rows = []
    for moment in list(killed_job.MOMENTS) + ["all"]:
        group = [o for o in done if moment in (o.moment, "all")]
        rows.append([moment, len(group), sum(o.files for o in group)] + [
            sum(getattr(o, name) for o in group)
            for name in ("delivered", "recorded_next", "fetches", "recorded_fetches")] + [
                sum(o.report_code == 0 for o in group) if options.program else "-",
                sum(len(o.lost) for o in group)])
    print("\n%d of %d kills, %d jobs at a time" % (len(done), options.kills, parallel))
    print_table(["killed", "kills", "files", "next() returned", "recorded", "fetches returned",
                 "recorded", "reports", "lost"], rows)
    return {"rows": rows}, not done, any(o.lost for o in done)


def run_tests(cls):
    """One test class with unittest; (outcome of each test, what failed)."""
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(cls)
    names = [test.id().rsplit(".", 1)[1] for test in suite]  # a suite forgets what it has run
    result = unittest.TextTestRunner(verbosity=2, stream=sys.stdout).run(suite)
    outcomes = dict.fromkeys(names, "ok")
    for kind, found in (("FAILED", result.failures + result.errors),
                        ("skipped", result.skipped)):
        for test, _ in found:
            outcomes[test.id().rsplit(".", 1)[1]] = kind
    return outcomes, not result.wasSuccessful()


def loaders(options):
    os.environ["IDLESCOPE_TEST_FULL"] = "1"
    os.environ["LOADER_JOB_SECONDS"] = str(options.budget - 40)
    import loader_events_test as events
    cls = type("LoaderEvents", (events.LoaderEvents,), {"python": options.python, "runs": {}})
    outcomes, failed = run_tests(cls)
    cases, traces = cls.runs.get(options.python, ({}, []))
    rows = []
    for name, case in cases.items():
        if case[2] is not None:
            counts = events.Recorded(case, traces).counts()
            rows.append([name, *counts.values(),
                         outcomes.get("test_" + events.TEST_OF_CASE.get(name, name), "-")])
    print()
    print_table(["loader", "delivered", "next", "fetch", "all fetches", "put", "workers", "end",
                 "shutdown", "check"], rows)
    left_out = [n for n, o in outcomes.items() if o == "skipped"]
    print("not run: " + (", ".join(left_out) or "none"))
    return {"rows": rows, "outcomes": outcomes}, not rows, failed


def counters(options):
    import counters_test
    counters_test.Counters.rows.clear()
    cls = type("Counters", (counters_test.Counters,), {"python": options.python})
    cls.seconds = options.budget / 8  # for each job
    outcomes, failed = run_tests(cls)
    rows = [[cause, s.fetches, "%.1f" % s.wall_ms, "%.0f %%" % (s.cpu * 100),
             "%.0f %%" % (s.delay * 100), "%.0f %%" % (s.blocked * 100),
             "%.0f %%" % (s.others * 100), "%.1f" % (s.major_faults / max(s.fetches, 1)),
             "%.0f" % (s.blocks / max(s.fetches, 1)), "%.0f" % (s.bytes / max(s.fetches, 1))]
            for cause, s in counters_test.Counters.rows]
    print()
    print_table(["cause", "fetches", "wall ms", "thread CPU", "run queue", "blocked",
                 "other threads", "major faults", "blocks", "bytes read"], rows)
    tally = collections.Counter(outcomes.values())
    print("a fetch is two samples; faults, blocks and bytes are of one fetch; checks: " +
          ", ".join("%d %s" % (n, o) for o, n in tally.items()))
    return {"rows": rows, "outcomes": outcomes}, not rows, failed


def main():
    options = parse()
    os.environ.update(IDLESCOPE_TEST_LIBRARY=options.library,
                      IDLESCOPE_BIN=options.program or "",
                      IDLESCOPE_SOURCE=os.path.dirname(os.path.abspath(__file__)))
    import harness
    begin = time.monotonic()
    version = harness.torch_version(options.python)
    if version is None:
        sys.exit(options.python + " has no PyTorch")
    found, nothing, failed = {"kills": kills, "loaders": loaders,
                              "counters": counters}[options.check](options)
    seconds = time.monotonic() - begin
    print("%s; Python %s, PyTorch %s, %d cores, %.0f s" % (
        "FAILED" if failed else "nothing was checked" if nothing else "ok",
        harness.run_python(options.python, "import platform; print(platform.python_version())"),
        version, len(os.sched_getaffinity(0)), seconds))
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"check": options.check, "torch": version, "seconds": seconds, **found},
                      file)
    sys.exit(1 if failed else harness.SKIPPED if nothing else 0)


if __name__ == "__main__":
    main()

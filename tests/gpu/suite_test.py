"""The suite's own code, without a GPU: plans, resuming, judging, gains, losses, the table.

Every kind of expectation is shown to fail when it should: a suite that cannot fail proves
nothing."""

import argparse
import glob
import gzip
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

from ordinary import catalogue as ordinary  # noqa: E402
from suite import catalogue, judge, kineto, measure, runner, table  # noqa: E402

EXPECT = {"verdicts": ["DATA"], "leaves": [], "limiters": [], "share": 0.6, "tolerance": 0.1,
          "accept": ["num-workers"], "forbid": ["larger-batch"], "forbid_first": [],
          "gone": None}
REPORT = {"verdict": "DATA", "verdict_shares": [{"verdict": "DATA", "share": 0.58}],
          "fixes": [{"id": "num-workers",
                     "forecast": {"speedup": 2.0, "class": "FORECAST_A", "bound_only": False}}],
          "step": {"mean_ns": "100000000", "steady_steps": "30"}, "devices": [{"fill": 0.5}],
          "evidence": {}}


class Cells(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name

    def cell(self, mode="recorded", fix="none", repetition=0, scenario="S01", report=None,
             expect=None, code=0, timed_out=False, truth=True, **measured):
        name = "%s-%s-%s-%d" % (scenario, fix, mode, repetition)
        path = os.path.join(self.folder, name)
        os.makedirs(path, exist_ok=True)
        values = dict({"step_ms_mean": 100.0, "tc_ms": 40.0, "samples_per_step": 64,
                       "counted": 100, "finite": True}, **measured)
        with open(os.path.join(path, "stdout.txt"), "w") as file:
            if truth:
                file.write("TRUTH " + json.dumps({
                    "scenario": scenario, "expect": dict(EXPECT, **(expect or {})),
                    "measured": values}) + "\n")
        with open(os.path.join(path, "run.json"), "w") as file:
            json.dump({"scenario": scenario, "fix": fix, "mode": mode, "repetition": repetition,
                       "exit_code": code, "timed_out": timed_out}, file)
        if mode == "recorded":
            with open(os.path.join(path, "report.json"), "w") as file:
                json.dump(dict(REPORT, **(report or {})), file)
        return path

    def failures(self, **options):
        return judge.judge(self.cell(**options)).failures


class Judging(Cells):
    def test_a_right_report_has_no_failure(self):
        self.assertEqual(self.failures(), [])

    def test_leaves_beside_the_verdict_count_where_the_job_says_so(self):
        report = {"verdict_shares": [{"verdict": "DATA", "share": 0.4}],
                  "leaves": [{"leaf": "HOST_BLOCKED", "share": 0.15},
                             {"leaf": "DISPATCH", "share": 0.3}]}
        self.assertNotEqual(self.failures(report=report), [])
        self.assertEqual(self.failures(report=report, expect={"share_with": ["HOST_"]}), [])

    def test_each_wrong_one_has(self):
        two = [{"id": "num-workers"}, {"id": "larger-batch"}]
        wrong = {
            "verdict": dict(report={"verdict": "LAUNCH"}),
            "share": dict(report={"verdict_shares": [{"verdict": "DATA", "share": 0.3}]}),
            "no advice": dict(report={"fixes": []}),
            "first advice": dict(report={"fixes": [{"id": "cache"}]}),
            "forbidden": dict(report={"fixes": two}),
            "still has": dict(expect={"gone": "DATA"}),
            "fill": dict(expect={"fill_below": 0.1}),
            "busy": dict(expect={"busy_above": 0.95}),
            "periods": dict(expect={"period_steps": 25}),
            "start-up": dict(expect={"startup_s_at_least": 3.0}),
            "exit code": dict(code=3),
            "time limit": dict(timed_out=True),
            "no truth": dict(truth=False),
            "not finite": dict(finite=False),
        }
        for words, options in wrong.items():
            found = self.failures(**options)
            self.assertTrue(any(words in f for f in found), (words, found))

    def test_a_tolerated_verdict_is_a_note(self):
        row = judge.judge(self.cell(report={"verdict": "HOST"}, expect={"or_verdicts": ["HOST"]}))
        self.assertEqual(row.failures, [])
        self.assertTrue(row.notes)

    def test_a_missing_report_is_a_failure(self):
        path = self.cell()
        os.unlink(os.path.join(path, "report.json"))
        self.assertIn("no report", judge.judge(path).failures)


class OrdinaryJobs(unittest.TestCase):
    def test_each_has_an_expectation_that_can_fail(self):
        ids = set()
        for job in ordinary.JOBS:
            expect = ordinary.expectation(job.key)
            self.assertTrue(expect["verdicts"])
            self.assertFalse(set(expect["accept"]) & set(expect["forbid"]), job.key)
            ids.update(expect["accept"], expect["forbid"], expect["forbid_first"])
            code = pathlib.Path(HERE, "ordinary", job.file).read_text()
            self.assertIn("def %s():" % job.key, code)
        self.assertEqual(len(ordinary.BY_KEY), len(ordinary.JOBS))
        # An advice that no report gives would be accepted or forbidden in vain.
        sources = glob.glob(os.path.join(HERE, "../../analysis/report/*.cpp"))
        known = "".join(pathlib.Path(path).read_text() for path in sources)
        self.assertEqual([i for i in sorted(ids) if '"%s"' % i not in known], [])

    def test_they_run_without_calibration(self):
        jobs = catalogue.wanted_scenarios("tar_shards", False, ordinary.scenarios())
        cells = catalogue.plan_cells(jobs, ["recorded:none", "recorded:A"], 1)
        self.assertEqual([c.name() for c in cells], ["tar_shards-none-recorded-0"])
        self.assertEqual(catalogue.with_calibration(cells, []), cells)
        options = argparse.Namespace(
            out="/r", seed=1, device="cuda", tiny=False, steps=None, seconds=6, idlescope="idlescope",
            python="python3", libtorch=None, preload=False, record_options="-q")
        command = runner.command_of(cells[0], options, {})
        self.assertTrue(command[command.index("python3") + 1].endswith("ordinary/loaders.py"))
        self.assertEqual(command[command.index("python3") + 2], "tar_shards")
        self.assertNotIn("--calibration", command)
        self.assertNotIn("--fix", command)


class Measuring(Cells):
    def rows(self, *cells):
        return [judge.judge(self.cell(**c)) for c in cells]

    def test_gain_is_of_samples_and_has_an_interval(self):
        rows = self.rows(
            dict(mode="plain", step_ms_mean=100), dict(mode="plain", fix="A", step_ms_mean=50),
            dict(mode="plain", step_ms_mean=110, repetition=1),
            dict(mode="plain", fix="A", step_ms_mean=52, repetition=1))
        gain = measure.gain(rows, "S01", "A")
        self.assertAlmostEqual(gain.value, 2.057, 3)
        self.assertLess(gain.low, 2.0)
        self.assertGreater(gain.high, 2.1)
        self.assertEqual(gain.count, 2)
        # Thirty-two times the samples in the same step.
        more = self.rows(dict(mode="plain", scenario="S09"),
                         dict(mode="plain", scenario="S09", fix="A", samples_per_step=2048))
        self.assertAlmostEqual(measure.gain(more, "S09", "A").value, 32.0)

    def test_nothing_measured_is_no_gain(self):
        self.assertIsNone(measure.gain(self.rows(dict(mode="plain")), "S01", "A"))

    def test_cost_pairs_repetitions(self):
        rows = self.rows(
            dict(mode="plain", step_ms_mean=100), dict(step_ms_mean=101),
            dict(mode="plain", step_ms_mean=200, repetition=1),
            dict(step_ms_mean=202, repetition=1))
        cost = measure.cost(rows, "S01", "none")
        self.assertAlmostEqual(cost.value, 1.01, 6)
        self.assertAlmostEqual(cost.high, 1.01, 6)  # the drift of the machine cancels

    def test_losses(self):
        same = self.rows(dict(mode="plain", loss_last="0x1p0"), dict(loss_last="0x1p0"))
        self.assertEqual(measure.losses(same, "S01", "none")[0], "equal")
        other = self.rows(dict(mode="plain", loss_last="0x1p0"), dict(loss_last="0x1.1p0"))
        measure.check_groups(other, catalogue.by_key())
        self.assertTrue(any("losses differ" in f for r in other for f in r.failures))
        varies = self.rows(dict(mode="plain", loss_last="0x1p0"),
                           dict(mode="plain", loss_last="0x1.2p0", repetition=1),
                           dict(loss_last="0x1.1p0"))
        measure.check_groups(varies, catalogue.by_key())
        self.assertEqual([f for r in varies for f in r.failures], [])
        # Another number of steps says nothing.
        short = self.rows(dict(mode="plain", loss_last="0x1p0"),
                          dict(loss_last="0x1.1p0", counted=90))
        self.assertEqual(measure.losses(short, "S01", "none")[0], "")

    def test_a_gain_on_the_twin_is_a_failure(self):
        def rows(faster):
            return self.rows(dict(mode="plain", fix="twin", step_ms_mean=100),
                             dict(mode="plain", fix="twinA", step_ms_mean=faster))
        for faster, bad in ((99, False), (80, True)):
            found = rows(faster)
            measure.check_groups(found, catalogue.by_key())
            self.assertEqual(any("on the twin" in f for r in found for f in r.failures), bad)

    def test_forecast_against_measured(self):
        def rows(fixed_ms, grade):
            fixes = [{"id": "num-workers", "forecast": {"speedup": 2.0, "class": grade}}]
            return self.rows(dict(report={"fixes": fixes}), dict(mode="plain", step_ms_mean=100),
                             dict(mode="plain", fix="A", step_ms_mean=fixed_ms))
        for fixed_ms, grade, bad in ((50, "FORECAST_A", False), (55, "FORECAST_B", False),
                                     (80, "FORECAST_A", True), (80, "FORECAST_C", False)):
            found = rows(fixed_ms, grade)
            measure.check_groups(found, catalogue.by_key())
            self.assertEqual(any("forecast" in f for r in found for f in r.failures), bad,
                             (fixed_ms, grade))


class Table(Cells):
    def test_all_columns_and_the_count(self):
        self.cell(mode="plain")
        self.cell(mode="plain", fix="A", step_ms_mean=50)
        rows = [judge.judge(os.path.join(self.folder, n)) for n in os.listdir(self.folder)]
        rows.append(judge.judge(self.cell()))
        rows.append(judge.judge(self.cell(repetition=1, report={"verdict": "HOST"})))
        text = table.markdown(rows, "a machine")
        self.assertIn("1 of 2 recorded runs as expected", text)
        self.assertIn("num-workers 2.00x A", text)
        self.assertIn("A 2.00x", text)
        self.assertIn("FAIL: verdict HOST", text)
        lines = [line for line in text.splitlines() if line.startswith("| S01")]
        self.assertEqual({line.count("|") for line in lines}, {len(table.COLUMNS) + 1})
        json.dumps(table.as_json(rows, "a machine"))


class Plans(unittest.TestCase):
    def test_repetitions_go_backwards(self):
        names = [c.name() for c in catalogue.plan_cells(
            catalogue.wanted_scenarios("S01", False), ["plain:none", "recorded:none"], 2)]
        self.assertEqual(names, ["S01-none-plain-0", "S01-none-recorded-0",
                                 "S01-none-recorded-1", "S01-none-plain-1"])

    def test_no_recording_without_calibration_before_it(self):
        plan = catalogue.plan_cells(catalogue.wanted_scenarios("S06", False),
                                    ["plain:none", "recorded:all"], 1)
        names = [c.name() for c in catalogue.with_calibration(plan, ["S06-C-plain-0"])]
        self.assertEqual(names, ["S06-none-plain-0", "S06-none-recorded-0",
                                 "S06-A-calibrate-0", "S06-A-recorded-0",
                                 "S06-B-calibrate-0", "S06-B-recorded-0",
                                 "S06-C-recorded-0"])

    def test_twins_of_every_scenario_but_none_of_unknown_fixes(self):
        for scenario in catalogue.SCENARIOS:
            cells = catalogue.plan_cells([scenario], ["plain:twins"], 1)
            self.assertEqual([c.fix for c in cells], ["twin"] + ["twin" + f for f in scenario.fixes])

    def test_unknown_scenario(self):
        with self.assertRaises(SystemExit):
            catalogue.wanted_scenarios("S99", False)

    def test_every_job_file_is_there(self):
        for scenario in catalogue.SCENARIOS:
            name = (os.path.join("libtorch", scenario.script + ".cpp") if scenario.libtorch
                    else os.path.join("scenarios", scenario.script))
            self.assertTrue(os.path.exists(os.path.join(HERE, name)), name)
            self.assertLessEqual(set(scenario.advice), set(scenario.fixes), scenario.key)


FAKE_JOB = """
import json, os, sys, time
sys.stdout.write("READY\\n"); sys.stdout.flush()
gate = sys.argv[sys.argv.index("--gate") + 1]
while not os.path.exists(gate): time.sleep(0.005)
fix = "twin" if "--twin" in sys.argv else sys.argv[sys.argv.index("--fix") + 1]
if fix == "B": sys.exit(5)
print("RESULT S02 %s steps_per_s=10" % fix)
print("TRUTH " + json.dumps({"scenario": "S02", "expect": EXPECT, "measured": {
    "step_ms_mean": 50.0 if fix == "A" else 100.0, "tc_ms": 40.0, "samples_per_step": 64,
    "counted": 9, "finite": True}}))
"""


class Running(Cells):
    """The runner with jobs that need neither PyTorch nor a GPU."""

    def setUp(self):
        super().setUp()
        self.job = os.path.join(self.folder, "job.py")
        with open(self.job, "w") as file:
            file.write("EXPECT = %r\n" % EXPECT + FAKE_JOB)
        self.scenario = catalogue.Scenario("S02", self.job, ("A", "B"))

    def options(self, **more):
        return argparse.Namespace(**dict(
            dict(out=os.path.join(self.folder, "out"), budget=0, reserve=0, timeout=20, seed=1,
                 device="cuda", tiny=False, steps=None, python=sys.executable, resume=False,
                 idlescope="idlescope", library="", preload=False, libtorch=None,
                 record_options="-q", verbose=False), **more))

    def run_cells(self, cells, **more):
        options = self.options(**more)
        os.makedirs(options.out, exist_ok=True)
        suite = runner.Runner(options)
        quiet = open(os.devnull, "w")
        self.addCleanup(quiet.close)
        before, sys.stdout = sys.stdout, quiet
        try:
            done = suite.run(catalogue.plan_cells([self.scenario], cells, 1))
        finally:
            sys.stdout = before
        return suite, [c.name() for c in done]

    def test_jobs_run_and_a_failing_one_is_seen(self):
        _, done = self.run_cells(["plain:none", "plain:A", "plain:B"])
        self.assertEqual(len(done), 3)
        rows = [judge.judge(os.path.join(self.folder, "out", name)) for name in done]
        self.assertEqual([bool(r.failures) for r in rows], [False, False, True])
        self.assertAlmostEqual(measure.gain(rows, "S02", "A").value, 2.0)

    def test_resume_runs_what_is_missing_and_what_failed(self):
        self.run_cells(["plain:none", "plain:B"])
        _, done = self.run_cells(["plain:none", "plain:A", "plain:B"], resume=True)
        self.assertEqual(done, ["S02-A-plain-0", "S02-B-plain-0"])

    def test_out_of_time_leaves_nothing_half_done(self):
        suite, done = self.run_cells(["plain:none", "plain:A"], budget=1000, reserve=2000)
        self.assertEqual(done, [])
        self.assertEqual(suite.skipped, ["S02-none-plain-0", "S02-A-plain-0"])
        self.assertEqual(os.listdir(os.path.join(self.folder, "out")), [])

    def test_a_job_that_hangs_is_stopped(self):
        with open(self.job, "a") as file:
            file.write("time.sleep(60)\n")
        _, done = self.run_cells(["plain:none"], timeout=0.7)
        row = judge.judge(os.path.join(self.folder, "out", done[0]))
        self.assertIn("job stopped at its time limit", row.failures)


class Kineto(Cells):
    def events(self):
        step = {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#3", "ts": 0, "dur": 100}
        return [step,
                {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 0, "dur": 40},
                {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": 10, "dur": 10},
                {"ph": "X", "cat": "kernel", "name": "gemm", "ts": 15, "dur": 30},
                {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD", "ts": 40, "dur": 20},
                {"ph": "X", "cat": "user_annotation",
                 "name": "enumerate(DataLoader)#_Iter.__next__", "ts": 70, "dur": 20}]

    def test_breakdown_is_by_precedence_and_complete(self):
        shares = kineto.breakdown(self.events())
        self.assertAlmostEqual(sum(shares.values()), 1.0)
        self.assertAlmostEqual(shares["Kernel"], 0.30)
        self.assertAlmostEqual(shares["Memcpy"], 0.15)
        self.assertAlmostEqual(shares["Runtime"], 0.05)
        self.assertAlmostEqual(shares["CPU Exec"], 0.10)
        self.assertAlmostEqual(shares["DataLoader"], 0.20)
        self.assertAlmostEqual(shares["Other"], 0.20)

    def test_imported_trace_is_judged(self):
        path = self.cell(mode="kineto")
        with gzip.open(os.path.join(path, "kineto.pt.trace.json.gz"), "wt") as file:
            json.dump({"traceEvents": self.events()}, file)
        for report, bad in ((REPORT, False), (dict(REPORT, verdict="COMPUTE"), True),
                            (dict(REPORT, verdict="CANNOT_TELL"), False),
                            (dict(REPORT, verdict="CANNOT_TELL", verdict_shares=[
                                {"verdict": "HOST", "share": 0.4}]), True)):
            with open(os.path.join(path, "report.json"), "w") as file:
                json.dump(report, file)
            row = judge.judge(path)
            self.assertEqual(bool(row.failures), bad, row.failures)
            self.assertIn("torch.profiler", table.markdown([row], ""))

    def test_a_trace_without_steps_is_a_failure(self):
        path = self.cell(mode="kineto")
        with gzip.open(os.path.join(path, "kineto.pt.trace.json.gz"), "wt") as file:
            json.dump({"traceEvents": []}, file)
        self.assertTrue(judge.judge(path).failures)


class CommandLine(unittest.TestCase):
    def run_suite(self, *arguments):
        return subprocess.run([sys.executable, os.path.join(HERE, "run_suite"), *arguments],
                              capture_output=True, text=True)

    def test_dry_run_prints_commands_and_runs_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "R")
            done = self.run_suite("--out", out, "--only", "S01", "--dry-run", "--cells",
                                  "plain:none,recorded:twins,kineto:none")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("4 runs", done.stdout)
            self.assertIn("s01_loader_inline.py --twin --fix A", done.stdout)
            self.assertFalse(os.path.exists(out))

    def test_phases(self):
        counts = {}
        for phase in ("verdicts", "fixes", "twins", "gains", "kineto", "libtorch", "ranks"):
            with tempfile.TemporaryDirectory() as folder:
                done = subprocess.run(
                    ["bash", os.path.join(HERE, "run_all.sh"), phase], capture_output=True, text=True,
                    env=dict(os.environ, OUT=folder, IDLESCOPE="/bin/true", PYTHON=sys.executable,
                             LIBTORCH=folder, MORE="--dry-run"))
            self.assertEqual(done.returncode, 0, done.stderr)
            counts[phase] = int(done.stdout.splitlines()[-1].split()[0])
        python_jobs = sum(not s.libtorch and s.ranks == 1 for s in catalogue.SCENARIOS)
        self.assertEqual(counts["verdicts"], 2 * python_jobs)
        self.assertEqual(counts["kineto"], python_jobs)
        self.assertTrue(all(counts.values()), counts)
        none = subprocess.run(["bash", os.path.join(HERE, "run_all.sh")], capture_output=True,
                              text=True, env=dict(os.environ, OUT="x", IDLESCOPE="y"))
        self.assertEqual(none.returncode, 2)

    def test_wrong_usage(self):
        self.assertEqual(self.run_suite().returncode, 2)


if __name__ == "__main__":
    unittest.main()

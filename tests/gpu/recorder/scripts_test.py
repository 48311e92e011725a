"""The recorder's measuring scripts with jobs that need no GPU: they measure, and they can fail."""

import glob
import json
import os
import stat
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))

# What jobs.py prints; a run with a recorder is slower by FACTOR.
JOB = """
import json, os, sys
factor = %(factor)s if os.environ.get("LD_PRELOAD") else 1.0
if os.environ.get("LD_PRELOAD"):
    os.makedirs(os.environ["IDLESCOPE_OUTPUT"], exist_ok=True)
print(json.dumps({"job": sys.argv[1], "steps": 1000, "median_us": 2000 * factor,
                  "mean_us": 2000 * factor, "max_us": 9000, "wall_s": 1, "loss_last": 0.5}))
sys.exit(%(code)d)
"""
REPORT = {"cost": {"share_of_run": 0.004, "slowdown_in_windows": 1.1, "trace_bytes": "8000"},
          "source": {"processes": [{"gpu_ops": "1000"}]},
          "step": {"steady_steps": "60", "run_steps": "1000"}, "verdict": "LAUNCH"}


class Scripts(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name
        self.library = next(iter(glob.glob("/lib*/*/libm.so.6") + glob.glob("/lib*/libm.so.6")),
                            sys.executable)

    def program(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w") as file:
            file.write("#!%s\n%s" % (sys.executable, text))
        os.chmod(path, stat.S_IRWXU)
        return path

    def measure(self, phase, factor=1.004, code=0, report=None, **options):
        jobs = self.program("jobs.py", JOB % {"factor": factor, "code": code})
        tool = self.program("idlescope", "print(%r)" % json.dumps(dict(REPORT, **(report or {}))))
        command = [sys.executable, os.path.join(HERE, "measure.py"), phase, "--library",
                   self.library, "--idlescope", tool, "--out", os.path.join(self.folder, "out"),
                   "--jobs", jobs, "--seconds", "1"]
        for name, value in options.items():
            command += ["--" + name, str(value)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        path = os.path.join(self.folder, "out", phase + ".json")
        rows = []
        if os.path.exists(path):
            with open(path) as file:
                rows = json.load(file)["rows"]
        return done.returncode, done.stdout + done.stderr, rows

    def test_whole_runs_in_pairs(self):
        code, out, rows = self.measure("mlp", pairs=2)
        self.assertEqual(code, 0, out)
        self.assertIn("from 2 pairs", out)
        self.assertIn("8.0 bytes per device op", out)
        names = [r["name"] for r in rows if r["name"].startswith(("plain", "recorded"))]
        self.assertEqual(names, ["plain-0", "recorded-0", "recorded-1", "plain-1"])

    def test_a_dear_recorder_fails(self):
        self.assertEqual(self.measure("mlp", factor=1.05, pairs=2)[0], 1)
        self.assertEqual(self.measure("mlp", pairs=2, report={
            "cost": {"share_of_run": 0.02}})[0], 1)

    def test_one_pair_has_no_interval(self):
        code, out, _ = self.measure("mlp", pairs=1)
        self.assertEqual(code, 1, out)

    def test_a_job_that_fails_is_seen(self):
        code, out, _ = self.measure("resnet", code=3, pairs=1)
        self.assertEqual(code, 1)
        self.assertIn("exit code 3", out)

    def test_short_jobs_want_twenty_steps(self):
        code, out, rows = self.measure("short")
        self.assertEqual(code, 0, out)
        self.assertEqual(len([r for r in rows if "verdict" in r]), 12)
        self.assertEqual(self.measure("short", report={
            "step": {"steady_steps": "7", "run_steps": "90"}})[0], 1)

    def test_programs_that_are_missing_fail_the_phase(self):
        code, out, _ = self.measure("calls", programs=self.folder)
        self.assertEqual(code, 1)
        self.assertIn("call_cost is not built", out)

    def test_graph_job_that_dies_is_a_failure(self):
        self.program("graph_windows", "import sys; print('cudaErrorLaunchFailure'); sys.exit(1)")
        code, out, _ = self.measure("graphs", programs=self.folder, count=3)
        self.assertEqual(code, 1)
        self.assertIn("cudaErrorLaunchFailure", out)

    def test_run_all_needs_to_know_where(self):
        done = subprocess.run(["bash", os.path.join(HERE, "run_all.sh")], capture_output=True,
                              text=True, env={"PATH": os.environ["PATH"]})
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("the idlescope program", done.stderr)

    def test_run_all_goes_on_and_remembers(self):
        tool = self.program("idlescope", "print('{}')")
        done = subprocess.run(
            ["bash", os.path.join(HERE, "run_all.sh"), "calls", "kill"], capture_output=True,
            text=True, env={"PATH": os.path.dirname(sys.executable) + ":/usr/bin:/bin",
                            "IDLESCOPE": tool, "LIBRARY": self.library, "PROGRAMS": self.folder,
                            "OUT": os.path.join(self.folder, "all"), "PYTHON": sys.executable})
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("== calls", done.stdout)
        self.assertIn("== kill", done.stdout)


if __name__ == "__main__":
    unittest.main()

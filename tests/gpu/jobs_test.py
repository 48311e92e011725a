"""Every scenario job imports, knows its options and refuses wrong ones; two run on the CPU.

One Python process for all of them, because importing PyTorch is what takes time. Skipped
where no Python has PyTorch (IDLESCOPE_TEST_PYTHON names one)."""

import glob
import os
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))

LOOK = r"""
import contextlib, io, os, runpy, sys
folder = sys.argv[1]
sys.path.insert(0, folder)
import harness
os.environ.update(RANK="0", LOCAL_RANK="0", WORLD_SIZE="1")
for name in sys.argv[2:]:
    for arguments, expected in ((["--help"], 0), (["--fix", "none", "--no-such-option"], 2)):
        out, err = io.StringIO(), io.StringIO()
        sys.argv = [os.path.join(folder, name)] + arguments
        code = "none"
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                runpy.run_path(sys.argv[0], run_name="__main__")
            except SystemExit as end:
                code = end.code
        text = out.getvalue() + err.getvalue()
        good = code == expected and ("--fix" in text)
        print("%s %s %s %s" % ("ok" if good else "BAD", name, arguments[-1], code))
"""


def torch_python():
    chosen = os.environ.get("IDLESCOPE_TEST_PYTHON")
    for python in [chosen] if chosen else ["/usr/bin/python3", sys.executable]:
        if os.path.exists(python) and subprocess.run(
                [python, "-c", "import torch"], capture_output=True).returncode == 0:
            return python
    return None


PYTHON = torch_python()


@unittest.skipUnless(PYTHON, "no PyTorch")
class Jobs(unittest.TestCase):
    def test_all_of_them_know_their_options(self):
        sys.path.insert(0, HERE)
        from suite import catalogue
        names = [s.script for s in catalogue.SCENARIOS if not s.libtorch]
        folder = os.path.join(HERE, "scenarios")
        others = {os.path.basename(p) for p in glob.glob(folder + "/[a-z][0-9]*_*.py")}
        self.assertEqual(others, set(names), "a job that no suite knows")
        done = subprocess.run([PYTHON, "-c", LOOK, folder, *names], capture_output=True,
                              text=True, timeout=250)
        lines = [line for line in done.stdout.splitlines() if line.startswith(("ok ", "BAD "))]
        self.assertEqual(len(lines), 2 * len(names), done.stderr)
        self.assertEqual([line for line in lines if not line.startswith("ok")], [])

    def test_two_run_to_their_end_on_the_cpu(self):
        for name, options in (("s09_launch_tiny_batch.py", []), ("t1_busy_but_empty.py",
                                                                 ["--twin"])):
            done = subprocess.run(
                [PYTHON, os.path.join(HERE, "scenarios", name), "--device", "cpu", "--tiny",
                 "--steps", "5", *options], capture_output=True, text=True, timeout=120)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("RESULT ", done.stdout)
            self.assertIn('"loss_last"', done.stdout)


RUN = r"""
import argparse, contextlib, importlib, importlib.util, io, sys
sys.path.insert(0, sys.argv[1])
import loop, torch
from ordinary import catalogue
if not hasattr(torch.amp, "GradScaler"):
    sys.exit(77)  # PyTorch 2.3 and newer
torch.set_num_threads(1)
for job in catalogue.JOBS:
    if any(importlib.util.find_spec(module) is None for module in job.needs):
        print("missing", job.key)
        continue
    jobs = importlib.import_module(job.file[:-3]).JOBS
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        loop.run(jobs, argparse.Namespace(job=job.key, seconds=9, seed=1, device="cpu", tiny=True,
                                          steps=22 if "every_20" in job.key else 4, gate=None))
    lines = [line.split(" ")[:2] for line in out.getvalue().splitlines()[-2:]]
    good = lines[0] == ["RESULT", job.key] and lines[1][0] == "TRUTH"
    print("ok" if good and '"finite": true' in out.getvalue() else "BAD", job.key, flush=True)
"""


@unittest.skipUnless(PYTHON, "no PyTorch")
class Ordinary(unittest.TestCase):
    def test_each_has_a_function_and_runs_to_its_end_on_the_cpu(self):
        sys.path.insert(0, HERE)
        from ordinary import catalogue
        folder = os.path.join(HERE, "ordinary")
        done = subprocess.run([PYTHON, "-c", RUN, folder], capture_output=True, text=True,
                              timeout=250)
        if done.returncode == 77:
            self.skipTest("PyTorch is too old")
        lines = done.stdout.split("\n")[:-1]
        self.assertEqual([line.split()[1] for line in lines if line.startswith(("ok", "missing"))],
                         [job.key for job in catalogue.JOBS], done.stderr)


if __name__ == "__main__":
    if PYTHON is None:
        print("skipped: no PyTorch")
        sys.exit(77)
    unittest.main()

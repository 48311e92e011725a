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


if __name__ == "__main__":
    if PYTHON is None:
        print("skipped: no PyTorch")
        sys.exit(77)
    unittest.main()

"""What the end-to-end tests share: the program under test, scratch folders, the Python
that has PyTorch.

ctest sets IDLESCOPE_BIN (the program), IDLESCOPE_TEST_LIBRARY (libidlescope.so) and
IDLESCOPE_SOURCE (the repository). A test file that cannot run here exits with 77, which
ctest shows as skipped.
"""

import glob
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

SKIPPED = 77
BIN = os.environ.get("IDLESCOPE_BIN", "")
LIBRARY = os.environ.get("IDLESCOPE_TEST_LIBRARY", "")
SOURCE = os.environ.get("IDLESCOPE_SOURCE", "")


def clean_environment(extra=None):
    """The caller's environment without what would change a recording."""
    out = {k: v for k, v in os.environ.items()
           if not k.startswith(("IDLESCOPE_", "SLURM_", "OMPI_", "PMI"))
           and k not in ("LD_PRELOAD", "RANK", "WORLD_SIZE", "LOCAL_RANK",
                         "CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH")}
    out["LC_ALL"] = "C.UTF-8"
    out.update(extra or {})
    return out


def torch_python():
    """A Python that imports torch, or None. IDLESCOPE_TEST_PYTHON wins."""
    chosen = os.environ.get("IDLESCOPE_TEST_PYTHON")
    for python in [chosen] if chosen else ["/usr/bin/python3", sys.executable]:
        if not os.path.exists(python):
            continue
        probe = subprocess.run([python, "-c", "import torch"], capture_output=True,
                               env=clean_environment())
        if probe.returncode == 0:
            return python
    return None


def torch_pythons():
    """Every Python with a PyTorch of its own: IDLESCOPE_TEST_PYTHONS (colon-separated), else
    the one of torch_python()."""
    listed = os.environ.get("IDLESCOPE_TEST_PYTHONS")
    if not listed:
        only = torch_python()
        return [only] if only else []
    return [p for p in listed.split(":") if torch_version(p)]


def run_python(python, code):
    """What the code prints, or None where it does not run."""
    if not python or not os.path.exists(python):
        return None
    done = subprocess.run([python, "-c", code], capture_output=True, env=clean_environment())
    return done.stdout.decode().strip() if done.returncode == 0 else None


_versions = {}


def torch_version(python):
    """"2.11.0", or None without PyTorch."""
    if python not in _versions:
        _versions[python] = run_python(
            python, "import torch; print(torch.__version__.split('+')[0])")
    return _versions[python]


def for_each_torch(loader, cls):
    """The tests of `cls` once for each PyTorch at hand (attribute `python`; None: there is
    none, they skip themselves)."""
    suite = unittest.TestSuite()
    for python in torch_pythons() or [None]:
        name = "%s_%s" % (cls.__name__, torch_version(python))
        suite.addTests(loader.loadTestsFromTestCase(type(name, (cls,), {"python": python})))
    return suite


class Scratch(unittest.TestCase):
    """A test with a folder of its own as working directory of the jobs."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="idlescope_e2e_")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def write(self, name, text):
        with open(self.path(name), "w") as file:
            file.write(text)
        return self.path(name)

    def run_command(self, command, env=None, **options):
        options.setdefault("timeout", 120)
        options.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.run(command, cwd=self.folder, env=clean_environment(env),
                              capture_output=True, **options)

    def idlescope(self, *arguments, env=None, **options):
        return self.run_command([BIN, *arguments], env=env, **options)

    def record(self, *arguments, flags=(), env=None, **options):
        return self.idlescope("record", "-o", self.path("out"), "--no-report", *flags, "--",
                              *arguments, env=env, **options)

    def traces(self, directory="out"):
        return sorted(glob.glob(self.path(directory, "*.istrace")))


def main():
    for name, value in (("IDLESCOPE_BIN", BIN), ("IDLESCOPE_SOURCE", SOURCE)):
        if not value:
            sys.exit(name + " is not set; run these tests through ctest")
    program = unittest.main(exit=False, verbosity=2)
    result = program.result
    if not result.wasSuccessful():
        sys.exit(1)
    if result.testsRun > 0 and len(result.skipped) == result.testsRun:
        sys.exit(SKIPPED)

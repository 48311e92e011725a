"""A real LibTorch training program with the adaptors of idlescope/loader.h and annotate.h: the
same losses with and without the library, every batch and fetch recorded. Built here against
the LibTorch inside a Python's torch, which takes a minute or two: IDLESCOPE_TEST_FULL=1 runs it."""

import json
import os
import shutil
import unittest

import harness
import trace_events

HERE = os.path.dirname(os.path.abspath(__file__))
PATHS = """
import json, os, torch
from torch.utils import cpp_extension
print(json.dumps([cpp_extension.include_paths(), cpp_extension.library_paths(),
                  int(torch._C._GLIBCXX_USE_CXX11_ABI)]))
"""


class LibTorch(harness.Scratch):
    python = None

    def build(self):
        compiler = shutil.which("g++")
        if os.environ.get("IDLESCOPE_TEST_FULL") != "1":
            self.skipTest("slow: IDLESCOPE_TEST_FULL=1 runs it")
        found = harness.run_python(self.python, PATHS)
        if found is None or compiler is None:
            self.skipTest("no Python with PyTorch, or no g++")
        includes, libraries, new_abi = json.loads(found.splitlines()[-1])
        if not any(os.path.exists(os.path.join(i, "torch", "torch.h")) for i in includes):
            self.skipTest("this PyTorch brings no C++ headers")
        command = [compiler, "-std=c++17", "-O0", "-w", "-D_GLIBCXX_USE_CXX11_ABI=%d" % new_abi,
                   os.path.join(HERE, "libtorch_train.cpp"), "-o", self.path("train"),
                   "-I" + os.path.join(harness.SOURCE, "profiler", "include")]
        command += ["-I" + i for i in includes]
        for library in libraries:
            command += ["-L" + library, "-Wl,-rpath," + library]
        command += ["-Wl,--no-as-needed", "-ltorch", "-ltorch_cpu", "-lc10", "-lpthread"]
        built = self.run_command(command, timeout=900)
        self.assertEqual(built.returncode, 0, built.stderr.decode()[-3000:])

    def test_training_program(self):
        self.build()
        without = self.run_command([self.path("train")])
        self.assertEqual(without.returncode, 0, without.stderr.decode())
        self.assertTrue(without.stdout.endswith(b"16 batches\n"), without.stdout)
        with_us = self.run_command(
            [self.path("train")],
            env={"LD_PRELOAD": harness.LIBRARY, "IDLESCOPE_OUTPUT": self.path("out")})
        self.assertEqual((with_us.returncode, with_us.stdout, with_us.stderr),
                         (0, without.stdout, without.stderr))
        (trace,) = trace_events.read_directory(self.path("out"))
        self.assertEqual([e.batch for e in trace.of("next")], list(range(8)) * 2)
        self.assertEqual(trace.count("end"), 2)
        self.assertEqual(trace.count("step"), 16)
        self.assertEqual([trace.names[e.a] for e in trace.of("range")], ["training step"] * 16)
        # Two threads of the loader fetch, the training loop's thread does not.
        self.assertEqual(trace.count("fetch"), 16)
        threads = {e.thread for e in trace.of("fetch")}
        self.assertFalse(threads & {e.thread for e in trace.of("next")})


def load_tests(loader, tests, pattern):
    return harness.for_each_torch(loader, LibTorch)


if __name__ == "__main__":
    harness.main()

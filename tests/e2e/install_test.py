"""The installed package: the program finds its library, CMake projects find the package."""

import os
import subprocess
import unittest

import harness
from harness import clean_environment

CMAKE = os.environ.get("IDLESCOPE_CMAKE", "cmake")
BUILD = os.environ.get("IDLESCOPE_BUILD", "")

PROJECT = """
cmake_minimum_required(VERSION 3.25)
project(consumer LANGUAGES CXX)
find_package(idlescope 0.1 CONFIG REQUIRED)
add_executable(annotated annotated.cpp)
target_link_libraries(annotated PRIVATE idlescope::annotate idlescope::loader)
add_executable(linked linked.cpp)
target_link_libraries(linked PRIVATE idlescope::recorder)
"""
ANNOTATED = """
#include <idlescope/annotate.h>
#include <idlescope/loader.h>
int main() { IDLESCOPE_RANGE("work"); return 0; }
"""
LINKED = """
#include <idlescope/recorder.h>
int main() { return 0; }
"""


class Install(harness.Scratch):
    def setUp(self):
        super().setUp()
        done = self.run_command([CMAKE, "--install", BUILD, "--prefix", self.path("prefix")])
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_the_program_finds_its_library(self):
        done = self.run_command([self.path("prefix/bin/idlescope"), "record", "-o",
                                 self.path("out"), "-q", "--", "/bin/sh", "-c",
                                 "echo $LD_PRELOAD; exit 3"])
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertTrue(done.stdout.startswith(self.path("prefix").encode()), done.stdout)

    def test_find_package(self):
        os.mkdir(self.path("consumer"))
        for name, text in (("CMakeLists.txt", PROJECT), ("annotated.cpp", ANNOTATED),
                           ("linked.cpp", LINKED)):
            self.write("consumer/" + name, text)
        for command in (
                [CMAKE, "-S", self.path("consumer"), "-B", self.path("consumer/build"),
                 "-DCMAKE_PREFIX_PATH=" + self.path("prefix")],
                [CMAKE, "--build", self.path("consumer/build")]):
            done = self.run_command(command, timeout=250)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for program in ("annotated", "linked"):
            done = self.run_command([self.path("consumer/build", program)])
            self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    harness.main()

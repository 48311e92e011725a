"""The injected library over the fake libcupti.so.13: windows, losses, refusals, ends.

launch_program is an application without a GPU; the fake says how many kernels it traced, and
every kernel must be in the file, joined to its call by (window, correlation id).
"""

import collections
import os
import random
import re
import signal
import subprocess
import time
import unittest

import harness
from device_recording import Recording

PROGRAM = os.environ.get("IDLESCOPE_LAUNCH_PROGRAM", "")


@unittest.skipUnless(PROGRAM and harness.BIN, "no fake CUPTI was built")
class Device(harness.Scratch):
    def run_job(self, *arguments, window="full", expect=0, **extra):
        self.output = os.path.join(self.folder, "out")
        environment = harness.clean_environment(dict(
            {"LD_PRELOAD": harness.LIBRARY, "IDLESCOPE_OUTPUT": self.output,
             "IDLESCOPE_WINDOW": window}, **extra))
        done = subprocess.run([PROGRAM, *map(str, arguments)], env=environment,
                              capture_output=True, timeout=120)
        self.assertEqual(done.returncode, expect, done.stderr)
        self.stderr = done.stderr.decode()
        self.said = {k: int(v) for k, v in re.findall(r"(\w+) (\d+)", done.stdout.decode())}
        return self.said

    def test_every_kernel_is_in_the_file_and_joined(self):
        said = self.run_job(200, 40, 3)
        self.assertEqual(said["injected"], 1)
        recording = Recording(self.output)
        self.assertEqual(len(recording.kernels()), said["kernels"])
        self.assertEqual(said["kernels"], 200 * 40 * 3)
        self.assertEqual(recording.unjoined(), [])
        self.assertEqual(recording.all("loss"), [])
        self.assertEqual(self.stderr, "")
        ends = recording.all("window_end")
        self.assertEqual(len(ends), 1)
        self.assertTrue(ends[0]["stayed_attached"], "at exit nothing is finalized")
        self.assertEqual(int(ends[0]["records"]), len(recording.ops))
        footer = recording.all("footer")[0]
        self.assertEqual(int(footer["gpu_ops"]), len(recording.ops))
        self.assertEqual(int(footer["host_calls"]), len(recording.calls))
        # One call per launch, copy, memset, synchronize: the driver's inner calls are not repeated.
        self.assertEqual(len(recording.calls), 3 * 200 * (40 + 3))

    def test_names_streams_and_sizes(self):
        self.run_job(20, 14, 2)
        recording = Recording(self.output)
        names = collections.Counter(
            recording.names[recording.what["gpu_op"][o["descriptor_id"]]["name_id"]]
            for o in recording.kernels())
        self.assertEqual(names, {"_Z6kernelILi%dEEvPf" % i: 80 for i in range(7)})
        handles = {int(s.get("handle", 0)) for s in recording.all("stream")}
        self.assertEqual(handles, {0, 0x101})
        copies = [recording.what["gpu_op"][o["descriptor_id"]] for o in recording.ops]
        self.assertIn("1048576", {d.get("bytes") for d in copies if d["kind"] == "OP_MEMCPY"})

    def test_bytes_per_kernel(self):
        self.run_job(2000, 50, 1)
        recording = Recording(self.output)
        chunks = sum(65536 for _ in recording.all("host_chunk"))
        size = os.path.getsize(recording.path) - chunks
        self.assertLess(size / len(recording.ops), 10)

    def test_application_without_the_library_is_the_same(self):
        self.run_job(20, 10, 2)
        bare = subprocess.run([PROGRAM, "20", "10", "2"], env=harness.clean_environment(),
                              capture_output=True, timeout=60)
        self.assertEqual(bare.returncode, 0)
        self.assertIn(b"injected 0", bare.stdout)

    def test_cuda_12(self):
        said = self.run_job(50, 20, 2, FAKE_CUPTI_VERSION="26")
        recording = Recording(self.output)
        self.assertEqual(len(recording.kernels()), said["kernels"])
        self.assertEqual(recording.unjoined(), [])
        self.assertEqual(recording.all("window_begin")[0]["cupti_version"], 26)

    def refused(self, message, **extra):
        self.run_job(20, 10, 1, **extra)
        self.assertEqual(self.said["kernels"], 0)
        self.assertEqual(self.said["finalized"], 0)
        lines = self.stderr.splitlines()
        self.assertEqual(len(lines), 1, self.stderr)
        self.assertTrue(lines[0].startswith("idlescope: [%s] " % message), lines)
        self.assertNotIn("{", lines[0])
        status = Recording(self.output).all("status")
        self.assertEqual(status[0]["state"], "STATE_HOST_ONLY")
        self.assertEqual(status[0]["message_id"], message)

    def test_no_permission(self):
        self.refused("cupti-permission", FAKE_CUPTI_SUBSCRIBE_ERROR="35")

    def test_no_gpu(self):
        self.refused("cupti-failed", FAKE_CUPTI_SUBSCRIBE_ERROR="999")

    def test_taken_by_another_tool(self):
        self.refused("cupti-taken", FAKE_CUPTI_HOLDER="CUPTI for Kineto")
        self.assertIn("Kineto", self.stderr)

    def test_too_old(self):
        self.refused("cupti-missing", FAKE_CUPTI_VERSION="18")

    def test_window_off_attaches_nothing(self):
        said = self.run_job(20, 10, 1, window="off")
        self.assertEqual(said["kernels"], 0)
        self.assertEqual(self.stderr, "")

    def test_process_that_leaves_without_exit_handlers(self):
        self.run_job(2000, 50, 1, "leave")
        recording = Recording(self.output)
        self.assertEqual(recording.all("footer"), [])
        self.assertGreater(len(recording.ops), 0)
        # A call that had not returned at the last write, one a thread.
        self.assertLessEqual(len(recording.unjoined()), 1)

    def test_killed_at_any_moment_the_file_is_readable(self):
        for attempt in range(8):
            output = os.path.join(self.folder, "kill%d" % attempt)
            environment = harness.clean_environment(
                {"LD_PRELOAD": harness.LIBRARY, "IDLESCOPE_OUTPUT": output,
                 "IDLESCOPE_WINDOW": "full"})
            job = subprocess.Popen([PROGRAM, "1000000", "50", "2"], env=environment,
                                   stdout=subprocess.DEVNULL)
            time.sleep(0.1 + random.random() * 0.6)
            job.send_signal(signal.SIGKILL)
            job.wait()
            if not os.path.isdir(output):
                continue  # killed before the first packet
            recording = Recording(output)
            self.assertLessEqual(len(recording.unjoined()), 2)  # calls under way, one a thread
            self.assertEqual(recording.all("window_end"), [])

    def test_ctrl_c_flushes_nothing_and_breaks_nothing(self):
        output = os.path.join(self.folder, "term")
        environment = harness.clean_environment(
            {"LD_PRELOAD": harness.LIBRARY, "IDLESCOPE_OUTPUT": output, "IDLESCOPE_WINDOW": "full"})
        job = subprocess.Popen([PROGRAM, "1000000", "50", "2"], env=environment,
                               stdout=subprocess.DEVNULL)
        time.sleep(0.6)
        job.send_signal(signal.SIGTERM)
        self.assertEqual(job.wait(), -signal.SIGTERM)
        self.assertGreater(len(Recording(output).ops), 0)

    def test_api_opens_and_closes_windows(self):
        said = self.run_job(4000, 30, 2, "windows", window="off")
        recording = Recording(self.output)
        begins, ends = recording.all("window_begin"), recording.all("window_end")
        self.assertGreaterEqual(len(begins), 3)
        self.assertEqual(said["finalized"], sum(not e.get("stayed_attached") for e in ends))
        self.assertEqual([b["window_id"] for b in begins], list(range(1, len(begins) + 1)))
        self.assertEqual(recording.unjoined(), [])
        self.assertEqual(len(recording.kernels()), said["kernels"])
        for begin, end in zip(begins, ends):
            self.assertLess(int(begin["begin_ns"]), int(end["end_ns"]))


if __name__ == "__main__":
    unittest.main(verbosity=1)

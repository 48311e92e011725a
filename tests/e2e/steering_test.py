"""Windows on request and windows of awkward jobs, end to end over the fake libcupti: `idlescope
ctl`, the options of `record`, jobs that are short or stop marking steps, torch.profiler.

launch_program in mode "paced" is a training loop of about 5 ms a step with marked steps."""

import os
import signal
import subprocess
import sys
import time
import unittest

import harness
from device_recording import Recording

PROGRAM = os.environ.get("IDLESCOPE_LAUNCH_PROGRAM", "")
CUPTI = os.environ.get("IDLESCOPE_FAKE_CUPTI", "")
STANDIN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "standin")


class Job(harness.Scratch):
    def start(self, *arguments, window="off", output="out", **extra):
        environment = harness.clean_environment(dict(
            {"LD_PRELOAD": harness.LIBRARY, "IDLESCOPE_OUTPUT": self.path(output),
             "IDLESCOPE_WINDOW": window}, **extra))
        job = subprocess.Popen([PROGRAM, *map(str, arguments)], env=environment,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(self.end, job)
        self.assertEqual(job.stdout.readline(), b"ready\n")
        return job

    def end(self, job):
        if job.poll() is None:
            job.kill()
        job.communicate()

    def recorded(self, job, output="out"):
        out, err = job.communicate(timeout=120)
        self.assertEqual(job.returncode, 0, err)
        self.said = out.decode()
        return Recording(self.path(output))

    def run_job(self, *arguments, **extra):
        return self.recorded(self.start(*arguments, **extra))

    def ctl(self, *words, **env):
        return self.idlescope("ctl", *words, env=env or None)


@unittest.skipUnless(PROGRAM and harness.BIN, "no fake CUPTI was built")
class Ctl(Job):
    def test_start_stop_and_status_of_a_running_job(self):
        job = self.start(100000, 5, 1, "paced")
        status = self.ctl(self.path("out"), "status")
        self.assertEqual(status.returncode, 0, status.stderr)
        self.assertIn(b"0 windows", status.stdout)
        self.assertIn(b"running", status.stdout)
        started = self.ctl(self.path("out"), "start")
        self.assertEqual(started.returncode, 0, started.stderr)
        self.assertIn(b"is being traced", started.stderr)
        self.assertIn(b"one of them open", self.ctl(self.path("out") + "/", "status").stdout)
        stopped = self.ctl(self.path("out"), "stop")
        self.assertIn(b"no longer traced", stopped.stderr)
        self.assertIn(b"1 windows, ", self.ctl(self.path("out"), "status").stdout)
        self.ctl(self.path("out"), "start")
        job.send_signal(signal.SIGTERM)
        job.communicate()
        recording = Recording(self.path("out"))
        begins, ends = recording.all("window_begin"), recording.all("window_end")
        self.assertEqual([b["reason"] for b in begins], ["ctl", "ctl"])
        self.assertEqual([e["reason"] for e in ends], ["ctl"])
        self.assertGreater(len(recording.kernels()), 0)
        self.assertIn(b"ended", self.ctl(self.path("out"), "status").stdout)

    def test_a_dead_job_is_said_and_left_alone(self):
        self.run_job(5, 5, 1, "paced")
        before = sorted(os.listdir(self.path("out")))
        for verb in ("start", "stop"):
            done = self.ctl(self.path("out"), verb)
            self.assertEqual(done.returncode, 2)
            self.assertIn(b"[ctl-ended]", done.stderr)
        self.assertEqual(sorted(os.listdir(self.path("out"))), before)

    def test_wrong_words(self):
        os.mkdir(self.path("empty"))
        for words, code, id in ((["start"], 2, b"no-recording-here"),
                                (["nowhere", "status"], 2, b"file-missing"),
                                (["empty", "status"], 2, b"directory-empty"),
                                (["empty", "start"], 2, b"ctl-no-process"),
                                (["empty", "begin"], 1, b"usage"), ([], 1, b"usage"),
                                (["a", "b", "stop"], 1, b"usage")):
            done = self.ctl(*words)
            self.assertEqual((done.returncode, id in done.stderr), (code, True), (words, done))

    def test_in_chinese(self):
        self.run_job(5, 5, 1, "paced")
        done = self.ctl(self.path("out"), "start", IDLESCOPE_LANG="zh")
        self.assertIn("已经结束", done.stderr.decode())

    def test_ranks_begin_at_the_same_step(self):
        jobs = [self.start(100000, 3, 1, "paced", RANK=str(r), WORLD_SIZE="2", LOCAL_RANK=str(r))
                for r in range(2)]
        time.sleep(0.5)
        done = self.ctl(self.path("out"), "start")
        self.assertIn(b"all ranks begin at step", done.stderr)
        step = int(done.stderr.split(b"at step ")[1].split()[0])
        self.ctl(self.path("out"), "stop")
        for job in jobs:
            job.send_signal(signal.SIGTERM)
            job.communicate()
        found = []
        for name in sorted(os.listdir(self.path("out"))):
            if name.endswith(".istrace"):
                os.makedirs(self.path(name + ".d"))
                os.link(self.path("out", name), self.path(name + ".d", name))
                begins = Recording(self.path(name + ".d")).all("window_begin")
                found += [int(b["step_number"]) for b in begins if b["reason"] == "ctl"]
        self.assertEqual(len(found), 2)
        # On a machine that is kept busy a tick may see one step more.
        for at in found:
            self.assertGreaterEqual(at, step)
            self.assertLessEqual(at, step + 20)


@unittest.skipUnless(PROGRAM and harness.BIN, "no fake CUPTI was built")
class AwkwardJobs(Job):
    def steps_inside(self, recording):
        return sum(int(e.get("inside_steps", 0)) for e in recording.all("window_end"))

    def test_a_job_of_half_a_second_is_recorded(self):
        recording = self.run_job(100, 5, 1, "paced", window="auto")
        self.assertGreaterEqual(len(recording.all("window_begin")), 1)
        self.assertGreaterEqual(self.steps_inside(recording), 20)
        self.assertEqual(recording.unjoined(), [])

    def test_marks_that_stop(self):
        recording = self.run_job(1200, 5, 1, "silent", window="auto")
        reasons = [b["reason"] for b in recording.all("window_begin")]
        self.assertIn("steps have stopped", reasons)
        self.assertGreater(len(recording.kernels()), 100)


@unittest.skipUnless(PROGRAM and harness.BIN, "no fake CUPTI was built")
class RecordOptions(Job):
    def recorded_with(self, *flags, steps=400, env=None, expect=0):
        done = self.record(PROGRAM, str(steps), "4", "1", "paced", flags=flags, env=env)
        self.assertEqual(done.returncode, expect, done.stderr)
        return done

    def windows(self):
        return Recording(self.path("out")).all("window_begin")

    def test_window_start_plus_length(self):
        self.recorded_with("--window", "50+30")
        recording = Recording(self.path("out"))
        begin, end = recording.all("window_begin")[0], recording.all("window_end")[0]
        self.assertEqual(begin["reason"], "fixed")
        self.assertGreaterEqual(int(begin["step_number"]), 50)
        length = int(end["step_number"]) - int(begin["step_number"])
        self.assertGreaterEqual(length, 30)
        self.assertEqual(len(recording.all("window_begin")), 1)

    def test_detail_full_has_the_inner_calls_too(self):
        self.recorded_with("--window", "full", steps=30)
        plain = len(Recording(self.path("out")).calls)
        self.recorded_with("--window", "full", "--detail", "full", "-f", steps=30)
        recording = Recording(self.path("out"))
        self.assertGreaterEqual(len(recording.calls), 2 * plain)
        self.assertEqual(recording.unjoined(), [])

    def test_steps_end_the_recording_and_not_the_job(self):
        done = self.recorded_with("--steps", "60", "--window", "full")
        self.assertIn(b"kernels", done.stdout)
        recording = Recording(self.path("out"))
        end = recording.all("window_end")[0]
        self.assertGreaterEqual(int(end["step_number"]), 59)
        self.assertLess(int(end["step_number"]), 120)

    def test_duration_ends_the_recording_and_not_the_job(self):
        self.recorded_with("-d", "0.5s", "--window", "full")
        recording = Recording(self.path("out"))
        self.assertEqual(len(recording.all("footer")), 1)
        self.assertLess(int(recording.all("window_end")[0]["step_number"]), 350)

    def test_a_rank_that_is_not_asked_for_runs_untouched(self):
        rank = {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1"}
        done = self.recorded_with("--ranks", "0", "--window", "full", steps=20, env=rank)
        self.assertIn(b"kernels 0 ", done.stdout)
        self.assertFalse(os.path.isdir(self.path("out")) and self.traces())
        self.recorded_with("--ranks", "0-3", "--window", "full", steps=20, env=rank)
        self.assertTrue(self.windows())

    def test_max_size_is_kept_and_said(self):
        done = self.record(PROGRAM, "3000", "200", "1", flags=["--window", "full", "--max-size",
                                                               "300k"])
        self.assertEqual(done.returncode, 0)
        self.assertLess(sum(os.path.getsize(t) for t in self.traces()), 400_000)
        self.assertIn(b"[size-limit]", done.stderr)

    def test_values_that_make_no_sense(self):
        for flags in (["--window", "5+"], ["--window", "ful"], ["--detail", "more"], ["-d", "x"],
                      ["--steps", "0"], ["--ranks", "1,"], ["--max-size", "0"],
                      ["--budget", "-1"]):
            done = self.record(PROGRAM, "1", "1", "1", flags=flags)
            self.assertEqual(done.returncode, 125, flags)
            self.assertIn(flags[1].encode(), done.stderr)
            self.assertIn(b"expected", done.stderr)


# A job whose torch.profiler takes CUPTI for itself, as Kineto does.
PROFILED_JOB = """
import ctypes, os, sys, time
sys.path.insert(0, os.environ["STANDIN"])
import torch
from torch.autograd import profiler
cupti = ctypes.CDLL(os.environ["CUPTI"])
here = ctypes.CDLL(None)
CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint, ctypes.c_void_p)
seen = CALLBACK(lambda *_: None)
class Kineto:
    results, handle = [], ctypes.c_void_p()
    def prepare(self):
        pass
    def enable(self):
        self.results.append(cupti.cuptiSubscribe(ctypes.byref(self.handle), seen, None))
    def disable(self):
        cupti.cuptiFinalize()
profiler.backend = kineto = Kineto()
cupti.fake_launch.argtypes = [ctypes.c_char_p, ctypes.c_long, ctypes.c_ulong]
launched = 0
def work(count=30):
    global launched
    for _ in range(count):
        cupti.fake_launch(b"kernel", 1000, 0)
    launched += count
if not hasattr(here, "InitializeInjection"):
    sys.exit("no library")
here.InitializeInjection()
def wait(attached):
    until = time.monotonic() + 20
    while bool(cupti.fake_attached()) != attached and time.monotonic() < until:
        time.sleep(0.005)
    return bool(cupti.fake_attached()) == attached
before = bool(cupti.fake_attached())
work()
with profiler.profile():
    pass
back = wait(True)
work()
with profiler.profile():
    pass
back = wait(True) and back
work()
time.sleep(0.3)
print(before, kineto.results, back, launched)
"""


@unittest.skipUnless(PROGRAM and CUPTI and harness.BIN, "no fake CUPTI was built")
class TorchProfiler(Job):
    def test_the_window_lets_go_before_the_profiler_starts_and_comes_back(self):
        script = self.write("job.py", PROFILED_JOB)
        done = self.run_command([sys.executable, script], env={
            "LD_PRELOAD": harness.LIBRARY, "IDLESCOPE_OUTPUT": self.path("out"),
            "IDLESCOPE_WINDOW": "full", "STANDIN": STANDIN, "CUPTI": CUPTI})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.decode().split("\n")[0], "True [0, 0] True 90")
        self.assertEqual(done.stderr, b"")
        recording = Recording(self.path("out"))
        self.assertEqual(len(recording.all("window_begin")), 3)
        self.assertEqual([e["reason"] for e in recording.all("window_end")],
                         ["another tool", "another tool", "end"])
        self.assertEqual(recording.unjoined(), [])
        self.assertGreaterEqual(len(recording.kernels()), 60)


if __name__ == "__main__":
    harness.main()

"""Starts the jobs, one after the other, and keeps what they print.

While one job runs the next is already being started: it does its imports and then waits
at a gate (a file), so that no two jobs use the device at once and device time is not
spent on imports. In: cells. Out: one directory a cell below the result directory, with
stdout.txt, stderr.txt, run.json, and recording/ or kineto.pt.trace.json.gz."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

from . import catalogue


class Runner:
    def __init__(self, options):
        self.options = options
        self.deadline = time.monotonic() + options.budget if options.budget else None
        self.running = []
        self.skipped = []

    def run(self, cells):
        """Runs cells until the time budget is used up; returns those that ended."""
        done, waiting = [], list(cells)
        if self.options.resume:
            known = [c for c in waiting if ended_well(os.path.join(self.options.out, c.name()))]
            waiting = [c for c in waiting if c not in known]
            print("run_suite: %d of %d runs are there already" % (len(known), len(cells)),
                  flush=True)
        waiting = catalogue.with_calibration(waiting, self._ended())
        prepared = None
        try:
            while waiting or prepared:
                job = prepared or self._start(waiting.pop(0))
                if self._time_left() < self.options.reserve:
                    job.stop()
                    self.running.remove(job)
                    shutil.rmtree(job.directory, ignore_errors=True)
                    skipped = [c.name() for c in [job.cell] + waiting if c.mode != "calibrate"]
                    self.skipped = skipped
                    print("run_suite: out of time, not run: " + " ".join(skipped), flush=True)
                    break
                job.open_gate()
                prepared = self._start(waiting.pop(0)) if waiting else None
                job.finish(min(self.options.timeout, max(5.0, self._time_left())))
                self.running.remove(job)
                if job.cell.mode != "calibrate":
                    done.append(job.cell)
                print("%-26s %s" % (job.cell.name(), job.line()), flush=True)
        finally:
            for job in list(self.running):
                job.stop()
        return done

    def _ended(self):
        if not os.path.isdir(self.options.out):
            return []
        return [name for name in os.listdir(self.options.out)
                if ended_well(os.path.join(self.options.out, name))]

    def _time_left(self):
        return self.deadline - time.monotonic() if self.deadline else 1e9

    def _start(self, cell):
        job = RunningJob(cell, self.options)
        self.running.append(job)
        return job


def ended_well(directory):
    """True if a run of an earlier call is complete: run.json is written last."""
    try:
        with open(os.path.join(directory, "run.json")) as file:
            run = json.load(file)
    except (OSError, ValueError):
        return False
    return run.get("exit_code") == 0 and not run.get("timed_out")


def command_of(cell, options, environment):
    """The command of one cell; adds to `environment` what it needs."""
    directory = os.path.join(options.out, cell.name())
    arguments = cell.job_options() + ["--seed", str(options.seed), "--gate", os.path.join(directory, "gate")]
    if options.device != "cuda":
        arguments += ["--device", options.device]
    if options.tiny:
        arguments += ["--tiny"]
    if options.steps:
        arguments += ["--steps", str(options.steps)]
    if cell.mode == "kineto":
        arguments += ["--kineto", os.path.join(directory, "kineto.pt.trace.json.gz")]
    if not cell.scenario.calibrates and options.seconds:
        arguments += ["--seconds", str(options.seconds)]
    if cell.scenario.calibrates:
        kept = "calibration.txt" if cell.scenario.libtorch else "calibration.json"
        arguments += ["--calibration", os.path.join(options.out, kept)]
    if cell.mode == "calibrate":
        arguments += ["--calibrate-only"]
    if cell.scenario.libtorch:
        job = [os.path.join(options.libtorch, cell.scenario.script)]
    else:
        job = [options.python]
        if cell.scenario.ranks > 1:
            job += ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node",
                    str(cell.scenario.ranks)]
        job += [os.path.join(catalogue.HERE, cell.scenario.folder, cell.scenario.script)]
    job += [*cell.scenario.arguments, *arguments]
    if cell.mode != "recorded":
        return job
    recording = os.path.join(directory, "recording")
    if cell.scenario.libtorch or options.preload:
        environment["LD_PRELOAD"] = options.library
        environment["IDLESCOPE_OUTPUT"] = recording
        return job
    return ([options.idlescope, "record", "-o", recording] + options.record_options.split() +
            ["--"] + job)


class RunningJob:
    def __init__(self, cell, options):
        self.cell = cell
        self.options = options
        self.directory = os.path.join(options.out, cell.name())
        shutil.rmtree(self.directory, ignore_errors=True)
        os.makedirs(self.directory)
        self.gate = os.path.join(self.directory, "gate")
        self.code = None
        self.wall_s = 0.0
        self.timed_out = False
        environment = dict(os.environ, PYTHONUNBUFFERED="1", SCENARIO_DISK=self.directory)
        environment.pop("LD_PRELOAD", None)
        self.command = command_of(cell, options, environment)
        self.out = open(os.path.join(self.directory, "stdout.txt"), "wb")
        self.err = open(os.path.join(self.directory, "stderr.txt"), "wb")
        self.process = subprocess.Popen(self.command, stdout=self.out, stderr=self.err,
                                        env=environment, start_new_session=True,
                                        cwd=self.directory)

    def open_gate(self):
        self.begin = time.monotonic()
        with open(self.gate, "w"):
            pass

    def finish(self, timeout):
        try:
            self.code = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.timed_out = True
            self.stop()
        self.wall_s = time.monotonic() - self.begin
        self._close()

    def stop(self):
        """Ends this job and its children: all of them are in its own session."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.process.pid, number)
            except ProcessLookupError:
                break
            try:
                self.process.wait(2)
            except subprocess.TimeoutExpired:
                continue
        self.code = self.process.poll()
        self._close()

    def _close(self):
        self.out.close()
        self.err.close()
        if os.path.exists(self.gate):
            os.unlink(self.gate)
        with open(os.path.join(self.directory, "run.json"), "w") as file:
            json.dump({"scenario": self.cell.scenario.key, "fix": self.cell.fix,
                       "mode": self.cell.mode, "repetition": self.cell.repetition,
                       "command": self.command, "exit_code": self.code, "wall_s": self.wall_s,
                       "timed_out": self.timed_out}, file, indent=1)

    def line(self):
        with open(os.path.join(self.directory, "stdout.txt"), errors="replace") as file:
            for line in file:
                if line.startswith("RESULT "):
                    return "%.1f s  %s" % (self.wall_s, line.strip())
        if self.cell.mode == "calibrate" and self.code == 0:
            return "%.1f s  calibrated" % self.wall_s
        with open(os.path.join(self.directory, "stderr.txt"), errors="replace") as file:
            last = file.read().strip().splitlines()[-1:]
        return "%.1f s  exit code %s, no result: %s" % (self.wall_s, self.code, " ".join(last))


def analyse(directory, results, options):
    """Writes results/report.json for one recording; returns an error text, or None."""
    recording = os.path.join(directory, "recording")
    if not os.path.isdir(recording):
        recording = os.path.join(directory, "kineto.pt.trace.json.gz")
    if not os.path.exists(recording):
        return "nothing was recorded"
    os.makedirs(results, exist_ok=True)
    target = os.path.join(results, "report.json")
    with open(target, "wb") as out:
        begin = time.monotonic()
        process = subprocess.run([options.idlescope, "report", "--json", recording], stdout=out,
                                 stderr=subprocess.PIPE, timeout=300)
    if process.returncode:
        os.unlink(target)
        return "report: exit code %d: %s" % (
            process.returncode, process.stderr.decode(errors="replace").strip()[-300:])
    if options.verbose:
        print("analysed %s in %.1f s" % (directory, time.monotonic() - begin), file=sys.stderr)
    return None

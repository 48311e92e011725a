"""Compares one JSON report with what the job itself knows to be true.

In: the directory of a cell (stdout.txt with RESULT and TRUTH, report.json). Out: a Row with
everything the table prints, and the list of failed expectations. A missing report, a job
that failed and a missing field are failures, never skipped."""

import json
import os

from . import kineto


class Row:
    def __init__(self, directory):
        self.directory = directory
        self.run = read_json(os.path.join(directory, "run.json")) or {}
        self.scenario = self.run.get("scenario", "?")
        self.fix = self.run.get("fix", "?")
        self.mode = self.run.get("mode", "?")
        self.truth = read_truth(os.path.join(directory, "stdout.txt"))
        self.expect = self.truth.get("expect", {})
        self.measured = self.truth.get("measured", {})
        self.report = None
        self.kineto = None  # torch.profiler's own breakdown
        self.failures = []
        self.notes = []

    # Values for the table; empty where there is none.
    def found(self):
        return (self.report or {}).get("verdict", "")

    def share_of(self, verdict):
        if not self.report:
            return None
        for entry in self.report.get("verdict_shares", []):
            if entry.get("verdict") == verdict:
                return entry.get("share", 0.0)
        return 0.0

    def advice(self):
        return [fix.get("id", "") for fix in (self.report or {}).get("fixes", [])]

    def forecast(self):
        """(fix id, speed-up, class) of the first fix with a forecast."""
        for fix in (self.report or {}).get("fixes", []):
            forecast = fix.get("forecast")
            if forecast and not forecast.get("bound_only"):
                return fix.get("id", ""), forecast.get("speedup", 0.0), forecast.get("class", "")
        return None


def read_json(path):
    try:
        with open(path) as file:
            return json.load(file)
    except (OSError, ValueError):
        return None


def read_truth(path):
    try:
        with open(path, errors="replace") as file:
            for line in file:
                if line.startswith("TRUTH "):
                    return json.loads(line[6:])
    except (OSError, ValueError):
        pass
    return {}


def judge(directory, error=None, results=None):
    row = Row(directory)
    if row.run.get("timed_out"):
        row.failures.append("job stopped at its time limit")
    elif row.run.get("exit_code") != 0:
        row.failures.append("job: exit code %s" % row.run.get("exit_code"))
    if not row.truth:
        row.failures.append("job printed no truth")
    if row.measured.get("finite") is False:
        row.failures.append("the loss is not finite")
    if row.mode == "kineto":
        read_kineto(row)
    elif row.mode != "recorded":
        return row
    if error:
        row.failures.append(error)
    row.report = read_json(os.path.join(results or directory, "report.json"))
    if row.report is None:
        row.failures.append("no report")
        return row
    if not row.truth:
        return row
    if row.mode == "kineto":
        check_imported(row)
        return row
    check_verdict(row)
    check_advice(row)
    check_details(row)
    return row


def read_kineto(row):
    path = os.path.join(row.directory, "kineto.pt.trace.json.gz")
    try:
        row.kineto = kineto.breakdown(kineto.read_events(path))
    except (OSError, ValueError, KeyError) as trouble:
        row.failures.append("torch.profiler trace: %s" % trouble)
        return
    if not row.kineto:
        row.failures.append("torch.profiler trace: no ProfilerStep")


# Six profiled steps are too few for a verdict of their own (20): then the shares count.
def check_imported(row):
    expect, found = row.expect, row.found()
    wanted = expect["verdicts"] + expect.get("or_verdicts", [])
    if found in wanted:
        share = expect.get("share")
        if share is not None and found == expect["verdicts"][0]:
            # Profiling stretches the steps: 15 points instead of 10.
            if abs(row.share_of(found) - share) > max(0.15, expect["tolerance"]):
                row.notes.append("share %.0f %%, constructed %.0f %%" %
                                 (100 * row.share_of(found), 100 * share))
        return
    if found == "CANNOT_TELL":
        shares = {v["verdict"]: v.get("share", 0.0) for v in row.report.get("verdict_shares", [])}
        largest = max(shares, key=shares.get) if shares else "nothing"
        if largest in wanted:
            row.notes.append("too few steps; %s is largest" % largest)
            return
        found = "%s (largest: %s)" % (found, largest)
    row.failures.append("verdict %s, expected %s" % (found, "/".join(expect["verdicts"])))


def check_verdict(row):
    expect, found = row.expect, row.found()
    if found not in expect["verdicts"]:
        if found in expect.get("or_verdicts", []):
            row.notes.append("%s is tolerated" % found)
        else:
            row.failures.append("verdict %s, expected %s" % (found, "/".join(expect["verdicts"])))
    elif expect.get("share") is not None:
        # Further leaves that the built-in idle time goes to.
        beside = sum(leaf.get("share", 0.0) for leaf in row.report.get("leaves", [])
                     if leaf.get("leaf", "").startswith(tuple(expect.get("share_with", ()))))
        check_share(row, row.share_of(found) + beside)
    if expect.get("gone"):
        left = row.share_of(expect["gone"])
        if left >= 0.10:
            row.failures.append("%s still has %.0f %%" % (expect["gone"], 100 * left))
    leaf, limiter = row.report.get("top_leaf", ""), row.report.get("limiter", "")
    if expect["leaves"] and leaf not in expect["leaves"]:
        row.notes.append("leaf %s, expected %s" % (leaf, "/".join(expect["leaves"])))
    if expect["limiters"] and limiter not in expect["limiters"]:
        row.notes.append("limiter %s, expected %s" % (limiter, "/".join(expect["limiters"])))


def check_share(row, share):
    """Against the share built into the run, and into the steps that were recorded: jobs with
    bursts have other steps inside a window than on average."""
    expect = row.expect
    built_in = [expect["share"]]
    step_ms = int(row.report.get("step", {}).get("mean_ns", 0)) / 1e6
    mean_ms = row.measured.get("step_ms_mean", 0.0)
    if expect.get("share_is_idle", True) and step_ms > 0 and mean_ms > 0:
        built_in.append(1.0 - row.measured["tc_ms"] / step_ms)
        if not 0.5 < step_ms / mean_ms < 2.0:
            row.notes.append("step %.1f ms inside the window, %.1f in the run" % (step_ms, mean_ms))
    if all(abs(share - b) > expect["tolerance"] for b in built_in):
        row.failures.append("share %.0f %%, constructed %s" %
                            (100 * share, " or ".join("%.0f %%" % (100 * b) for b in built_in)))


def check_advice(row):
    expect, advice = row.expect, row.advice()
    if expect["accept"]:
        if not advice:
            row.failures.append("no advice")
        elif advice[0] not in expect["accept"]:
            row.failures.append("first advice %s, expected %s" %
                                (advice[0], "/".join(expect["accept"])))
    for bad in advice:
        if bad in expect["forbid"]:
            row.failures.append("forbidden advice " + bad)
    if advice and advice[0] in expect.get("forbid_first", []):
        row.failures.append("advice %s must not be first" % advice[0])


def check_details(row):
    """Further expectations, by name; each is optional in the truth."""
    expect, report = row.expect, row.report
    device = (report.get("devices") or [{}])[0]
    steps = int(report.get("step", {}).get("steady_steps", 0))
    run = report.get("run", {})
    if "fill_below" in expect:
        fill = device.get("fill", 0.0)
        if not 0 < fill < expect["fill_below"]:
            row.failures.append("fill %.3f, expected below %.2f" % (fill, expect["fill_below"]))
    if "busy_above" in expect:
        busy = report.get("step", {}).get("busy_share", 0.0)
        if busy < expect["busy_above"]:
            row.failures.append("busy %.2f, expected above %.2f" % (busy, expect["busy_above"]))
    if "bytes_per_step" in expect and steps:
        sent = sum(int(c.get("bytes", 0)) for c in report.get("copies", [])
                   if c.get("path", "").startswith("H2D")) / steps
        if abs(sent / expect["bytes_per_step"] - 1) > 0.1:
            row.failures.append("%.0f bytes a step, expected %.0f" % (sent, expect["bytes_per_step"]))
    if "share_of_run" in expect:
        wall = int(run.get("wall_ns", 0)) or 1
        share = (int(run.get("epoch_restart_ns", 0)) + int(run.get("startup_ns", 0))) / wall
        if abs(share - expect["share_of_run"]) > 0.2:
            row.failures.append("start-ups are %.0f %% of the run, constructed %.0f %%" %
                                (100 * share, 100 * expect["share_of_run"]))
    if "startup_s_at_least" in expect:
        if int(run.get("startup_ns", 0)) / 1e9 < expect["startup_s_at_least"]:
            row.failures.append("start-up %.1f s, at least %.1f" %
                                (int(run.get("startup_ns", 0)) / 1e9, expect["startup_s_at_least"]))
    if "period_steps" in expect:
        periods = [s.get("period_steps", 0) for s in report.get("stalls", [])
                   if s.get("verdict") == "PERIODIC"]
        if not any(abs(p - expect["period_steps"]) <= 1 for p in periods):
            row.failures.append("periods %s, expected %d" % (periods, expect["period_steps"]))
    for name, good in (("min_workers", lambda a, b: a >= b), ("max_workers", lambda a, b: a <= b)):
        if name in expect:
            for fix in report.get("fixes", []):
                if fix.get("id") == "num-workers":
                    advised = int(fix.get("parameters", {}).get("num_workers", 0))
                    if not good(advised, expect[name]):
                        row.failures.append("advises %d workers, %s %d" %
                                            (advised, name.replace("_", " "), expect[name]))
    if "guilty_rank" in expect and len(report.get("ranks", [])) > 1:
        last = max(report["ranks"], key=lambda r: r.get("last_share", 0.0))
        if last.get("rank", 0) != expect["guilty_rank"]:
            row.failures.append("names rank %s, expected %s" %
                                (last.get("rank", 0), expect["guilty_rank"]))
    unknown = report.get("evidence", {}).get("unknown_of_step", 0.0)
    if unknown > 0.02:
        row.notes.append("unknown %.1f %%" % (100 * unknown))

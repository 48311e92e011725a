"""Measures the recorder on a GPU, phase by phase; each fits into a call of ten minutes.

Usage: measure.py PHASE --library LIB --idlescope BIN --out DIR [--programs DIR] [--minutes M]
Phases (what they show, and for how long):
  mlp       launch-bound job, runs of 60 s, A B B A: whole-run cost with interval, in-run accounts  9 min
  resnet    ResNet-50 batch 256 bf16, the same                                                      9 min
  short     jobs of 5, 10 and 20 s with default settings: steps recorded, report's verdict          3 min
  inside    step inside a window, --window full, Kineto, nsys if it is there                        6 min
  calls     ns per CUDA call: plain, in a window, after (call_cost)                                 1 min
  cycles    1000 eager attach/detach cycles with seven launching threads, joined by value           3 min
  graphs    1000 cycles in a CUDA graph job under the chosen policy, joined by value; 200 where
            five threads launch that nobody can hold                                              4 min
  compiled  torch.compile(mode="reduce-overhead"): without us, with default windows, and with a window
            a second asked for by `ctl`, all three at once, again and again; 500 windows with the
            seven threads of `cycles`                                                             5 min
  held      `graphs` with GraphDetach::kWhileHeld (experiment; a job that dies is the answer)       3 min
  kill      kill -9 at 200 random moments                                                           4 min
  profiler  torch.profiler before, inside and after windows                                         2 min
Out: the raw table on stdout, and DIR/PHASE.json. Exit code 1: something that must hold does not.
"""
import argparse
import glob
import json
import os
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
from suite import measure as statistics_of  # noqa: E402


class Phase:
    def __init__(self, options):
        self.options = options
        self.rows = []
        self.failures = []
        self.begin = time.monotonic()
        os.makedirs(options.out, exist_ok=True)

    def time_left(self):
        return self.options.minutes * 60 - (time.monotonic() - self.begin)

    def environment(self, recording=None, window="auto", **more):
        out = {k: v for k, v in os.environ.items()
               if not k.startswith("IDLESCOPE_") and k != "LD_PRELOAD"}
        if recording:
            shutil.rmtree(recording, ignore_errors=True)
            out.update(LD_PRELOAD=self.options.library, IDLESCOPE_OUTPUT=recording,
                       IDLESCOPE_WINDOW=window)
        out.update(more)
        return out

    def run(self, name, command, environment, timeout=300):
        """(exit code, stdout); stderr goes to DIR/NAME.err."""
        with open(os.path.join(self.options.out, name + ".err"), "wb") as err:
            try:
                done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=err,
                                      timeout=timeout, cwd=HERE)
            except subprocess.TimeoutExpired:
                return 124, ""
        return done.returncode, done.stdout.decode(errors="replace")

    def job(self, name, arguments, **environment):
        """The JSON line of one run of jobs.py; None and a failure if there is none."""
        command = [self.options.python, self.options.jobs] + [str(a) for a in arguments]
        code, out = self.run(name, command, self.environment(**environment))
        for line in reversed(out.splitlines()):
            if line.startswith("{"):
                result = dict(json.loads(line), name=name, exit_code=code)
                self.rows.append(result)
                print("| %s | %s |" % (name, " | ".join(
                    "%s %s" % (k, result[k]) for k in ("steps", "median_us", "mean_us", "wall_s",
                                                       "loss_last") if k in result)), flush=True)
                if code == 0:
                    return result
        self.fail("%s: exit code %d, see %s.err" % (name, code, name))
        return None

    def fail(self, text):
        self.failures.append(text)
        print("FAIL " + text, flush=True)

    def must(self, condition, text):
        print(("ok   " if condition else "FAIL ") + text, flush=True)
        if not condition:
            self.failures.append(text)

    def check(self, recording, *options):
        """check_trace.py over a recording: every op has its call in its window."""
        traces = sorted(glob.glob(os.path.join(recording, "*.istrace")))
        if not traces:
            self.fail("nothing was recorded in " + recording)
            return ""
        code, out = self.run("check", [sys.executable, os.path.join(HERE, "check_trace.py"),
                                       self.options.idlescope, *options, *traces],
                             self.environment())
        print(out.strip(), flush=True)
        self.must(code == 0, "every file is readable and joined")
        return out

    def accounts(self, recording):
        """{share, wall_s, ops, bytes, steps, windows, verdict} of a recording, by `report`."""
        code, out = self.run("report", [self.options.idlescope, "report", "--json", recording],
                             self.environment())
        try:
            report = json.loads(out)
        except ValueError:
            self.fail("%s: no report (exit code %d)" % (recording, code))
            return {}
        cost = report.get("cost", {})
        return {"share": cost.get("share_of_run", -1.0),
                "slowdown": cost.get("slowdown_in_windows", 0.0),
                "bytes": int(cost.get("trace_bytes", 0)),
                "ops": sum(int(p.get("gpu_ops", 0))
                           for p in report.get("source", {}).get("processes", [])),
                "steady_steps": int(report.get("step", {}).get("steady_steps", 0)),
                "run_steps": int(report.get("step", {}).get("run_steps", 0)),
                "verdict": report.get("verdict", "")}

    def end(self):
        path = os.path.join(self.options.out, self.options.phase + ".json")
        with open(path, "w") as file:
            json.dump({"phase": self.options.phase, "rows": self.rows, "failures": self.failures},
                      file, indent=1)
        print("%s: %s" % (self.options.phase, "failed" if self.failures else "as it must be"))
        return 1 if self.failures else 0


def whole_runs(phase, arguments, seconds, budget):
    """Runs with and without, A B B A, as often as the time allows; at least one pair."""
    plain, recorded, shares = {}, {}, []
    pair_s = 2 * (seconds + 25)
    repetition = 0
    while (repetition < phase.options.pairs if phase.options.pairs
           else repetition == 0 or phase.time_left() > pair_s):
        order = ("plain", "recorded") if repetition % 2 == 0 else ("recorded", "plain")
        for mode in order:
            recording = os.path.join(phase.options.out, "recording-%d" % repetition)
            result = phase.job("%s-%d" % (mode, repetition), arguments,
                               recording=recording if mode == "recorded" else None)
            if result is None:
                return
            (plain if mode == "plain" else recorded)[repetition] = result["mean_us"]
            if mode == "recorded":
                account = phase.accounts(recording)
                shares.append(account.get("share", -1.0))
                phase.rows.append(dict(account, name="accounts-%d" % repetition))
                if account.get("ops"):
                    print("     %.1f bytes per device op, verdict %s, %d steady steps" % (
                        account["bytes"] / account["ops"], account["verdict"],
                        account["steady_steps"]))
        repetition += 1
    cost = statistics_of.ratio(recorded, plain)
    phase.rows.append({"name": "whole run", "ratio": cost.as_json(), "accounts": shares})
    print("whole run, recorded over plain: %s from %d pairs" % (cost.text(), cost.count))
    phase.must(cost.count > 1 and cost.low <= 1.01,
               "the interval's lower bound is at most 1.01 (and there is an interval)")
    phase.must(shares and max(shares) <= budget and min(shares) >= 0,
               "in-run accounting at most %.1f %%: %s" % (
                   100 * budget, ", ".join("%.2f %%" % (100 * s) for s in shares)))


def mlp(phase):
    seconds = phase.options.seconds or 60
    whole_runs(phase, ["mlp", "--batch", 32, "--seconds", seconds], seconds, 0.010)


def resnet(phase):
    seconds = phase.options.seconds or 60
    whole_runs(phase, ["resnet", "--batch", 256, "--seconds", seconds], seconds, 0.005)


def short(phase):
    for job, batch in (("mlp", 32), ("image", 32), ("resnet", 256), ("graph", 32)):
        for seconds in (5, 10, 20):
            recording = os.path.join(phase.options.out, "short-%s-%d" % (job, seconds))
            if not phase.job("short-%s-%d" % (job, seconds),
                             [job, "--batch", batch, "--seconds", seconds], recording=recording):
                continue
            account = phase.accounts(recording)
            phase.rows.append(dict(account, name="short-%s-%d" % (job, seconds)))
            phase.must(account.get("steady_steps", 0) >= 20 or account.get("run_steps", 99) < 30,
                       "%s of %d s: %d steady steps of %d, verdict %s, cost %.2f %%" % (
                           job, seconds, account.get("steady_steps", 0),
                           account.get("run_steps", 0), account.get("verdict", ""),
                           100 * account.get("share", 0)))


def inside(phase):
    recording = os.path.join(phase.options.out, "inside")
    code, out = phase.run("window_cost", [phase.options.python, os.path.join(HERE, "window_cost.py"),
                                          "6", "150"],
                          phase.environment(recording, window="off"))
    print(out)
    phase.rows.append({"name": "window_cost", "out": out})
    phase.must(code == 0, "window_cost.py ran")
    arguments = ["mlp", "--batch", 32, "--seconds", 20]
    plain = phase.job("plain", arguments)
    full = phase.job("full", arguments, recording=os.path.join(phase.options.out, "full"),
                     window="full")
    again = phase.job("plain-again", arguments)
    if plain and full and again:
        base = (plain["mean_us"] + again["mean_us"]) / 2
        phase.rows.append({"name": "full", "ratio": full["mean_us"] / base})
        phase.must(full["mean_us"] / base <= 1.15,
                   "--window full: %.3f of plain" % (full["mean_us"] / base))
        nsys = shutil.which("nsys")
        if nsys is None:
            print("nsys is not there")
            return
        command = [nsys, "profile", "-t", "cuda", "-f", "true", "-o",
                   os.path.join(phase.options.out, "nsys"), phase.options.python,
                   phase.options.jobs] + [str(a) for a in arguments]
        # Where its importer is missing nsys does not end by itself (seen on a GPU machine).
        code, out = phase.run("nsys", command, phase.environment(), timeout=90)
        for line in out.splitlines():
            if line.startswith("{"):
                value = json.loads(line)["mean_us"] / base
                phase.rows.append({"name": "nsys", "ratio": value})
                print("nsys -t cuda: %.3f of plain" % value)


def program(phase, name):
    path = os.path.join(phase.options.programs or HERE, name)
    if not os.path.exists(path):
        phase.fail("%s is not built (see README.md)" % name)
        return None
    return path


def calls(phase):
    path = program(phase, "call_cost")
    if path:
        code, out = phase.run("call_cost", [path], phase.environment(
            os.path.join(phase.options.out, "calls"), window="off"))
        print(out)
        phase.rows.append({"name": "call_cost", "out": out})
        phase.must(code == 0, "call_cost ran")


def cycles(phase):
    many_cycles(phase, "cycles", phase.options.count or 1000)


def many_cycles(phase, name, count, *kind):
    recording = os.path.join(phase.options.out, name)
    code, out = phase.run(name, [phase.options.python, os.path.join(HERE, "cycles.py"),
                                 str(count), "10", *kind],
                          phase.environment(recording, window="off"), timeout=420)
    print(out)
    phase.must(code == 0 and '"stuck"' not in out, "%d %s: no crash, none stuck" % (count, name))
    phase.check(recording)
    for line in out.splitlines():
        if line.startswith("{"):
            result = json.loads(line)
            phase.rows.append(result)
            rss = result.get("rss_kb", [])
            if len(rss) > 4:
                # The first windows fill pools; after that memory must not grow with windows.
                grown = (rss[-1] - rss[len(rss) // 2]) / max(1, len(rss) - len(rss) // 2) / 50
                # Of it 76 KB a cycle is CUPTI's own: attach_memory.cu, no recorder (docs/overhead.md).
                phase.must(grown < 100, "memory grows by %.1f KB a window (mapped file and 76 KB of "
                           "CUPTI included)" % grown)


def graph_cycles(phase, name, *kind, count=0, **environment):
    path = program(phase, "graph_windows")
    if not path:
        return
    recording = os.path.join(phase.options.out, name)
    count = count or phase.options.count or 1000
    code, out = phase.run(name, [path, str(count), *(kind or ("1", "graph"))],
                          phase.environment(recording, window="off", **environment), timeout=420)
    print(out)
    phase.rows.append({"name": name, "exit_code": code, "out": out})
    phase.must(code == 0 and "cudaSuccess" in out, "%s, %d windows: job ends well" % (name, count))
    phase.check(recording)


def graphs(phase):
    graph_cycles(phase, "graphs")
    # Nobody can ask these threads to stand: CUPTI must stay attached.
    graph_cycles(phase, "threads", "0", "eager", "4", count=max(1, (phase.options.count or 1000) // 5))


def compiled(phase):
    """A job that died once, half a millisecond after kinds were switched on again."""
    command = [phase.options.python, phase.options.jobs, "compiled", "--steps",
               str(phase.options.count or 6000)]

    def start(name, **environment):
        err = open(os.path.join(phase.options.out, name + ".err"), "wb")
        return subprocess.Popen(command, env=phase.environment(**environment), cwd=HERE,
                                stdout=subprocess.PIPE, stderr=err)

    def tell(recording, what):
        subprocess.run([phase.options.idlescope, "ctl", recording, what], capture_output=True,
                       timeout=20)

    rounds = phase.options.pairs or 3
    losses = {"plain": set(), "auto": set(), "asked": set()}
    for repetition in range(rounds):
        folders = {mode: os.path.join(phase.options.out, "compiled-%s-%d" % (mode, repetition))
                   for mode in losses}
        jobs = {"plain": start("compiled-plain-%d" % repetition),
                "auto": start("compiled-auto-%d" % repetition, recording=folders["auto"]),
                "asked": start("compiled-asked-%d" % repetition, recording=folders["asked"],
                               window="off")}
        begin = time.monotonic()
        while any(j.poll() is None for j in jobs.values()) and time.monotonic() - begin < 150:
            if jobs["asked"].poll() is None:
                tell(folders["asked"], "start")
                time.sleep(0.4)
                tell(folders["asked"], "stop")
            time.sleep(0.4)
        for mode, job in jobs.items():
            if job.poll() is None:
                job.kill()
            out = job.communicate()[0].decode(errors="replace")
            line = next((x for x in out.splitlines() if x.startswith("{")), "")
            result = dict(json.loads(line) if line else {}, exit_code=job.returncode,
                          name="compiled-%s-%d" % (mode, repetition))
            phase.rows.append(result)
            losses[mode].add(result.get("loss_last"))
            phase.must(job.returncode == 0, "%s: exit code %d, %s steps, median %s us, loss %s" % (
                result["name"], job.returncode, result.get("steps"), result.get("median_us"),
                result.get("loss_last")))
            if mode != "plain":
                phase.check(folders[mode])
    if len(losses["plain"]) == 1 and rounds > 1:  # it repeats itself: so must the recorded ones
        phase.must(losses["auto"] | losses["asked"] == losses["plain"], "same losses")
    many_cycles(phase, "cycles-graph", (phase.options.count or 4000) // 8, "graph")


def held(phase):
    graph_cycles(phase, "held", IDLESCOPE_EXPERIMENT="graph-detach-held")


def kill(phase):
    path = program(phase, "kill_job")
    if not path:
        return
    folder = os.path.join(phase.options.out, "kill")
    shutil.rmtree(folder, ignore_errors=True)
    count = phase.options.count or 200
    phase.run("kill", ["bash", os.path.join(HERE, "kill_jobs.sh"), phase.options.library, path,
                       folder, str(count), "4"], phase.environment(), timeout=500)
    code, out = phase.run("check-kill", [sys.executable, os.path.join(HERE, "check_trace.py"),
                                         phase.options.idlescope, "--kill", folder],
                          phase.environment())
    print(out)
    phase.rows.append({"name": "kill", "out": out})
    phase.must(code == 0, "killed %d times: all readable" % count)


def profiler(phase):
    command = [phase.options.python, os.path.join(HERE, "handover.py"), "10"]
    for name, more in (("profiler", {}), ("profiler-teardown", {"TEARDOWN_CUPTI": "1"})):
        recording = os.path.join(phase.options.out, name)
        alone, out = phase.run(name + "-alone", command, phase.environment(**more), timeout=80)
        print("without us: exit code %d %s" % (alone, out))
        code, out = phase.run(name, command, phase.environment(recording, window="off", **more),
                              timeout=80)
        print(out)
        phase.rows.append({"name": name, "exit_code": code, "out": out, "alone": alone})
        if alone != 0:
            print("%s: it fails without us too, so it says nothing" % name)
            continue
        phase.must(code == 0, "%s: torch.profiler and windows: nobody lost data" % name)
        phase.check(recording)


PHASES = {f.__name__: f for f in (mlp, resnet, short, inside, calls, cycles, graphs, compiled,
                                  held, kill, profiler)}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("phase", choices=sorted(PHASES))
    parser.add_argument("--library", required=True)
    parser.add_argument("--idlescope", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--programs", help="folder of the built .cu programs")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--jobs", default=os.path.join(HERE, "jobs.py"))
    parser.add_argument("--minutes", type=float, default=9.0, help="no further pair after that")
    parser.add_argument("--pairs", type=int, default=0, help="exactly so many")
    parser.add_argument("--seconds", type=float, default=0, help="of a whole run")
    parser.add_argument("--count", type=int, default=0, help="cycles or kills")
    options = parser.parse_args()
    options.out = os.path.abspath(options.out)
    options.library = os.path.abspath(options.library)
    options.idlescope = os.path.abspath(options.idlescope)
    phase = Phase(options)
    PHASES[options.phase](phase)
    return phase.end()


if __name__ == "__main__":
    sys.exit(main())

"""`idlescope record` as seen from outside: the job behaves as without us.

Jobs here are shells and small Pythons without PyTorch: exit codes, output, signals,
environment, names of directories, refusals before the job starts.
"""

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
import unittest

import harness
from harness import BIN, LIBRARY, clean_environment

SH = ["/bin/sh", "-c"]


def ours(text):
    """Lines of stderr that are not the job's."""
    return [line for line in text.splitlines() if line.startswith(b"idlescope: ")]


class ExitCodes(harness.Scratch):
    def run_json(self):
        with open(self.path("out", "run.json")) as file:
            return json.load(file)

    def test_the_jobs_own_code(self):
        for code in (0, 1, 2, 3, 4, 125, 126, 127, 255):
            with self.subTest(code=code):
                done = self.record(*SH, f"exit {code}", flags=["-f"])
                self.assertEqual(done.returncode, code)
                self.assertEqual(self.run_json()["end"]["exit_code"], code)

    def test_killed_by_a_signal(self):
        for name in ("SEGV", "KILL", "TERM", "ABRT"):
            with self.subTest(signal=name):
                number = getattr(signal, "SIG" + name)
                done = self.record(*SH, f"kill -{name} $$", flags=["-f"])
                self.assertEqual(done.returncode, 128 + number)
                self.assertIn(b"SIG" + name.encode(), done.stderr)
                self.assertEqual(self.run_json()["end"]["signal"], number)

    def test_a_command_that_does_not_exist(self):
        done = self.record("/no/such/program")
        self.assertEqual(done.returncode, 127)
        self.assertIn(b"[command-not-found]", done.stderr)
        self.assertFalse(os.path.exists(self.path("out")), "nothing was recorded")
        self.assertEqual(self.record("no-such-program-in-path").returncode, 127)

    def test_a_command_that_cannot_be_executed(self):
        self.write("data.txt", "no program")
        done = self.record(self.path("data.txt"))
        self.assertEqual(done.returncode, 126)
        self.assertEqual(self.record(self.folder).returncode, 126)

    def test_our_own_failures_before_the_start_are_125(self):
        os.mkdir(self.path("out"))
        self.write("out/old.txt", "mine")
        marker = self.path("ran")
        cases = {
            "output-exists": self.record("touch", marker),
            "usage": self.idlescope("record", "--steps", "many", "--", "touch", marker),
            "library-missing": self.idlescope(
                "record", "-o", self.path("o2"), "--", "touch", marker,
                env={"IDLESCOPE_LIBRARY": self.path("absent.so")}),
            "library-unusable": self.idlescope(
                "record", "-o", self.path("o2"), "--", "touch", marker,
                env={"IDLESCOPE_LIBRARY": self.write("bad.so", "x" * 5000)}),
            "directory-failed": self.idlescope(
                "record", "-o", self.path("out", "old.txt"), "--", "touch", marker),
        }
        for id, done in cases.items():
            with self.subTest(id=id):
                self.assertEqual(done.returncode, 125, done.stderr)
                self.assertIn(f"[{id}]".encode(), done.stderr)
        self.assertEqual(self.idlescope("record").returncode, 125)
        self.assertEqual(self.idlescope("record", "--no-such-flag", "--", "true").returncode, 125)
        self.assertFalse(os.path.exists(marker), "the job must not have started")

    def test_usage_of_the_program_is_1(self):
        for arguments in ([], ["no-such-subcommand"], ["--no-such-flag"]):
            with self.subTest(arguments=arguments):
                self.assertEqual(self.idlescope(*arguments).returncode, 1)
        for arguments in (["--help"], ["--version"], ["record", "--help"]):
            with self.subTest(arguments=arguments):
                done = self.idlescope(*arguments)
                self.assertEqual(done.returncode, 0)
                self.assertEqual(done.stderr, b"")
                for line in done.stdout.decode().splitlines():
                    self.assertLessEqual(len(line), 80, line)


class Streams(harness.Scratch):
    SCRIPT = r"printf 'out\000\377bytes'; printf 'err\000\377bytes' >&2; cat; exit 3"

    def test_output_is_the_jobs(self):
        plain = self.run_command([*SH, self.SCRIPT], input=b"in\0put", stdin=None)
        recorded = self.record(*SH, self.SCRIPT, flags=["-q"], input=b"in\0put", stdin=None)
        self.assertEqual(recorded.stdout, plain.stdout)
        self.assertEqual(recorded.stderr, plain.stderr)
        self.assertEqual(recorded.returncode, plain.returncode)

    def test_our_lines_are_on_stderr_and_named(self):
        done = self.record(*SH, "echo job")
        self.assertEqual(done.stdout, b"job\n")
        lines = ours(done.stderr)
        self.assertEqual(len(lines), 4, done.stderr)
        self.assertIn(b"recording to", lines[0])
        self.assertIn(b"exit code 0", lines[2])
        self.assertIn(b"[nothing-recorded]", lines[3])
        for line in done.stderr.decode().splitlines():
            self.assertLessEqual(len(line.encode()), 80 + len(self.folder), line)

    def test_arguments_reach_the_job_unchanged(self):
        tricky = ["", "a b", "--", "-o", "$HOME", "it's", "\u6570\u636e", "--help"]
        show = [sys.executable, "-c", "import sys; print(sys.argv[1:])", *tricky]
        plain = self.run_command(show)
        self.assertEqual(self.record(*show).stdout, plain.stdout)

    def test_works_without_the_dashes(self):
        done = self.idlescope("record", "-o", self.path("out"), "-q", *SH, "exit 6")
        self.assertEqual(done.returncode, 6)
        # A `--` of the job's own stays with the job.
        done = self.idlescope("record", "-o", self.path("o2"), "-q", "echo", "a", "--", "b")
        self.assertEqual(done.stdout, b"a -- b\n")


class Environment(harness.Scratch):
    def env_of_job(self, env=None, flags=()):
        done = self.record("/usr/bin/env", "-0", env=env, flags=["-f", *flags])
        self.assertEqual(done.returncode, 0, done.stderr)
        pairs = (entry.split("=", 1) for entry in done.stdout.decode().split("\0") if entry)
        return dict(pairs)

    def test_only_what_the_recorder_needs_is_added(self):
        given = clean_environment()
        job = self.env_of_job()
        added = {k for k in job if job[k] != given.get(k)} - {"_", "PWD", "OLDPWD"}
        self.assertLessEqual(added, {"LD_PRELOAD", "IDLESCOPE_OUTPUT", "IDLESCOPE_MAX_SIZE",
                                     "CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH"})
        self.assertEqual(set(given) - set(job), set())
        self.assertEqual(job["IDLESCOPE_OUTPUT"], self.path("out"))

    def test_a_foreign_preload_is_kept(self):
        site = "/lib/x86_64-linux-gnu/libdl.so.2"
        if not os.path.exists(site):
            self.skipTest(site + " is not here")
        preload = self.env_of_job(env={"LD_PRELOAD": site})["LD_PRELOAD"].split(":")
        self.assertEqual(preload[1:], [site])
        self.assertTrue(preload[0].endswith("libidlescope.so"))

    def test_flags_win_over_variables(self):
        job = self.env_of_job(env={"IDLESCOPE_STEPS": "7", "IDLESCOPE_WINDOW": "full"},
                              flags=["--steps", "9", "-d", "2m"])
        self.assertEqual((job["IDLESCOPE_STEPS"], job["IDLESCOPE_WINDOW"],
                          job["IDLESCOPE_DURATION"]), ("9", "full", "120"))

    def test_disable_wins_over_all(self):
        done = self.record("/usr/bin/env", env={"IDLESCOPE_DISABLE": "1"})
        self.assertNotIn(b"LD_PRELOAD", done.stdout)
        self.assertEqual(done.stderr, b"")
        self.assertFalse(os.path.exists(self.path("out")))

    def test_other_ranks_stay_dormant(self):
        for rank in ("0", "1"):
            done = self.record("/usr/bin/env", flags=["--ranks", "0", "-f"],
                               env={"RANK": rank, "WORLD_SIZE": "2"})
            self.assertEqual(b"LD_PRELOAD" in done.stdout, rank == "0")


class Names(harness.Scratch):
    def made(self):
        return sorted(name for name in os.listdir(self.folder) if name.startswith("idlescope-"))

    def test_default_name(self):
        self.write("train.sh", "exit 0")
        done = self.idlescope("record", "--no-report", "--", "sh", "train.sh")
        self.assertEqual(done.returncode, 0, done.stderr)
        (name,) = self.made()
        self.assertRegex(name, r"^idlescope-train-\d{4}-\d{6}$")
        self.assertIn(name.encode() + b"/", done.stderr)

    def test_slurm_ranks_share_a_directory(self):
        self.write("train.sh", "exit 0")
        jobs = []
        for rank in range(4):
            env = clean_environment({"SLURM_JOB_ID": "4711", "SLURM_STEP_ID": "0",
                                     "SLURM_PROCID": str(rank), "SLURM_NTASKS": "4"})
            jobs.append(subprocess.Popen(
                [BIN, "record", "--no-report", "--", "sh", "train.sh"], cwd=self.folder, env=env,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE))
        talkers = 0
        for job in jobs:
            _, errors = job.communicate(timeout=60)
            self.assertEqual(job.returncode, 0, errors)
            talkers += 1 if errors else 0
        self.assertEqual(self.made(), ["idlescope-train-4711.0"])
        self.assertEqual(sorted(os.listdir(self.path("idlescope-train-4711.0"))),
                         ["run-1.json", "run-2.json", "run-3.json", "run.json"])
        self.assertEqual(talkers, 1, "one rank speaks")

    def test_patterns(self):
        done = self.idlescope("record", "--no-report", "-o", self.path("%q{NAME}-r%r"), "--",
                              "true", env={"NAME": "x"})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(os.path.isdir(self.path("x-r0")))


class Signals(harness.Scratch):
    # Prints one line per signal it gets, ends with 9 on TERM.
    JOB = """
import signal, sys, time
def note(number, frame):
    print(signal.Signals(number).name, flush=True)
    if number == signal.SIGTERM: sys.exit(9)
for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGINT):
    signal.signal(number, note)
print("ready", flush=True)
while True: time.sleep(0.05)
"""

    def start(self, **options):
        return subprocess.Popen(
            [BIN, "record", "-o", self.path("out"), "--", sys.executable, "-S",
             self.write("job.py", self.JOB)],
            cwd=self.folder, env=clean_environment(), stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, **options)

    def test_forwarded_to_the_job_and_no_analysis_after_term(self):
        record = self.start(start_new_session=True)
        self.assertEqual(record.stdout.readline(), b"ready\n")
        for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGINT, signal.SIGTERM):
            record.send_signal(number)
            self.assertEqual(record.stdout.readline().decode().strip(), number.name)
        output, errors = record.communicate(timeout=30)
        self.assertEqual(record.returncode, 9)
        self.assertEqual(output, b"")
        self.assertIn(b"job terminated (SIGTERM)", errors)
        self.assertNotIn(b"VERDICT", errors)

    def test_ctrl_c_on_the_terminal_reaches_the_job_once(self):
        # A terminal of its own: the kernel sends SIGINT to the whole foreground group.
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(self.folder)
            os.execve(BIN, [BIN, "record", "-o", self.path("out"), "--", sys.executable, "-S",
                            self.write("job.py", self.JOB)], clean_environment({"TERM": "xterm"}))
        seen = b""

        def read_until(text):
            nonlocal seen
            end = time.monotonic() + 30
            while text not in seen and time.monotonic() < end:
                if select.select([terminal], [], [], 0.2)[0]:
                    try:
                        seen += os.read(terminal, 4096)
                    except OSError:  # the other side is closed
                        return
            self.assertIn(text, seen)

        read_until(b"ready")
        os.write(terminal, b"\x03")
        read_until(b"SIGINT")
        time.sleep(0.5)
        os.kill(pid, signal.SIGTERM)
        read_until(b"job terminated")
        _, status = os.waitpid(pid, 0)
        os.close(terminal)
        self.assertEqual(os.waitstatus_to_exitcode(status), 9)
        self.assertEqual(seen.count(b"SIGINT"), 1, seen)
        self.assertIn(b"\r\x1b[Kidlescope: ", seen, "a progress bar's line is cleared first")

    def test_stop_job(self):
        record = subprocess.run(
            [BIN, "record", "-o", self.path("out"), "--no-report", "-d", "1s", "--stop-job", "--",
             sys.executable, "-S", "-c", "import time\ntry: time.sleep(60)\n"
             "except KeyboardInterrupt: print('stopped')"],
            cwd=self.folder, env=clean_environment(), capture_output=True, timeout=30)
        self.assertEqual(record.stdout, b"stopped\n", record.stderr)
        self.assertEqual(record.returncode, 0)

    def test_duration_alone_does_not_stop_the_job(self):
        done = self.record(*SH, "sleep 1; echo end", flags=["-d", "0.2s"])
        self.assertEqual(done.stdout, b"end\n")
        self.assertEqual(done.returncode, 0)


class OutsideReach(harness.Scratch):
    def test_docker_is_run_untouched_and_the_right_order_is_shown(self):
        self.write("docker", "#!/bin/sh\necho \"docker $@\"\necho \"preload=$LD_PRELOAD\"\nexit 5\n")
        os.chmod(self.path("docker"), 0o755)
        done = self.record("docker", "run", "img", "python", "train.py",
                           env={"PATH": self.folder + ":/usr/bin:/bin"})
        self.assertEqual(done.returncode, 5)
        self.assertEqual(done.stdout, b"docker run img python train.py\npreload=\n")
        self.assertIn(b"[outside-reach] docker", done.stderr)
        self.assertIn(("docker run -v %s:/opt/idlescope img /opt/idlescope/bin/idlescope record -- "
                       "python train.py" % os.path.dirname(os.path.dirname(BIN))).encode(),
                      b" ".join(done.stderr.split()))
        self.assertNotIn(b"recording to", done.stderr)

    def test_srun_passes_the_library_on_and_is_not_called_out_of_reach(self):
        self.write("srun", "#!/bin/sh\necho \"preload=${LD_PRELOAD##*/}\"\nexit 6\n")
        os.chmod(self.path("srun"), 0o755)
        done = self.record("srun", "python", "train.py", env={"PATH": self.folder + ":/usr/bin:/bin"})
        self.assertEqual(done.returncode, 6)
        self.assertEqual(done.stdout, b"preload=libidlescope.so\n")
        self.assertIn(b"[partly-outside] srun", done.stderr)
        self.assertIn(b"srun idlescope record -- python train.py", b" ".join(done.stderr.split()))
        self.assertIn(b"recording to", done.stderr)


if __name__ == "__main__":
    harness.main()

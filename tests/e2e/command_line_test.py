"""The command line as somebody meets it who does not know it: what it says without words, to
slips of the finger, in Chinese, about a job that still runs; completions and the manual page.
"""

import os
import re
import shutil
import subprocess
import time
import unittest

import harness
from harness import SOURCE

CASE = os.path.join(SOURCE, "tests", "golden", "real", "mlp_batch_8.istrace")
COMMANDS = ("record", "report", "compare", "export", "ctl", "dump", "doctor", "completion")


def said(done):
    return " ".join(done.stderr.decode().split())


class FirstContact(harness.Scratch):
    def test_no_word_at_all_shows_the_help(self):
        done = self.idlescope()
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"idlescope record -- python train.py", done.stdout)
        self.assertIn(b"Exit codes", done.stdout)
        self.assertEqual(done.stderr, b"")

    def test_every_help_fits_has_an_example_and_names_its_options(self):
        for command in COMMANDS:
            with self.subTest(command=command):
                done = self.idlescope(command, "--help")
                self.assertEqual(done.returncode, 0)
                text = done.stdout.decode()
                self.assertIn("  idlescope " + command, text)
                for line in text.splitlines():
                    self.assertLessEqual(len(line), 80, line)
        self.assertNotIn(b"manual", self.idlescope("--help").stdout)

    def test_a_slip_of_the_finger(self):
        for words, expected in ((["reprot"], "did you mean report?"),
                                (["compar", "a", "b"], "did you mean compare?"),
                                (["report", "--formt", "html"], "did you mean --format?"),
                                (["report", "x", "--colour=never"], "did you mean --color?")):
            with self.subTest(words=words):
                done = self.idlescope(*words)
                self.assertEqual(done.returncode, 1)
                self.assertIn(expected, said(done))
                self.assertEqual(done.stdout, b"")
        done = self.idlescope("record", "--budgt", "1%", "--", "touch", self.path("ran"))
        self.assertEqual(done.returncode, 125)
        self.assertIn("did you mean --budget?", said(done))
        self.assertFalse(os.path.exists(self.path("ran")))

    def test_options_of_the_job_are_its_own(self):
        for ours in (["-o", self.path("out"), "-q"], ["-q", "-o", self.path("out2")],
                     ["--no-report", "--output=" + self.path("out3")]):
            with self.subTest(ours=ours):
                done = self.idlescope("record", *ours, "echo", "--formt", "x")
                self.assertEqual((done.returncode, done.stdout), (0, b"--formt x\n"))

    def test_nothing_is_promised_of_a_command_that_does_not_exist(self):
        done = self.record("no-such-program-in-path")
        self.assertEqual(done.returncode, 127)
        self.assertNotIn(b"recording to", done.stderr)
        self.assertNotIn(b"first answer", done.stderr)
        self.assertFalse(os.path.exists(self.path("out")))

    def test_a_directory_above_recordings_says_where_they_are(self):
        os.mkdir(self.path("idlescope-train-1"))
        shutil.copy(CASE, self.path("idlescope-train-1"))
        done = self.idlescope("report", self.folder)
        self.assertEqual(done.returncode, 2)
        self.assertIn("[directory-empty]", said(done))
        self.assertIn("idlescope report " + self.folder + "/idlescope-train-1", said(done))

    def test_several_recordings_are_one_report(self):
        for name in ("a", "b"):
            os.mkdir(self.path(name))
            shutil.copy(CASE, self.path(name, name + ".istrace"))
        done = self.idlescope("report", self.path("a"), self.path("b"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"2 processes used a GPU", b" ".join(done.stdout.split()))


class RunningJob(harness.Scratch):
    def test_its_report_says_that_it_is_not_the_end(self):
        done = self.path("done")
        job = subprocess.Popen(
            [harness.BIN, "record", "-q", "-o", self.path("out"), "--", "/bin/sh", "-c",
             f"while [ ! -e {done} ]; do sleep 0.1; done"],
            env=harness.clean_environment({"IDLESCOPE_LIBRARY": harness.LIBRARY}),
            cwd=self.folder)
        try:
            deadline = time.time() + 60
            while not os.path.exists(self.path("out", "run.json")) and time.time() < deadline:
                time.sleep(0.05)
            shutil.copy(CASE, self.path("out", "h.1.1.0.istrace"))
            live = self.idlescope("report", self.path("out"))
        finally:
            open(done, "w").close()
            job.wait(60)
        self.assertEqual(live.returncode, 0, live.stderr)
        self.assertIn("the job is still running", said(live))
        after = self.idlescope("report", self.path("out"))
        self.assertNotIn("still running", said(after))


class Chinese(harness.Scratch):
    def test_errors_follow_flag_and_variable(self):
        by_flag = self.idlescope("report", "--lang", "zh", self.path("absent"))
        by_variable = self.idlescope("report", self.path("absent"), env={"IDLESCOPE_LANG": "zh"})
        by_locale = self.idlescope("report", self.path("absent"), env={"LC_ALL": "zh_CN.UTF-8"})
        for done in (by_flag, by_variable, by_locale):
            self.assertEqual(done.returncode, 2)
            self.assertIn("[file-missing]", said(done))
            self.assertIn("需要 .istrace 文件", said(done))
        english = self.idlescope("report", "--lang", "en", self.path("absent"),
                                 env={"IDLESCOPE_LANG": "zh"})
        self.assertIn("Expected an .istrace file", said(english))

    def test_usage_errors_too(self):
        done = self.idlescope("reprot", env={"IDLESCOPE_LANG": "zh"})
        self.assertEqual(done.returncode, 1)
        self.assertIn("是不是想用 report？", said(done))

    def test_record_and_doctor_speak_it(self):
        done = self.idlescope("record", "--lang", "zh", "-o", self.path("out"), "--", "true")
        self.assertIn("任务结束，退出码 0", said(done))
        self.assertIn("[nothing-recorded]", said(done))
        for line in done.stderr.decode().splitlines():
            wide = sum(2 if ord(c) >= 0x2E80 else 1 for c in line)
            self.assertLessEqual(wide, 80 + len(self.folder), line)
        doctor = self.idlescope("doctor", "--lang", "zh", "--python", "/no/such/python")
        self.assertIn("可用", doctor.stdout.decode())
        self.assertNotRegex(doctor.stdout.decode(), r"(?m)^  works ")


class Descriptions(harness.Scratch):
    def test_completions_know_every_command(self):
        for shell in ("bash", "zsh", "fish"):
            done = self.idlescope("completion", shell)
            self.assertEqual(done.returncode, 0)
            for command in COMMANDS:
                self.assertIn(command.encode(), done.stdout)
            for option in (b"fail-if", b"max-size", b"redact" if b"pack" in done.stdout else b"to"):
                self.assertIn(option, done.stdout)
            self.assertNotIn(b"after-record", done.stdout, "hidden")
        self.assertEqual(self.idlescope("completion", "tcsh").returncode, 1)

    @unittest.skipUnless(shutil.which("bash"), "no bash")
    def test_bash_takes_it(self):
        script = self.idlescope("completion", "bash").stdout.decode()
        done = subprocess.run(["bash", "--norc", "-c", script + "\ncomplete -p idlescope"],
                              capture_output=True)
        self.assertEqual((done.returncode, done.stderr), (0, b""))

    def test_manual_page(self):
        page = self.idlescope("manual").stdout.decode()
        for command in COMMANDS:
            self.assertIn("\n.SS " + command + "\n", page)
        self.assertTrue(page.startswith(".TH IDLESCOPE 1"))
        if not shutil.which("groff"):
            self.skipTest("groff is not installed")
        done = subprocess.run(["groff", "-man", "-Tascii", "-ww"], input=page.encode(),
                              capture_output=True)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        text = re.sub(rb"\x1b\[[0-9;]*m|.\x08", b"", done.stdout)
        self.assertIn(b"--fail-if", text)


if __name__ == "__main__":
    harness.main()

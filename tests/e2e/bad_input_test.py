"""Input that is no recording: a message that names the file and what to do, exit code 2,
nothing on stdout, never a crash. The same for every subcommand that reads.
"""

import os
import random
import shutil
import subprocess

import harness
from harness import BIN, clean_environment

CASE = os.path.join(harness.SOURCE, "tests", "golden", "cases", "data_serial.txtpb")
REAL = os.path.join(harness.SOURCE, "tests", "golden", "real", "mlp_batch_8.istrace")
TRACE = ("packet { header { format_major: %d tool: \"test\" "
         "process { host: \"h\" pid: 1 start_ns: 1 } } }\n"
         "packet { host_events { event { kind: EVENT_STEP thread_id: 1 begin_ns: 5 end_ns: 5 } } }")


class BadInput(harness.Scratch):
    READERS = ("report", "dump")

    def refuse(self, path, id, *needles, readers=READERS):
        for reader in readers:
            with self.subTest(reader=reader, path=path):
                done = self.idlescope(reader, path)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertEqual(done.stdout, b"")
                text = b" ".join(done.stderr.split()).decode()
                self.assertIn(f"idlescope: [{id}]", text)
                for needle in (os.path.basename(path), *needles):
                    self.assertIn(needle, text)

    def test_missing(self):
        self.refuse(self.path("absent.istrace"), "file-missing", "No such file")

    def test_empty_file(self):
        self.refuse(self.write("empty.istrace", ""), "file-empty", "Record again")

    def test_random_bytes(self):
        source = random.Random(1)
        for i in range(20):
            with open(self.path(f"random{i}.istrace"), "wb") as file:
                file.write(source.randbytes(1 + 97 * i * i))
            done = self.idlescope("report", f"random{i}.istrace")
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(b"idlescope: [", done.stderr)

    def test_foreign_json(self):
        self.refuse(self.write("loss.json", '{"loss": [1, 2, 3], "name": "run"}'), "not-a-trace")
        for i, text in enumerate(("[1, 2", "[]", "{}", '{"traceEvents": 7}', "nul")):
            done = self.idlescope("report", self.write(f"other{i}.json", text))
            self.assertEqual(done.returncode, 2, (text, done.stderr))
            self.assertIn(f"other{i}.json".encode(), b"".join(done.stderr.split()))

    def test_foreign_files(self):
        self.write("readme.txt", "just a text\n" * 100)
        done = self.idlescope("report", "readme.txt")
        self.assertEqual(done.returncode, 2, done.stderr)
        with open(self.path("elf.istrace"), "wb") as file:
            with open("/bin/true", "rb") as program:
                file.write(program.read())
        self.assertEqual(self.idlescope("report", "elf.istrace").returncode, 2)

    def test_newer_major_version(self):
        self.refuse(self.write("newer.txtpb", TRACE % 99), "newer-format", "99", "Install a newer",
                    readers=("report",))  # dump interprets nothing

    def test_empty_directory(self):
        os.mkdir(self.path("out"))
        done = self.idlescope("report", "out")
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"[directory-empty] out", done.stderr)

    def test_no_recording_here(self):
        done = self.idlescope("report")
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"[no-recording-here]", done.stderr)

    def test_unreadable(self):
        path = self.write("secret.istrace", "x")
        os.chmod(path, 0)
        if os.access(path, os.R_OK):
            self.skipTest("root reads everything")
        self.refuse(path, "file-missing", "Permission denied")


class GoodInput(harness.Scratch):
    def encoded(self):
        """The hand-written case as a recorder would have written it."""
        with open(CASE, "rb") as case:
            done = self.run_command([
                "protoc", "-I", harness.SOURCE, "--encode=idlescope.trace.Trace",
                os.path.join(harness.SOURCE, "proto", "trace.proto")], stdin=case)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_truncated_is_analysed_and_said(self):
        whole = self.encoded()
        with open(self.path("cut.istrace"), "wb") as file:
            file.write(whole[:len(whole) * 3 // 4])
        done = self.idlescope("report", "--json", "cut.istrace")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b'"trace-truncated"', done.stdout)

    def test_any_prefix_is_an_answer_or_a_message(self):
        whole = self.encoded()
        source = random.Random(2)
        for size in sorted(source.sample(range(1, len(whole)), 25)):
            with open(self.path("cut.istrace"), "wb") as file:
                file.write(whole[:size])
            done = self.idlescope("report", "cut.istrace")
            self.assertIn(done.returncode, (0, 2), (size, done.stderr))

    def test_standard_input(self):
        done = self.idlescope("report", "-", input=self.encoded(), stdin=None)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(done.stdout.startswith(b"VERDICT"), done.stdout)

    def test_newest_directory_is_taken_and_named(self):
        for i, name in enumerate(("idlescope-a-0101-000000", "idlescope-b-0101-000000")):
            os.mkdir(self.path(name))
            shutil.copy(REAL, self.path(name))
            os.utime(self.path(name), (1000 - i, 1000 - i))
        done = self.idlescope("report")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"idlescope: report of idlescope-a-0101-000000/", done.stderr)

    def test_output_file_is_not_overwritten(self):
        self.assertEqual(self.idlescope("report", CASE, "-o", "r.txt").returncode, 0)
        again = self.idlescope("report", CASE, "-o", "r.txt")
        self.assertEqual(again.returncode, 2)
        self.assertIn(b"[output-exists]", again.stderr)
        self.assertEqual(self.idlescope("report", CASE, "-o", "r.txt", "-f").returncode, 0)

    def test_a_closed_pipe_is_silent_and_a_full_disk_is_said(self):
        done = subprocess.run([f'"{BIN}" dump "{CASE}" | head -n 1'], shell=True,
                              cwd=self.folder, env=clean_environment(), capture_output=True)
        self.assertEqual(done.stderr, b"")
        with open("/dev/full", "wb") as full:
            done = subprocess.run([BIN, "report", CASE], stdout=full, stderr=subprocess.PIPE,
                                  cwd=self.folder, env=clean_environment())
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"[cannot-write]", done.stderr)

    def test_the_language_changes_the_words_and_not_the_json(self):
        english = self.idlescope("report", CASE)
        chinese = self.idlescope("report", CASE, "--lang", "zh")
        self.assertNotEqual(english.stdout, chinese.stdout)
        self.assertEqual(self.idlescope("report", "--json", CASE).stdout,
                         self.idlescope("report", "--json", "--lang", "zh", CASE).stdout)


if __name__ == "__main__":
    harness.main()

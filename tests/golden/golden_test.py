"""One recording, its whole analysis, its expected report.

Usage: golden_test.py PROGRAM RECORDING [--update]

RECORDING is a hand-written trace (cases/NAME.txtpb, with its answer worked out in its head
comment) or a recording from a real GPU (real/NAME.istrace). Beside it lie
  NAME.expect.json  facts that must hold, worked out by hand; nothing rewrites them
  NAME.report.txt   the text report, word for word, where there is one;
                    `update_expected.sh` rewrites it
"""

import difflib
import json
import os
import pathlib
import subprocess
import sys


def run(program, arguments, folder):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("IDLESCOPE_")}
    environment.update(LC_ALL="C", LANG="C", TERM="dumb", COLUMNS="80")
    done = subprocess.run([program, "report", *arguments], cwd=folder, env=environment,
                          capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"report ended with {done.returncode}: {done.stderr}")
    return done.stdout


def near(value, expected):
    """expected: [value, tolerance]."""
    return abs(value - expected[0]) <= expected[1]


class Facts:
    """Checks of the JSON report; each adds what does not hold."""

    def __init__(self, report):
        self.report = report
        self.wrong = []

    def require(self, holds, what):
        if not holds:
            self.wrong.append(what)

    def leaf_share(self, prefix):
        return sum(leaf.get("share", 0) for leaf in self.report.get("leaves", [])
                   if leaf["leaf"].startswith(prefix))

    def check(self, expected):
        report = self.report
        for field in ("verdict", "limiter", "certainty", "top_leaf"):
            if field in expected:
                self.require(report.get(field) == expected[field],
                             f"{field}: {report.get(field)}, expected {expected[field]}")
        step = report.get("step", {})
        for field, limits in expected.get("step", {}).items():
            value = float(step.get(field, 0))
            self.require(near(value, limits), f"step.{field}: {value}, expected {limits}")
        for verdict, limits in expected.get("shares", {}).items():
            share = next((v.get("share", 0) for v in report.get("verdict_shares", [])
                          if v.get("verdict") == verdict), 0)
            self.require(near(share, limits), f"share of {verdict}: {share}, expected {limits}")
        for prefix, limits in expected.get("leaves", {}).items():
            share = self.leaf_share(prefix)
            self.require(near(share, limits), f"leaves {prefix}*: {share}, expected {limits}")
        fixes = [fix.get("id") for fix in report.get("fixes", [])]
        for fix in expected.get("fixes", []):
            self.require(fix in fixes, f"fix {fix} is missing in {fixes}")
        for fix in expected.get("no_fixes", []):
            self.require(fix not in fixes, f"fix {fix} is advised and must not be")
        evidence = report.get("evidence", {})
        if "join_rate" in expected:
            rate = evidence.get("join_rate", 0)
            self.require(rate >= expected["join_rate"], f"join rate {rate}")
        self.check_sums()

    def check_sums(self):
        """Every ns of a device has exactly one leaf."""
        for i, device in enumerate(self.report.get("devices", [])):
            total = sum(int(leaf.get("total_ns", 0)) for leaf in device.get("leaves", []))
            window = int(device.get("window_ns", 0))
            self.require(total == window, f"device {i}: leaves sum to {total} of {window} ns")


def main():
    program, recording = sys.argv[1], pathlib.Path(sys.argv[2])
    folder, stem = recording.parent, recording.name.split(".")[0]
    text_file = folder / f"{stem}.report.txt"
    text = run(program, [recording.name], folder)
    if "--update" in sys.argv:
        if text_file.exists():
            text_file.write_text(text)
        return
    facts = Facts(json.loads(run(program, ["--json", recording.name], folder)))
    facts.check(json.loads((folder / f"{stem}.expect.json").read_text()))
    for line in facts.wrong:
        print("WRONG:", line)
    expected = text_file.read_text() if text_file.exists() else text
    diff = list(difflib.unified_diff(expected.splitlines(), text.splitlines(),
                                     text_file.name, "now", lineterm=""))
    print("\n".join(diff))
    if facts.wrong or diff:
        print("\nIf the new text is right: tests/golden/update_expected.sh, then read the diff.")
        sys.exit(1)


if __name__ == "__main__":
    main()

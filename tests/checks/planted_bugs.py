"""Bugs, planted one at a time in a copy of the sources: each must be caught.

Usage: planted_bugs.py REPOSITORY [WORK_FOLDER] [NAME…]

For each bug the smallest targets that can notice it are built and one named test is run,
which must fail. Run by hand and nightly (about a minute a bug); docs/testing.md lists them.
A patch that no longer applies is a failure too: the list is kept true.
"""

import os
import pathlib
import shutil
import subprocess
import sys


class Bug:
    def __init__(self, name, file, old, new, targets, tests):
        self.name, self.file, self.old, self.new = name, file, old, new
        self.targets, self.tests = targets, tests


BUGS = [
    Bug("join by id alone: the window is ignored", "analysis/read/arrange.cpp",
        "op.call = index.find(op.window, op.correlation);",
        "op.call = index.find(0, op.correlation);",
        ["idlescope_cli"], "golden.launch_small_kernels"),
    Bug("gap per stream: only the first stream of the device is looked at",
        "analysis/model/device_timeline.cpp",
        "slots[slot_of(process.ops[i])].ops.push_back(i);",
        "if (process.op_descriptors[process.ops[i].descriptor].stream == 0) "
        "slots[slot_of(process.ops[i])].ops.push_back(i);",
        ["idlescope_cli"], "golden.compute_two_streams"),
    Bug("off by one at window ends: the last op of a window belongs to nobody",
        "analysis/model/device_timeline.cpp",
        "span.last = next;", "span.last = next > span.first + 1 ? next - 1 : next;",
        ["diagnose_test"], "diagnose.*"),
    Bug("off by one: the last record of a host chunk is lost", "analysis/read/host_chunk.cpp",
        "at + kRecordBytes <= layout.records.size()", "at + kRecordBytes < layout.records.size()",
        ["read_test"], "read.*"),
    Bug("lost last packet", "analysis/read/packet_stream.cpp",
        "if (rest_.empty()) return stop(End::kComplete, offset);",
        "if (rest_.size() <= 8) return stop(End::kComplete, offset);",
        ["read_test"], "read.*"),
    Bug("a record that was never committed is an event", "analysis/read/host_chunk.cpp",
        "if (kind == 0) {", "if (kind == 77777) {", ["read_test"], "read.*"),
    Bug("a blocked call is charged nothing that it delayed", "analysis/diagnose/local_replay.cpp",
        "const Ns stays = std::clamp<Ns>(at - g0, 0, g1 - g0);",
        "const Ns stays = g1 - g0;",
        ["idlescope_cli"], "golden.sync_item"),
    Bug("compaction drops events after a hole", "tools/compact.cpp",
        "if (commit != 0) kept.append(raw, at, record);",
        "if (commit == 0) break;\n    kept.append(raw, at, record);",
        ["tools_test"], "tools.Compact.*"),
    Bug("compaction takes a file that is still being written", "tools/compact.cpp",
        "if (has_ended(parts, host_)) {", "if (has_ended(parts, host_) || parts.pid > 0) {",
        ["tools_test"], "tools.Compact.*"),
    Bug("a signal that kills the job is exit code 0", "tools/job_process.cpp",
        "WIFSIGNALED(wait_status) ? kSignalBase + WTERMSIG(wait_status)",
        "WIFSIGNALED(wait_status) ? 0",
        ["tools_test"], "tools.JobProcess.*"),
    Bug("a forked child goes on in its parent's file", "profiler/emit/fork_page.cpp",
        "MADV_WIPEONFORK", "MADV_NORMAL", ["emit_test"], "emit.*"),
]


def sh(command, folder, log):
    with open(log, "a") as out:
        return subprocess.run(command, cwd=folder, stdout=out, stderr=out).returncode


def main():
    repository = pathlib.Path(sys.argv[1]).resolve()
    work = pathlib.Path(sys.argv[2]).resolve() if len(sys.argv) > 2 else repository / "build/planted"
    chosen = sys.argv[3:]
    # The same depth as an ordinary build folder, so that ccache knows the files again.
    source, log = work / "source", work / "log.txt"
    build = source / "build" / "dev"
    shutil.rmtree(source, ignore_errors=True)
    source.mkdir(parents=True)
    tracked = subprocess.run(["git", "-C", repository, "ls-files"], capture_output=True, text=True,
                             check=True).stdout.split("\n")
    for name in filter(None, tracked):
        if (repository / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(repository / name, source / name)
    if sh(["cmake", "--preset", "dev"], source, log) != 0:
        sys.exit(f"configure failed: {log}")

    alive = []
    for bug in BUGS:
        if chosen and not any(word in bug.name for word in chosen):
            continue
        path = source / bug.file
        text = path.read_text()
        if text.count(bug.old) != 1:
            alive.append(bug.name)
            print(f"NOT APPLICABLE  {bug.name} ({bug.file} has changed)", flush=True)
            continue
        jobs = str(os.cpu_count())
        build_command = ["cmake", "--build", str(build), "-j", jobs, "--target", *bug.targets]
        test = ["ctest", "--test-dir", str(build), "-R", bug.tests, "--no-tests=error"]
        if sh(build_command, source, log) != 0 or sh(test, source, log) != 0:
            sys.exit(f"without a bug, {bug.tests} must pass: {log}")
        path.write_text(text.replace(bug.old, bug.new))
        if sh(build_command, source, log) != 0:
            alive.append(bug.name)
            print(f"DOES NOT BUILD  {bug.name}", flush=True)
        elif sh(test, source, log) == 0:
            alive.append(bug.name)
            print(f"ALIVE           {bug.name} ({bug.tests})", flush=True)
        else:
            print(f"killed          {bug.name} ({bug.tests})", flush=True)
        path.write_text(text)
    print(f"{len(alive)} bugs were not caught")
    sys.exit(1 if alive else 0)


if __name__ == "__main__":
    main()

"""What libidlescope.so asks of a process and what it shows to it.

Usage: library_symbols.py LIBRARY

It is loaded into every process of a job, so it needs nothing that may be missing or clash:
only libc (and ld.so; on old systems also libdl, libpthread), symbols that glibc 2.28 has,
and it exports its entry points and nothing else.
"""

import re
import subprocess
import sys

NEEDED = {"libc.so.6", "libdl.so.2", "libpthread.so.0", "ld-linux-x86-64.so.2",
          "ld-linux-aarch64.so.1"}
NEWEST_GLIBC = (2, 28)
EXPORTED = re.compile(r"^(InitializeInjection|InitializeInjectionNvtx2|idlescope_\w+)$")
REQUIRED = {"InitializeInjection", "InitializeInjectionNvtx2"}


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main():
    library = sys.argv[1]
    problems = []
    needed = set(re.findall(r"\(NEEDED\).*\[(.+)\]", run("readelf", "-dW", library)))
    print("needs:", ", ".join(sorted(needed)))
    if needed - NEEDED:
        problems.append(f"needs {sorted(needed - NEEDED)}")

    exported, versions = set(), {}
    for line in run("readelf", "--dyn-syms", "-W", library).splitlines():
        fields = line.split()
        if len(fields) < 8 or not fields[0].rstrip(":").isdigit():
            continue
        section, name = fields[6], fields[7]
        if section == "UND":
            match = re.search(r"@GLIBC_(\d+)\.(\d+)", name)
            if match:
                versions[name] = (int(match[1]), int(match[2]))
        elif fields[4] in ("GLOBAL", "WEAK", "UNIQUE"):
            exported.add(name.split("@")[0])
    print("exports:", ", ".join(sorted(exported)))
    foreign = {name for name in exported if not EXPORTED.match(name)}
    if foreign:
        problems.append(f"exports {sorted(foreign)}")
    if not REQUIRED <= exported:
        problems.append(f"does not export {sorted(REQUIRED - exported)}")
    if not versions:
        problems.append("no versioned glibc symbol was found: the check is blind")
    else:
        print("newest glibc symbol:", max(versions.items(), key=lambda item: item[1]))
    newer = {name for name, version in versions.items() if version > NEWEST_GLIBC}
    if newer:
        problems.append(f"needs a glibc newer than 2.28: {sorted(newer)}")
    for problem in problems:
        print("PROBLEM:", problem)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()

"""Who may include whom (docs/architecture.md). Usage: include_layers.py REPOSITORY

Every `#include "…"` of the product is a path from the repository's root, so the folder of
a file and of what it includes are enough.
"""

import pathlib
import re
import sys

# folder -> folders it may include besides itself.
ANALYSIS = ["read", "model", "diagnose", "whatif", "report", "export"]
ALLOWED = {
    "proto": [],
    "profiler/emit": ["proto"],
    "profiler/host": ["proto", "profiler/emit", "profiler/include/idlescope"],
    "profiler/cuda": ["proto", "profiler/emit"],
    "profiler/session": ["proto", "profiler/emit", "profiler/host", "profiler/cuda",
                         "profiler/include/idlescope"],
    "profiler/include/idlescope": [],
    "analysis/simulate": ["proto"],
    "tools": ["proto"] + ["analysis/" + name for name in ANALYSIS + ["simulate"]],
}
for i, name in enumerate(ANALYSIS):
    ALLOWED["analysis/" + name] = ["proto"] + ["analysis/" + before for before in ANALYSIS[:i]]

# System headers that only these folders may include.
GUARDED = [
    (re.compile(r"^(cupti|cuda|cuda_runtime|generated_cuda)\w*\.h"), ["profiler/cuda", "examples"]),
    (re.compile(r"^google/protobuf/|\.pb\.h$"), ["analysis", "tools", "proto"]),
    (re.compile(r"^(torch|ATen|c10)/"), ["profiler/include/idlescope", "examples"]),
    (re.compile(r"^Python\.h"), []),
    (re.compile(r"^CLI/"), ["tools", "analysis/simulate"]),
    (re.compile(r"^(iostream|fstream|sstream|regex|filesystem)$"),
     ["analysis", "tools", "examples"]),
]
INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]')


def folder_of(path, folders):
    """The longest known folder that the path lies in."""
    return max((f for f in folders if path == f or path.startswith(f + "/")), key=len, default=None)


def check_file(path, relative):
    mine = folder_of(relative, ALLOWED)
    problems = []
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        kind, included = match.groups()
        where = f"{relative}:{number}"
        for pattern, owners in GUARDED:
            if pattern.search(included) and not folder_of(relative, owners):
                problems.append(f"{where}: {included} belongs to {', '.join(owners) or 'nobody'}")
        if kind == "<":
            continue
        theirs = folder_of(included, ALLOWED)
        if theirs is None:
            problems.append(f"{where}: \"{included}\" is not a path from the repository's root")
        elif theirs != mine and theirs not in ALLOWED.get(mine, []):
            problems.append(f"{where}: {mine} must not include {theirs} ({included})")
    return problems


def main():
    root = pathlib.Path(sys.argv[1])
    problems, files = [], 0
    for top in ("proto", "profiler", "analysis", "tools"):
        for path in sorted((root / top).rglob("*")):
            if path.suffix in (".h", ".cpp", ".c", ".cu"):
                files += 1
                problems += check_file(path, path.relative_to(root).as_posix())
    print("\n".join(problems))
    print(f"{files} files, {len(problems)} problems")
    sys.exit(1 if problems or files < 10 else 0)


if __name__ == "__main__":
    main()

"""Things that must not be in the repository. Usage: repository_hygiene.py REPOSITORY

Paths of one machine, merge leftovers, and pages that name files that are not there.
Skipped (77) where git or the work tree's index is missing, as in a source tarball.
"""

import pathlib
import re
import subprocess
import sys

FORBIDDEN = [
    (re.compile(r"(^|[^\w.])/(work|farm|root|home/\w+|opt/torch\d)/"), "a path of one machine"),
    (re.compile(r"^(<{7}|>{7}|={7})( |$)"), "a merge conflict"),
    (re.compile(r"\b(TODO|FIXME|XXX)\b"), "an unfinished spot"),
]
# Test data that stands for other people's machines.
EXAMPLE_PATHS = re.compile(r"/home/(u|x|user|me|alice|bob|name)/")
BINARY = {".istrace", ".zst", ".gz", ".sqlite", ".png", ".pb"}
MINE = "tests/checks/repository_hygiene.py"


def main():
    root = pathlib.Path(sys.argv[1])
    listing = subprocess.run(["git", "-C", root, "ls-files", "-z"], capture_output=True, text=True)
    if listing.returncode != 0:
        sys.exit(77)
    names = [name for name in listing.stdout.split("\0") if name]
    problems = []
    for name in names:
        path = root / name
        if name == MINE or path.suffix in BINARY or not path.is_file():
            continue
        text = path.read_text(errors="replace")
        for number, line in enumerate(text.splitlines(), 1):
            plain = EXAMPLE_PATHS.sub("", line)
            for pattern, what in FORBIDDEN:
                if pattern.search(plain):
                    problems.append(f"{name}:{number}: {what}: {line.strip()[:100]}")
        if path.suffix == ".md":
            for link in re.findall(r"\]\((?!https?:|#)([^)#\s]+)", text):
                if not (path.parent / link).exists():
                    problems.append(f"{name}: links to {link}, which is not there")
    print("\n".join(problems))
    print(f"{len(names)} files, {len(problems)} problems")
    sys.exit(1 if problems or len(names) < 10 else 0)


if __name__ == "__main__":
    main()

#!/usr/bin/env bash
# Shows idlescope at work: builds what it needs, records the bundled training example (on a
# GPU if there is one, else the host side on the CPU), analyses it, then analyses recordings
# that were made on a real GPU. Prints every report.
set -euo pipefail
cd "$(dirname "$0")/.."

setting=$(bash tools/install_packages.sh | tail -n 1)
if [[ $setting == CMAKE_PREFIX_PATH=* ]]; then
  export CMAKE_PREFIX_PATH="${setting#CMAKE_PREFIX_PATH=}${CMAKE_PREFIX_PATH:+:$CMAKE_PREFIX_PATH}"
fi
echo "== building (build/demo)"
cmake --preset dev -B build/demo -DIDLESCOPE_BUILD_TESTS=OFF > build-demo.log 2>&1 ||
  { cat build-demo.log; rm -f build-demo.log; exit 1; }
rm -f build-demo.log
cmake --build build/demo -j "${JOBS:-$(nproc)}" --target idlescope_cli idlescope_library
idlescope=$PWD/build/demo/bin/idlescope

# The Python that has PyTorch: the user's own if it has one, else Debian's.
python=""
for candidate in "${IDLESCOPE_TEST_PYTHON:-}" python3 /usr/bin/python3; do
  if [[ -n $candidate ]] && "$candidate" -c 'import torch' > /dev/null 2>&1; then
    python=$candidate
    break
  fi
done
if [[ -z $python ]]; then
  echo "no Python with PyTorch was found" >&2
  exit 1
fi

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
echo
echo "== idlescope record -- $python examples/train.py"
"$idlescope" record -o "$folder/run" --no-report -- "$python" examples/train.py
echo
echo "== idlescope report"
"$idlescope" report "$folder/run"

shopt -s nullglob
for recording in tests/golden/real/*.istrace; do
  echo
  echo "== idlescope report $recording (recorded on a real GPU)"
  "$idlescope" report "$recording"
done

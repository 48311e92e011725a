#!/usr/bin/env bash
# All tests: installs what is missing, then builds and tests one preset after the other.
#
#   tools/test.sh                 what CI runs: fuzz tsan dev
#   tools/test.sh dev             one preset
#
#   fuzz   clang, AddressSanitizer and UBSan, unit tests, every fuzzer for some seconds
#   tsan   g++, ThreadSanitizer, the recorder
#   dev    g++, everything, end to end
#
# The exit code is 0 only if every preset passed. JOBS is the number of compilers at once.
set -euo pipefail
cd "$(dirname "$0")/.."

presets=("$@")
((${#presets[@]} > 0)) || presets=(fuzz tsan dev)
jobs=${JOBS:-$(nproc)}

setting=$(bash tools/install_packages.sh | tail -n 1)
if [[ $setting == CMAKE_PREFIX_PATH=* ]]; then
  export CMAKE_PREFIX_PATH="${setting#CMAKE_PREFIX_PATH=}${CMAKE_PREFIX_PATH:+:$CMAKE_PREFIX_PATH}"
fi

# A hanging test must not take the whole run with it; each test may set less itself.
test_options=(--output-on-failure --timeout 600 -j "$jobs")

failed=()
for preset in "${presets[@]}"; do
  began=$SECONDS
  echo "== $preset: configure"
  cmake --preset "$preset" > "/tmp/idlescope-configure-$$.log" 2>&1 || {
    cat "/tmp/idlescope-configure-$$.log"
    rm -f "/tmp/idlescope-configure-$$.log"
    failed+=("$preset: configure")
    continue
  }
  rm -f "/tmp/idlescope-configure-$$.log"
  echo "== $preset: build"
  if ! cmake --build "build/$preset" -j "$jobs"; then
    failed+=("$preset: build")
    continue
  fi
  built=$SECONDS
  echo "== $preset: test"
  (cd "build/$preset" && ctest "${test_options[@]}") || failed+=("$preset: tests")
  echo "== $preset: built in $((built - began)) s, tested in $((SECONDS - built)) s"
done

echo "== all of it took $SECONDS s"
if ((${#failed[@]} > 0)); then
  printf '== FAILED %s\n' "${failed[@]}"
  exit 1
fi

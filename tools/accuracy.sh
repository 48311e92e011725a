#!/bin/sh
# Scores the analyzer on simulated recordings with known truth.
#
#   tools/accuracy.sh --set tuning|reporting [--build DIR] [--out DIR] [--count N]
#
# Builds the two programs, writes the recordings to OUT/SET, and puts the numbers into
# OUT/accuracy-SET.json and the recordings that went wrong into OUT/failures-SET.txt.
# Thresholds may be fitted on the tuning set; only the reporting set is quoted.
set -eu
cd "$(dirname "$0")/.."
set_name=tuning
build=build/release
out=build/accuracy
count=0
while [ $# -gt 0 ]; do
  case "$1" in
    --set) set_name=$2; shift 2 ;;
    --build) build=$2; shift 2 ;;
    --out) out=$2; shift 2 ;;
    --count) count=$2; shift 2 ;;
    *) echo "usage: tools/accuracy.sh --set tuning|reporting [--build DIR] [--out DIR] [--count N]" >&2; exit 2 ;;
  esac
done
[ -f "$build/CMakeCache.txt" ] || cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DIDLESCOPE_BUILD_PROFILER=OFF -DIDLESCOPE_BUILD_BENCHMARKS=OFF >/dev/null
cmake --build "$build" --target idlescope-simulate idlescope-accuracy
rm -rf "${out:?}/$set_name"
mkdir -p "$out"
"$build/analysis/simulate/idlescope-simulate" --set "$set_name" --count "$count" --out "$out/$set_name"
"$build/tests/accuracy/idlescope-accuracy" --set "$set_name" --json "$out/accuracy-$set_name.json" \
  --failures "$out/failures-$set_name.txt" "$out/$set_name"

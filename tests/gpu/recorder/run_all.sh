#!/bin/bash
# The recorder's measurements, one phase a call: run_all.sh PHASE... (measure.py lists them).
#
# In the environment: IDLESCOPE (the program), LIBRARY (libidlescope.so), OUT (results), PYTHON (with
# PyTorch and CUDA). Builds the .cu programs into $OUT/programs where nvcc is; else PROGRAMS names a
# folder with built ones. Goes on after a phase that failed; exit code 1 then.
set -u
here=$(cd "$(dirname "$0")" && pwd)
: "${IDLESCOPE:?the idlescope program}" "${LIBRARY:?libidlescope.so}" "${OUT:?a result folder}"
python=${PYTHON:-python3}
programs=${PROGRAMS:-$OUT/programs}
mkdir -p "$OUT" "$programs"
if [ -z "${PROGRAMS:-}" ] && command -v nvcc > /dev/null; then
  for name in call_cost graph_windows kill_job; do
    [ -x "$programs/$name" ] ||
      nvcc -O2 -std=c++17 -gencode=arch=compute_90,code=sm_90 -cudart shared \
        "$here/$name.cu" -o "$programs/$name" -lcupti || echo "run_all: $name was not built"
  done
fi
[ $# -gt 0 ] || set -- mlp short cycles graphs compiled kill profiler inside calls resnet
code=0
for phase in "$@"; do
  echo "== $phase"
  "$python" "$here/measure.py" "$phase" --library "$LIBRARY" --idlescope "$IDLESCOPE" \
    --out "$OUT" --programs "$programs" --python "$python" \
    ${MINUTES:+--minutes "$MINUTES"} | tee "$OUT/$phase.txt"
  [ "${PIPESTATUS[0]}" = 0 ] || code=1
done
exit $code

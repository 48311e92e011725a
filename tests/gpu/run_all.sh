#!/bin/bash
# The scenario suite in phases that fit into calls of ten minutes: run_all.sh PHASE.
#
# In the environment: IDLESCOPE (the program; libidlescope.so beside it or LIBRARY), OUT (results, kept
# and added to), PYTHON, SECONDS_LEFT (default 540). The same call again goes on where the last one
# ended: exit code 3 says that runs are missing still. README.md says which phases there are.
set -u
here=$(cd "$(dirname "$0")" && pwd)
: "${IDLESCOPE:?the idlescope program}" "${OUT:?a result folder}"
python=${PYTHON:-python3}
suite() {
  "$python" "$here/run_suite" --out "$OUT" --idlescope "$IDLESCOPE" --python "$python" --resume \
    --budget "${SECONDS_LEFT:-540}" ${LIBRARY:+--library "$LIBRARY"} ${MORE:-} "$@"
}
one_gpu=$("$python" "$here/run_suite" --list | awk '!/s12_/ && /\.py/ {print $1}' | paste -sd,)
case "${1:-}" in
  verdicts) suite --only "$one_gpu" --cells plain:none,recorded:none ;;
  fixes) suite --only "$one_gpu" --cells recorded:fixes ;;
  twins) suite --only "$one_gpu" --cells plain:twins,recorded:twin ;;
  gains) suite --only "$one_gpu" --repetitions 2 \
    --cells plain:none,recorded:none,plain:A,recorded:A,plain:B ;;
  kineto) suite --only "$one_gpu" --cells kineto:none ;;
  libtorch) suite --only S06L,S09L --libtorch "${LIBTORCH:?folder of the LibTorch programs}" \
    --cells plain:all,recorded:all,plain:twins,recorded:twin ;;
  ranks) suite --only S12 --repetitions 2 --cells plain:all,recorded:all,plain:twin,recorded:twin ;;
  judge) "$python" "$here/run_suite" --reanalyze "$OUT" --idlescope "$IDLESCOPE" ;;
  *)
    echo "run_all.sh: phases are verdicts fixes twins gains kineto libtorch ranks judge" >&2
    exit 2
    ;;
esac

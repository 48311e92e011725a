#!/usr/bin/env bash
# Rewrites the expected texts of all golden cases with what the program says now. The facts
# in *.expect.json are not touched: they were worked out by hand.
#
#   tests/golden/update_expected.sh build/dev/bin/idlescope && git diff tests/golden
set -euo pipefail
program=$(realpath "${1:?usage: update_expected.sh PROGRAM}")
cd "$(dirname "$0")"
shopt -s nullglob
for recording in cases/*.txtpb real/*.istrace; do
  python3 golden_test.py "$program" "$recording" --update
done

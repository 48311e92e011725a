#!/bin/bash
# Kills COUNT recorded jobs at random moments. Usage: kill_jobs.sh LIBRARY KILL_JOB OUT COUNT PARALLEL
# Out: OUT/N.progress and OUT/N/*.istrace, for kill_check.py.
library=$1 job=$2 out=$3 count=$4 parallel=$5
mkdir -p "$out"
one() {
  local n=$1
  IDLESCOPE_WINDOW=full IDLESCOPE_OUTPUT=$out/$n LD_PRELOAD=$library "$job" "$out/$n.progress" &
  local pid=$!
  # Wait for the first launch, then 50 to 850 ms more.
  for _ in $(seq 300); do
    [ -s "$out/$n.progress" ] && [ "$(od -An -tu8 -N8 "$out/$n.progress" | tr -d ' ')" != 0 ] && break
    sleep 0.02
  done
  sleep "0.$(printf %03d $((50 + RANDOM % 800)))"
  kill -9 $pid
  wait $pid 2>/dev/null
}
for n in $(seq "$count"); do
  while [ "$(jobs -r | wc -l)" -ge "$parallel" ]; do wait -n; done
  one "$n" 2>/dev/null &
done
wait

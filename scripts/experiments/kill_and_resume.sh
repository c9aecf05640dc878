#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Does a run that is killed repeatedly give the same result? Trains once undisturbed, once with kills, and compares the checkpoints.
#   kill_and_resume.sh CONFIG [SECONDS]       maximum seconds between kills; MXTRAIN: the program, OUT: the folder
set -euo pipefail
mxtrain=${MXTRAIN:-mxtrain}
config=${1:?which configuration? see the head of this script}
longest=${2:-5}
out=${OUT:-runs/kill_and_resume}
mkdir -p "$out"
rm -rf "$out/peace" "$out/fire"
# Save often enough to make progress between kills, and equally in both runs: the configuration is part of a checkpoint.
often=train.save.every=20steps

"$mxtrain" train "$config" "$often" --out "$out/peace" --quiet

kills=0
resume=()
while true; do
  "$mxtrain" train "$config" "$often" --out "$out/fire" --quiet "${resume[@]}" &
  run=$!
  after=$(awk -v longest="$longest" -v seed="$RANDOM" 'BEGIN { srand(seed); print 0.2 + rand() * longest }')
  { sleep "$after"; kill -9 "$run"; } 2>/dev/null &
  killer=$!
  if wait "$run" 2>/dev/null; then
    kill "$killer" 2>/dev/null || true
    break
  fi
  kills=$((kills + 1))
  if [[ -e $out/fire/config.yaml ]]; then resume=(--resume); else rm -rf "$out/fire"; fi
done

echo "killed $kills times"
cmp "$out/peace/checkpoints/last" "$out/fire/checkpoints/last"
echo "the checkpoints are identical"

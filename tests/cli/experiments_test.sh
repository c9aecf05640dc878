#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The experiments in scripts/: what they print can be believed.
. "${MXTRAIN_SOURCE_DIR:?}/tests/cli/common.sh"
write_points
write_deep
export MXTRAIN=$program
experiments=$source_dir/scripts/experiments

# script NAME ARGUMENT...: runs an experiment; its answers lie in stdout and stderr.
script() {
  checks=$((checks + 1))
  last=$1
  OUT=$work/$1 "$experiments/$1.sh" "${@:2}" >stdout 2>stderr || fail "$last ended with $?"
}

script learning_rates deep.yaml 0.01 0.1 1e30
holds "a line for each rate, and a head" [ "$(wc -l <stdout)" -eq 4 ]
holds "the rate that diverges comes last" grep -q '^1e30 *-' <(tail -1 stdout)
holds "the better rate comes first" awk 'NR == 2 { first = $2 } NR == 3 { exit !(first >= $2) }' stdout

script kill_and_resume points.yaml 1
prints "the checkpoints are identical"

expect 0 synth shapes --count 120 --size 24
write_photos shapes/train shapes/val 8
script finetune photos.yaml shapes/train shapes/val train.epochs=2
holds "three accuracies" [ "$(grep -cE ': +[01](\.[0-9]+)?$' stdout)" -eq 3 ]
prints "the 3 large classes:"
expect 0 train photos.yaml --dry-run data.train.path="$work/finetune/few/train" data.val.path="$work/finetune/few/val" train.weights="$work/finetune/pretrained"
finish

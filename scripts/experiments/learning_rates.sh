#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Which learning rate? Trains a configuration once with each and prints a table, the best first.
#   learning_rates.sh CONFIG [RATE...]        MXTRAIN names the program, OUT the folder for the runs
set -euo pipefail
mxtrain=${MXTRAIN:-mxtrain}
config=${1:?which configuration? see the head of this script}
shift
rates=("$@")
[[ ${#rates[@]} -gt 0 ]] || rates=(0.003 0.01 0.03 0.1 0.3)
out=${OUT:-runs/learning_rates}
mkdir -p "$out"

table=$out/table.tsv
: >"$table"
for rate in "${rates[@]}"; do
  # A rate that is too high diverges (exit code 7): a line of the table, no end of the experiment.
  if result=$("$mxtrain" train "$config" train.optimizer.lr="$rate" --out "$out/$rate" --overwrite --json --quiet); then
    best=$(sed -E 's/.*"best":\{"epoch":([0-9]+),"metric":"([^"]+)","value":([^,}]+).*/\3\t\2\t\1/' <<<"$result")
  else
    best=$(printf -- '-\tstopped\t-')
  fi
  printf '%s\t%s\n' "$rate" "$best" >>"$table"
done

{ printf 'rate\tbest\tmetric\tepoch\n'; sort -t "$(printf '\t')" -k2,2gr "$table"; } | awk -F '\t' '{ printf "%-10s  %-10s  %-16s  %s\n", $1, $2, $3, $4 }'

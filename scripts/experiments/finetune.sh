#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# How much do trained weights help with few images? Trains on all classes of a folder except the three smallest, then one epoch on those
# three: from scratch, and with the weights of the first run.
#   finetune.sh CONFIG TRAIN VALIDATION [key=value...]   folders with one sub-folder per class; MXTRAIN: the program, OUT: the folder for runs
set -euo pipefail
mxtrain=${MXTRAIN:-mxtrain}
config=${1:?which configuration? see the head of this script}
declare -A folders=([train]=$2 [val]=$3)
shift 3
out=${OUT:-runs/finetune}
mkdir -p "$out"

# "IMAGES CLASS" of every class, the smallest first.
sizes() {
  find -L "$1" -mindepth 2 -maxdepth 2 -type f -printf '%h\n' | sed 's|.*/||' | sort | uniq -c | sort -n | sed 's/^ *//'
}
mapfile -t classes < <(sizes "${folders[train]}" | cut -d' ' -f2-)
few=("${classes[@]:0:3}") many=("${classes[@]:3}")

# link SIDE CLASS...: folders of links to these classes
link() {
  local side=$1 part class
  shift
  rm -rf "${out:?}/$side"
  for part in train val; do
    mkdir -p "$out/$side/$part"
    for class in "$@"; do ln -s "$(realpath "${folders[$part]}/$class")" "$out/$side/$part/"; done
  done
}
link few "${few[@]}"
link many "${many[@]}"

# accuracy NAME SIDE key=value...: trains, and prints the best value.
accuracy() {
  local name=$1 side=$2
  shift 2
  "$mxtrain" train "$config" data.train.path="$out/$side/train" data.val.path="$out/$side/val" "$@" --out "$out/$name" --overwrite --json --quiet |
    sed -E 's/.*"best":\{[^}]*"value":([^,}]+).*/\1/'
}

pretrained=$(accuracy pretrained many "$@")
scratch=$(accuracy scratch few "$@" train.epochs=1)
finetuned=$(accuracy finetuned few "$@" train.epochs=1 train.weights="$out/pretrained")
echo "the ${#many[@]} large classes:         $pretrained"
echo "${few[*]}, scratch:    $scratch"
echo "${few[*]}, fine-tuned: $finetuned"

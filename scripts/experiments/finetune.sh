#!/usr/bin/env bash
# What do trained weights bring? Trains on all classes of a folder but three, then one epoch on those three: from scratch, and with the weights
# of the first run.
#   finetune.sh CONFIG TRAIN VALIDATION [key=value...]   folders with a sub-folder per class; MXTRAIN names the program, OUT the folder for runs
set -euo pipefail
mxtrain=${MXTRAIN:-mxtrain}
config=${1:?which configuration? see the head of this script}
declare -A folders=([train]=$2 [val]=$3)
shift 3
out=${OUT:-runs/finetune}
mkdir -p "$out"

# The last three classes by name are held back.
mapfile -t classes < <(find -L "${folders[train]}" -mindepth 1 -maxdepth 1 -type d -printf '%f\n' | sort)
rm -rf "$out/many" "$out/few"
for part in train val; do
  for i in "${!classes[@]}"; do
    side=many
    [[ $i -ge $((${#classes[@]} - 3)) ]] && side=few
    mkdir -p "$out/$side/$part"
    ln -s "$(realpath "${folders[$part]}/${classes[i]}")" "$out/$side/$part/"
  done
done

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
echo "$((${#classes[@]} - 3)) classes:                  $pretrained"
echo "the other three, scratch:    $scratch"
echo "the other three, fine-tuned: $finetuned"

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# From a bare machine to a trained net: installs dependencies, builds the program, generates a small set of images, trains on it and
# classifies the images of a folder. Debian 12 or Ubuntu 24.04, as root or with sudo; downloads only the distribution's packages.
#   scripts/quickstart.sh [key=value ...]      for example seed=2, train.epochs=5: passed to `mxtrain train`
# A second call reuses the packages, the program and the images, and trains again in a new run folder.
set -euo pipefail
cd "$(dirname "$0")/.."
for argument in "$@"; do
  [[ $argument == ?*=* ]] || { echo "quickstart.sh: '$argument' is not key=value; see mxtrain train --help" >&2; exit 2; }
done
say() { printf '\n== %s\n' "$*" >&2; }

say "packages"
scripts/install_deps.sh

say "the program"
log=build/quickstart.log
mkdir -p build
cmake --preset release >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
cmake --build --preset release --target mxtrain_program || exit 1
rm -f "$log"
mxtrain=build/release/bin/mxtrain

say "the images: data/quickstart"
if [[ -d data/quickstart/train && -d data/quickstart/val ]]; then
  echo "already generated" >&2
else
  "$mxtrain" synth data/quickstart --seed 1
fi

say "training"
"$mxtrain" train configs/quickstart.yaml --min-metric 0.97 "$@"

say "predictions for images of the validation set (every 40th of data/quickstart/val): not trained on, but the best epoch was chosen by them"
"$mxtrain" infer runs/latest data/quickstart/val --top-k 2 | awk 'NR == 1 || NR % 40 == 2'

cat >&2 <<'END_OF_TEXT'

Next: your own folder, with one sub-folder of images per class:
  build/release/bin/mxtrain init FOLDER          writes a configuration
  build/release/bin/mxtrain train FOLDER.yaml
END_OF_TEXT

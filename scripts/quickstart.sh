#!/usr/bin/env bash
# From a bare machine to a trained net: installs what is missing, builds the program, makes a small set of pictures, trains on it and names
# the pictures of a folder. Debian 12 or Ubuntu 24.04, as root or with sudo; nothing but the distribution's packages is downloaded.
#   scripts/quickstart.sh [key=value ...]      e.g. seed=2, train.epochs=5: given to `mxtrain train`
# A second call finds the packages, the program and the pictures, and trains anew, into a run folder of its own.
set -euo pipefail
cd "$(dirname "$0")/.."
for argument in "$@"; do
  [[ $argument == ?*=* ]] || { echo "quickstart.sh: '$argument' is not key=value; mxtrain train --help says more" >&2; exit 2; }
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

say "the pictures: data/quickstart"
if [[ -d data/quickstart/train && -d data/quickstart/val ]]; then
  echo "they are there" >&2
else
  "$mxtrain" synth data/quickstart --seed 1
fi

say "training"
"$mxtrain" train configs/quickstart.yaml --min-metric 0.97 "$@"

say "what the model says of pictures that it has not seen (every 40th of data/quickstart/val)"
"$mxtrain" infer runs/latest data/quickstart/val --top-k 2 | awk 'NR == 1 || NR % 40 == 2'

cat >&2 <<'END_OF_TEXT'

Next: a folder of your own, with a sub-folder of pictures per class:
  build/release/bin/mxtrain init FOLDER          writes a configuration
  build/release/bin/mxtrain train FOLDER.yaml
END_OF_TEXT

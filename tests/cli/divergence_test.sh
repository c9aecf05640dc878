#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A diverged run reports where, and can be replayed; a stopped and resumed run is verified to be bit-identical.
. "${MXTRAIN_SOURCE_DIR:?}/tests/cli/common.sh"
write_points

expect 0 verify-resume points.yaml --steps 7
prints "bit-identical after 7 steps"
expect 0 verify-resume points.yaml --json
prints '"same":true'
prints '"steps":8'  # two epochs of four batches
expect 2 verify-resume points.yaml train.epochs=1 data.batch_size=8
says "the run has 2 steps"
expect 3 verify-resume points.yaml train.epoks=1

# Data that differs from the run's is reported when resuming and evaluating.
expect 0 train points.yaml --out known train.epochs=1
expect 0 eval known
holds "the same data need no word" sh -c '! grep -q "data differ from" stderr'
sed -i '$s/.*/9,9,9,1/' points.csv
expect 0 eval known
says "the data differs from what the run was evaluated on: 16 records, "
expect 0 train points.yaml --out known --resume train.epochs=2
says "the training data differ from those of the checkpoint: 16 records, "
write_points

# A learning rate too high for two layers: the product of the second one overflows.
write_deep
expect 7 train deep.yaml --out hot train.optimizer.lr=1e30
says "is not finite at step"
says "points.csv"
says "the first non-finite values are in"
says "to repeat the failing step: mxtrain replay hot/diverged-"
bundle=$(echo hot/diverged-*)
holds "the bundle names the batch's four examples" [ "$(wc -l <"$bundle/batch.txt")" -eq 4 ]
holds "the bundle says its step" grep -q '"step": [0-9]' "$bundle/bundle.json"
expect 0 replay "$bundle"
prints "the first non-finite values are in"
expect 0 replay "$bundle" --json
prints '"tensor":"'
# A bundle may come from anybody: plug-ins that it names are not loaded.
cp -r "$bundle" foreign
sed -i '1i plugins: [evil.so]' foreign/config.yaml
expect 3 replay foreign
says "evil.so; plug-ins run arbitrary code"
# From a checkpoint in the middle the same place is found.
expect 7 train deep.yaml --out warm train.optimizer.lr=1e12 train.save.every=1steps train.epochs=20
says "the first non-finite values are in"
holds "the bundle contains a checkpoint" [ -e warm/diverged-*/checkpoint ]
expect 4 replay hot
says "is not a bundle of a diverged run"
finish

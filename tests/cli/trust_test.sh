#!/usr/bin/env bash
# A run that diverges says where, and can be looked at again; a run that is stopped and resumed is proved to repeat.
. "${MXTRAIN_SOURCE_DIR:?}/tests/cli/common.sh"
write_points

expect 0 verify-resume points.yaml --steps 7
prints "the same bits after 7 steps"
expect 0 verify-resume points.yaml --json
prints '"same":true'
prints '"steps":8'  # two epochs of four batches
expect 2 verify-resume points.yaml train.epochs=1 data.batch_size=8
says "the run makes 2 steps"
expect 3 verify-resume points.yaml train.epoks=1

# Other data than those of the run are noticed, on resuming and on measuring.
expect 0 train points.yaml --out known train.epochs=1
expect 0 eval known
holds "the same data need no word" sh -c '! grep -q "data are other" stderr'
sed -i '$s/.*/9,9,9,1/' points.csv
expect 0 eval known
says "the data are other than those that the run was measured on: 16 records, "
expect 0 train points.yaml --out known --resume train.epochs=2
says "the training data are other than those of the checkpoint: 16 records, "
write_points

# A learning rate that two layers do not bear: the second one's product overflows.
write_deep
expect 7 train deep.yaml --out hot train.optimizer.lr=1e30
says "is not finite at step"
says "points.csv"
says "the first bad numbers stand in"
says "to look at it again: mxtrain replay hot/diverged-"
bundle=$(echo hot/diverged-*)
holds "the bundle names the batch's four examples" [ "$(wc -l <"$bundle/batch.txt")" -eq 4 ]
holds "the bundle says its step" grep -q '"step": [0-9]' "$bundle/bundle.json"
expect 0 replay "$bundle"
prints "the first bad numbers stand in"
expect 0 replay "$bundle" --json
prints '"tensor":"'
# From a checkpoint in the middle the same place is found.
expect 7 train deep.yaml --out warm train.optimizer.lr=1e12 train.save.every=1steps train.epochs=20
says "the first bad numbers stand in"
holds "the bundle goes on from a save" [ -e warm/diverged-*/checkpoint ]
expect 4 replay hot
says "is no bundle of a diverged run"
finish

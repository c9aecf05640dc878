#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Training from the weights of another run: what is loaded, what is re-initialized, and what cannot be loaded.
. "${MXTRAIN_SOURCE_DIR:?}/tests/cli/common.sh"
write_points

expect 0 train points.yaml --out first
expect 0 train points.yaml --out second train.weights=first train.optimizer.lr=0 train.epochs=1
says "weights of $work/first: 2 arrays taken"
# A run with a learning rate of 0 ends as it began: as the best of the first.
expect 0 eval first --json
first=$(grep -o '"accuracy": *[0-9.]*' stdout)
expect 0 eval second --json
holds "same accuracy as the first run's: $first" grep -qF "$first" stdout

# A checkpoint is one under any name, also one that files of PyTorch often have.
cp first/checkpoints/last model.ckpt
expect 0 train points.yaml --dry-run train.weights=model.ckpt
says "2 arrays taken"
# Weights of PyTorch are no model, under any name: the two bytes with which a pickle of protocol 2 begins, and its magic number.
printf '\200\002\212\012l\374\234F\371 j\250P\031.' >state.bin
expect 4 eval state.bin points.yaml
says "state.bin holds only weights, without a net"

# A different number of classes: the head is re-initialized.
sed 's/num_hidden: 2/num_hidden: 3/' points.yaml >three.yaml
expect 3 train three.yaml --dry-run train.weights=first
says "no array of $work/first fits the net: 0 arrays taken; 2 are re-initialized, their shape differs"
says "use train.weights.map"

# Arrays that are not used have the names of the file, not those that a map makes of them.
expect 0 export first first.safetensors
printf -- "- ['^fullyconnected0_', other_]\n" >other.yaml
expect 3 train three.yaml --dry-run train.weights.file=first.safetensors train.weights.map=other.yaml
says "; 2 of the file are unused: fullyconnected0_bias, fullyconnected0_weight; are they of another net?"

# A file that was cut off is said to be.
size=$(stat -c %s first.safetensors)
head -c $((size - 3)) first.safetensors >cut.safetensors
expect 4 train points.yaml --dry-run train.weights=cut.safetensors
says "cut.safetensors is truncated: it has $((size - 3)) bytes, its header describes $size"

# Without a step no loss sees the labels: those that the head has no class for are refused all the same.
sed 's/,1$/,2/' points.csv >more.csv
for flags in "" --dry-run; do
  # shellcheck disable=SC2086 # words
  expect 4 train points.yaml --out zero train.weights=first train.epochs=0 data.train.path=more.csv $flags
  says "more.csv:2: 'softmax': the label 2 is outside the 2 classes"
done
holds "a refused run left its folder" test ! -e zero
expect 0 train points.yaml --out zero train.weights=first train.epochs=0

# Names by a map.
sed 's/FullyConnected: {num_hidden: 2}/FullyConnected: {num_hidden: 2, name: head}/' points.yaml >head.yaml
expect 3 train head.yaml --dry-run train.weights=first
echo "- ['^fullyconnected0', head]" >names.yaml
expect 0 train head.yaml --dry-run train.weights.file=first train.weights.map=names.yaml
says "2 arrays taken"
printf -- "- ['(', head]\n" >names.yaml
expect 3 train head.yaml --dry-run train.weights.file=first train.weights.map=names.yaml
says "names.yaml: '(' is not a valid regular expression"
printf -- "- {a: b}\n- [a]\n" >names.yaml
expect 3 train head.yaml --dry-run train.weights.file=first train.weights.map=names.yaml
says "names.yaml:1:3: error"
says "names.yaml:2:3: error"

# Load errors are reported before a run folder is created.
expect 8 train points.yaml --out third train.weights=absent
says "there are no weights $work/absent"
expect 8 train points.yaml --out third train.weights=frist
says "there are no weights $work/frist; did you mean '$work/first'?"
echo "no weights" >model.pth
expect 4 train points.yaml --out third train.weights=model.pth
says "model.pth: not a file of torch.save"
expect 4 eval model.pth points.csv
says "model.pth holds only weights, without a net"
echo "not safe" >broken.safetensors
expect 4 train points.yaml --out third train.weights=broken.safetensors
says "is not a safetensors file"
holds "no run folder is left" [ ! -e third ]
finish

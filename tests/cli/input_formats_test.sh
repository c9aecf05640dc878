#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A model gives the same results for all input formats: `eval` on IDX files, `eval` and `infer` on the same digits as PNG files.
#   input_formats_test.sh [mnist]    generated digits; mnist: those of MNIST, whose files are compressed
. "$(dirname "$0")/common.sh"
count=500
if [ "${1:-}" = mnist ]; then
  need_mnist
  side=28
else
  side=20
  mnist=$work/mnist
  "$helper" idx "$mnist" $count $side
fi
cat >net.yaml <<END
seed: 3
net:
  input: [1, $side, $side]
  layers:
    - Convolution: {num_filter: 4, kernel: 5}
    - Activation: {act_type: relu}
    - Pooling: {pool_type: max, kernel: 2, stride: 2}
    - Flatten
    - FullyConnected: {num_hidden: 10}
    - SoftmaxOutput: {name: softmax}
data:
  batch_size: 50
  train: {source: mnist, path: $mnist, split: test, shuffle: true}
  val: {source: mnist, path: $mnist, split: test}
train: {epochs: 1, max_steps: 60, optimizer: {name: sgd, lr: 0.05, momentum: 0.9}, metrics: [accuracy, cross_entropy]}
END
expect 0 train net.yaml --out run -q
"$helper" digits "$mnist" digits $count

# Only the first examples of the data set, so that both read the same.
mkdir first
for part in images-idx3 labels-idx1; do
  file=$mnist/t10k-$part-ubyte
  if [ -e "$file.gz" ]; then gzip -dc "$file.gz" >whole; else cp "$file" whole; fi
  header=$([ $part = images-idx3 ] && echo 16 || echo 8)
  size=$([ $part = images-idx3 ] && echo $((side * side)) || echo 1)
  { head -c 4 whole; printf '\0\0\001\364'; tail -c +9 whole | head -c $((header - 8 + count * size)); } >first/t10k-$part-ubyte
done
expect 0 eval run first --json --worst 500
cp stdout idx.json
expect 0 eval run digits --json --worst 500
cp stdout png.json

# Accuracy, per-class figures and confusion matrix. Examples have other places in the batches, where kernels may round otherwise, and
# are summed in another order: numbers may differ by 1e-6.
figures() { sed -E 's/.*"metrics"/"metrics"/; s/"worst_mistakes".*//; s/[0-9]+(\.[0-9]+)?(e-[0-9]+)?/\n&\n/g' "$1"; }
alike() { paste <(figures "$1") <(figures "$2") | awk -F'\t' '$1 != $2 && !($1 ~ /^[0-9]/ && $2 ~ /^[0-9]/ && ($1 - $2) ^ 2 < 1e-12) { exit 1 }'; }
holds "eval of IDX and PNG differ" alike idx.json png.json
holds "eval counts other than $count examples" grep -q "\"examples\":$count," png.json

# infer's best class per file, against the worst mistakes that eval names
expect 0 infer run digits --format jsonl
cp stdout infer.jsonl
holds "infer answers other than $count files" test "$(wc -l <infer.jsonl)" -eq $count
sed 's/.*"file":"digits\/\([0-9]\)\/\([0-9]*\)\.png".*"class":"\([0-9]\)".*/\2 \1 \3/' infer.jsonl | awk '$2 != $3' | sort >infer.wrong
tr '{' '\n' <png.json | sed -n 's/.*"example":".*\/\([0-9]*\)\.png","true":"\([0-9]\)","predicted":"\([0-9]\)".*/\1 \2 \3/p' | sort >png.wrong
tr '{' '\n' <idx.json | sed -n 's/.*"example":"[^[]*\[\([0-9]*\)\]","true":"\([0-9]\)","predicted":"\([0-9]\)".*/\1 \2 \3/p' |
  awk '{ printf "%05d %s %s\n", $1, $2, $3 }' | sort >idx.wrong
holds "infer and eval predict differently" cmp infer.wrong png.wrong
holds "IDX and PNG are predicted differently" cmp idx.wrong png.wrong
holds "there are no mistakes to compare" test -s infer.wrong
finish

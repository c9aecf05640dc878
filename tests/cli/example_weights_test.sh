#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Weights of examples, in tables and in lists of images: an example of weight w counts as w of it.
. "$(dirname "$0")/common.sh"

# metrics FILE: the metrics of a report in JSON, one in a line.
metrics() { grep -o '"metrics":{[^}]*}' "$1" | tr '{,}' '\n' | grep ':[^"]' | grep '[0-9]'; }
# near ONE OTHER: the same metrics, to 1e-6.
near() {
  paste -d' ' "$1" "$2" | awk -F'[: ]' 'NF != 4 || $1 != $3 { bad = 1 } { d = $2 - $4; if (d * d > 1e-12) bad = 1 } END { exit bad || !NR }'
}

fails() { ! "$@" >/dev/null 2>&1; }

# --- a table: rows with weights 0 to 3, and the same rows repeated
{
  echo x,z,kind,w,size
  for i in $(seq 40); do echo "$((i * 7 % 11)),$((i * 5 % 9)),$([ $((i % 3)) -eq 0 ] && echo cat || echo dog),$((i % 4)),$((i * 3 % 13))"; done
} >weighted.csv
awk -F, 'NR == 1 { print; next } { for (k = 0; k < $4; ++k) print }' weighted.csv >repeated.csv
sed 's/,w,/,v,/' weighted.csv >unweighted.csv
cat >table.yaml <<'END'
net:
  inputs: {data: [2]}
  layers:
    - FullyConnected: {name: hidden, num_hidden: 8}
    - Activation: {name: bent, act_type: tanh}
    - FullyConnected: {num_hidden: 2}
    - SoftmaxOutput: {name: kind, smooth_alpha: 0.1}
    - FullyConnected: {name: size_fc, num_hidden: 1, inputs: [bent]}
    - LinearRegressionOutput: {name: size}
data:
  batch_size: 8
  train:
    source: csv
    path: weighted.csv
    columns: {data: [x, z], weight: w, kind_label: kind, size_label: size}
    normalize: auto
    shuffle: true
  val: {source: csv, path: weighted.csv, columns: {data: [x, z], kind_label: kind, size_label: size, weight: w}}
train:
  epochs: 3
  optimizer: {name: sgd, lr: 0.05}
  metrics: [{name: accuracy, output: kind}, {name: cross_entropy, output: kind}, {name: f1, output: kind}, {name: auc, output: kind},
            {name: rmse, output: size}, {name: r2, output: size}]
END
expect 0 check table.yaml
says "weights of the examples to train on: from 0 to 3, mean 1.5; 10 of 40 are 0"
prints "no findings"
expect 0 check table.yaml --json
prints '"weights":{"least":0.0,"mean":1.5,"most":3.0,"zeros":10}'
expect 0 train table.yaml --out table
expect 0 eval table --json
says "examples have weights, from 0 to 3, mean 1.5; 10 of 40 are 0: loss and metrics are weighted; tables and figures count every example once"
prints '"weights":{"mean":1.5,"zeros":10}'
metrics stdout >weighted
for name in loss kind_loss size_loss accuracy cross_entropy f1 auc rmse r2; do
  holds "eval does not measure $name" grep -q "\"$name\":" weighted
done
expect 0 eval table --json --metric accuracy
value=$(sed -n 's/.*"accuracy":\([^,}]*\).*/\1/p' weighted)
prints "\"accuracy\":$value"
# A table without the column, whose rows stand in it as often as their weights say.
cut -d, -f1-3,5 repeated.csv >copies.csv
expect 0 eval table copies.csv --json
metrics stdout >copies
holds "a row of weight 3 does not count as three rows" near weighted copies
holds "copies have weights" test -z "$(grep 'have weights' stderr)"
cut -d, -f1-3,5 weighted.csv >once.csv
expect 0 eval table once.csv --json
metrics stdout >once
names() { cut -d: -f1 "$1"; }
holds "eval of a table without weights measures something else" test "$(names weighted)" = "$(names once)"
holds "weights change nothing" fails near weighted once
# Weights of 1 are none, to the bit; other weights are not.
awk -F, -v OFS=, 'NR > 1 { $4 = 1 } { print }' weighted.csv >ones.csv
expect 0 train table.yaml data.train.path=ones.csv data.val.path=ones.csv --out ones -q
sed 's/weight: w, //; s/, weight: w//' table.yaml >plain.yaml
expect 0 train plain.yaml data.train.path=ones.csv data.val.path=ones.csv --out plain -q
holds "weights of 1 train otherwise than none" "$helper" compare ones/checkpoints/last plain/checkpoints/last
holds "weights are not learnt from" fails "$helper" compare table/checkpoints/last plain/checkpoints/last
# An exported model holds no more of them than how to read a table for eval.
for run in ones plain; do
  expect 0 export $run $run.onnx
  LC_ALL=C tr -c '[:print:]' '\n' <$run.onnx | grep -E '.{6}' | grep -v '"source":' >$run.texts
done
holds "an exported model knows the weights" cmp ones.texts plain.texts
expect 0 eval ones.onnx once.csv --metric accuracy
cut -d, -f1,2 weighted.csv >inputs.csv
expect 0 infer table inputs.csv --format csv
# Stopped and resumed, with classes weighed, too.
expect 0 train table.yaml train.epochs=2 --out parts -q
expect 0 train table.yaml --resume --out parts -q
holds "a resumed run on weights ends elsewhere" "$helper" compare table/checkpoints/last parts/checkpoints/last

# --- what is no weight, with its place
wrong() { # LINE MESSAGE [CODE]
  sed "4s/.*/$1/" weighted.csv >wrong.csv
  for command in check train; do
    expect "${3:-4}" $command table.yaml data.train.path=wrong.csv
    says "$2"
  done
}
wrong "1,2,cat,-1,3" "wrong.csv:4: column 'w': the weight -1 is not a finite number from 0: an example of weight 3 counts as three of them"
wrong "1,2,cat,,3" "wrong.csv:4: column 'w': the example has no weight; missing: drop skips such rows"
wrong "1,2,cat,heavy,3" "wrong.csv:4: column 'w': 'heavy' is not a number"
sed '4s/.*/1,2,cat,,3/' weighted.csv >wrong.csv
expect 0 check table.yaml data.train.path=wrong.csv data.train.missing=drop data.val.path=weighted.csv
awk -F, -v OFS=, 'NR > 1 { $4 = 0 } { print }' weighted.csv >zeros.csv
expect 4 train table.yaml data.train.path=zeros.csv
says "zeros.csv: every example has the weight 0: there is nothing to learn"
awk -F, -v OFS=, 'NR > 1 { $4 = 10 * $4 } { print }' weighted.csv >heavy.csv
expect 9 check table.yaml --strict data.train.path=heavy.csv
says "data.train: weights of the examples are 15 on average, and so are steps larger than without them: divide the column by 15"
sed '5s/,[0-9]*,\([0-9]*\)$/,1000,\1/' weighted.csv >one.csv
expect 9 check table.yaml --strict data.train.path=one.csv
says "one.csv:5 has the weight 1000, 94 % of those of all 40 examples together: it outweighs them; is it a slip?"
expect 3 train table.yaml 'data.train.columns={data: [x, z], weight: [w, z], kind_label: kind, size_label: size}'
says "the weight of an example is one column of numbers"
# A loss that has no examples: the sum of a batch.
cat >sum.yaml <<'END'
include: table.yaml
net:
  layers:
    - FullyConnected: {name: hidden, num_hidden: 8}
    - sum: {name: total}
    - MakeLoss: {name: energy}
END
expect 3 train sum.yaml 'train.metrics=[]' 'data.train.columns={data: [x, z], weight: w}' data.val.columns='{data: [x, z], weight: w}' data.train.normalize=none
says "the loss 'energy' (MakeLoss) cannot be weighed: its argument 'data' has no axis of examples"
# A net that reads an input of this name has no weights.
sed 's/inputs: {data: \[2\]}/inputs: {data: [2], weight: [1]}/; s/- FullyConnected: {name: hidden, num_hidden: 8}/- Concat: {name: both, inputs: [data, weight]}\n    &/' table.yaml >input.yaml
expect 0 check input.yaml
holds "an input named weight was taken for one" test -z "$(grep 'weights of the examples' stderr)"

# Nor has one whose label has this name, also where classes are counted before there is a net.
sed 's/num_hidden: 2}/num_hidden: "${classes}"}/; s/{name: kind, /{name: kind, label: weight, /; s/weight: w, kind_label: kind/weight: kind/; s/kind_label: kind, size_label: size, weight: w/weight: kind, size_label: size/' table.yaml >label.yaml
expect 0 train label.yaml --out label -q
holds "a label named weight was taken for one" test -z "$(grep 'weights of the examples' stderr)"
expect 0 eval label --json
prints '"accuracy":'

# --- a list of images
expect 0 synth images --count 24 --classes 2 --size 24 -q
list() { find images/train -type f | sort | awk -F/ -v OFS='\t' '{ w = NR % 3; print $0, $(NF - 1), w }'; }
list >list.txt
cat >photos.yaml <<'END'
net:
  input: [3, 8, 8]
  layers:
    - Flatten
    - FullyConnected: {num_hidden: "${classes}"}
    - SoftmaxOutput: {name: softmax}
data:
  batch_size: 4
  train: {source: list, path: list.txt, columns: {weight: 2}, transforms: [{resize: [8, 8]}], shuffle: true}
  val: {source: list, path: list.txt, columns: {weight: 2}}
train: {epochs: 2, optimizer: {name: sgd, lr: 0.1}, metrics: [accuracy]}
END
expect 9 check photos.yaml # its validation images are those to train on
says "weights of the examples to train on: from 0 to 2"
expect 0 train photos.yaml --out photos
expect 0 eval photos --json
metrics stdout >weighted
expect 0 eval photos list.txt --json
metrics stdout >given
holds "the list of the run has other metrics where it is given" near weighted given
awk -F'\t' -v OFS='\t' '{ for (k = 0; k < $3; ++k) print $1, $2 }' list.txt >copies.txt
expect 0 eval photos copies.txt --json
metrics stdout >copies
holds "an image of weight 2 does not count as two of it" near weighted copies
# Mixed, in classes that are drawn equally often, weighed, and on features that are computed once.
expect 0 train photos.yaml --out mixed -q train.mixup.alpha=0.4 data.train.balanced=true
expect 0 train photos.yaml --out classes -q train.class_weights=auto
expect 0 train photos.yaml --out held -q data.val='{split: 0.25}'
expect 0 eval held
says "examples have weights"
sed '3s/[0-9]$/-2/' list.txt >wrong.txt
expect 4 train photos.yaml data.train.path=wrong.txt
says "wrong.txt:3: the weight -2 is not a finite number from 0"
sed '3s/\t[0-9]$//' list.txt >wrong.txt
expect 4 train photos.yaml data.train.path=wrong.txt
says "wrong.txt:3: 2 columns, but the weight is column 2, counted from 0, which is the path"
# The weight before the label; a list without weights has fewer columns, whatever its labels look like.
awk -F'\t' -v OFS='\t' '{ print $1, $3, $2 }' list.txt >before.txt
awk -F'\t' -v OFS='\t' '{ print $1, $2 == "disc" ? 0 : 1 }' list.txt >numbers.txt
expect 0 train photos.yaml data.{train,val}.path=before.txt data.{train,val}.columns='{weight: 1}' --out before -q
holds "a weight before the label trains otherwise" "$helper" compare photos/checkpoints/last before/checkpoints/last
expect 0 eval before numbers.txt --json
holds "a label was taken for a weight" test -z "$(grep 'have weights' stderr)"
metrics stdout >once
cut -f1,2 list.txt >words.txt
expect 0 eval photos words.txt --json
metrics stdout >words
holds "a list without weights is read otherwise where the weight came before the label" near words once
expect 3 train photos.yaml 'data.train.columns={label: 1}'
says "'label' is no column of a list, whose lines are paths, labels and perhaps a weight"
expect 3 train photos.yaml 'data.train.columns={weight: w}'
says "the weight of an example is one column of a list, by its number"
# Data that has no columns.
expect 3 train photos.yaml 'data.train={source: image_folder, path: images/train, columns: {weight: 2}}'
says "data.train 'image_folder' has no key 'columns'"
finish

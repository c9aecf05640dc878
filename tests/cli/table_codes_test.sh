#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tables of numbers and words: codes that an Embedding reads are never standardized, words are categories, and the export takes and
# gives the numbers of the table.
. "$(dirname "$0")/common.sh"

# What people earn depends on their job, above all: 30, 60, 120, 40, 80 and a half of their age.
awk 'BEGIN { print "age,job,level,pay"; n = split("clerk,cook,pilot,nurse,smith", job, ","); split("30,60,120,40,80", base, ",")
  for (i = 0; i < 240; ++i) { j = i * 7 % n + 1; age = 20 + i * 13 % 41; level = i * 5 % 4
    printf "%d,%s,%d,%.1f\n", age, job[j], level, base[j] + age / 2 + (level == 2 ? 25 : level) } }' >pay.csv
cat >pay.yaml <<'END'
net:
  inputs:
    age: [1]
    job: {shape: [1], dtype: int32}
    level: [1]
  layers:
    - Embedding: {name: job_vector, inputs: job, input_dim: 6, output_dim: 4}
    - Flatten: {name: job_row}
    - Embedding: {name: level_vector, inputs: level, input_dim: 4, output_dim: 4}
    - Flatten: {name: level_row}
    - Concat: {name: row, inputs: [age, job_row, level_row], dim: 1}
    - FullyConnected: {num_hidden: 16}
    - Activation: {act_type: relu}
    - FullyConnected: {num_hidden: 1}
    - LinearRegressionOutput: {name: pay}
data:
  batch_size: 20
  train: {source: csv, path: pay.csv, columns: {age: age, job: job, level: level, pay_label: pay}, normalize: auto}
  val: {split: 0.2}
train: {epochs: 40, optimizer: {name: adam, lr: 0.02}, metrics: [rmse]}
END
last() { awk -F, -v key="$2" 'NR == 1 { for (i = 1; i <= NF; ++i) if ($i == key) k = i; next } { last = $k } END { print last }' "$1/metrics.csv"; }

# --- words are categories, codes and integers stay as they are, numbers and targets are standardized
expect 0 check pay.yaml
expect 0 train pay.yaml --out pay
says "pay.csv: column 'job' holds words: 5 categories, codes 1 to 5; 0 is a word that is unknown or missing"
says "normalize: auto: means and standard deviations of 2 columns, from 192 rows; losses are of standardized labels"
holds "rmse $(last pay val_rmse) is not that of a net that knows the job" awk "BEGIN { exit !($(last pay val_rmse) < 8) }"
# the same with codes in the table
awk -F, 'BEGIN { OFS = ","; n = split("clerk,cook,nurse,pilot,smith", job, ","); for (i = 1; i <= n; ++i) code[job[i]] = i } NR > 1 { $2 = code[$2] } { print }' pay.csv >coded.csv
expect 0 train pay.yaml data.train.path=coded.csv --out coded
holds "the same rows, in codes, train otherwise" test "$(last pay val_rmse)" = "$(last coded val_rmse)"

# --- other tables: words that are new, codes beyond the rows
expect 0 infer pay pay.csv --format csv
cp stdout predicted.csv
sed 's/pilot/astronaut/' pay.csv >new.csv
expect 0 infer pay new.csv --format csv
says "new.csv: 48 cells of column 'job' hold words that the training data does not, read as unknown (first: line 3, 'astronaut')"
holds "a row without a new word is predicted otherwise" test "$(sed -n 2p stdout)" = "$(sed -n 2p predicted.csv)"
sed '9s/,[0-9]*,\([^,]*\)$/,7,\1/' pay.csv >beyond.csv
expect 4 infer pay beyond.csv
says "beyond.csv:9: column 'level': 7 is no code of the layer that reads it, which has 4 rows: codes are whole numbers from 0 to 3"
expect 4 train pay.yaml data.train.path=beyond.csv
expect 3 train pay.yaml data.train.path=beyond.csv data.train.columns.level=job
says "beyond.csv holds 5 different words; with 0, for a word that is unknown or missing, the layer that reads them needs 6 rows, and has 4"
expect 4 train pay.yaml data.train.columns.age=job
says "column 'job': 'clerk' is not a number"

# --- columns of one input, by name
cat >mixed.yaml <<'END'
net:
  input: [3]
  layers:
    - slice_axis: {name: numbers, inputs: data, axis: 1, begin: 0, end: 2}
    - slice_axis: {name: job, inputs: data, axis: 1, begin: 2, end: 3}
    - Embedding: {name: vector, input_dim: 6, output_dim: 4}
    - Flatten: {name: job_row}
    - Concat: {name: row, inputs: [numbers, job_row], dim: 1}
    - FullyConnected: {num_hidden: 16}
    - Activation: {act_type: relu}
    - FullyConnected: {num_hidden: 1}
    - LinearRegressionOutput: {name: pay}
data:
  batch_size: 20
  train: {source: csv, path: pay.csv, columns: {data: [age, level, job], pay_label: pay}, normalize: auto}
train: {epochs: 2, optimizer: {name: adam, lr: 0.02}, metrics: [rmse]}
END
expect 0 train mixed.yaml --out mixed
says "normalize: auto: means and standard deviations of 3 columns"
expect 0 train mixed.yaml --out some 'data.train.normalize={columns: [age, pay]}'
says "normalize: means and standard deviations of 2 columns"
expect 0 train mixed.yaml --out others 'data.train.normalize={except: [level]}'
says "normalize: auto: means and standard deviations of 2 columns"
holds "the columns are not kept" grep -q 'except: \[level\]' others/config.yaml
expect 0 eval some
expect 3 train mixed.yaml 'data.train.normalize={columns: [age, leve]}'
says "normalize names 'leve', which is not among data.train.columns; did you mean 'level'?"
expect 3 train mixed.yaml 'data.train.normalize={columns: [age, job]}'
says "normalize names 'job', but its numbers are codes, which choose rows of a weight"
expect 3 train mixed.yaml 'data.train.normalize={all: [age]}'
says "expected none, auto, or a map with lists of columns: columns or except, log, quantile"
sed 's/- Embedding: {name: vector/- _plus_scalar: {scalar: 0}\n    - Embedding: {name: vector/' mixed.yaml >unclear.yaml
expect 3 train unclear.yaml data.train.path=coded.csv
says "normalize: auto cannot tell which columns of 'data' are numbers and which are codes that 'vector' reads"
expect 0 train unclear.yaml data.train.path=coded.csv --out unclear 'data.train.normalize={except: [job]}'

# --- the export standardizes by itself
if "$program" export pay pay.onnx >stdout 2>stderr; then
  says "the model standardizes the numbers of the table itself, and gives numbers in their own units"
  expect 0 infer pay.onnx pay.csv --format csv
  holds "the exported model predicts otherwise" awk -F, 'NR == FNR { value[FNR] = $2; next } FNR > 1 { d = $2 - value[FNR]; if (d * d > 1e-8 * (1 + $2 * $2)) bad = 1 } END { exit bad }' predicted.csv stdout
  holds "the exported model does not give units of the label" awk -F, 'NR > 1 && $2 < 20 { bad = 1 } END { exit bad }' stdout
  expect 0 import pay.onnx
  expect 0 export some some.onnx
  expect 0 infer some pay.csv --format csv
  cp stdout of_run
  expect 0 infer some.onnx pay.csv --format csv
  holds "one of which some columns are standardized predicts otherwise" awk -F, 'NR == FNR { value[FNR] = $2; next } FNR > 1 { d = $2 - value[FNR]; if (d * d > 1e-8 * (1 + $2 * $2)) bad = 1 } END { exit bad }' of_run stdout
fi

# --- the split has a seed of its own
held_out() {
  rm -f each.csv
  expect 0 eval "$1" --predictions each.csv
  sed 1d each.csv | cut -d, -f1 | sort
}
expect 0 train pay.yaml --out seed2 seed=2 train.epochs=1
expect 0 train pay.yaml --out other data.val.seed=1 train.epochs=1
held_out pay >held1
held_out seed2 >held2
held_out other >held3
holds "another seed of the run holds out other rows" cmp -s held1 held2
holds "another seed of the split holds out the same rows" bash -c '! cmp -s held1 held3'
finish

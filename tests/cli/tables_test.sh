#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tables as they come: from train over eval to infer on rows without labels.
. "$(dirname "$0")/common.sh"

# A price of about 200,000 from a size and an age, plus noise, with an unused column of words.
write_houses() { # ROWS FIRST DELIMITER [no prices]
  awk -v rows="$1" -v first="$2" -v OFS="$3" -v priced="${4:-1}" 'BEGIN {
    price = priced == 1 ? OFS "price" : ""; print "id", "note", "\"size, m2\"", "age" price
    for (i = first; i < first + rows; ++i) { size = 50 + i * 37 % 100; age = i * 13 % 40
      price = priced == 1 ? OFS 100000 + 2000 * size - 500 * age + i * 7919 % 1000 : ""
      print "h" i, "\"seen; \"\"nice\"\"\"", "\"" size "\"", age price } }'
}
write_houses 64 0 ";" >houses.csv
write_houses 16 200 ";" >test.csv
write_houses 16 200 ";" 0 >new.csv
write_houses 16 200 "\t" 0 >new.tsv
cat >houses.yaml <<'END'
name: houses
net:
  input: [2]
  layers:
    - FullyConnected: {num_hidden: 1}
    - LinearRegressionOutput: {name: price}
data:
  batch_size: 8
  train: {source: csv, path: houses.csv, columns: {data: ["size, m2", age], price_label: price}, normalize: auto}
  val: {split: 0.25}
train: {epochs: 40, optimizer: {name: sgd, lr: 0.2}}
END
expect 0 check houses.yaml
prints "no findings"
expect 0 train houses.yaml --out houses
says "normalize: auto: means and standard deviations of 3 columns, from 48 rows; losses are of standardized labels, metrics and predictions in the labels' own units"
says "rmse"

# --- predictions, errors and metrics are in the price's units; a table without prices does
expect 0 infer houses new.csv --format csv
holds "the head" test "$(head -1 stdout)" = row,predicted_price
holds "not a line for each row" test "$(wc -l <stdout)" -eq 17
sed 's/.*;//' test.csv | tail -n +2 >truth
tail -n +2 stdout | cut -d, -f2 | paste -d' ' - truth | awk '{ d = $1 - $2; if (d < 0) d = -d; if (d > worst) worst = d } END { exit !(worst < 2000) }' ||
  fail "predictions are far from the prices"
tail -n +2 stdout | cut -d, -f2 >separate
expect 0 infer houses test.csv --key id --format csv
holds "the head with a key" test "$(head -1 stdout)" = id,predicted_price
holds "the first key" test "$(sed -n 2p stdout | cut -d, -f1)" = h200
holds "columns that nobody asks for change the predictions" cmp -s <(tail -n +2 stdout | cut -d, -f2) separate
expect 0 infer houses new.csv --format jsonl
holds "no JSON" "$helper" json <stdout
prints '"row":"16"'
expect 0 infer houses new.csv
prints "row  prediction"
checks=$((checks + 1))
"$program" infer houses - --format csv <new.csv >stdout 2>stderr || fail "a table on stdin"
holds "a table on stdin predicts otherwise" cmp -s <(tail -n +2 stdout | cut -d, -f2) separate
expect 0 infer houses new.tsv --format csv
holds "tabs predict otherwise" cmp -s <(tail -n +2 stdout | cut -d, -f2) separate
expect 0 eval houses test.csv --predictions each.csv
rmse=$(awk -F, 'NR > 1 { d = $3 - $2; sum += d * d; ++n } END { printf "%.0f", sqrt(sum / n) }' each.csv)
holds "eval's rmse is not $rmse" sh -c "grep '^  rmse' stdout | awk '{ d = \$2 - $rmse; exit !(d * d < 1) }'"
holds "the price of the first row" awk "BEGIN { d = $(sed -n 2p each.csv | cut -d, -f2) - $(head -1 truth); exit !(d * d < 1) }"
val=$(awk -F, 'NR == 1 { for (i = 1; i <= NF; ++i) if ($i == "val_rmse") k = i } { last = $k } END { print last }' houses/metrics.csv)
holds "rmse of the run, $val, is not in the price's units" awk "BEGIN { exit !($val > 100 && $val < 1000) }"
expect 0 train houses.yaml --out again
holds "a second run is another" cmp -s houses/checkpoints/last again/checkpoints/last

# --- invalid combinations
expect 3 infer houses houses.yaml
expect 3 infer houses <(echo "age;price") 
says "has no column 'size, m2'"
expect 2 infer houses new.csv test.csv
says "this model reads one table at a time"
expect 3 infer houses new.csv --key nmae
says "has no column 'nmae'"
expect 2 infer houses new.csv --copy-to sorted
says "are for images; this model reads the rows of tables"

# --- empty cells
sed '5s/;[0-9]*;\([0-9]*\)$/;;\1/; 9s/;[0-9]*$/;/' houses.csv >holes.csv
expect 4 check houses.yaml data.train.path=holes.csv
says "holes.csv:5: column 'age': the cell is empty; missing: mean replaces such cells"
expect 0 train houses.yaml data.train.path=holes.csv data.train.missing=drop --out dropped
says "holes.csv: 2 of 64 rows have an empty cell and are skipped (first: $work/holes.csv:5)"
expect 0 train houses.yaml data.train.path=holes.csv data.train.missing=mean --out filled
says "holes.csv: 1 empty cell replaced by the column's mean: 1 of column 'age'"
says "holes.csv: 1 of 64 rows have an empty cell and are skipped (first: $work/holes.csv:9)"
expect 0 infer filled <(sed '3s/;[0-9]*$/;/' new.csv) --format csv
holds "a row with an empty cell has no prediction" test "$(wc -l <stdout)" -eq 17
expect 0 infer dropped <(sed '3s/;[0-9]*$/;/' new.csv) --format csv
holds "rows keep their numbers" test "$(sed -n 3p stdout | cut -d, -f1)" = 3

# --- classes and a number, of words and without a column of files
awk 'BEGIN { print "a,b,colour,shape,weight"
  for (i = 0; i < 60; ++i) printf "%d,%d,%s,%s,%d\n", i % 7, i % 5, (i % 7 > 3 ? "red" : "blue"), (i % 5 > 2 ? "round" : (i % 5 > 0 ? "square" : "long")), 2 * (i % 7) }' >things.csv
cat >things.yaml <<'END'
net:
  input: [2]
  layers:
    - FullyConnected: {name: hidden, num_hidden: 16}
    - Activation: {name: relu, act_type: relu}
    - FullyConnected: {num_hidden: "${classes}"}
    - SoftmaxOutput: {name: colour}
    - FullyConnected: {inputs: relu, num_hidden: 3}
    - SoftmaxOutput: {name: shape}
    - FullyConnected: {inputs: relu, num_hidden: 1}
    - LinearRegressionOutput: {name: weight}
data:
  batch_size: 10
  train: {source: csv, path: things.csv, columns: {data: [a, b], colour_label: colour, shape_label: shape, weight_label: weight}, normalize: auto}
train: {epochs: 60, optimizer: {name: adam, lr: 0.02}, metrics: [{name: accuracy, output: shape}, {name: rmse, output: weight}]}
END
expect 9 check things.yaml
says "column 'a' is the label 'weight' apart from a factor and an offset: is it known where the label is not?"
says "column 'a' alone tells the label 'colour' in every row"
says "column 'b' alone tells the label 'shape' in every row"
prints "3 findings"
expect 0 train things.yaml --out things
expect 0 infer things things.csv --format csv
holds "the head of three heads" test "$(head -1 stdout)" = row,colour_predicted,colour_score,shape_predicted,shape_score,weight_predicted_weight
prints ",red,"
prints ",square,"
expect 0 infer things things.csv --top-k 2 --format csv
holds "the head of two of two classes" test "$(head -1 stdout)" = row,colour_predicted,colour_score,colour_predicted_2,colour_score_2,shape_predicted,shape_score,shape_predicted_2,shape_score_2,weight_predicted_weight
expect 0 infer things things.csv
prints "  colour:  "
prints "  weight:  weight "
expect 0 infer things things.csv --format jsonl
holds "no JSON" "$helper" json <stdout
prints '"heads":{"colour":{"predictions":[{"class":"'
prints '"weight":{"values":['
expect 0 infer things things.csv --probabilities scores.npy
says "scores: scores-colour.npy, scores-shape.npy, scores-weight.npy"
for head in "colour 2" "shape 3" "weight 1"; do
  holds "the scores of $head" grep -qaF "'shape': (60, ${head#* },)" "scores-${head% *}.npy"
done
holds "one head has the name of all" test ! -e scores.npy
expect 0 eval things things.csv --json
prints '"round"'
prints '"blue"'
# predictions of every head: those of one form share a file
expect 0 eval things things.csv --predictions of_things.csv
says "the lines of the heads have different forms: predictions in of_things.csv, of_things-weight.csv"
holds "the head of the classes" test "$(head -1 of_things.csv)" = head,file,true,predicted,score
holds "a line for each of two heads" test "$(grep -c '^colour,' of_things.csv) $(grep -c '^shape,' of_things.csv)" = "60 60"
holds "the head of the numbers" test "$(head -1 of_things-weight.csv)" = file,true_weight,predicted_weight
holds "a line for each number" test "$(wc -l <of_things-weight.csv)" -eq 61
expect 3 train things.yaml data.train.columns.weight_label=shape
says "the column of 'weight_label' contains words (long, round, square), but its loss takes numbers"

# --- outputs that are not finite, of finite parameters, are no predictions
cat >squares.yaml <<'END'
include: things.yaml
net:
  layers:
    - square: {name: squared}
    - FullyConnected: {num_hidden: 2}
    - SoftmaxOutput: {name: colour}
    - FullyConnected: {inputs: squared, num_hidden: 1}
    - LinearRegressionOutput: {name: weight}
data: {train: {normalize: null}}
train: {epochs: 1, optimizer: {name: sgd, lr: 0.0001}, metrics: []}
END
expect 0 train squares.yaml --out squares
printf 'a,b,colour,shape,weight\n1,2,red,long,1\n1e30,2,blue,long,1\n' >overflow.csv
expect 7 infer squares overflow.csv --format csv --top-k 2
says "error: the net's output is not finite (NaN or infinite) for 1 example: 2; no class is predicted, and the score is shown as nan; the values are shown as nan, inf or -inf; check"
holds "the row that is finite" grep -qE '^1,(red|blue),0\.[0-9]+,(red|blue),0\.[0-9]+,-?[0-9.]+$' stdout
holds "the row that is not" grep -qE '^2,,nan,,nan,(nan|-?inf)$' stdout
expect 7 infer squares overflow.csv
holds "the table shows a class" grep -qE '^2 .*colour:  nan  weight:' stdout
expect 7 infer squares overflow.csv --format jsonl
prints '"colour":{"predictions":null}'
expect 7 infer squares overflow.csv --output-layer colour --output overflow.npy
says "for 1 example: 2; overflow.npy holds it as it is; check"
expect 0 eval squares things.csv --json
prints '"not_finite":0'
cp squares/eval/report.json good.json
expect 7 eval squares overflow.csv --predictions overflow_each.csv
says "for 1 example: overflow.csv:3; the results are meaningless"
holds "eval predicts a class" grep -q 'overflow.csv:3,blue,,nan$' overflow_each.csv
says "squares/eval was left as it was"
holds "results that are not finite replace good ones" cmp -s good.json squares/eval/report.json
holds "the table lacks the number of examples" grep -qE '^  not finite +1$' stdout
holds "nan with a sign" test "$(grep -ce -nan stdout)" -eq 0
expect 7 eval squares overflow.csv --json --output overflown
prints '"not_finite":1'
holds "the report lacks the number of examples" grep -q '"not_finite": 1' overflown/report.json
expect 7 eval squares <(sed 2d overflow.csv) --json
holds "no JSON" "$helper" json <stdout
cat >own.yaml <<'END'
net:
  input: [2]
  layers:
    - FullyConnected: {num_hidden: 1}
    - square
    - MakeLoss: {name: own}
data:
  batch_size: 10
  train: {source: csv, path: things.csv, columns: {data: [a, b]}}
train: {epochs: 1, optimizer: {name: sgd, lr: 0.0001}}
END
expect 0 train own.yaml --out own
expect 0 eval own things.csv
expect 7 eval own overflow.csv
says "for 1 example: overflow.csv:3; the results are meaningless"

cat >difference.yaml <<'END'
net:
  input: [2]
  layers:
    - square: {name: squared}
    - elemwise_sub: {inputs: [squared, squared]}
    - FullyConnected: {num_hidden: 1}
    - LinearRegressionOutput: {name: out}
data:
  batch_size: 10
  train: {source: csv, path: things.csv, columns: {data: [a, b], out_label: weight}}
train: {epochs: 1, optimizer: {name: sgd, lr: 0.0001}}
END
expect 0 train difference.yaml --out difference
expect 7 eval difference overflow.csv --predictions difference.csv
holds "nan with a sign" grep -q 'overflow.csv:3,1,nan$' difference.csv

# --- a net that is not a classifier gives numbers or a suggestion; the value of a loss is not a prediction
cat >images.yaml <<'END'
net:
  input: [3, 8, 8]
  labels: {y: []}
  layers:
    - Convolution: {name: recon, num_filter: 3, kernel: 3, pad: 1}
    - square
    - MakeLoss: {name: loss}
    - BlockGrad: {name: image, inputs: recon}
data:
  batch_size: 4
  train: {source: image_folder, path: photos, transforms: [{resize: [8, 8]}]}
train: {epochs: 1}
END
"$helper" images photos 4
sed -i '/labels:/d' images.yaml
expect 0 train images.yaml --out images
expect 2 infer images photos
says "'image' gives [3, 8, 8] for an example, which is neither class scores, nor a short list of values, nor an image that the net learned to predict; --output-layer image --output FILE.npy writes it as numbers"
expect 0 infer images photos --output-layer image --output image.npy
finish

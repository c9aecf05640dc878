#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `init` of a table: which columns are numbers, categories or neither, what is predicted; the configuration trains, is evaluated with
# figures, and predicts other tables.
. "$(dirname "$0")/common.sh"

awk 'BEGIN { print "id,size,rooms,town,built,heating,note,price"; n = split("Ahead,Boom,Cede,Dorp", town, ","); split("1,2,4,3", factor, ",")
  for (i = 0; i < 400; ++i) { size = 40 + i * 37 % 160; rooms = 1 + i * 11 % 6; t = i * 7 % n + 1; built = 1900 + i * 53 % 120
    printf "%d,%d,%d,%s,%s,gas,note %d,%d\n", i + 1, size, rooms, town[t], (i % 50 == 3 ? "" : built), i, factor[t] * size * 900 + rooms * 2000 + built * 10 } }' >houses.csv
expect 0 init houses.csv
prints "houses.yaml: 400 rows, a fifth to validate"
prints "what is predicted: price, numbers from "
prints "3 columns of numbers, by their ranks (normalize: quantile); 1 of words, categories with a vector each"
prints "not read: id (counts the rows), heating (the same in every row), note (400 different words)"
holds "the head is not named after the column" grep -qF -e '- LinearRegressionOutput: {name: price}' houses.yaml
holds "cells are missing, and nothing is said" grep -qE '^    missing: mean +#' houses.yaml
holds "nothing tells where they are" grep -qF 'absent: ["missing(built)"]' houses.yaml
holds "numbers are not transformed" grep -qE '^      quantile: \["size", "rooms", "built"\] +#' houses.yaml
expect 0 train houses.yaml --out houses train.epochs=60
says "houses.csv: column 'town' holds words: 4 categories, codes 1 to 4"
holds "rates are of images" bash -c '! grep -q "images" stderr'
rmse=$(awk -F, 'NR == 1 { for (i = 1; i <= NF; ++i) if ($i == "val_rmse") k = i; next } { last = $k } END { print last }' houses/metrics.csv)
holds "rmse $rmse of prices from 40000 to 800000" awk "BEGIN { exit !($rmse < 60000) }"
expect 0 eval houses
prints "  r2 "
holds "no figure of predictions" test -s houses/eval/predictions.svg -a -s houses/eval/predictions.png
holds "the report lacks the figure" grep -q 'predicted over true' houses/report.html
holds "the report lacks the measures" grep -q '<th>mae</th><th>rmse</th><th>r2</th>' houses/report.html
holds "the report has no headline" grep -q '<p class="headline"><strong>rmse ' houses/report.html
expect 3 export houses houses.onnx --with-preprocessing
says "--with-preprocessing is for models with one input of images"
holds "more is said before the refusal" bash -c '! grep -q "input: " stderr'
expect 0 infer houses <(cut -d, -f2-5 houses.csv) --format csv
holds "a row for each house" test "$(wc -l <stdout)" -eq 401

# --- what is predicted: the column that the user names, one of classes
expect 0 init houses.csv --target town --output towns.yaml
prints "what is predicted: town, 4 classes: Ahead (100), Boom (100), Cede (100), Dorp (100)"
expect 0 train towns.yaml --out towns train.epochs=2 -q
expect 0 eval towns
prints "expected calibration error"
expect 0 init houses.csv --target rooms --output rooms.yaml --task regression
prints "what is predicted: rooms, numbers from 1 to 6"
expect 2 init houses.csv --target prize --output none.yaml
says "--target prize: houses.csv has no such column; did you mean 'price'?"
expect 2 init houses.csv --target nosuchcolumn --output none.yaml
says "--target nosuchcolumn: houses.csv has no such column; it has id, size, rooms, town, built, heating, note, price"
# Decimal commas are no words.
awk -F, 'BEGIN { OFS = ";" } NR == 1 { print "size", "built", "price" } NR > 1 { print $2 ",5", $5, $8 }' houses.csv >commas.csv
expect 0 init commas.csv
prints "numbers have decimal commas (decimal: ',')"
holds "decimal commas are not written down" grep -qF "    decimal: ','" commas.yaml
sed 's/,/./' commas.csv >points.csv
expect 0 init points.csv
expect 0 train commas.yaml --out commas train.epochs=1 -q
expect 0 train points.yaml --out points train.epochs=1 -q
holds "decimal commas gave other weights" "$helper" compare commas/checkpoints/last points/checkpoints/last
expect 0 infer commas commas.csv
# The only decimal comma of a column, however often it occurs, is no sign of missing cells.
awk 'BEGIN { print "size;price"; for (i = 0; i < 40; ++i) print (i % 3 == 2 ? "1,5" : 1 + i % 3) ";" 7 * i % 31 }' >halves.csv
expect 0 init halves.csv --target price
prints "numbers have decimal commas (decimal: ',')"
holds "a decimal comma is taken as a sign of missing cells" test -z "$(grep 'missing_words\|taken as missing' stdout halves.yaml)"
expect 4 train commas.yaml --out none data.train.decimal=auto
says "commas.csv:2: column 'size': '40,5' is not a number; set decimal: ',' for a table with decimal commas"
expect 4 check commas.yaml data.train.decimal=auto
says "commas.csv:2: column 'size': '40,5' is not a number; set decimal: ','"
awk -F';' 'BEGIN { OFS = FS } { print $0, NR == 1 ? "share" : "0.5" NR }' commas.csv >mixed.csv
expect 0 init mixed.csv --target price
prints "not read: size (decimal commas, such as '40,5', beside columns with decimal points)"
expect 4 init mixed.csv --target size --output none.yaml
says "the column 'size', which is to be predicted, holds numbers with decimal commas, such as '40,5', and other columns have decimal points"
# In such a table points are those of thousands, unless one cell says otherwise.
awk 'BEGIN { print "area;rooms;town;price"; for (i = 0; i < 60; ++i) printf "%d,14;%d;%s;%d.%03d\n", 40 + i * 37 % 160, 1 + i * 11 % 6, substr("ABC", i % 3 + 1, 1), 100 + i, i * 7 }' >german.csv
expect 0 init german.csv
prints "numbers have decimal commas (decimal: ',')"
prints "what is predicted: price, numbers from 100000 to 159413"
expect 0 train german.yaml --out german train.epochs=1 -q
expect 0 infer german german.csv --format csv
holds "prices are a thousandth" awk -F, 'NR > 1 && $2 < 10000 { bad = 1 } END { exit bad }' stdout
sed '3s/[0-9.]*$/1.5/' german.csv >two_kinds.csv
expect 0 init two_kinds.csv --target rooms
prints "not read: area (decimal commas, such as '40,14', beside columns with decimal points)"
# Numbers as people write them are named, and are neither words nor classes.
awk 'BEGIN { q = sprintf("%c", 39); print "blanks\tmarks\tcommas\tshare\teuros\tbelow\tplain\trooms"
  for (i = 0; i < 20; ++i) printf "24 %03d,48\t24%s%03d.48\t24,%03d.48\t%d.3%%\t191.%03d,88 €\t−%d\t%d\t%d\n", i, q, i, i, i, i, i + 1, i * 7 % 20, i % 4 }' >people.tsv
expect 0 init people.tsv --output people.yaml
for text in "blanks (looks like numbers with blanks between thousands and decimal commas, such as '24 000,48'; write them as 24000.48)" \
  "marks (looks like numbers with apostrophes between thousands, such as '24'000.48'; write them as 24000.48)" \
  "commas (looks like numbers with commas between thousands, such as '24,000.48'; write them as 24000.48)" \
  "share (looks like numbers with percent signs, such as '0.3%'; write them as 0.3)" \
  "euros (looks like numbers with points between thousands and decimal commas and currencies, such as '191.000,88 €'; write them as 191000.88)" \
  "below (looks like numbers with a minus sign of Unicode, such as '−1'; write them as -1)"; do
  prints "$text"
done
expect 4 init people.tsv --target euros --output none.yaml
says "the column 'euros', which is to be predicted, looks like numbers with points between thousands and decimal commas and currencies, such as '191.000,88 €'; write them as 191000.88"
# Too little.
head -4 houses.csv >three.csv
expect 4 init three.csv
says "three.csv: 3 rows are too few: one is held out to validate, and a batch needs two others; at least 4 are needed"
head -1 houses.csv >header.csv
expect 4 init header.csv
says "header.csv: 1 line is too few to tell what the columns hold; at least 4 are needed"
expect 8 init houses.csv --output /proc/none.yaml
says "; write elsewhere with --output FILE, or to stdout with --output -"
cut -d, -f2,6 houses.csv >constant.csv
expect 4 init constant.csv
says "constant.csv: the column 'heating', which is to be predicted, is the same in every row; --target COLUMN names another"
cut -d, -f1,8 houses.csv >nothing.csv
expect 4 init nothing.csv
says "nothing.csv: no column is left to learn 'price' from: id (counts the rows)"
expect 2 init houses.csv --size 32 --output none.yaml
says "is a table"
sed '1d' houses.csv >headless.csv
expect 8 init headless.csv
says "headless.csv is not a folder"
# Signs of missing cells, in words and among numbers; a target whose logarithm is less lopsided.
awk 'BEGIN { print "area,kind,price"; srand(3); for (i = 0; i < 300; ++i) { a = 20 + 200 * rand(); k = i % 3
  printf "%s,%s,%.0f\n", (i % 20 == 7 ? "unknown" : int(a)), (i % 25 == 4 ? "?" : substr("abc", k + 1, 1)), exp(8 + a / 60 + k) } }' >signs.csv
expect 0 init signs.csv
prints "what is predicted: price, numbers from"
prints ", most of them small (normalize: log)"
prints "taken as missing, as empty cells are: ?, unknown"
holds "they are not stated" grep -qF 'missing_words: ["?", "unknown"]' signs.yaml
holds "no logarithm is offered" grep -qF '# log: ["price"]' signs.yaml
sed -i 's/# log: /log: /' signs.yaml
expect 0 train signs.yaml --out signs train.epochs=60
says "signs.csv: column 'kind' holds words: 3 categories, codes 1 to 3"
expect 0 eval signs
prints "  r2 "
expect 0 infer signs signs.csv --format csv
holds "predictions are not in the units of the price" awk -F, 'NR == FNR { if (FNR > 1) p[FNR] = $3; next } FNR > 1 { d = log($2 / p[FNR]); s += d * d } END { exit !(sqrt(s / 300) < 0.5) }' signs.csv stdout
cp stdout predicted.csv
if "$program" export signs signs.onnx >stdout 2>stderr; then
  says "the model standardizes the numbers of the table itself"
  expect 0 infer signs.onnx signs.csv --format csv
  "$program" export signs signs.onnx --overwrite 2>&1 | grep -q "'numbers' .*: column area of the table, as they are, nan where a cell is missing; 'absent'" ||
    fail "what a missing cell is in the exported file is not said"
  # The 9th line lacks its area.
  floats() { printf '\223NUMPY\1\0\166\0%-117s\n%b' "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1), }" "$2" >"$1"; }
  floats numbers.npy '\0000\0000\0300\0177' && floats absent.npy '\0000\0000\0200\0077' && floats kind.npy '\0000\0000\0000\0100'
  expect 0 infer signs.onnx --input numbers=numbers.npy --input absent=absent.npy --input kind=kind.npy --format csv
  holds "a missing number is not the mean" awk -F, 'NR == FNR { if (FNR == 9) value = $2; next } FNR == 2 { d = $2 / value - 1; good = d * d < 1e-8 } END { exit !good }' predicted.csv stdout
  expect 0 infer signs.onnx signs.csv --format csv
  holds "the exported model predicts otherwise" awk -F, 'NR == FNR { value[FNR] = $2; next } FNR > 1 { d = $2 / value[FNR] - 1; if (d * d > 1e-8) bad = 1 } END { exit bad }' predicted.csv stdout
fi
sed '5s/[0-9]*$/0/' signs.csv >zero.csv
expect 4 train signs.yaml data.train.path=zero.csv
says "zero.csv:5: "
says "has no logarithm"
expect 3 train signs.yaml 'data.train.normalize={quantile: [price]}'
says "normalize: quantile names 'price', which is to be predicted"
expect 3 train signs.yaml 'data.train.normalize={quantile: [area], log: [area]}'
says "normalize names 'area' in log and in quantile"
expect 3 train signs.yaml 'data.train.normalize={quantile: [areas]}'
says "normalize names 'areas', which is not among data.train.columns; did you mean 'area'?"

# --- check: what a table gives away
awk -F, 'NR == 1 { print $0 ",same,twice,grade"; next } { print $0 ",7," 2 * $3 + 1 "," ($3 > 9000 ? "high" : "low") }' signs.csv >leaks.csv
sed -i '9s/^[^,]*,/99999,/' leaks.csv
cat >leaks.yaml <<'END'
net:
  inputs: {x: [3]}
  layers:
    - FullyConnected: {inputs: x, num_hidden: 1}
    - LinearRegressionOutput: {name: price}
data:
  batch_size: 20
  train: {source: csv, path: leaks.csv, columns: {x: [area, same, twice], price_label: price}, normalize: auto, missing: mean, missing_words: [unknown]}
train: {epochs: 1}
END
expect 9 check leaks.yaml
says "column 'same' is the same in every training row"
says "column 'twice' is the label 'price' apart from a factor and an offset: is it known where the label is not?"
says "note: column 'area': 1 number is far from all others: "
says "leaks.csv:9 (99999)"
cat >grades.yaml <<'END'
net:
  inputs: {x: [2]}
  layers:
    - FullyConnected: {inputs: x, num_hidden: 2}
    - SoftmaxOutput: {name: grade}
data:
  batch_size: 20
  train: {source: csv, path: leaks.csv, columns: {x: [area, price], grade_label: grade}, normalize: auto, missing: drop, missing_words: [unknown]}
train: {epochs: 1}
END
expect 9 check grades.yaml
says "column 'price' alone tells the label 'grade' in every row"
awk -F, 'BEGIN { print "a,b,y" } { print NR % 9 "," NR % 7 "," (NR % 2 ? "u" : "v") }' leaks.csv >pairs.csv
expect 0 check grades.yaml data.train.path=pairs.csv 'data.train.columns={x: [a, b], grade_label: y}'
says "rows have the inputs of another row and another class: "
expect 0 check grades.yaml data.train.path=pairs.csv 'data.train.columns={x: [a, b], grade_label: y}' --json
holds "not all examples are listed" [ "$(grep -o 'pairs.csv:[0-9]* (' stdout | sort -u | wc -l)" -gt 100 ]

# --- two classes, by the threshold that the user gives
expect 0 train grades.yaml --out grades train.epochs=30 'data.train.columns={x: [area, same], grade_label: grade}'
expect 0 infer grades leaks.csv --format csv --threshold 0.01
few=$(grep -c ',high,\|,high$' stdout)
expect 0 infer grades leaks.csv --format csv --threshold 0.99
many=$(grep -c ',high,\|,high$' stdout)
holds "classes are predicted at 0.01 as at 0.99: $few and $many" [ "$few" != "$many" ]

# --- rows of a group are on one side
awk -F, 'NR == 1 { print $0 ",owner"; next } { print $0 ",o" int(NR / 7) }' signs.csv >owners.csv
expect 0 train signs.yaml data.train.path=owners.csv 'data.val={split: 0.2, group: owner}' --out owners train.epochs=1
expect 0 eval owners --predictions held.csv
holds "owners are on both sides" awk -F'[:,]' 'NR > 1 { n[int($2 / 7)]++ } END { for (o in n) if (n[o] != 7 && o != 0 && o != 43) exit 1 }' held.csv
expect 0 infer owners signs.csv
expect 3 train signs.yaml 'data.val={split: 0.2, group: owner}'
says "has no column 'owner'"
expect 3 train signs.yaml 'data.val={split: 0.2, group: price, group_pattern: a}'
says "data.val.group and data.val.group_pattern exclude each other"
# A column of classes 0, 1, 2 and names that are no names of layers.
awk -F, 'NR == 1 { print "the size (m2),2nd,class"; next } { print $2 "," $4 "," $3 % 3 }' houses.csv >odd.csv
expect 0 init odd.csv
prints "what is predicted: class, 3 classes"
expect 0 train odd.yaml --out odd train.epochs=2 -q
finish

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
prints "3 columns of numbers, standardized; 1 of words, categories with a vector each"
prints "not read: id (counts the rows), heating (the same in every row), note (400 different words)"
holds "the head is not named after the column" grep -qF -e '- LinearRegressionOutput: {name: price}' houses.yaml
holds "cells are missing, and nothing is said" grep -qE '^    missing: mean +#' houses.yaml
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
expect 0 infer houses <(cut -d, -f2-5 houses.csv) --format csv
holds "a row for each house" test "$(wc -l <stdout)" -eq 401

# --- what is predicted: the column that the user names, one of classes
expect 0 init houses.csv --target town --output towns.yaml
prints "what is predicted: town, 4 classes"
expect 0 train towns.yaml --out towns train.epochs=2 -q
expect 0 eval towns
prints "expected calibration error"
expect 0 init houses.csv --target rooms --output rooms.yaml --task regression
prints "what is predicted: rooms, numbers from 1 to 6"
expect 2 init houses.csv --target prize --output none.yaml
says "--target prize: houses.csv has no such column; did you mean 'price'?"
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
# A column of classes 0, 1, 2 and names that are no names of layers.
awk -F, 'NR == 1 { print "the size (m2),2nd,class"; next } { print $2 "," $4 "," $3 % 3 }' houses.csv >odd.csv
expect 0 init odd.csv
prints "what is predicted: class, 3 classes"
expect 0 train odd.yaml --out odd train.epochs=2 -q
finish

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tables and folders as people have them: what the program decided about them, or found odd in them, is said.
. "$(dirname "$0")/common.sh"

# rows FIRST LAST HEADER: a table of two numbers and one label.
cat >table.yaml <<'END'
name: tab
net:
  input: [2]
  layers:
    - FullyConnected: {num_hidden: 1}
    - LinearRegressionOutput: {name: y}
data:
  batch_size: 4
  train: {source: csv, path: t.csv, columns: {data: [1, 2], y_label: 3}, normalize: auto}
train: {epochs: 1, optimizer: {name: sgd, lr: 0.1}}
END
write_rows() { # LABELS...: 12 rows of M0,number,number,label
  local i
  for i in $(seq 0 11); do
    local labels=("$@")
    echo "M$i,$((i * 7 % 5)).5,$((i % 3)),${labels[i % $#]}"
  done
}

# --- header or example, said at the start of a run, by check and by infer
write_rows 1.5 2.5 >t.csv
expect 0 train table.yaml --out tab
says "t.csv: line 1 is taken as an example, not as the header"
says "from 12 rows"
expect 0 check table.yaml
says "t.csv: line 1 is taken as an example"
prints "12 training examples"
head -4 t.csv >four.csv
expect 0 infer tab four.csv --format csv
holds "a row is lost" test "$(wc -l <stdout)" -eq 5
expect 0 infer tab <(echo id,a,b,y; cat four.csv) --format csv
says "line 1 is taken as the header: id, a, b, y"
holds "the header is predicted, or a row is lost" test "$(wc -l <stdout)" -eq 5
{ echo 0,1,2,3; cat t.csv; } >counted.csv
expect 0 train table.yaml data.train.path=counted.csv --out counted
says "counted.csv: line 1 is taken as the header: 0, 1, 2, 3; if it is an example, put a line with names of the columns above"
says "from 12 rows"
expect 4 train table.yaml data.train.path=<(printf 'PK\003\004xl/workbook.xml') --out none
says "is a workbook of Excel (.xlsx), not a text file; save the sheet as CSV"

# --- an exported model of a table tells its columns and units
expect 0 export tab tab.safetensors
if "$program" export tab tab.onnx >stdout 2>stderr; then
  last="mxtrain export tab tab.onnx"
  says "input: 'data' [N, 2]: columns 1, 2 of the table, as they are"
  says "the model standardizes the numbers of the table itself, and gives numbers in their own units"
  holds "the metadata lack the columns" grep -qaF "columns 1, 2 of the table" tab.onnx
fi
expect 0 export tab tab@1
says "prepares its input like the run; for another program: 'data' [N, 2]: columns 1, 2 of the table"
says "; output: 'y' is standardized"

# --- labels outside the classes of the net have a place; classes without examples are told of
sed 's/num_hidden: 1/num_hidden: 2/; s/LinearRegressionOutput/SoftmaxOutput/' table.yaml >classes.yaml
write_rows 1 2 >t.csv
expect 4 train classes.yaml --out outside
says "t.csv:2: "
says "the label 2 is outside the 2 classes"
holds "the run folder stays" test ! -e outside
expect 4 check classes.yaml
says "t.csv:2: "
expect 0 train classes.yaml 'net.layers=[{FullyConnected: {num_hidden: 3}}, {SoftmaxOutput: {name: y}}]' --out from_one
says "no example of class '0', of 3; classes are numbered from 0: if the labels count from 1, subtract 1"
write_rows 0 3 >t.csv
expect 9 check classes.yaml 'net.layers=[{FullyConnected: {num_hidden: 4}}, {SoftmaxOutput: {name: y}}]'
says "data.train: no example of the classes '1', '2', of 4"
write_rows 1 >t.csv
expect 9 check classes.yaml
says "data.train: all 12 examples are of one class, '1', so that there is nothing to tell apart"
write_rows 0 1 >t.csv
expect 0 check classes.yaml
prints "no findings"

# --- so in tables of images
"$helper" images shades 6
write_table() {  # LABEL_OF_DARK LABEL_OF_LIGHT
  { echo file,y; for f in shades/dark/*.png; do echo "$f,$1"; done; for f in shades/light/*.png; do echo "$f,$2"; done; } >shades.csv
}
write_photos shades shades 4
sed 's/num_hidden: .*}/num_hidden: 3}/' photos.yaml >shades.yaml
table='{source: csv, path: shades.csv, columns: {data: file, softmax_label: y}, transforms: [{resize: [8, 8]}]}'
write_table 1 2
expect 9 check shades.yaml "data.train=$table" "data.val=$table"
says "no example of class '0', of 3; classes are numbered from 0: if the labels count from 1, subtract 1"
expect 0 train shades.yaml "data.train=$table" "data.val=$table" train.class_weights=auto --out shades_from_one
says "no example of class '0', of 3; classes are numbered from 0: if the labels count from 1, subtract 1"
write_table 0 2
expect 9 check shades.yaml "data.train=$table" "data.val=$table"
says "data.train: no example of class '1', of 3"
write_table 2 3
expect 4 check shades.yaml "data.train=$table" "data.val=$table"
says "shades.csv:8: "
says "the label 3 is outside the 3 classes"
write_table 2 2
expect 9 check shades.yaml "data.train=$table" "data.val=$table"
says "all 12 examples are of one class, '2', so that there is nothing to tell apart"

# --- predictions are written as the ending of the file says
expect 0 train classes.yaml --out classes
expect 0 eval classes t.csv --predictions each.jsonl
holds "no JSON lines" "$helper" json <each.jsonl
holds "not a line for each row" test "$(wc -l <each.jsonl)" -eq 12
holds "the first line" grep -qE '^\{"file":"t.csv:1","true":"0","predicted":"[01]","score":0\.[0-9]+\}$' each.jsonl
expect 0 eval classes t.csv --predictions each.csv
holds "as CSV, others are right" test "$(sed 1d each.csv | cut -d, -f3 | tr -d '\n')" = "$(sed 's/.*"predicted":"\([01]\)".*/\1/' each.jsonl | tr -d '\n')"
expect 2 eval classes t.csv --predictions each.parquet
says "--predictions each.parquet: predictions are not written as .parquet; name the file .csv, which spreadsheets open, or .jsonl"
write_rows 1.5 2.5 >t.csv
expect 0 eval tab t.csv --predictions values.jsonl
holds "no values" grep -qE '^\{"file":"t.csv:1","true":\{"3":1.5\},"predicted":\{"3":[0-9.-]+\}\}$' values.jsonl

# --- lists whose labels count from 1
"$helper" images photos 4
i=0
for file in photos/*/*.png; do echo "$file $((1 + i++ % 2))"; done >list.txt
write_photos photos photos 2
expect 9 check photos.yaml 'data.train={source: list, path: list.txt, transforms: [{resize: [8, 8]}]}' 'data.val={source: list, path: list.txt, transforms: [{resize: [8, 8]}]}'
says "data.train: no example of class '0', of 3; classes are numbered from 0"

# --- parts of a data set, thumbnails of a file server, links
mkdir -p scans/Training scans/Testing nested/seg_train nested/seg_val
cp -r photos/* scans/Training
cp -r photos/* scans/Testing
cp -r photos nested/seg_train/seg_train
cp -r photos nested/seg_val/seg_val
mkdir -p scans/Training/@eaDir scans/Training/dark/@eaDir
cp photos/dark/*.png scans/Training/dark/@eaDir
expect 0 init scans
prints "scans.yaml: 2 classes, "
prints "classes: dark, light"
prints "scans/Testing is for the final test"
says "2 folders of the system skipped by name"
holds "the part that is trained on" grep -q 'path: "scans/Training"' scans.yaml
expect 0 init nested
holds "the inner folders" grep -q 'path: "nested/seg_train/seg_train"' nested.yaml
holds "the part for validation" grep -q 'nested/seg_val/seg_val' nested.yaml
mkdir -p deep/outer deep/other
cp -r photos deep/outer/photos
cp photos/dark/*.png deep/other
expect 0 init deep
prints "classes: other, outer"
prints "folders in the folder of a class, such as dark, light, are parts of it; for classes of their own: mxtrain init deep/outer/photos"
expect 0 train scans.yaml data.train.path=scans/Training train.epochs=1 --out scans_run
mkdir inbox
ln -s ../photos/dark inbox/more
expect 0 infer scans_run inbox --format csv
holds "images behind a link" grep -q '^inbox/more/' stdout

# --- a folder whose name is not UTF-8, as old archives hold them
folder=$(printf 'fotos_caf\351')
cp -r photos "$folder"
expect 4 init "$folder" --output latin.yaml
says "is not UTF-8, which a configuration cannot hold; rename it, or give a link to it: ln -s NAME LINK"
expect 3 check scans.yaml data.train.path="$folder"
says "help: a configuration cannot hold such a name; rename the file or folder, or give a link to it"
expect 0 eval scans_run "$folder"
expect 0 infer scans_run "$folder"
ln -s "$folder" plain
expect 0 init plain

# --- configurations that come with the program are found by their paths in the sources; a file of that name goes first
expect 0 plan configs/mnist/lenet.yaml
says "configs/mnist/lenet.yaml: "
says "/mnist/lenet.yaml, which comes with the program"
prints "431080 parameters"
expect 4 train configs/mnist/lenet.yaml data.train.path=digits data.val.path=digits
says "digits does not exist; the four files of MNIST (train-images-idx3-ubyte.gz, "
says "name their folder with data.train.path=FOLDER data.val.path=FOLDER"
expect 3 plan configs/mnist/lennet.yaml
mkdir -p configs/mnist
write_points
cp points.yaml configs/mnist/lenet.yaml
expect 0 plan configs/mnist/lenet.yaml data.train.path=points.csv
prints "8 parameters"
finish

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# mxtrain check: reports all problems in one run, in any order.
. "$(dirname "$0")/common.sh"

"$helper" images train 8
"$helper" images val 3
write_photos train val 3

# --- validation images that are also training images
expect 9 check photos.yaml
says "6 validation images are also training images, which makes validation results too good: $work/val/dark/000.png is $work/train/dark/000.png"
says "and 1 more"
prints "1 finding"
rm -r val && mkdir -p val/dark val/light
for class in dark light; do for i in 5 6 7; do mv train/$class/00$i.png val/$class; done; done
expect 0 check photos.yaml
prints "10 training examples, 6 for validation; 3 steps; the net matches the data"
prints "no findings"

# --- one image in two classes; one twice in its class gives a note
cp train/dark/000.png train/light/100.png
cp train/dark/001.png train/dark/100.png
expect 9 check photos.yaml
says "1 image is in two classes: $work/train/light/100.png (light) is $work/train/dark/000.png (dark)"
says "note: 1 image occurs more than once: $work/train/dark/100.png is $work/train/dark/001.png"
prints "1 finding: 1 warning; 1 note"
rm train/*/100.png

# --- a class without examples in one of the sets
mkdir train/gray && "$helper" jpeg train/gray/0.jpg 20
expect 9 check photos.yaml
says "class 'gray' has 1 training example and none for validation"
rm -r train/gray

# --- every unreadable file of both sets, however few batches an epoch has
for file in train/dark/000 train/light/004 val/light/007; do head -c 50 $file.png >$file.cut && mv $file.cut $file.png; done
expect 4 check photos.yaml
for file in train/dark/000 train/light/004 val/light/007; do says "$file.png: damaged or unsupported PNG"; done
prints "4 findings: 1 error, 3 warnings"
# and that training ends for them, which once it did after a check that said the net matches the data
says "error: 2 of 10 training examples are unreadable, more than max_bad = 0.01 (data.max_bad) allows: \`train\` will end with this error"
expect 4 train photos.yaml --out refused
says "of 10 examples are unreadable so far, more than max_bad = 0.01"
expect 9 check photos.yaml data.max_bad=0.2
prints "3 findings: 3 warnings"
expect 0 train photos.yaml --out tolerated data.max_bad=0.2

# --- images that a table names: missing ones, too, each with its line
{
  echo image,brightness,class
  for i in 1 2 3; do echo "train/dark/00$i.png,$i,dark"; echo "train/light/00$i.png,1$i,light"; done
  echo train/dark/gone.png,5,dark
  echo train/dark/000.png,6,dark
  echo train/light/lost.png,15,light
} >images.csv
sed 's,^  train: {.*,  train: {source: csv\, path: images.csv\, columns: {data: image\, softmax_label: class}\, transforms: [{resize: [8\, 8]}]},; /^  val:/d' photos.yaml >images.yaml
expect 4 check images.yaml
says "images.csv:8: cannot open $work/train/dark/gone.png: No such file or directory"
says "images.csv:9: damaged or unsupported PNG"
says "images.csv:10: cannot open $work/train/light/lost.png: No such file or directory"
says "3 of 9 training examples are unreadable"
prints "9 training examples, 0 for validation"
prints "4 findings: 1 error, 3 warnings"

# --- phone images in an unsupported format are a finding; other files are skipped
for i in 1 2 3; do echo heic >train/dark/phone$i.HEIC; done
echo notes >train/dark/notes.txt
expect 4 check photos.yaml
says "3 images of an unsupported format skipped: convert to JPEG or PNG (first: $work/train/dark/phone1.HEIC)"
says "1 file skipped, not named like a JPEG, PNG, BMP, TGA, PNM, GIF, WebP or TIFF (first: $work/train/dark/notes.txt)"
prints "5 findings"
rm train/dark/phone* train/dark/notes.txt

# --- the net, the training data and the validation data are each wrong
sed 's/num_hidden: .*}/num_hidden: 2, bias: 3}/; s/path: train/path: gone/; s/path: val/path: lost/' photos.yaml >wrong.yaml
expect 3 check wrong.yaml --json
says "gone does not exist; paths are relative"
says "lost does not exist; paths are relative"
says "wrong.yaml:6:"
holds "--json says other than JSON" "$helper" json <stdout
prints '"ok":false'

# --- the shape of a variable is not known; a net for one batch size
variable() {
  sed "s/- Flatten/- Variable: {name: w$1}\n    - Flatten/; s/- SoftmaxOutput/- broadcast_add: {inputs: [fc, w]}\n    - SoftmaxOutput/; s/{num_hidden: .*}/{name: fc, num_hidden: 2}/" photos.yaml >variable.yaml
}
variable ""
for command in check plan "train --dry-run"; do
  # shellcheck disable=SC2086 # several words
  expect 3 ${command%% *} variable.yaml ${command#"${command%% *}"}
  says "variable.yaml:5:7: error: the shape of variable 'w' is not known: broadcast_add"
  says "help: write the shape into the Variable: {shape: [...]}"
done
variable ", shape: [3, 2], init: 0"
expect 4 check variable.yaml data.batch_size=3  # three unreadable files, too many, and a warning of the configuration
prints "5 findings"
holds "the warning is printed twice" test "$(grep -c 'the net fits batches of 3' stderr)" -eq 1
says "variable.yaml:8:7: the net fits batches of 3, but not of 4: broadcast_add"

# --- layers that no gradient reaches, unless they are frozen
blocked() {
  sed "s/- Flatten/- Flatten\n    - FullyConnected: {name: below, num_hidden: 4$1}\n    - BlockGrad/" photos.yaml >blocked.yaml
}
blocked ""
expect 0 plan blocked.yaml
says "blocked.yaml:6:7: no gradient of a loss reaches the parameters of 'below', so they are not trained"
expect 4 check blocked.yaml  # because of the unreadable files
says "no gradient of a loss reaches the parameters of 'below'"
expect 0 plan blocked.yaml 'train.freeze=[below_*]'
holds "a frozen layer gives a warning" test "$(grep -c 'no gradient' stderr)" -eq 0
blocked ", attrs: {lr_mult: 0}"
expect 0 plan blocked.yaml
holds "a frozen layer gives a warning" test "$(grep -c 'no gradient' stderr)" -eq 0
expect 0 plan photos.yaml
holds "a net that is trained gives a warning" test "$(grep -c 'no gradient' stderr)" -eq 0

# --- a copy of a training image, smaller and compressed, is found in validation; images that are only alike are not
expect 0 synth shapes --count 60 --classes 3 --size 128 --seed 4
write_photos shapes/train shapes/val 4
expect 0 check photos.yaml
prints "no findings"
first=$(ls shapes/train/disc/*.jpg | head -1)
"$helper" again "$first" shapes/val/disc/copy.jpg 60
expect 0 check photos.yaml
expect 9 check photos.yaml --strict
says "1 validation image looks like a copy of a training image; inspect it: $work/shapes/val/disc/copy.jpg is like $work/$first"
says "of 256 bits differ)"
prints "1 finding"
rm shapes/val/disc/copy.jpg

# --- unusual files give notes; with --strict findings
"$helper" turned "$first" shapes/train/disc/turned.jpg 6
"$helper" layered "$first" shapes/train/disc/layered.png
"$helper" idx digits 2 28 && "$helper" digits digits gray 2 && cp gray/*/*.png shapes/train/ring
sed 's/input: .*/input: [3, 40, 40]/; s/: 8}/: 40}/; s/\[8, 8\]/[40, 40]/' photos.yaml >odd.yaml
expect 0 check odd.yaml --json
holds "json is no JSON" "$helper" json <stdout
prints '"notes":["data.train: 2 of 52 images are smaller'
says "note: data.train: 1 of 52 images is stored rotated or mirrored (EXIF orientation); it is read upright, which not every tool does: $work/shapes/train/disc/turned.jpg"
says "has an alpha channel and is blended onto white: $work/shapes/train/disc/layered.png"
says "data.train: 2 of 52 images are gray, the others are in colour: $work/shapes/train/ring/"
says "data.train: 2 of 52 images are smaller than the net's input of 40x40 and are enlarged"
prints '"turned":1'
prints '"height":[28,'
expect 9 check odd.yaml --strict
says "warning: data.train: 1 of 52 images is stored rotated"
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do rm "$(ls shapes/train/square/* | head -1)"; done
expect 0 check odd.yaml
says "data.train: class 'square' has 1 example and '"

# --- a signal ends it, also while it reads
mkdir many && "$helper" jpeg many/a/0.jpg 900 && mkdir many/b && cp many/a/0.jpg many/b/1.jpg
for i in $(seq 400); do ln many/a/0.jpg many/a/0$i.jpg; ln many/b/1.jpg many/b/1$i.jpg; done
write_photos many many 4
checks=$((checks + 1))
"$program" check photos.yaml --progress lines >stdout 2>stderr &
sleep 1
kill -TERM $!
wait $!
code=$?
[ $code -eq 143 ] || fail "check under TERM: exit code $code, expected 143"

# --- finds what train rejects at its first step, and bad labels of later steps, with their lines
write_points
expect 3 check points.yaml 'train.metrics=[{name: accuracy, label: data}]'
says "metric accuracy needs label 'data', which the data do not provide"
expect 3 train points.yaml --dry-run 'train.metrics=[{name: accuracy, label: data}]'
says "metric accuracy needs label 'data', which the data do not provide"
expect 3 check points.yaml 'net.layers=[{FullyConnected: {num_hidden: 1}}, {LinearRegressionOutput: {name: softmax}}]' data.train.shuffle=false
says "metric accuracy: labels [4] do not fit an output [4, 1]"
for command in check train; do
  expect 3 $command points.yaml 'net.layers=[{FullyConnected: {num_hidden: 1}}, {LinearRegressionOutput: {name: softmax}}]' 'train.metrics=[auc]'
  says "metric auc is for classification, but 'softmax' is a regression; use rmse, mae, mse or r2"
done
# integer labels name no classes
expect 3 check points.yaml 'net.layers=[{FullyConnected: {num_hidden: "${classes}"}}, {SoftmaxOutput: {name: softmax}}]'
says "'classes' has no value here"
says "integer labels do not: write the number, such as num_hidden: 10"
expect 3 check points.yaml train.optimizer.lr=.inf
sed '17s/,.$/,7/' points.csv >seven.csv
expect 4 check points.yaml data.train.path=seven.csv
says "seven.csv:17: 'softmax': the label 7 is outside the 2 classes"
expect 4 check points.yaml data.train.path=seven.csv data.batch_size=16
says "seven.csv:17: 'softmax': the label 7 is outside the 2 classes"
prints "1 finding: 1 error"
# nothing is counted where there is nothing to check
expect 3 check pionts.yaml
says "there is no configuration pionts.yaml; did you mean 'points.yaml'?"
holds "findings are counted of a configuration that does not exist" test ! -s stdout

# --- a net with more outputs than labels
for loss in LinearRegressionOutput LogisticRegressionOutput MAERegressionOutput; do
  expect 3 check points.yaml "net.layers=[{FullyConnected: {num_hidden: 100000}}, {$loss: {name: softmax}}]" 'train.metrics=[]'
done
expect 3 check points.yaml 'net.layers=[{FullyConnected: {num_hidden: 6}}, {Reshape: {shape: [0, 2, 3]}}, {SoftmaxOutput: {name: softmax, multi_output: true}}]' 'train.metrics=[]'

# --- default metrics depend on the loss
sed 's/SoftmaxOutput/LinearRegressionOutput/; s/num_hidden: 2/num_hidden: 1/; s/, metrics: .accuracy.//' points.yaml >value.yaml
expect 0 check value.yaml
prints "no findings"
expect 0 train value.yaml --out value
holds "rmse is not measured" grep -q train_rmse value/metrics.csv
holds "the run's configuration does not say so" grep -q 'metrics: \[rmse\]' value/config.yaml
expect 0 train value.yaml --out absolute 'net.layers=[{FullyConnected: {num_hidden: 1}}, {MAERegressionOutput: {name: softmax}}]'
holds "mae is not measured" grep -q train_mae absolute/metrics.csv
expect 3 check value.yaml train.best.metric=accuracy
says "train.best.metric: 'accuracy' is not measured"

# --- a schema for editors
expect 0 check --schema
tr -d '\n' <stdout >line
holds "the schema is no JSON" "$helper" json <line
prints '"batch_size"'
expect 2 check
says "CONFIG is required"
finish

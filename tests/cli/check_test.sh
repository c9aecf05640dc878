#!/usr/bin/env bash
# mxtrain check: everything that is wrong, in one go, whatever stands first.
. "$(dirname "$0")/common.sh"

"$helper" pictures train 8
"$helper" pictures val 3
write_photos train val 3

# --- pictures of validation that are trained on
expect 9 check photos.yaml
says "6 validation pictures are training pictures too, which makes the validation too good: $work/val/dark/000.png is $work/train/dark/000.png"
says "and 1 more"
prints "1 finding"
rm -r val && mkdir -p val/dark val/light
for class in dark light; do for i in 5 6 7; do mv train/$class/00$i.png val/$class; done; done
expect 0 check photos.yaml
prints "10 training examples, 6 for validation; 3 steps; the net fits"
prints "no findings"

# --- one picture in two classes; one twice in its class is worth a word
cp train/dark/000.png train/light/100.png
cp train/dark/001.png train/dark/100.png
expect 9 check photos.yaml
says "1 pictures are in two classes: $work/train/light/100.png (light) is $work/train/dark/000.png (dark)"
says "1 pictures are there more than once: $work/train/dark/100.png is $work/train/dark/001.png"
prints "1 finding"
rm train/*/100.png

# --- a class without examples in one of the sets
mkdir train/gray && "$helper" jpeg train/gray/0.jpg 20
expect 9 check photos.yaml
says "class 'gray' has 1 training examples and none for validation"
rm -r train/gray

# --- every unreadable file of both sets, however few batches an epoch has
for file in train/dark/000 train/light/004 val/light/007; do head -c 50 $file.png >$file.cut && mv $file.cut $file.png; done
expect 9 check photos.yaml
for file in train/dark/000 train/light/004 val/light/007; do says "$file.png: damaged or unsupported PNG"; done
prints "3 findings"

# --- pictures of phones, which are not read, are a finding; other files are passed over
for i in 1 2 3; do echo heic >train/dark/phone$i.HEIC; done
echo notes >train/dark/notes.txt
expect 9 check photos.yaml
says "3 pictures are of a format that is not read, and are passed over: convert to JPEG or PNG (first: $work/train/dark/phone1.HEIC)"
says "1 file passed over, not named like a JPEG, PNG or BMP (first: $work/train/dark/notes.txt)"
prints "4 findings"
rm train/dark/phone* train/dark/notes.txt

# --- the net, the training data and the validation data are each wrong
sed 's/num_hidden: .*}/num_hidden: 2, bias: 3}/; s/path: train/path: gone/; s/path: val/path: lost/' photos.yaml >wrong.yaml
expect 3 check wrong.yaml --json
says "gone; a relative path"
says "lost; a relative path"
says "wrong.yaml:6:"
holds "--json says other than JSON" "$helper" json <stdout
prints '"ok":false'

# --- a copy of a training picture, smaller and compressed, is found in validation; pictures that are only alike are not
expect 0 synth shapes --count 60 --classes 3 --size 128 --seed 4
write_photos shapes/train shapes/val 4
expect 0 check photos.yaml
prints "no findings"
first=$(ls shapes/train/disc/*.jpg | head -1)
"$helper" again "$first" shapes/val/disc/copy.jpg 60
expect 0 check photos.yaml
expect 9 check photos.yaml --strict
says "1 validation pictures look like copies of training pictures; look at them: $work/shapes/val/disc/copy.jpg is like $work/$first"
says "of 256 bits differ)"
prints "1 finding"
rm shapes/val/disc/copy.jpg

# --- what is worth knowing about files is a note; with --strict a finding
"$helper" turned "$first" shapes/train/disc/turned.jpg 6
"$helper" layered "$first" shapes/train/disc/layered.png
"$helper" digits "$(find_mnist)" gray 2 && cp gray/*/*.png shapes/train/ring
sed 's/input: .*/input: [3, 40, 40]/; s/: 8}/: 40}/; s/\[8, 8\]/[40, 40]/' photos.yaml >odd.yaml
expect 0 check odd.yaml --json
holds "json is no JSON" "$helper" json <stdout
prints '"notes":["data.train: 2 of 52 pictures are smaller'
says "are stored turned or mirrored (EXIF orientation); they are read upright, which not every tool does: $work/shapes/train/disc/turned.jpg"
says "have an alpha channel, and are laid over white: $work/shapes/train/disc/layered.png"
says "data.train: 2 of 52 pictures are gray, the others coloured: $work/shapes/train/ring/"
says "data.train: 2 of 52 pictures are smaller than the net's input of 40x40 and must be enlarged"
prints '"turned":1'
prints '"height":[28,'
expect 9 check odd.yaml --strict
says "warning: data.train: 1 of 52 pictures are stored turned"
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do rm "$(ls shapes/train/square/* | head -1)"; done
expect 0 check odd.yaml
says "data.train: class 'square' has 1 examples and '"

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

# --- what train refuses at its first step is found, and so are labels of later ones, with their lines
write_points
expect 3 check points.yaml 'train.metrics=[{name: accuracy, label: data}]'
says "metric accuracy needs label 'data', which the data do not give"
expect 3 train points.yaml --dry-run 'train.metrics=[{name: accuracy, label: data}]'
says "metric accuracy needs label 'data', which the data do not give"
expect 3 check points.yaml 'net.layers=[{FullyConnected: {num_hidden: 1}}, {LinearRegressionOutput: {name: softmax}}]' data.train.shuffle=false
says "metric accuracy: labels [4] do not fit an output [4, 1]"
expect 3 check points.yaml train.optimizer.lr=.inf
sed '17s/,.$/,7/' points.csv >seven.csv
expect 4 check points.yaml data.train.path=seven.csv
says "seven.csv:17: 'softmax': the label 7 is outside the 2 classes"
expect 4 check points.yaml data.train.path=seven.csv data.batch_size=16
says "seven.csv:17: 'softmax': the label 7 is outside the 2 classes"
prints "1 finding"

# --- metrics that nobody wrote are those of the loss
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
says "config is required"
finish

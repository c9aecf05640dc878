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
prints "10 training examples, 6 for validation; 3 steps; the net binds"
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

# --- the net, the training data and the validation data are each wrong
sed 's/num_hidden: .*}/num_hidden: 2, bias: 3}/; s/path: train/path: gone/; s/path: val/path: lost/' photos.yaml >wrong.yaml
expect 9 check wrong.yaml --json
says "gone; a relative path"
says "lost; a relative path"
says "wrong.yaml:6:"
holds "--json says other than JSON" "$helper" json <stdout
prints '"ok":false'

# --- a schema for editors
expect 0 check --schema
tr -d '\n' <stdout >line
holds "the schema is no JSON" "$helper" json <line
prints '"batch_size"'
expect 2 check
says "config is required"
finish

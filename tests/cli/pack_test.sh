#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Images packed into records: a run over them is the run over the files; what is damaged is told, and what cannot be packed refused.
. "$(dirname "$0")/common.sh"

# --- classes
expect 0 synth photos --count 60 --classes 3 --size 32 --val 0.2 --seed 5
expect 0 pack photos/train train.rec
prints "train.rec: 48 images, "
prints "; 3 classes"
expect 0 pack photos/val val.rec --classes train.classes --json
prints '"images":12'
holds "the classes are not named" cmp -s train.classes <(printf 'disc\nring\nsquare\n')
holds "the index has other lines" test "$(cut -f1 train.idx | tr '\n' ' ')" = "$(seq -s' ' 0 47) "
holds "the list has no line for each image" test "$(wc -l <train.lst)" = 48
holds "the list names other files" cmp -s <(cut -f3 train.lst | sort) <(cd photos/train && find . -type f | sed 's/^..//' | sort)
holds "the list has other labels" test "$(cut -f2 train.lst | sort -u | tr '\n' ' ')" = "0.000000 1.000000 2.000000 "
first=photos/train/$(head -1 train.lst | cut -f3)
holds "an image is changed" cmp -s "$first" <(tail -c +33 train.rec | head -c "$(stat -c %s "$first")")
cat >classes.yaml <<'END'
name: classes
seed: 3
net:
  input: [3, 32, 32]
  layers:
    - Convolution: {num_filter: 8, kernel: 3, pad: 1, stride: 2}
    - Activation: {act_type: relu}
    - FullyConnected: {num_hidden: 3}
    - SoftmaxOutput: {name: softmax}
data:
  batch_size: 8
  train: {source: image_folder, path: photos/train, shuffle: true, transforms: [{random_resized_crop: {size: [32, 32]}}, flip]}
  val: {source: image_folder, path: photos/val, transforms: [{resize: [32, 32]}]}
train: {epochs: 2, optimizer: {name: sgd, lr: 0.01}}
END
records="data.train.source=record data.train.path=train.rec data.val.source=record data.val.path=val.rec"
expect 0 train classes.yaml --out of_files -q
expect 0 train classes.yaml --out of_records -q $records
holds "records are another data set than their files" cmp -s <(cut -d, -f6- of_files/metrics.csv) <(cut -d, -f6- of_records/metrics.csv)
expect 0 check classes.yaml $records
expect 0 eval of_files val.rec
prints "on 12 examples"
cp stdout of_val.txt
expect 0 eval of_files photos/val
holds "the model has another score on the records" cmp -s <(grep -o 'accuracy .*' of_val.txt) <(grep -o 'accuracy .*' stdout)
expect 0 infer of_files val.rec --format csv
prints "val.rec[11]"
# Classes in another order than those of the training set.
mkdir other
for class in square disc; do cp -r photos/val/$class other/; done
printf 'square\ndisc\n' >order.txt
expect 0 pack other other.rec --classes order.txt
expect 0 eval of_files other.rec --json
cp stdout packed.json
expect 0 eval of_files other --json
holds "classes in another order are other classes" test "$(grep -o '"accuracy":[0-9.e-]*' packed.json | head -1)" = "$(grep -o '"accuracy":[0-9.e-]*' stdout | head -1)"
# Records of records are the same.
expect 0 pack train.rec again.rec
holds "records change when they are packed again" cmp -s train.rec again.rec

# --- boxes
expect 0 synth shapes --task detection --count 40 --classes 2 --size 48 --val 0.2 --seed 5
expect 0 pack shapes/train boxes.rec
expect 0 pack shapes/val boxes_val.rec --classes boxes.classes
holds "objects are no rows of six numbers" awk -F'\t' '{ if ($2 != 2 || $3 != 6 || (NF - 4) % 6 != 0) bad = 1 } END { exit bad }' boxes.lst
cat >boxes.yaml <<'END'
name: boxes
seed: 2
net:
  input: [3, 48, 48]
  layers:
    - Convolution: {num_filter: 16, kernel: 3, pad: 1, stride: 8}
    - Activation: {name: features, act_type: relu}
    - Convolution: {name: scores, num_filter: "${classes}", kernel: 1}
    - Convolution: {name: sides, inputs: features, num_filter: 4, kernel: 1}
    - PointBoxLoss: {name: loss, inputs: [scores, sides], strides: [8]}
    - PointBoxes: {inputs: [scores, sides], strides: [8]}
    - box_nms: {id_index: 0, overlap_thresh: 0.6, valid_thresh: 0.01}
    - slice: {begin: [None, 0], end: [None, 20]}
    - BlockGrad: {name: objects}
data:
  batch_size: 8
  train: {source: yolo, path: shapes/train, shuffle: true, transforms: [{resize: [48, 48]}, flip]}
  val: {source: yolo, path: shapes/val, transforms: [{resize: [48, 48]}]}
train: {epochs: 1, optimizer: {name: sgd, lr: 0.001}}
END
records="data.train.source=record data.train.path=boxes.rec data.val.source=record data.val.path=boxes_val.rec"
expect 0 check boxes.yaml $records
prints "label 'loss_label'"
expect 0 train boxes.yaml --out box_files -q
expect 0 train boxes.yaml --out box_records -q $records
# Shares are float32 in records: edges differ by a millionth.
near() { paste -d, <(cut -d, -f6- "$1") <(cut -d, -f6- "$2") | awk -F, 'NR > 1 { for (i = 1; i <= NF / 2; ++i) { a = $i; b = $(i + NF / 2); d = a - b; if (d < 0) d = -d; if (d > 1e-3 * (a < 0 ? 1 - a : 1 + a)) exit 1 } }'; }
holds "boxes of records are others than those of files" near box_files/metrics.csv box_records/metrics.csv

expect 0 infer box_files boxes_val.rec --threshold 0 --format yolo --output labels
holds "not every record has its labels" test "$(ls labels | grep -c '^boxes_val\.rec\[[0-9]*\]\.txt$')" = 8

mkdir -p packed
for part in train val; do expect 0 pack shapes/$part packed/$part.rec; done
expect 0 init packed --output init.yaml
prints "boxes of 2 classes (record)"
expect 3 eval box_files packed
says "packed has files of several parts (packed/train.rec, packed/val.rec)"
holds "init names other data" grep -q "source: record" init.yaml

# --- damage
expect 0 pack --verify train.rec
prints "train.rec: 48 records, none damaged"
offset=$(sed -n 18p train.idx | cut -f2)
printf '\x55' | dd of=train.rec bs=1 seek=$((offset + 100)) conv=notrunc 2>/dev/null
printf '\x55' | dd of=train.rec bs=1 seek=0 conv=notrunc 2>/dev/null
expect 4 pack --verify train.rec
prints "train.rec: record 0 at byte 0: its "
prints "train.rec: record 17 at byte $offset: its "
holds "more is told than is damaged" test "$(wc -l <stdout)" = 2
says "train.rec: 2 problems in 48 records"
expect 4 train classes.yaml --out damaged -q data.train.source=record data.train.path=train.rec
says "train.rec: record 0 at byte 0: expected the magic number 0xced7230a of RecordIO at byte 0"
head -c 5000 again.rec >cut.rec
expect 4 check classes.yaml data.train.source=record data.train.path=cut.rec
says "the file is cut off"
expect 0 pack --verify boxes.rec --json
prints '"damages":[]'
rm boxes.rec.sums
expect 0 pack --verify boxes.rec
says "has no checksums"

# --- what is refused
expect 8 pack photos/train again.rec
says "again.rec exists already; use --overwrite"
expect 0 pack photos/val again.rec --overwrite
prints "again.rec: 12 images"
expect 0 pack --verify again.rec
cp train.lst photos/train
cp photos/train/train.lst list_before
expect 2 pack photos/train/train.lst photos/train/train.rec --overwrite
says "would replace what the command reads"
holds "the list is changed" cmp -s photos/train/train.lst list_before
rm photos/train/train.lst
: >empty.classes
expect 4 pack photos/train named.rec --classes empty.classes
says "empty.classes names no class"
expect 2 pack photos/train
says "give the file to write, with the ending .rec"
expect 2 pack photos/train packed
says "packed.rec"
expect 2 pack photos photos.rec
says "photos has the parts train, val; pack each into a file of its own: mxtrain pack photos/train train.rec"
expect 2 pack shapes shapes.rec
says "shapes has the parts train, val; pack each into a file of its own: mxtrain pack shapes/train train.rec"
expect 2 pack --verify again.rec other.rec
says "--verify reads one file"
expect 8 pack none none.rec
says "there is no file or folder none"
printf 'photos/val/disc/none.jpg 0\n' >list.txt
expect 8 pack list.txt list.rec
holds "an unfinished file is left" test -z "$(ls list.* | grep -v txt)"
printf '%s 0 1 2\n' "$first" >values.txt
expect 2 pack values.txt values.rec
says "are neither classes nor boxes"
mkdir cifar
head -c 3073 /dev/zero >cifar/test_batch.bin
expect 2 pack cifar cifar.rec
says "its pixels are stored without an image file"

finish

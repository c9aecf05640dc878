#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Bad inputs: a command for each, with its exit code and message. Files are created above the table.
. "$(dirname "$0")/common.sh"

# row CODE TEXT ARGUMENT...
row() {
  local code=$1 text=$2
  shift 2
  expect "$code" "$@"
  says "$text"
  holds "$last: ends in a crash" test "$(grep -ciE 'terminate called|assert|sanitizer' stderr)" -eq 0
}

# --- images: two classes of eight each, and copies with one defect
"$helper" images photos 8
copy() { rm -rf "$1" && cp -r photos "$1"; }
copy empty_class && mkdir empty_class/none
copy cut && "$helper" jpeg whole.jpg 48 && head -c 700 whole.jpg >cut/dark/000.jpg
copy huge && { printf '\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\xea\x60\0\0\xea\x60\x08\x02\0\0\0\0\0\0\0'; head -c 64 /dev/zero; } >huge/dark/000.png
copy huge_jpeg && "$helper" jpeg huge_jpeg/dark/000.jpg 48 &&
  printf '\xea\x60\xea\x60' | dd of=huge_jpeg/dark/000.jpg bs=1 conv=notrunc status=none \
    seek=$(($(LC_ALL=C grep -aboP '\xff\xc0\x00\x11\x08' huge_jpeg/dark/000.jpg | cut -d: -f1) + 5))
copy scans && "$helper" scans scans/dark/000.jpg 600
copy text && echo 'these are words' >text/dark/000.jpg
copy sized && "$helper" jpeg sized/dark/008.jpg 48
echo text/dark/000.jpg 0 >only_text.txt
copy tiny && "$helper" jpeg tiny/dark/000.jpg 1
copy more && cp -r photos/light more/bright
mkdir nothing
for i in 0 1 2 3; do echo "photos/dark/00$i.png 0"; done >labels.txt
echo 'photos/dark/004.png 7' >>labels.txt
sed 's/ 0$/ dark/; s/ 7$/ dusk/' labels.txt >words.txt

write_photos photos photos 4
for folder in cut huge_jpeg scans text tiny; do rm $folder/dark/000.png; done
on() { echo "data.train.path=$1"; }
list() { echo "data.$1={source: list, path: $2, transforms: [{resize: [8, 8]}]}"; }

# --- nets and documents
cat >shapes.yaml <<'END'
net:
  input: [3, 8, 8]
  layers:
    - Convolution: {num_filter: 2, kernel: 9}
    - SoftmaxOutput
data: {batch_size: 2, train: {source: image_folder, path: photos, transforms: [{resize: [8, 8]}]}}
END
sed 's/kernel: 9/kernel: 3, inputs: nobody/' shapes.yaml >dangling.yaml
cat >cycle.yaml <<'END'
net:
  input: [4]
  layers:
    - elemwise_add: {name: a, inputs: [data, b]}
    - FullyConnected: {name: b, num_hidden: 4, inputs: a}
    - SoftmaxOutput
data: {batch_size: 2, train: {source: mnist, path: .}}
END
{
  echo 'vars: {x: 1}'
  echo 'blocks:'
  echo '  a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]'
  for i in 1 2 3 4 5 6 7 8; do
    p=\*a$((i - 1))
    echo "  a$i: &a$i [$p, $p, $p, $p, $p, $p, $p, $p, $p, $p]"
  done
  cat photos.yaml
} >bomb.yaml

# --- a model, and one with a flipped byte
expect 0 train photos.yaml --out model -q
cp model/checkpoints/last flipped
size=$(stat -c %s flipped)
byte=$(od -An -tu1 -j $((size / 2)) -N 1 flipped)
printf "\\x$(printf %x $((byte ^ 1)))" | dd of=flipped bs=1 seek=$((size / 2)) conv=notrunc status=none

# configuration: 3
row 3 "train has no key 'epoch'" train photos.yaml train.epoch=3
row 3 "did you mean 'train.epochs'?" train photos.yaml train.epoch=3
row 3 "train.epochs: expected an integer, got 'soon'" train photos.yaml train.epochs=soon
row 3 "there is no configuration gone.yaml" train gone.yaml
row 3 "shapes.yaml:4:" train shapes.yaml
row 3 "nobody" train dangling.yaml
row 3 "cycle.yaml:4:" train cycle.yaml
row 3 "more than 100000 values after expanding aliases" train bomb.yaml
row 3 "the transforms produce images of different sizes" train photos.yaml "$(on sized)" 'data.train.transforms=[flip]'
row 4 "no image could be read; the first: " train photos.yaml "$(list train only_text.txt)" data.batch_size=1 "data.train.transforms=[flip]"
row 3 "the data has shape [3, 9, 9] for input 'data', but the net declares [3, 8, 8]" train photos.yaml 'data.train.transforms=[{resize: [9, 9]}]'
row 3 "command line:1:17: error: data.batch_size = 64 exceeds the number of examples, 16" train photos.yaml data.batch_size=64
row 3 "command line:1:11: error: the input 'data' is [8, 8, 3]: 8 channels of 3x8; the order is channels, height, width" train photos.yaml 'net.input=[8, 8, 3]'
says "help: write [3, 8, 8]"
row 3 "the order is channels, height, width" check photos.yaml 'net.input=[8, 8, 3]'
row 3 "not supported yet" train photos.yaml 'net.layers=[Transformer, SoftmaxOutput]'
row 3 "command line:1:20: error: optimizer sgd: lr = '-1': -1 is out of range (0 .. 1e+30)" train photos.yaml train.optimizer.lr=-1
# data: 4
row 4 "does not exist" train photos.yaml "$(on gone)"
row 4 "/empty_class/none holds no images" train photos.yaml "$(on empty_class)"
row 4 "holds no folders; one folder per class is expected" train photos.yaml "$(on nothing)"
row 4 "the folder 'bright' in" train photos.yaml data.val.path=more
row 4 "labels.txt:5: the label 7 is outside the 2 classes (0 .. 1)" train photos.yaml "$(list val labels.txt)"
row 4 "words.txt:5: the label 'dusk' is not one of the 2 classes (dark, light)" train photos.yaml "$(list val words.txt)"
for bad in cut huge huge_jpeg scans text; do
  case $bad in
    cut) why="Premature end of JPEG file" ;;
    huge | huge_jpeg) why="60000x60000 pixels are more than the limit of 100000000" ;;
    scans) why="more than 500 scans" ;;
    text) why="not a JPEG, PNG, BMP, TGA, PNM, GIF, WebP or TIFF (begins with 'these are wo')" ;;
  esac
  row 4 "more than max_bad = 0.01 (data.max_bad) allows; the last is" train photos.yaml "$(on $bad)"
  says "$why"
  says "; \`mxtrain check\` lists them all: repair or remove them, or allow more"
  row 0 "1 example could not be read, the first: " train photos.yaml "$(on $bad)" data.max_bad=0.1 --out "run_$bad"
  says "$why"
  row 9 "$why" check photos.yaml "$(on $bad)" data.max_bad=0.1
  file=$(ls -d $bad/dark/000.*)
  row 4 "$why" infer model "$file"
done
row 4 "flipped is not a complete checkpoint: its checksum does not match its contents" eval flipped photos
# an image of one pixel is an image
expect 0 train photos.yaml "$(on tiny)" --out run_tiny -q
expect 0 infer model tiny/dark/000.jpg
# labels within the classes are taken
head -4 labels.txt >good.txt
expect 0 train photos.yaml "$(list val good.txt)" --out run_list -q

# a file of one huge line, as everything that can be a text: no message repeats it
head -c 3000000 /dev/zero | tr '\0' x >huge.txt
{ printf 'a: [' && yes 1, | head -n 150000 | tr -d '\n' && printf '1]\n'; } >huge.yaml
cp huge.txt huge.csv
table() { echo "data.train={source: csv, path: $1, columns: {data: file, softmax_label: label}}"; }
brief() { # CODE ARGUMENT...
  expect "$@"
  holds "$last: $(stat -c %s stderr) bytes of messages" test "$(stat -c %s stderr)" -lt 2500
}
for file in huge.txt huge.csv; do
  brief 4 infer model $file
  says "$file:1: expected the path of an image, got 3000000 bytes: 'xxx"
  brief 4 eval model $file
  brief 4 train photos.yaml "$(list train $file)"
  brief 3 train photos.yaml "$(table $file)"
  says "has no column 'label'; it has 1 column, named xxx"
  brief 3 train $file
done
brief 4 infer model - <huge.txt
brief 3 check huge.yaml
says "more than 100000 values: is this a configuration?"
holds "$last: speaks of aliases" test "$(grep -c alias stderr)" -eq 0

# file system: 8. A folder that cannot be written: a mount that is read-only where this user may make one, else the kernel's own.
mkdir mounted
if unshare -rm sh -c 'mount -t tmpfs -o ro none "$1"' sh mounted 2>/dev/null; then
  readonly_run() { unshare -rm sh -c 'mount -t tmpfs -o ro none mounted && exec "$@"' sh "$program" "$@"; }
  place=mounted/run
else
  readonly_run() { "$program" "$@"; }
  place=/proc/run
fi
readonly_run train photos.yaml --out $place >stdout 2>stderr
code=$?
last="train --out $place"
holds "$last: exit code $code, expected 8" test $code -eq 8
says "$place"
finish

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Messages and exit codes, for success and for errors.
. "$(dirname "$0")/common.sh"

# no_escapes FILE, json FILE: what a file holds
no_escapes() { ! grep -q "$(printf '\033')" "$1"; }
json() { "$helper" json <"$1"; }

write_points

# --- wrong usage: 2
expect 2 trian points.yaml
says "error: unknown command 'trian'; did you mean 'train'? \`mxtrain --help\` lists them"
expect 2 train points.yaml --overwite
says "error: unknown flag '--overwite'; did you mean '--overwrite'? \`mxtrain train --help\` lists them"
expect 2
says "no command given"
expect 2 train
says "config is required; see \`mxtrain train --help\`"
expect 2 -z
says "unknown flag '-z'"
expect 2 train points.yaml --epochs 3
says "unknown flag '--epochs'; did you mean train.epochs=VALUE?"
expect 2 train points.yaml --batch-size 3
says "did you mean data.batch_size=VALUE?"
expect 2 train points.yaml --threads many
expect 2 train points.yaml --engine fast
says "fast not in {threaded,naive}"
expect 2 devices --color sometimes

# --- help and version
expect 0 --version
prints "mxtrain "
expect 0 -h
prints "mxtrain train configs/mnist/lenet.yaml"
holds "help does not begin with examples" test "$(grep -n Examples stdout | cut -d: -f1)" -lt "$(grep -n Usage stdout | cut -d: -f1)"
expect 0 train -h
prints "--resume"
expect 0 devices
prints "gpu "
expect 0 ops Convolution
prints "num_filter"
expect 3 ops Convolutoin
says "there is no operator 'Convolutoin'; did you mean 'Convolution'?"
expect 3 ops maxim
says "there is no operator 'maxim'; did you mean _maximum, _maximum_scalar, broadcast_maximum?"

# --- configuration: 3
expect 3 train nowhere.yaml
says "there is no configuration nowhere.yaml"
expect 3 train points.yaml train.epoch=3
says "error: train has no key 'epoch'"
says "did you mean 'train.epochs'?"
expect 3 train points.yaml train.epochs=soon
says "train.epochs: expected an integer, got 'soon'"
expect 3 train points.yaml train.amp=bf8
says "train.amp"
expect 3 train points.yaml train.amp=fp16
says "mixed precision in float16 is not supported on cpu(0): its processor has no fast arithmetic in it; train in float32"
expect 0 help 3
prints "train.amp: bf16 or fp16"
ONEDNN_MAX_CPU_ISA=AVX512_CORE expect 3 train points.yaml train.amp=bf16
says "mixed precision in bfloat16 is not supported on cpu(0): "
says "; train in float32"
sed 's/num_hidden/num_hiden/' points.yaml >bad.yaml
expect 3 train bad.yaml
says "bad.yaml:5:"
says "did you mean 'num_hidden'?"
sed 's/input: \[3\]/input: [4]/' points.yaml >bad.yaml
expect 3 train bad.yaml
says "bad.yaml:9:"
says "the data has shape [3] for input 'data', but the net declares [4]"
says "help: change net.input to [3], or list 4 columns for 'data' in \`columns\`"
expect 3 train points.yaml net.input=[4]
says "command line:1:"
says "the data has shape [3] for input 'data', but the net declares [4]"
cat >bad.yaml <<'END'
net:
  input: [1, 4, 4]
  layers:
    - Convolution: {num_filter: 2, kernel: 5}
    - SoftmaxOutput
data: {batch_size: 2, train: {source: mnist, path: .}}
END
expect 3 train bad.yaml
says "bad.yaml:4:"
sed 's/- SoftmaxOutput/- SoftmaxOutput: {inputs: [nobody, softmax_label]}/' bad.yaml >dangling.yaml
expect 3 train dangling.yaml
says "nobody"
expect 3 train bad.yaml --json
holds "--json says other than JSON" json stdout
prints '"code":3'

# --- data: 4
expect 4 train points.yaml data.train.path=gone.csv
says "gone.csv"
says "relative"
"$helper" idx digits 40 8
sed 's/input: \[3\]/input: [1, 8, 8]/; s/num_hidden: 2/num_hidden: 10/; /train: {source/d' points.yaml >digits.yaml
expect 4 train digits.yaml 'data.train={source: mnist, path: gone}'
says "does not exist"
mkdir damaged
cp digits/*labels* damaged
gzip -c digits/train-images-idx3-ubyte | head -c 900 >damaged/train-images-idx3-ubyte.gz
expect 4 train digits.yaml 'data.train={source: mnist, path: damaged}'
says "train-images-idx3-ubyte.gz is damaged"
"$helper" images photos 8
"$helper" images other 3
mv other/light other/bright
write_photos photos photos 4
expect 4 train photos.yaml data.val.path=other
says "bright"

# --- device: 5
expect 5 train points.yaml --device gpu
says "cpu"
says "--device cpu"
expect 2 train points.yaml --device banana
says "'banana' is not a device; use cpu, gpu or gpu:N"
expect 5 train points.yaml --device gpu:0,1
says "--device cpu"
expect 2 train points.yaml --device gpu:0,0
says "--device gpu:0,0 lists gpu(0) twice"
expect 2 train points.yaml --device gpu:0,
says "'gpu:0,' is not a device"
expect 2 train points.yaml --device cpu:0,1
says "on the CPU use train.kvstore.workers to split a batch"
expect 2 plan points.yaml --device gpu:0,1
says "--device gpu:0,1 is only for training; give one device, gpu(0)"
expect 3 train points.yaml train.kvstore=device
says "KVStore 'device' needs one GPU per worker; use local"

# --- runs: the folder, the resolved configuration, overrides, merged files
expect 0 train points.yaml --progress auto
holds "a run that is no terminal's has escapes" no_escapes stderr
holds "results are said on stdout" test ! -s stdout
holds "runs/latest is not the run" test "$(readlink runs/latest)" = points-0001
for file in config.yaml origin.txt command.txt env.txt mxtrain.log metrics.csv events.jsonl checkpoints/last checkpoints/best; do
  holds "the run has no $file" test -s runs/points-0001/$file
done
expect 0 train runs/latest/config.yaml
holds "the resolved configuration gives another model" "$helper" compare runs/points-0001/checkpoints/last runs/points-0002/checkpoints/last
echo 'train: {epochs: 3}' >more.yaml
expect 0 train points.yaml -c more.yaml --json
holds "--json says other than JSON" json stdout
prints '"epochs":3'
expect 0 train points.yaml -c more.yaml train.epochs=1 --json
prints '"epochs":1'
holds "origin.txt does not name the command line" grep -q "train.epochs.*command line" runs/latest/origin.txt
expect 0 train points.yaml --out mine
expect 8 train points.yaml --out mine
says "mine already contains a run; use --overwrite to replace it, --resume to continue it"
expect 0 train points.yaml --out mine --overwrite
mkdir -p project/checkpoints
echo precious >project/checkpoints/mine
expect 8 train points.yaml --out project
says "project contains checkpoints, which does not belong to a run; choose another --out"
holds "files of no run were touched" test "$(cat project/checkpoints/mine)" = precious
mkdir -p own/plots
echo mine >own/metrics.csv
expect 2 train points.yaml --out own --resume
says "there is no run in own to continue: it contains metrics.csv, which does not belong to a run"
expect 8 train points.yaml --out own --resume --or-begin
says "own contains metrics.csv, which does not belong to a run; choose another --out"
echo mine >own/config.yaml
expect 8 train points.yaml --out own --overwrite
says "own contains config.yaml, which does not belong to a run; choose another --out"
expect 8 train points.yaml --out own
holds "a folder of the user's was changed" test "$(cd own && echo * .[!.]* && cat config.yaml metrics.csv)" = "config.yaml metrics.csv plots .[!.]*
mine
mine"
# A configuration of the user's beside folders of the names that a run uses
mkdir -p alike/checkpoints
printf 'include: ../points.yaml\nname: alike\n' >alike/config.yaml
cp alike/config.yaml alike.yaml
echo mine | tee alike/checkpoints/mine.txt >alike/result.json
expect 8 train points.yaml --out alike --overwrite
says "alike contains config.yaml, which does not belong to a run; choose another --out"
holds "files of the user's were deleted" test "$(cat alike/checkpoints/mine.txt alike/result.json | sort -u)" = mine
rm alike/checkpoints/mine.txt alike/result.json
expect 8 train alike/config.yaml --resume
says "runs contains no run of 'alike' to continue"
expect 2 train alike --resume
holds "a configuration of the user's was replaced" cmp alike.yaml alike/config.yaml
# A copy without hidden files is a run; what it has of others is not deleted with it.
expect 0 eval mine
mkdir copy
cp -r mine/* copy
expect 8 train points.yaml --out copy
says "copy already contains a run"
for part in checkpoints eval plots tb; do
  echo mine >copy/$part/notes.txt
  expect 8 train points.yaml --out copy --overwrite
  says "--overwrite would delete copy/$part/notes.txt, which does not belong to the run; move it elsewhere"
  holds "files of the user's were deleted" test "$(cat copy/$part/notes.txt)" = mine
  holds "a refused run was changed" cmp mine/checkpoints/last copy/checkpoints/last
  rm copy/$part/notes.txt
done
# By their names: the user's own tables and drawings are not those of the run.
for file in eval/notes.csv eval/notes.png plots/notes.png plots/loss-notes.svg; do
  echo mine >copy/$file
  expect 8 train points.yaml --out copy --overwrite
  says "--overwrite would delete copy/$file, which does not belong to the run; move it elsewhere"
  holds "files of the user's were deleted" test "$(cat copy/$file)" = mine
  rm copy/$file
done
# File managers leave files of their own.
for file in .DS_Store Thumbs.db desktop.ini; do
  for part in . checkpoints eval plots; do echo view >copy/$part/$file; done
  mkdir -p viewed/plots && echo view | tee viewed/$file >viewed/plots/$file
done
expect 0 train points.yaml --out copy --overwrite
expect 0 train points.yaml --out viewed --resume --or-begin
mkdir void
echo mine >void/notes.txt
expect 0 train points.yaml --out void
holds "a note beside a run was changed" test "$(cat void/notes.txt)" = mine
expect 3 train points.yaml --out unmade 'train.metrics=[{name: accuracy, output: sofmax}]'
holds "a run that cannot begin left its folder" test ! -e unmade
expect 2 train points.yaml --resume --resume-from mine/checkpoints/last
expect 0 train points.yaml --out mine --resume train.epochs=4 --json
prints '"epochs":4'
expect 8 train points.yaml --name unheard --resume
says "contains no run of 'unheard' to continue; use --or-begin to start one"
expect 0 train points.yaml --dry-run --out dry
holds "--dry-run wrote" test ! -e dry
expect 8 train points.yaml --dry-run --out points.csv
says "points.csv is not a folder"
expect 8 train points.yaml --dry-run --out points.csv/below
if [ "$(id -u)" -ne 0 ]; then
  mkdir closed && chmod 500 closed
  expect 8 train points.yaml --dry-run --out closed/run
  says "cannot write into"
fi
if [ "$(id -u)" -ne 0 ]; then
  mkdir locked
  chmod a-w locked
  expect 8 train points.yaml --out locked/run
  says "locked/run"
fi
expect 8 train points.yaml --out points.csv/run
says "cannot create the folder points.csv/run"
mkdir unwritable
sed "s,points.csv,$PWD/points.csv," points.yaml >unwritable/points.yaml
: >unwritable/runs # no folder can be there
pushd unwritable >/dev/null || exit 1
expect 8 train points.yaml
says "; --out DIR writes the run elsewhere"
popd >/dev/null || exit 1

# --- a check failed: 9
expect 9 train points.yaml --min-metric 1
says "below --min-metric 1"
expect 2 train points.yaml --min-metric 90 --out percent
says "--min-metric 90: accuracy is at most 1; 90 % is 0.9"
holds "a run that cannot be good enough left its folder" test ! -e percent
expect 0 train points.yaml 'train.metrics=[cross_entropy]' --min-metric 1000
expect 9 train points.yaml 'train.metrics=[cross_entropy]' --min-metric 0.0000001
says "above --min-metric 1e-07"
expect 0 check points.yaml
prints "no findings"
expect 3 check points.yaml train.epoch=3
says "did you mean 'train.epochs'?"
expect 3 check nowhere.yaml
expect 4 check points.yaml data.train.path=gone.csv --json
holds "--json says other than JSON" json stdout
prints '"ok":false'

# --- images: infer and eval
expect 0 train photos.yaml train.epochs=10 --out images --min-metric 0.9
expect 0 infer images photos --top-k 2
holds "a table of 16 images has a header and 16 lines" test "$(wc -l <stdout)" -eq 17
prints "photos/light/000.png"
expect 0 infer images photos --format csv --top-k 2
holds "the header of csv" test "$(head -1 stdout)" = "file,predicted,score,predicted_2,score_2"
holds "lines of csv have other than five fields" awk -F, 'NF != 5 { bad = 1 } END { exit bad }' stdout
expect 0 infer images photos --json
holds "--json says other than JSON" json stdout
ls photos/light/*.png | head -3 >list
"$program" infer images - --format jsonl <list >stdout 2>stderr
holds "a list on stdin gives its three images" test "$(grep -c '"class":"light"' stdout)" -eq 3
cp photos/light/000.png 'photos/light/a, b.png'
expect 0 infer images 'photos/light/a, b.png' --format csv
prints '"photos/light/a, b.png",light,'
rm 'photos/light/a, b.png'
head -c 40 photos/dark/000.png >photos/dark/broken.png
expect 4 infer images photos --format csv
says "photos/dark/broken.png"
holds "a broken image is predicted" test "$(wc -l <stdout)" -eq 17
expect 0 infer images photos --format csv --skip-bad
expect 4 eval images photos
says "photos/dark/broken.png"
prints "on 16 examples"
expect 4 check photos.yaml
says "broken.png"
expect 8 infer images photos/nothing.png
says "there is no file or folder photos/nothing.png"
rm photos/dark/broken.png
mkdir text
echo words >text/words.txt
expect 4 infer images text
says "no images (.jpg .jpeg .png .bmp) in text"
expect 0 eval images photos --json
holds "--json says other than JSON" json stdout
prints '"accuracy":1.0'
expect 8 eval nowhere
says "nowhere"
head -c 300 images/checkpoints/best >cut
expect 4 eval cut
says "cut is not a complete checkpoint"

# --- terminals and pipes
"$program" ops 2>stderr | head -1 >stdout
holds "| head says something" test ! -s stderr
NO_COLOR=1 "$program" train points.yaml --device gpu 2>stderr
holds "NO_COLOR has escapes" no_escapes stderr
FORCE_COLOR=1 "$program" train points.yaml --device gpu 2>stderr
holds "FORCE_COLOR has no escapes" grep -q "$(printf '\033')" stderr
expect 5 train points.yaml --device gpu --color always
holds "--color always has no escapes" grep -q "$(printf '\033')" stderr
expect 0 train points.yaml -q
holds "-q says something" test ! -s stderr
finish

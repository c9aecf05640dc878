#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The user's own images: init, check, train, eval and infer; names with commas, damaged files, lists, stdin.
. "$(dirname "$0")/common.sh"

lines() { wc -l <"$1"; }

# --- init: folders train/ and val/
expect 0 synth shapes --count 90 --classes 3 --size 40 --seed 3
mv shapes/train/ring "shapes/train/ring, thin"
mv shapes/val/ring "shapes/val/ring, thin"
expect 0 init shapes
prints "shapes.yaml: 3 classes, 72 images to train on, 18 to validate"
prints "next: mxtrain check shapes.yaml, then mxtrain train shapes.yaml"
says "72 images are few for a net that begins with random weights; a published one needs fewer: mxtrain init shapes --net NAME --weights FILE"
holds "the classes are not counted in the file" grep -qF "disc 24, 'ring, thin' 24, square 24" shapes.yaml
holds "the paths are not relative" grep -qF 'path: "shapes/train"' shapes.yaml
expect 8 init shapes
says "shapes.yaml exists already; use --overwrite to replace it, or write another with --output FILE"
expect 0 init shapes --overwrite --json
prints '"input_size":32'
expect 0 check shapes.yaml
prints "no findings"
expect 0 train shapes.yaml train.epochs=6 --name shapes --json
prints '"wait_share"'
says "limit: "

# --- init: train/ and test/ without val/: a part of train/ is held out for validation; test/ does not choose the best epoch
mkdir tested && cp -r shapes/train tested/train && cp -r shapes/val tested/test
expect 0 init tested
prints "to validate (a fifth of each class, held out)"
prints "tested/test is for the final test: mxtrain eval runs/latest tested/test"
holds "the best epoch is chosen on test/" grep -q 'split: 0.2' tested.yaml
holds "the file does not say what test/ is for" grep -qF '# tested/test is not used in training; it measures the finished net: `mxtrain eval runs/latest tested/test`.' tested.yaml

# --- init: one folder, of which a part is held out; quotes and colons in names; output elsewhere
mkdir -p 'odd "names"' out
cp -r shapes/train/* 'odd "names"'
mv 'odd "names"/disc' 'odd "names"/a: b #c'
expect 0 init 'odd "names"' --output out/odd.yaml --size 24
prints "(a fifth of each class, held out)"
expect 0 check out/odd.yaml
prints "no findings"
expect 0 init 'odd "names"' --output - --size 24
holds "stdout is not the same configuration" grep -qF 'split: 0.2' stdout

# --- init: folders in folders, and folders that are no classes
mkdir -p wrapped/photos/archive && cp -r shapes/train shapes/val wrapped/photos/archive
expect 0 init wrapped
prints "the folders of the classes are in wrapped/photos/archive"
holds "the path is not that of the inner folder" grep -qF 'path: "wrapped/photos/archive/train"' wrapped.yaml
mkdir -p mess/__MACOSX mess/.ipynb_checkpoints mess/notes/old mess/empty && cp -r shapes/train/* mess
cp shapes/train/disc/* mess/__MACOSX && cp shapes/train/disc/* mess/.ipynb_checkpoints && echo text >mess/notes/old/a.txt
expect 0 init mess
prints "mess.yaml: 3 classes"
prints "not read: .ipynb_checkpoints (hidden), __MACOSX (of the system), empty (no images), notes (no images)"
holds "what is skipped is not written down" grep -qF 'exclude: ["empty", "notes"]' mess.yaml
expect 0 check mess.yaml
prints "58 training examples, 14 for validation"
expect 4 check mess.yaml 'data.train.exclude=[notes]'
says "holds no images (.jpg .jpeg .png .bmp); fill it, remove it, or name it in exclude"
expect 4 check mess.yaml 'data.train.exclude=[notes, empty, nodes]'
says "exclude: 'nodes': there is no such folder in"
mkdir -p deep/round deep/angular && cp -r shapes/train/disc "shapes/train/ring, thin" deep/round && cp -r shapes/train/square deep/angular
expect 0 init deep
prints "deep.yaml: 2 classes"
prints "folders in the folder of a class, such as disc, ring, thin, are parts of it; for classes of their own: mxtrain init deep/round"

# --- init refuses, with the reason
expect 8 init shaeps
says "shaeps does not exist; did you mean 'shapes'?"
expect 8 init nowhere
says "nowhere does not exist; give a folder with one sub-folder of images per class"
expect 8 init shapes.yaml
says "shapes.yaml is not a folder"
mkdir flat && cp shapes/val/disc/* flat
expect 4 init flat
says "flat contains no folders; put the images of each class into a folder named after the class"
mkdir -p one/cat && cp shapes/val/disc/* one/cat
expect 4 init one
says "one contains only one class, 'cat'; at least two classes are needed"
mkdir one/dog
expect 4 init one
says "one folder each; not read: dog (no images)"
cp "$(ls shapes/val/square/* | head -1)" one/dog
expect 4 init one
says "one: class 'dog' has only one image; fill or remove these folders: at least 2 images are needed in each"
# all at once, with what was skipped; images of no class are named
mkdir one/cow && echo heic >one/cow/phone.HEIC
expect 4 init one
says "one: class 'cow' holds no images; class 'dog' has only one image; 1 image of an unsupported format skipped: convert to JPEG or PNG (first: $work/one/cow/phone.HEIC)"
cp shapes/val/disc/* one/dog && rm -r one/cow && cp one/dog/*0.* one/
touch one/notes.txt
expect 0 init one --output beside.yaml
says "beside the class folders skipped, of no class (first: $work/one/"
mkdir -p text/a text/b
for i in 1 2 3; do echo hello >text/a/$i.jpg; echo hello >text/b/$i.png; done
expect 4 init text
says "none of the images can be read; the first: "
cp -r shapes other && mkdir other/val/star && cp shapes/val/disc/* other/val/star
expect 4 init other --output other.yaml
says "star"
holds "a refused init wrote a file" test ! -e flat.yaml -a ! -e one.yaml -a ! -e other.yaml

# --- infer: a folder, files, a list, stdin: the same answers
expect 0 infer runs/latest shapes/val --format csv --top-k 2
holds "the head of the CSV" test "$(head -1 stdout)" = "file,predicted,score,predicted_2,score_2"
holds "not one line per image" test "$(lines stdout)" -eq 19
holds "a class name with a comma is not quoted" grep -qF '"ring, thin"' stdout
sort stdout >by_folder
find shapes/val -type f >list.txt
expect 0 infer runs/latest list.txt --format csv --top-k 2
sort stdout >by_list
holds "a list gives other answers" cmp -s by_folder by_list
checks=$((checks + 1))
"$program" infer runs/latest - --format csv --top-k 2 <list.txt 2>stderr | sort >by_stdin
cmp -s by_folder by_stdin || fail "stdin gives other answers"
awk '{print NR "\t0\t" $0}' list.txt >numbered.lst
expect 0 infer runs/latest numbered.lst --format csv --top-k 2
holds "a list file of MXNet gives other answers" test "$(sort stdout | sha256sum)" = "$(sha256sum <by_folder)"
expect 0 infer runs/latest $(head -2 list.txt) --format jsonl
holds "not two lines" test "$(lines stdout)" -eq 2
prints '"predictions":[{"class":'
expect 0 infer runs/latest shapes/val/square
holds "the table has no head" test "$(head -1 stdout | awk '{print $1, $2}')" = "file prediction"
expect 8 infer runs/latest gone.jpg
says "there is no file or folder gone.jpg"
expect 8 infer runs/latest shapes/vla
says "there is no file or folder shapes/vla; did you mean 'shapes/val'?"
expect 0 infer runs/latest - </dev/null
says "no images found: nothing to predict"

# --- unreadable files: named, counted, 4; with --skip-bad 0
cp -r shapes/val damaged
head -c 200 "$(ls damaged/disc/*.jpg | head -1)" >damaged/disc/cut.jpg
echo hello >damaged/disc/text.png
expect 4 infer runs/latest damaged --format csv
says "damaged/disc/cut.jpg: "
says "damaged/disc/text.png: "
says "2 of 20 examples could not be read; --skip-bad tolerates them"
holds "the others are not all there" test "$(lines stdout)" -eq 19
expect 0 infer runs/latest damaged --format csv --skip-bad
expect 4 infer runs/latest damaged/disc/cut.jpg
says "1 of 1 example could not be read"
holds "--skip-bad is advised where nothing else is left" test "$(grep -c 'skip-bad' stderr)" -eq 0
expect 4 eval runs/latest damaged
expect 0 eval runs/latest damaged --skip-bad

# --- eval: folder, list, stdin, a configuration; three formats; agrees with infer to the example
expect 0 eval runs/latest shapes/val --predictions each.csv
prints "runs/shapes-0001/checkpoints/best on 18 examples"
says "model: runs/shapes-0001/checkpoints/best"
holds "not one line per example" test "$(lines each.csv)" -eq 19
python=$(command -v python3 || true)
if [ -n "$python" ]; then
  expect 0 infer runs/latest shapes/val --format csv
  cat >compare.py <<'PY'
import csv
said = {row["file"]: (row["predicted"], float(row["score"])) for row in csv.DictReader(open("each.csv"))}
inferred = {row["file"]: (row["predicted"], float(row["score"])) for row in csv.DictReader(open("stdout"))}
said, inferred = ({k.split("shapes/val/")[1]: v for k, v in table.items()} for table in (said, inferred))
assert said.keys() == inferred.keys()
for name, (predicted, score) in said.items():  # kernels may round otherwise in a batch of another size
    assert inferred[name][0] == predicted and abs(inferred[name][1] - score) < 1e-6, (name, said[name], inferred[name])
PY
  holds "eval and infer differ" "$python" compare.py
fi
"$program" eval runs/latest shapes/val --format jsonl 2>/dev/null | sed 's/.*"metrics"/"metrics"/' >folder.json
sed 's/.*/&\t&/' list.txt | awk -F'\t' '{n = split($2, part, "/"); print $1 "\t" part[3]}' >labelled.tsv
expect 0 eval runs/latest labelled.tsv --json
holds "a list gives other metrics" test "$(sed 's/.*"metrics"/"metrics"/' stdout | grep -o '"accuracy":[0-9.]*')" = "$(grep -o '"accuracy":[0-9.]*' folder.json)"
checks=$((checks + 1))
"$program" eval runs/latest - --json <labelled.tsv 2>stderr | grep -q '"examples":18' || fail "eval - does not read its list"
expect 0 eval runs/latest shapes.yaml --format csv
holds "the head of the CSV" test "$(head -1 stdout)" = "class,precision,recall,f1,examples"
holds "not one line per class" test "$(lines stdout)" -eq 4
expect 8 eval runs/latest gone
says "there is no file or folder gone"
expect 8 eval runs/latest shaeps/val
says "there is no file or folder shaeps/val; did you mean 'shapes/val'?"
# --- what is not there is named, with what is near; a damaged checkpoint with those that are whole
expect 8 eval runs/shapes-0002
says "there is no run or checkpoint runs/shapes-0002; did you mean 'runs/shapes-0001'?"
expect 3 train runs/shpaes-0001 --resume
says "there is no configuration or run folder runs/shpaes-0001; did you mean 'runs/shapes-0001'?"
expect 3 train shapes.yml
says "there is no configuration shapes.yml; did you mean 'shapes.yaml'?"
expect 4 train shapes.yaml --dry-run data.train.path=shapes/trian
says "shapes/trian does not exist; did you mean '$work/shapes/train'?"
cp runs/latest/checkpoints/best best && head -c 5000 best >runs/latest/checkpoints/best
expect 4 infer runs/latest shapes/val
says "checkpoints/best is not a complete checkpoint"
says "; whole: runs/shapes-0001/checkpoints/last (step "

finish

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Photographs that are added, removed, moved or damaged after a run has held a part of them out; and files given where a model is expected.
. "$(dirname "$0")/common.sh"

expect 2 eval
expect 8 export runs/latest shapes.onnx
says "there is no runs/latest: no run has saved anything yet; \`mxtrain train CONFIG\` makes one"

expect 0 synth shapes --count 75 --classes 3 --size 24 --seed 3
mv shapes/train photos
expect 0 init photos --size 16
holds "the recipe decodes otherwise than other programs" grep -q '^  exact_decode: true ' photos.yaml
expect 0 train photos.yaml train.epochs=1
run=runs/photos-0001

# --- what is no model is named
expect 4 eval photos.yaml
says "photos.yaml is a configuration, not a trained model; train it with \`mxtrain train photos.yaml\`, then give the run folder"
expect 0 export $run model.onnx
says "input: RGB pixels, upright (EXIF orientation applied), "
says "(pixel / 255 - mean) / std with mean=("
says "float32 [N, 3, 16, 16]"
says "output: one score for each class, in this order: "
expect 4 export model.onnx other.onnx
says "model.onnx is an ONNX file, not a run or checkpoint; \`mxtrain import model.onnx\` shows its layers"
# but infer takes it, with the preprocessing and the classes of its metadata
expect 0 infer $run photos --format csv
cut -d, -f1,2 stdout >of_run
expect 0 infer model.onnx photos --format csv
cut -d, -f1,2 stdout >of_onnx
holds "the exported model predicts other classes" cmp -s of_run of_onnx
image=$(find photos -type f | sort | head -1)
expect 4 eval "$image"
says "$image is an image, not a model"

# --- the files that a run learns from are kept; the held-out ones are evaluated
expect 0 eval $run
prints ", held out in training"
holds "the held-out images count as trained on" sh -c '! grep -q "was trained on" stderr'
total=$(find photos -type f | wc -l)
trained=$(wc -l <$run/trained_on.txt)
holds "not all other images are trained on: $trained of $total" [ "$trained" -eq $((total - total / 5)) ]

# --- one image more moves no more than the border
cp "$image" "$(dirname "$image")/000_first.png"
expect 0 eval $run
both=$(sed -n 's/.*was trained on \([0-9]*\) of these.*/\1/p' stderr)
holds "one image more makes ${both:-0} validation images of training images" [ "${both:-0}" -le 2 ]
rm "$(dirname "$image")/000_first.png"

# --- the folder has moved: the command that the error names evaluates the held-out part, a folder alone all of it
mv photos moved
expect 8 eval $run
says "if the run's data has moved, give its new location: mxtrain eval $run $run/config.yaml data.train.path=FOLDER (the part held out in training)"
expect 0 eval $run $run/config.yaml data.train.path=moved
prints "on $((total / 5)) examples of"
holds "the held-out images of the moved folder count as trained on" sh -c '! grep -q "was trained on" stderr'
expect 0 eval $run moved
says "warning: the run was trained on $trained of these $total examples, so the metrics are too good; on the part held out in training: mxtrain eval $run $run/config.yaml data.train.path=moved"
mv moved photos

# --- without the images that were held out, others that the run has learned from are: said at once and in the summary
find photos -type f | while read -r file; do
  grep -q " ${file#photos/}\$" $run/trained_on.txt || rm "$file"
done
holds "the held-out images are still there" [ "$(find photos -type f | wc -l)" -eq "$trained" ]
expect 0 train $run --extend train.epochs=1
val=$(((trained + 2) / 5))
says "the run was trained on $val of the $val validation examples before files were added or removed, so their metrics, and \`best\`, are too good"
holds "the summary does not repeat it" [ "$(grep -c "was trained on $val of the $val" stderr)" -eq 2 ]
holds "the validation data changed without a warning" grep -q "warning: .*the validation data differ from those of the checkpoint" stderr

# --- an unreadable image ends the run before its first step, once, and leaves no folder in the way
expect 0 init photos --size 16 --overwrite
head -c 100 "$(find photos -type f | sort | head -1)" >cut && cp cut "$(find photos -type f | sort | head -1)"
expect 4 train photos.yaml train.epochs=1 data.batch_size=32 --out damaged
says "examples are unreadable so far"
holds "a warning says that the run continues" sh -c '! grep -q "the run continues" stderr'
holds "the folder of the run that did not begin is left" test ! -e damaged
expect 0 train photos.yaml train.epochs=1 data.max_bad=0.2 --out damaged

# --- a run folder as a configuration, and a run that stopped early
expect 0 train damaged data.max_bad=0.2 --out again --dry-run
write_points
expect 0 train points.yaml --out early train.epochs=9 train.early_stop=1 train.optimizer.lr=0
expect 0 train early --resume
says "the run is complete after 8 steps: it stopped early (train.early_stop), after 2 of 9 epochs; --extend train.early_stop=0 trains longer"
expect 0 train early --extend train.early_stop=0 train.epochs=1
expect 0 train early --out anew train.epochs=1
says "a new run with the configuration of early; to continue that run: mxtrain train early --resume"
expect 0 help train.early_stop
prints "train.early_stop=5"

# --- weights of another net
net() {
  printf 'name: %s\nnet:\n  input: [3]\n  layers:\n' "$1"
  for layer in $2; do printf '    - FullyConnected: {num_hidden: 3, name: %s}\n' "$layer"; done
  printf '    - FullyConnected: {num_hidden: 2, name: head}\n    - SoftmaxOutput: {name: softmax}\n'
  sed -n '/^data:/,$p' points.yaml
}
net few "a c e g" >few.yaml
net many "a b c d e f g" >many.yaml
expect 0 train few.yaml --out few train.epochs=1
expect 3 train many.yaml --out many train.weights=few
says "6 of the 16 arrays before the net's last layers are not in the file, or in another shape (b_weight, b_bias, d_weight, and 3 more): they are of another net"
says "set train.weights.partial=true"
expect 3 check many.yaml train.weights=few
says "they are of another net"
expect 0 train many.yaml --out many train.weights.file=few train.weights.partial=true
net one "a b c e g" >one.yaml
expect 0 train one.yaml --out one train.weights=few
says "warning: weights of $work/few: 2 of the 12 arrays before the net's last layers are not in the file, or in another shape (b_weight, b_bias); they start from random values"
expect 9 check one.yaml train.weights=few
# A new head alone needs no word.
net few "a c e g" | sed 's/name: head/name: other/' >head.yaml
expect 0 train head.yaml --out head train.weights=few
holds "a new head is called a gap" sh -c '! grep -q "start from random values" stderr'
finish

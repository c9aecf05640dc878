#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The commands of README, of the guide and of the examples in the help run as they stand there, in their order, on small data. What cannot run
# here is listed below, with the reason; a line that is in no page any more must leave the list.
. "$(dirname "$0")/common.sh"

# REASON|LINE, or REASON|PAGE: LINE for one page alone
listed=$(cat <<'END'
published weights (fine_tuning_test.sh, pretrained_test.sh)|mxtrain init photos --net efficientnet_lite0 --weights FILE --output tuned.yaml
published weights|mxtrain train tuned.yaml
published weights|mxtrain init photos --net efficientnet_lite0 --weights efficientnet_lite0.pth
published weights|mxtrain init photos --net efficientnet_lite0 --weights efficientnet_lite0.pth --head-only --output head.yaml
published weights|mxtrain train head.yaml
published weights|mxtrain train mine.yaml net.use=efficientnet_lite0 train.weights=efficientnet_lite0.pth vars.bn_eps=0.001 vars.same_padding=true
published weights|mxtrain train configs/imagenet/resnet50.yaml train.weights.file=resnet50.safetensors data.train.path=... data.val.path=...
a download|mxtrain init photos --net efficientnet_lite0 --weights hf://timm/tf_efficientnet_lite0.in1k/model.safetensors --weights-family timm_tf
a download|mxtrain init photos --net efficientnet_b0 --weights hf://timm/efficientnet_b0.ra_in1k/model.safetensors --weights-family timm
a download|mxtrain init photos --net resnet50 --weights hf://timm/resnet50.a1_in1k/model.safetensors
a model of MXNet (exports_test.sh)|mxtrain infer resnet@0 photos --size 3,224,224 --mean 0.485,0.456,0.406 --std 0.229,0.224,0.225 --labels names.txt
a model of MXNet (exports_test.sh)|mxtrain infer downloads/resnet@0 photos --size 3,224,224
GPUs (placement_test.sh)|mxtrain train photos.yaml --device gpu:0 --place late=gpu:1
GPUs (placement_test.sh)|mxtrain plan photos.yaml --place 'late=cpu(1)'
GPUs (placement_test.sh)|mxtrain eval runs/latest --device gpu:0 --place late=gpu:1
MNIST|mxtrain train configs/mnist/lenet.yaml data.train.path=DIR data.val.path=DIR
MNIST|mxtrain train configs/mnist/lenet.yaml
a table (tables_test.sh)|mxtrain infer runs/houses new.csv --key id --output predicted.csv
a language model (text_test.sh)|mxtrain generate runs/latest --prompt "ROMEO:"
a language model (text_test.sh)|mxtrain generate runs/latest --temperature 0.8 --top-k 200 --max-tokens 500 --seed 7
a run that diverged in this step (divergence_test.sh)|mxtrain replay runs/photos-0001/diverged-000123
the program man|mxtrain help --man train | man -l -
MNIST|mxtrain bench configs/mnist/lenet.yaml
MNIST|mxtrain lr-find configs/mnist/lenet.yaml
MNIST|mxtrain plan configs/mnist/lenet.yaml --plot-net net.svg
ImageNet|mxtrain plan configs/imagenet/resnet50.yaml data.batch_size=64
ImageNet|mxtrain plan configs/imagenet/resnet50.yaml --memory 8GiB
arrays (arrays_test.sh)|mxtrain infer net.onnx --input left=a.npy --input right=b.npy --output scores.npy
arrays (arrays_test.sh)|mxtrain infer net.onnx --input data=x.npy --format csv
arrays (arrays_test.sh)|mxtrain eval net.onnx --input data=x.npy --input softmax_label=y.npy
boxes (boxes_test.sh)|mxtrain init cells --net efficientnet_lite0 --weights efficientnet_lite0.pth
boxes (boxes_test.sh)|mxtrain check cells.yaml
boxes (boxes_test.sh)|mxtrain train cells.yaml
boxes (yolox_test.sh)|mxtrain init cells --net yolox_nano --weights yolox_nano.pth
boxes (yolox_test.sh)|mxtrain train configs/detection/yolox_s.yaml train.weights.file=yolox_s.pth data.train.path=... data.val.path=...
boxes (anchors_test.sh)|mxtrain init cells --net ssdlite320_mobilenet_v3_large --weights ssdlite320_mobilenet_v3_large_coco.pth
boxes (regions_test.sh)|mxtrain init cells --net fasterrcnn_resnet50_fpn --weights fasterrcnn_resnet50_fpn_coco.pth
boxes (tiles_test.sh)|mxtrain infer runs/cells slides --tile 640 --overlap 64 --output boxes.csv
boxes (tiles_test.sh)|mxtrain eval runs/cells --tile 640
boxes (boxes_test.sh)|mxtrain eval runs/cells
boxes (boxes_test.sh)|mxtrain infer runs/cells photos --output boxes.csv
boxes (boxes_test.sh)|mxtrain infer runs/cells photos --annotate drawn --threshold 0.5
images as labels (image_labels_test.sh)|mxtrain eval runs/mnist-denoise
images as labels (image_labels_test.sh)|mxtrain infer runs/mnist-denoise photos --images clean
masks (masks_test.sh)|mxtrain init streets --net efficientnet_lite0 --weights efficientnet_lite0.pth
masks (masks_test.sh)|mxtrain check streets.yaml
masks (masks_test.sh)|mxtrain train streets.yaml
masks (masks_test.sh)|mxtrain train configs/segmentation/lraspp_mobilenet_v3_large.yaml train.weights.file=lraspp_mobilenet_v3_large.pth vars.classes=5 'data.train.mask_classes=[background, road, sky, tree, car]' data.train.path=... data.train.targets=... data.val.path=... data.val.targets=...
masks (masks_test.sh)|mxtrain train CONFIG vars.auxiliary=false train.weights=runs/latest train.epochs=0
masks (masks_test.sh)|mxtrain eval runs/streets
masks (masks_test.sh)|mxtrain infer runs/streets photos --images masks
masks (masks_test.sh)|mxtrain infer runs/streets photos --annotate painted
published weights (gpt2_test.sh)|mxtrain train configs/text/gpt2_124m.yaml train.weights.file=model.safetensors vars.length=256 data.train.path=plays.txt data.val.path=plays.txt data.train.tokenizer_file=tokenizer.json
published weights (gpt2_test.sh)|mxtrain generate runs/latest --prompt "ROMEO:" --top-k 50 --temperature 0.8
published weights (gpt2_test.sh)|mxtrain export runs/latest tuned/model.safetensors
published weights (chat_test.sh)|mxtrain train configs/text/gpt2_124m.yaml train.weights.file=model.safetensors vars.length=256 'data.train={source: chat, path: chats.jsonl, tokenizer_file: tokenizer.json, shuffle: true}' 'data.val={source: chat, path: other.jsonl}'
published weights (chat_test.sh)|mxtrain generate runs/latest --prompt "Who wrote Macbeth?"
published weights (llama_test.sh)|mxtrain train configs/text/smollm2_135m.yaml train.weights.file=model.safetensors vars.length=256 data.train.path=plays.txt data.val.path=plays.txt data.train.tokenizer_file=tokenizer.json
published weights (llama_test.sh)|mxtrain generate runs/latest --prompt "ROMEO:" --top-k 50
published weights (llama_test.sh)|mxtrain export runs/latest net.gguf --type float16
published weights (bert_test.sh)|mxtrain train configs/text/minilm_l6.yaml train.weights.file=model.safetensors data.train.path=questions.tsv data.val.path=validation.tsv data.train.tokenizer_file=tokenizer.json
minutes (text_lines_test.sh)|mxtrain synth data/lines --task text_lines
minutes (text_lines_test.sh)|mxtrain init data/lines
minutes (text_lines_test.sh)|mxtrain check lines.yaml
minutes (text_lines_test.sh)|mxtrain train lines.yaml
minutes (text_lines_test.sh)|text_lines: mxtrain eval runs/latest
minutes (text_lines_test.sh)|mxtrain infer runs/latest FOLDER --format csv
END
)
used=$work/used
: >"$used"

# --- what the pages take for granted
fixtures=$work/fixtures
mkdir "$fixtures"
cd "$fixtures" || exit 1
"$program" synth photos --count 120 --classes 2 --size 24 -q >/dev/null
cp -r photos/val more_photos
mkdir NEW_IMAGES inbox
for class in photos/val/*; do cp "$(find "$class" -type f | sort | head -1)" "NEW_IMAGES/$(basename "$class").png"; done
cp NEW_IMAGES/* inbox
"$helper" jpeg photo.jpg 40
tar cf photos.tar photos/train
ln -s "$source_dir/configs" configs
write_photos photos/train photos/val 4
# With transforms that an exported file can do.
sed 's/- Flatten$/- Flatten: {name: features}/; s/{resize: \[8, 8\]}/{resize: {size: [8, 8], interpolation: bilinear, antialias: true}}/' photos.yaml >small.yaml
rm photos.yaml
cd "$work" || exit 1
mkdir bin
ln -s "$program" bin/mxtrain
PATH=$work/bin:$PATH

# commands FILE: those in blocks of the page, joined where they continue, without comments.
commands() {
  awk '/^```/ { inside = !inside; plain = ($0 == "```"); next }
    (inside && plain) || /^    (mxtrain|ls|cat) / || continues { sub(/^ +/, ""); continues = /\\$/; print }' "$1" | joined
}
joined() {
  sed -E 's/ +# .*//' | awk '{ line = line $0 }
    /\\$/ { sub(/ *\\$/, " ", line); next }
    / &&$/ { line = line " "; next }
    { print line; line = "" }' | sed -E 's/  +/ /g' | grep -E '^(mxtrain|(ls|cat) [^|]*\| mxtrain) '
}

# run WHERE LINE: in the working folder; a recipe that was written trains for one epoch.
run() {
  checks=$((checks + 1))
  last="$1: $2"
  timeout 300 bash -o pipefail -c "$2" >stdout 2>stderr </dev/null
  local code=$?
  [ $code -eq 0 ] || fail "$last: exit code $code"
  case $2 in "mxtrain init "*) sed -i 's/^  epochs: .*/  epochs: 1/' ./*.yaml ;; esac
}

page() { # NAME COMMAND...: what the command lists, in a folder of its own
  rm -rf page
  cp -r "$fixtures" page
  pushd page >/dev/null || exit 1
  ! type "before_$1" >/dev/null 2>&1 || "before_$1"
  while IFS= read -r line; do
    if grep -xF -e "$line" -e "$1: $line" <(cut -d'|' -f2- <<<"$listed") >>"$used"; then
      continue
    else
      run "$1" "$line"
    fi
    ! type "between_${1#help_}" >/dev/null 2>&1 || "between_${1#help_}"
  done < <("${@:2}")
  ! type "after_$1" >/dev/null 2>&1 || "after_$1"
  popd >/dev/null || exit 1
}

small_run() { # photos.yaml and a run of it
  cp small.yaml photos.yaml
  mxtrain train photos.yaml -q
}
before_answers() {
  small_run
  for set in train val; do find photos/$set -type f | sort | awk -F/ -v OFS='\t' '{ print $0, $(NF - 1), NR % 3 }' >$set.txt; done
  sed 's/source: image_folder, path: photos\/\([a-z]*\)/source: list, path: \1.txt, columns: {weight: 2}/' small.yaml >weighted.yaml
  grep -c 'columns: {weight: 2}' weighted.yaml | grep -qx 2 || fail "weighted.yaml has no weights"
}
before_experiments() { cp small.yaml photos.yaml; }
before_fine_tuning() {
  small_run
  cp small.yaml shoes.yaml
}
before_gpu() { cp small.yaml photos.yaml; }
before_nets() { cp small.yaml photos.yaml; }
before_onnx() {
  small_run
  mxtrain export runs/latest resnet18.onnx -q >/dev/null
}
before_runs() { cp small.yaml photos.yaml; }
# A second night, and one with another recipe of the same name.
after_runs() {
  run runs "$(commands "$source_dir/lib/docs/user_guide/runs.md" | head -1)"
  holds "there is no run of that name" test -e runs/photos-0001
  holds "the second night began a run of its own" test ! -e runs/photos-0002
}
write_texts() {
  for i in $(seq 4000); do echo "To be, or not to be, $i times"; done >plays.txt
  { printf 'label\ttext\n'; for i in $(seq 60); do printf 'class%d\twhat is number %d\n' $((i % 3)) "$i"; done; } >questions.tsv
  printf 'what is number 3\nwhat is it\n' >new_questions.txt
  for i in $(seq 200); do echo '{"prompt": "Who wrote Hamlet?", "completion": "Shakespeare, '$i' times."}'; done >chats.jsonl
  mkdir corpus shards
  for i in 0 1; do printf '{"body": "To be, or not"}\n{"body": "to be"}\n' >shards/part$i.jsonl; done
  for text in "$source_dir"/lib/docs/*.md; do cp "$text" "corpus/$(basename "$text" .md).txt"; done
  cp "$source_dir/README.md" more.txt
  cp more.txt other.txt
}
write_houses() {
  { echo id,area,rooms,town,price; for i in $(seq 60); do echo "h$i,$((50 + i * 7 % 90)),$((1 + i % 5)),town$((i % 4)),$((100 + i * 7 % 90 + 10 * (i % 5)))"; done; } >houses.csv
  cut -d, -f1-4 houses.csv | head -6 >new.csv
}
before_text() { write_texts; }
before_text_classes() { write_texts; }
before_tables() { write_houses; }
before_help_init() { write_houses; }
before_speed() { cp small.yaml photos.yaml; }

# The examples of the help, which may be alternatives: between_COMMAND makes room for the next one.
examples() {
  COLUMNS=1000 mxtrain "$1" --help | awk '/^Examples:/ { on = 1; next } on && /^$/ { exit } on { sub(/^ +/, ""); print }' | joined
}
with_config() { cp small.yaml config.yaml; }
before_help_check() {
  rm -r photos
  cp -r "$fixtures/photos/train" photos
  sed 's,photos/train,photos,; s,photos/val,more_photos,' small.yaml >config.yaml
}
before_help_train() {
  with_config
  mxtrain train config.yaml -q # what --extend continues
}
before_help_eval() {
  small_run
  cp runs/latest/checkpoints/best model.ckpt
  cp -r photos/val photos/validation
  cp -r photos/val photos/test
}
before_help_infer() {
  small_run
  cp photos.tar photos.zip # what an archive is, its first bytes say
}
before_help_export() { small_run; }
between_export() { rm -f lenet.onnx; }
before_help_import() { before_onnx; }
before_help_plan() { with_config; }
before_help_bench() { with_config; }
before_help_lr_find() { with_config; }
before_help_sweep() { with_config; }
before_help_runs() {
  with_config
  mxtrain sweep config.yaml 'train.optimizer.lr=[0.1]' --out runs/lenet-sweep -q >/dev/null
}
before_help_diff() {
  for _ in 1 2; do mxtrain train small.yaml --name lenet -q; done
}
before_help_verify_resume() { sed 's/epochs: 1/epochs: 20/' small.yaml >config.yaml; }
between_sweep() { rm -rf runs; }
between_synth() { rm -rf data; }
before_help_tokenize() { write_texts; }
before_help_completion() {
  export HOME=$PWD
  mkdir -p .zfunc .config/fish/completions
}

page README commands "$source_dir/README.md"
for file in "$source_dir"/lib/docs/user_guide/*.md; do page "$(basename "$file" .md)" commands "$file"; done
for command in $(mxtrain --help | sed -n '/^Subcommands:/,$p' | awk '/^  [a-z]/ { print $1 }'); do
  page "help_${command//-/_}" examples "$command"
done

while IFS='|' read -r reason line; do
  holds "listed ($reason), and in no page: $line" grep -qxF -- "$line" "$used"
done <<<"$listed"
finish

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every shipped configuration trains two steps and validates, on small data of its kind. Only the paths, the number of steps and, for
# large images and a thousand layers, the batch size (2) are changed. The largest nets of a family are planned only.
. "$(dirname "$0")/common.sh"

# --- the kinds of data: idx and CIFAR files, images of 32 x 32 and photographs in class folders, tables
"$helper" idx mnist 300 28
mkdir cifar10
head -c 3072 /dev/urandom >pixels
for file in data_batch_1 data_batch_2 data_batch_3 data_batch_4 data_batch_5 test_batch; do
  for i in $(seq 60); do printf "\\x0$((i % 10))" && cat pixels; done >cifar10/$file.bin
done
images() { # FOLDER COUNT SIDE: JPEG files in two classes
  "$helper" jpeg side.jpg "$3"
  for class in cat dog; do
    mkdir -p "$1/$class"
    for i in $(seq "$2"); do cp side.jpg "$1/$class/$i.jpg"; done
  done
}
images folders/train 128 32
images folders/test 5 32
images photos/train 20 270
images photos/validation 3 301
{ echo x0,x1,x2,y && for i in $(seq 40); do echo "0.$i,-0.5,$((i % 3)),1.$i"; done; } >points.csv
{ echo left_x,left_y,right_x,right_y,same,distance && for i in $(seq 40); do echo "0.$i,1,-1,0.5,$((i % 2)),1.$i"; done; } >pairs.csv

: >tried
shipped() { # FILE ARGUMENT...
  local file=$1
  shift
  expect 0 train "$source_dir/configs/$file" --out run --overwrite train.max_steps=2 -q "$@"
  expect 0 eval run
  echo "$file" >>tried
}
train() { echo "data.train.path=$1"; }
val() { echo "data.val.path=$1"; }
for net in mlp lenet denoise; do shipped mnist/$net.yaml "$(train mnist)" "$(val mnist)"; done
shipped cifar/resnet20.yaml "$(train cifar10)" "$(val cifar10)"
# Its number of classes is known without the files.
expect 0 plan "$source_dir/configs/cifar/resnet20.yaml" data.train.path=absent data.val.path=absent
prints ", 10]"
shipped cifar/resnet20_folders.yaml "$(train folders/train)" "$(val folders/test)"
shipped cifar/resnet1001.yaml "$(train cifar10)" "$(val cifar10)" data.batch_size=2
shipped clothing/resnet18.yaml "$(train photos/train)" "$(val photos/validation)"
holds "the run lacks the numbers of normalize: imagenet" \
  grep -qF '{name: normalize, mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225]}' run/config.yaml
expect 0 export run clothing@1
says "with mean=(0.485, 0.456, 0.406) std=(0.229, 0.224, 0.225)"
shipped quickstart.yaml "$(train photos/train)" "$(val photos/validation)"
for net in alexnet convnext_tiny densenet121 efficientnet_b0 efficientnet_lite0 efficientnet_v2_s googlenet inception_v3 mnasnet1_0 mobilenet_v2 \
  mobilenet_v3_large mobilenet_v3_small regnet_y_400mf resnet18 resnet50 shufflenet_v2_x1_0 squeezenet1_1 swin_t \
  vgg16 vit_tiny_patch16_224; do
  shipped imagenet/$net.yaml "$(train photos/train)" "$(val photos/validation)" data.batch_size=2
done
# Larger nets of the same families, which set variables of those, are planned only.
for net in resnet34 resnet101 resnet152 resnext50_32x4d wide_resnet50_2 vgg11 vgg11_bn vgg13 vgg13_bn vgg16_bn vgg19 vgg19_bn vit_b_16 \
  vit_small_patch16_224; do
  expect 0 plan "$source_dir/configs/imagenet/$net.yaml" data.batch_size=2
  echo "imagenet/$net.yaml" >>tried
done
# Nets for masks; those on ResNet-50, which have the same heads, are planned only.
expect 0 synth shapes --task segmentation --count 12 --classes 3 --size 64 --val 0.25
for net in lraspp_mobilenet_v3_large deeplabv3_mobilenet_v3_large; do
  shipped segmentation/$net.yaml data.train.path=shapes/train/images data.train.targets=shapes/train/masks \
    data.val.path=shapes/val/images data.val.targets=shapes/val/masks vars.size=75 data.batch_size=2
done
for net in deeplabv3_resnet50 fcn_resnet50; do
  expect 0 plan "$source_dir/configs/segmentation/$net.yaml" data.batch_size=2
  echo "segmentation/$net.yaml" >>tried
done
# Detectors; the larger ones are planned only.
expect 0 synth objects --task detection --count 12 --classes 3 --size 64 --val 0.34
shipped detection/yolox_nano.yaml data.train.source=yolo data.train.path=objects/train data.train.root=null data.val.source=yolo data.val.path=objects/val \
  data.val.root=null vars.size=64 data.batch_size=4
for net in yolox_tiny yolox_s; do
  expect 0 plan "$source_dir/configs/detection/$net.yaml" data.batch_size=2
  echo "detection/$net.yaml" >>tried
done
shipped detection/ssdlite320_mobilenet_v3_large.yaml data.train.source=yolo data.train.path=objects/train data.train.root=null data.train.classes=null \
  data.val.source=yolo data.val.path=objects/val data.val.root=null vars.classes=3 vars.size=128 data.batch_size=2
expect 0 plan "$source_dir/configs/detection/fasterrcnn_resnet50_fpn.yaml" data.batch_size=1 vars.size=320
echo "detection/fasterrcnn_resnet50_fpn.yaml" >>tried
for i in $(seq 400); do echo "$i lines are $((i + 1)) lines but one."; done >lines.txt
shipped text/characters.yaml "$(train lines.txt)" "$(val lines.txt)"
shipped text/words_lstm_small.yaml "$(train lines.txt)" "$(val lines.txt)"
"$program" tokenize lines.txt --train 270 --save tokenizer.json >/dev/null 2>&1
shipped text/gpt2_124m.yaml "$(train lines.txt)" "$(val lines.txt)" data.train.tokenizer_file=tokenizer.json vars.length=16 data.batch_size=2
expect 0 plan "$source_dir/configs/text/gpt2_355m.yaml" "$(train lines.txt)" "$(val lines.txt)" data.train.tokenizer_file=tokenizer.json data.batch_size=1
echo text/gpt2_355m.yaml >>tried
shipped text/llama.yaml "$(train lines.txt)" "$(val lines.txt)" vars.length=32
shipped text/smollm2_135m.yaml "$(train lines.txt)" "$(val lines.txt)" data.train.tokenizer_file=tokenizer.json vars.length=16 vars.units=2 data.batch_size=2
expect 0 plan "$source_dir/configs/text/smollm2_360m.yaml" "$(train lines.txt)" "$(val lines.txt)" data.train.tokenizer_file=tokenizer.json data.batch_size=1 vars.length=64
echo text/smollm2_360m.yaml >>tried
{ echo label,title,description && for i in $(seq 60); do echo "c$((i % 3)),word$((i % 7)) title,\"some text, number $((i % 11))\""; done; } >texts.csv
shipped text/bag_of_ngrams.yaml "$(train texts.csv)" "$(val texts.csv)"
shipped text/cnn.yaml "$(train texts.csv)" "$(val texts.csv)" data.train.text_columns=description data.val.text_columns=description
cat >wordpiece.json <<'END'
{"version": "1.0", "added_tokens": [{"id": 0, "content": "[PAD]", "special": true}, {"id": 1, "content": "[UNK]", "special": true},
   {"id": 2, "content": "[CLS]", "special": true}, {"id": 3, "content": "[SEP]", "special": true}],
 "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null, "lowercase": true},
 "pre_tokenizer": {"type": "BertPreTokenizer"},
 "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
     {"SpecialToken": {"id": "[SEP]", "type_id": 0}}], "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
   "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [2], "tokens": ["[CLS]"]}, "[SEP]": {"id": "[SEP]", "ids": [3], "tokens": ["[SEP]"]}}},
 "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
 "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
   "vocab": {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "some": 4, "text": 5, ",": 6, "number": 7, "1": 8, "##0": 9, "2": 10, "3": 11, "title": 12, "word": 13}}}
END
shipped text/minilm_l6.yaml "$(train texts.csv)" "$(val texts.csv)" data.train.tokenizer_file=wordpiece.json data.train.text_columns=description \
  data.val.text_columns=description vars.length=12 data.batch_size=8
expect 0 plan "$source_dir/configs/text/bert_base.yaml" "$(train texts.csv)" "$(val texts.csv)" data.train.tokenizer_file=wordpiece.json \
  data.train.text_columns=description data.val.text_columns=description data.batch_size=2
echo text/bert_base.yaml >>tried
expect 0 synth lines --task text_lines --count 80 --size 40
shipped text/crnn.yaml "$(train lines/train.tsv)" "$(val lines/val.tsv)"
shipped regression/smooth_l1.yaml "$(train points.csv)"
shipped siamese/pairs.yaml "$(train pairs.csv)"

# A net is in a file that is no part of another (common) and no list of names; a decoder continues one (masks_test.sh).
(cd "$source_dir/configs" && grep -rl '^net:\|^include:' --include='*.yaml' --exclude-dir=decoders --exclude-dir=common .) | sed 's|^\./||' | sort >shipped
holds "a configuration was not tried: $(sort tried | diff - shipped)" cmp -s <(sort tried) shipped

# --- where images differ in size, two are named
mv side.jpg folders/test/dog/odd.jpg
expect 3 train "$source_dir/configs/cifar/resnet20_folders.yaml" --out run --overwrite -q "$(train folders/train)" "$(val folders/test)"
says "the transforms produce images of different sizes: $work/folders/test/cat/1.jpg has 32x32 pixels, $work/folders/test/dog/odd.jpg has 301x301;"
finish

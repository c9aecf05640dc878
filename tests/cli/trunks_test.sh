#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A net that comes with the program as the trunk of another one (net.until): several inputs and heads on weights that were trained for one,
# with features that are computed once; and the configurations that `init` writes for a table of images.
. "$(dirname "$0")/common.sh"

"$helper" images photos 30                # photos/light, photos/dark
awk 'BEGIN { print "photo,width,weight,town,kind,tags,price"; n = 0
  split("Ahead,Boom,Cede", towns, ",")
  while (("find photos -type f | sort" | getline file) > 0) { ++n; bright = file ~ /light/; width = n * 37 % 50; weight = n * 11 % 7
    printf "%s,%d,%d,%s,%s,%s,%d\n", file, width, weight, towns[n % 3 + 1], (bright ? "light" : "dark"), (n % 2 ? "old" : "old;new"), 20 + 10 * bright + width - 2 * weight } }' \
  >items.csv
cat >whole.yaml <<'END'
net: {use: squeezenet1_1, input: [3, 48, 48]}
data: {batch_size: 8, train: {source: image_folder, path: photos, transforms: [{resize: [48, 48]}, {normalize: imagenet}]}}
train: {epochs: 1, max_steps: 1, optimizer: {lr: 0.001}}
END
expect 0 train whole.yaml net.use=efficientnet_lite0 --out lite -q

# --- two heads and a second input on a trunk
cat >two.yaml <<'END'
net:
  use: efficientnet_lite0
  until: features
  inputs: {data: [3, 48, 48], size: [2]}
  layers:
    - FullyConnected: {name: kinds, num_hidden: "${classes}"}
    - SoftmaxOutput: {name: kind}
    - FullyConnected: {name: size_row, inputs: size, num_hidden: 4}
    - Concat: {name: row, inputs: [features, size_row], dim: 1}
    - FullyConnected: {name: value, num_hidden: 1}
    - LinearRegressionOutput: {name: price}
vars: {stochastic_depth: 0}
data:
  batch_size: 8
  exact_decode: true
  train:
    source: csv
    path: items.csv
    columns: {data: photo, size: [width, weight], kind_label: kind, price_label: price}
    normalize: auto
    transforms: [{resize: {size: [48, 48], interpolation: bilinear, antialias: true}}, {normalize: imagenet}]
  val: {split: 0.2}
train: {epochs: 2, weights: lite, optimizer: {name: adamw, lr: 0.001}}
END
expect 0 check two.yaml
expect 0 train two.yaml --out two
says "245 arrays taken; 6 are re-initialized, not in the file: kinds_bias, kinds_weight, size_row_bias, size_row_weight, value_bias, value_weight"
expect 0 eval two
prints "price"
expect 0 infer two items.csv --format csv
prints "row,kind_predicted,kind_score,price_predicted_price"
expect 0 plan two.yaml
holds "the trunk's own last layer is there" sh -c '! grep -q "SoftmaxOutput *softmax" stdout'
expect 3 check two.yaml net.until=feature
says "command line:1:11: error: net.until: efficientnet_lite0 has no stage or layer 'feature'; did you mean 'features'?"
says "its stages are stride2, stride4, stride8, stride16, stride32; its layers are stem, stage1,"
expect 3 check two.yaml net.until=stage3
says "two.yaml:9:36: error: 'features' is a layer of efficientnet_lite0 behind 'stage3', where net.until ends it"

# --- the features are computed once, and the numbers stay beside them; stopped and resumed, the run ends in the same weights
frozen=(data.cache=features 'train.freeze={except: [kinds_*, size_row_*, value_*], global_stats: true}' train.epochs=3)
expect 0 plan two.yaml "${frozen[@]}"
prints "are computed once: 1282 numbers for each example"
expect 0 train two.yaml --out plain "${frozen[@]:1}" -q
expect 0 train two.yaml --out cached "${frozen[@]}"
says "1282 numbers for each image"
expect 0 train two.yaml --out stopped "${frozen[@]}" train.max_steps=9 -q
expect 0 train stopped --resume train.max_steps=null -q
holds "a resumed run ends otherwise" "$helper" compare cached/checkpoints/last stopped/checkpoints/last
for run in plain cached; do
  expect 0 infer $run items.csv --format csv --output $run.csv
done
holds "predictions of a run on features differ" awk -F, 'FNR == 1 { next } NR == FNR { value[FNR] = $4; next }
  { d = value[FNR] - $4; if (d > 0.001 || d < -0.001) exit 1 }' plain.csv cached.csv

# --- other programs compute the same: reference/check_image_table_export.py, where its packages are
expect 0 export two two.onnx
says "'size' [N, 2]: columns width, weight of the table"
if command -v python3 >/dev/null && python3 -c 'import numpy, onnxruntime, PIL' 2>/dev/null; then
  expect 0 infer two items.csv --format csv --output mine.csv
  python3 "$source_dir/tests/reference/check_image_table_export.py" two.onnx items.csv mine.csv 48 || fail "onnxruntime differs"
fi

# --- init: a number, a class, several classes, with and without a net; the columns beside the images
expect 0 init items.csv --output price.yaml
prints "price.yaml: 60 rows, a fifth to validate; the column 'photo' holds images"
prints "what is predicted: price, numbers from "
prints "beside the images: 2 columns of numbers, 3 of words"
expect 0 train price.yaml --out price train.epochs=1 -q
expect 0 init items.csv --target kind --net efficientnet_lite0 --weights lite --size 32 --output kind.yaml
prints "what is predicted: kind, 2 classes"
for line in '  until: features ' '    data: [3, 32, 32]' '  stochastic_depth: 0' \
  'lr_schedule: {name: one_cycle}' '    - SoftmaxOutput: {name: kind, smooth_alpha: 0.1}'; do
  holds "the recipe for classes lacks: $line" grep -qF -e "$line" kind.yaml
done
expect 0 train kind.yaml --out kind train.max_steps=2 -q
expect 0 infer kind items.csv --format csv
expect 0 init items.csv --target tags --net efficientnet_lite0 --weights lite --size 32 --head-only --output tags.yaml
prints "what is predicted: tags, any of 2 classes, ';' between them"
expect 0 train tags.yaml --out tags train.epochs=2
says "numbers for each image"
expect 0 eval tags
expect 2 init items.csv --target prise --output none.yaml
says "--target prise: items.csv has no such column beside the images; did you mean 'price'?"
expect 2 init items.csv --net squeezenet1_1 --output none.yaml
says "--net squeezenet1_1: its last layer reads no row of features"
# Without its images the table is one of words and numbers.
mkdir elsewhere && cp items.csv elsewhere
expect 0 init elsewhere/items.csv --output words.yaml
prints "not read: photo (60 different words)"
finish

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Configurations are YAML: another parser reads the shipped ones, what the program writes (init, config.yaml of a run) and the blocks of
# the documentation, they are valid by the program's JSON schema, and the program reads the same files. Without that parser the test ends
# with 77, which ctest shows as skipped.
. "$(dirname "$0")/common.sh"

# --- every kind of net and data that `init` writes: by edge, number of classes, validation set, and names that need quotes
folder() { # NAME CLASSES IMAGES SIDE
  "$helper" jpeg side.jpg "$4"
  for class in $(seq "$2"); do
    mkdir -p "$1/class $class"
    for i in $(seq "$3"); do cp side.jpg "$1/class $class/$i.jpg"; done
  done
}
folder tiny 2 3 32
folder many 12 40 40
folder middle 2 20 70
folder large 2 4 140
folder sets/train 2 6 64
folder sets/val 2 2 64
folder sets/test 2 2 64
folder "it's: {a} \"b\" #c, [d]" 2 3 32
mkdir -p "odd/- x: y" "odd/\${z} #1"
cp tiny/class\ 1/*.jpg "odd/- x: y" && cp tiny/class\ 1/*.jpg "odd/\${z} #1"
mkdir init
count=0
for name in tiny many middle large sets "it's: {a} \"b\" #c, [d]" odd; do
  for size in "" "--size 24" "--size 64" "--size 100"; do
    count=$((count + 1))
    # shellcheck disable=SC2086 # two words
    expect 0 init "$name" --output init/$count.yaml $size
    expect 0 plan init/$count.yaml
  done
done
expect 0 train init/1.yaml --out run train.max_steps=1 data.batch_size=2 train.optimizer.lr=4e-06 -q
cp run/config.yaml init/resolved.yaml
expect 0 plan init/resolved.yaml
cat >numbers.yaml <<'END'
include: init/1.yaml
net:
  layers:
    - Flatten: {name: 010}
    - FullyConnected: {name: 1e5, num_hidden: 02, inputs: 010}
    - Dropout: {name: 1_0, p: 5e-1}
    - SoftmaxOutput: {name: 007}
train: {metrics: [{name: accuracy, output: 007}]}
END
expect 0 train numbers.yaml --out numbers train.max_steps=1 data.batch_size=2 -q
cp numbers/config.yaml init/numbers.yaml
expect 0 plan init/numbers.yaml

# --- what is not YAML is refused with its place and the text in quotes
printf 'net: {input: [4], layers: [{FullyConnected: {num_hidden: ${width}}}, SoftmaxOutput]}\n' >bare.yaml
expect 3 plan bare.yaml
says 'bare.yaml:1:58: error: quote "${width}" inside {...} or [...]: YAML reads { as the beginning of a mapping'

# --- the other parser
expect 0 check --schema
cp stdout schema.json
mkdir -p configs/blocks
cp -r "$source_dir/configs/common" configs/
checks=$((checks + 1))
code=77
if ! command -v python3 >/dev/null; then
  echo "skipped: no python3; needs the packages python3-yaml and python3-jsonschema" >stdout
else
  python3 "$source_dir/tests/cli/strict_yaml.py" schema.json "$source_dir" configs/blocks init/*.yaml >stdout 2>stderr
  code=$?
fi
if [ $code -eq 77 ] && [ "$failures" -eq 0 ]; then
  cat stdout
  exit 77
fi
[ $code -eq 0 ] || fail "configurations are not strict YAML, or not valid by the schema"
for i in $(seq 400); do echo "To be, or not to be, $i times"; done >configs/blocks/plays.txt  # the tokens of a net of text are those of its data
for i in $(seq 40); do printf 'class%d\twhat is number %d\n' $((i % 3)) "$i"; done | cat <(printf 'label\ttext\n') - >configs/blocks/questions.tsv
for block in configs/blocks/*.yaml; do expect 0 plan "$block"; done
finish

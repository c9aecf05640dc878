# SPDX-License-Identifier: Apache-2.0
# Sourced by the CLI tests: sets up a temporary working folder, and defines checks that print what they saw.
set -u
program=${MXTRAIN_PROGRAM:?the built program}
helper=${MXTRAIN_CLI_HELPER:?the built helper}
faults=${MXTRAIN_FAULTS_LIBRARY:?the built library of faults}
campaign=${MXTRAIN_FAULT_CAMPAIGN:?the built fault_campaign}
plugin=${MXTRAIN_TEST_PLUGIN:?a built plug-in, with the operator twice}
source_dir=${MXTRAIN_SOURCE_DIR:?the source tree}
unset NO_COLOR FORCE_COLOR MXTRAIN_SAVE_DELAY_MS MXTRAIN_STEP_DELAY_MS
work=$(mktemp -d "${TMPDIR:-/tmp}/mxtrain-cli-XXXXXX")
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
cd "$work" || exit 1
checks=0
failures=0

fail() {
  failures=$((failures + 1))
  printf 'FAILED: %s\n' "$1"
  [ -s stdout ] && sed 's/^/  stdout: /' stdout | cut -c1-500 | head -20
  [ -s stderr ] && sed 's/^/  stderr: /' stderr | cut -c1-500 | head -20
}

# expect CODE ARGUMENT...: runs the program; its output is in the files stdout and stderr.
expect() {
  local wanted=$1
  shift
  checks=$((checks + 1))
  last="mxtrain $*"
  "$program" "$@" >stdout 2>stderr
  local code=$?
  [ $code -eq "$wanted" ] || fail "$last: exit code $code, expected $wanted"
}

# says TEXT: the last run's stderr contains this text. prints TEXT: its stdout does.
says() {
  checks=$((checks + 1))
  grep -qF -- "$1" stderr || fail "$last: stderr lacks: $1"
}
prints() {
  checks=$((checks + 1))
  grep -qF -- "$1" stdout || fail "$last: stdout lacks: $1"
}

# holds MESSAGE COMMAND...: the command succeeds.
holds() {
  checks=$((checks + 1))
  local message=$1
  shift
  "$@" || fail "$message"
}

# Whether the CPU trains in bfloat16: by the processor and the build, as the program reports them.
computes_bfloat16() {
  "$program" devices 2>/dev/null | grep -qE '^cpu .*avx512_bf16.*, oneDNN [0-9]'
}

# Sets mnist, the folder of MNIST: in MXTRAIN_DATA_DIR; if that is not set, in data/ of the source tree or in ../shared/data beside it. Without
# it the test ends here with 77, which ctest shows as skipped.
need_mnist() {
  local bases=("$source_dir/data" "$source_dir/../shared/data") base
  [ -z "${MXTRAIN_DATA_DIR:-}" ] || bases=("$MXTRAIN_DATA_DIR")
  for base in "${bases[@]}"; do
    mnist=$base/mnist
    [ ! -e "$mnist/t10k-images-idx3-ubyte.gz" ] || return 0
  done
  echo "skipped: no mnist; set MXTRAIN_DATA_DIR to the folder that holds it"
  exit 77
}

# points.yaml and its table: a net and a run that are fast.
write_points() {
  cat >points.yaml <<'END'
name: points
net:
  input: [3]
  layers:
    - FullyConnected: {num_hidden: 2}
    - SoftmaxOutput: {name: softmax}
data:
  batch_size: 4
  train: {source: csv, path: points.csv, columns: {data: [a, b, c], softmax_label: y}, shuffle: true}
train: {epochs: 2, metrics: [accuracy]}
END
  { echo a,b,c,y; for i in $(seq 16); do echo "$((i % 3)),$((i * 7 % 5)),$((i * 3 % 4)),$((i % 2))"; done; } >points.csv
}

# deep.yaml: the points through two layers, which diverge at a high learning rate.
write_deep() {
  cat >deep.yaml <<'END'
include: points.yaml
name: deep
net:
  layers:
    - FullyConnected: {name: first, num_hidden: 8}
    - FullyConnected: {name: second, num_hidden: 2}
    - SoftmaxOutput: {name: softmax}
END
}

# write_photos TRAIN VALIDATION BATCH: photos.yaml, a net on images of 8x8 in folders of classes.
write_photos() {
  cat >photos.yaml <<END
name: photos
net:
  input: [3, 8, 8]
  layers:
    - Flatten
    - FullyConnected: {num_hidden: "\${classes}"}
    - SoftmaxOutput: {name: softmax}
data:
  batch_size: $3
  train: {source: image_folder, path: $1, transforms: [{random_resized_crop: 8}], shuffle: true}
  val: {source: image_folder, path: $2, transforms: [{resize: [8, 8]}]}
train: {epochs: 1, optimizer: {name: sgd, lr: 0.1}, metrics: [accuracy]}
END
}

# Waits, at most a minute, until a file of another process is not empty.
wait_for() {
  for _ in $(seq 600); do
    [ -s "$1" ] && return
    sleep 0.1
  done
  fail "$1 did not come"
}

finish() {
  printf '%d checks, %d failed\n' "$checks" "$failures"
  [ "$failures" -eq 0 ]
  exit
}

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Two processes of one run that were started with different flags, configurations, files or environments: each pair is refused by the name of
# what differs, before a run is made, and neither waits for the other. What each process may have as it likes is accepted.
#   mixed_ranks_test.sh MPI     openmpi or mpich
. "$(dirname "$0")/common.sh"
. "$source_dir/tests/cli/ranks.sh" "$1"
pairs=0

# Each rank starts in a folder of its own, with its own files. The names of these are the same for both: /proc/self/cwd/points.csv.
mkdir rank0 rank1
write_points
cat >rank0/net.yaml <<'END_OF_NET'
include: part.yaml
name: mixed
seed: 3
vars: {hidden: 8}
net:
  input: [3]
  layers:
    - FullyConnected: {name: first, num_hidden: "${hidden}", no_bias: true}
    - BatchNorm: {name: norm}
    - Activation: {act_type: relu}
    - FullyConnected: {name: second, num_hidden: "${classes}", no_bias: true}
    - SoftmaxOutput: {name: softmax}
data:
  batch_size: 8
  train: {source: csv, path: /proc/self/cwd/points.csv, columns: {data: [a, b, c], softmax_label: y}}
  val: {source: csv, path: /proc/self/cwd/val.csv, columns: {data: [a, b, c], softmax_label: y}}
train: {epochs: 1, optimizer: {name: sgd, lr: "${RATE:-0.05}"}, metrics: [accuracy], kvstore: {timeout: 40s}}
END_OF_NET
echo 'train: {clip: {norm: 5}}' >rank0/part.yaml
sed '2,$s/1$/right/; 2,$s/0$/left/' points.csv >rank0/points.csv
cp rank0/points.csv rank0/val.csv
for n in 1 2; do
  (cd rank0 && "$program" train net.yaml --out ../trained$n -q --threads 1 train.optimizer.lr=0.0$n) || fail "no run to begin with"
  "$program" export trained$n weights$n.safetensors -q >/dev/null
done
cp weights1.safetensors rank0/w.safetensors
cp trained1/checkpoints/last rank0/c.ckpt
cp rank0/* rank1

# train ARGUMENTS: the command of a rank, words of the shell, with what it does not say otherwise; NAME=VALUE before them is its environment.
train() {
  local environment= arguments=$1
  while [[ $arguments =~ ^([A-Z_]+=[^ ]*)\ ?(.*)$ ]]; do environment+="${BASH_REMATCH[1]} " arguments=${BASH_REMATCH[2]}; done
  [[ $arguments == *--kvstore* ]] || arguments+=" --kvstore dist_sync"
  [[ $arguments == *--threads* ]] || arguments+=" --threads 1"
  [[ $arguments == *--out* || $arguments == *--name* ]] || arguments+=" --out '$work/mixed'"
  [[ $arguments == *-v* ]] || arguments+=" -q"
  echo "env $environment'$program' train net.yaml $arguments"
}
# start CODE FIRST SECOND: the arguments of rank 0 and of rank 1, which both end with CODE. The launcher, which waits a second once one has
# failed, does not see it.
start() {
  rm -f code0 code1
  timeout -k 5 60 "$mpirun" "${flags[@]}" -n 1 bash -c "cd rank0; $(train "$2"); echo \$? >../code0" : \
    -n 1 bash -c "cd rank1; $(train "$3"); echo \$? >../code1" </dev/null >stdout 2>stderr
  local codes
  codes=$(cat code0 code1 2>/dev/null | xargs)
  [ "$codes" = "$1 $1" ] || fail "$last: exit codes '$codes', expected $1 of both"
}
# refused CODE TEXT FIRST SECOND
refused() {
  pairs=$((pairs + 1))
  checks=$((checks + 1))
  last="ranks with ($3) and ($4)"
  start "$1" "$3" "$4"
  says "$2"
  holds "$last: a run was made" test ! -e mixed -a ! -e mixed2 -a ! -e rank0/runs -a ! -e rank1/runs
  rm -rf mixed
}
# differs WHAT FIRST SECOND
differs() { refused 3 "rank 1 has another $1 than rank 0; all processes need the same" "$2" "$3"; }
# key NAME VALUE [ARGUMENTS]: only rank 1, or 0, overrides a key; both have the arguments.
key() { refused 3 "rank 1 has another configuration than rank 0: $1" "${3:-}" "'$1=$2' ${3:-}"; }
key0() { refused 3 "rank 1 has another configuration than rank 0: $1" "'$1=$2' ${3:-}" "${3:-}"; }
# file WHAT NAME ARGUMENTS: only rank 1 has the file of stdin by this name.
file() {
  mv "rank1/$2" kept
  cat >"rank1/$2"
  differs "$1" "${3:-}" "${3:-}"
  mv kept "rank1/$2"
}
# accepted FIRST SECOND
accepted() {
  checks=$((checks + 1))
  last="ranks with ($1) and ($2)"
  start 0 "$1" "$2"
  rm -rf mixed
}

# --- flags
differs --dry-run "" --dry-run
differs --dry-run --dry-run ""
differs --resume "" --resume
differs --resume --resume ""
differs --extend --resume --extend
differs --or-begin --resume "--resume --or-begin"
differs --resume-from "" "--resume-from c.ckpt"
differs --resume-from "--resume-from ../trained1/checkpoints/last" "--resume-from ../trained2/checkpoints/last"
differs --overwrite "" --overwrite
differs --out "" "--out '$work/mixed2'"
differs --name "--name a" "--name b"
differs --min-metric "" "--min-metric 0.5"
differs --deterministic --deterministic ""
differs --engine "" "--engine naive"
refused 3 "rank 1 has another configuration than rank 0: seed is 9 instead of 3" "" "--seed 9"
refused 3 "rank 1 has another configuration than rank 0: plugins" "" "--plugin '$plugin'"
refused 2 "--overwrite starts a new run" "" "--resume --overwrite"

# --- keys of the configuration
refused 3 "rank 1 has another configuration than rank 0: train.optimizer.lr is 0.06 instead of 0.05" "" train.optimizer.lr=0.06
refused 3 "rank 1 has another configuration than rank 0: train.kvstore.type is dist_async instead of dist_sync" "" "--kvstore dist_async"
for type in local auto; do
  refused 2 "kvstore '$type' is for one" "" "--kvstore $type"
  refused 2 "kvstore '$type' is for one" "--kvstore $type" ""
done
key vars.hidden 16
key0 vars.hidden 16
key train.optimizer.name adam
key train.optimizer.momentum 0.5
key train.lr_schedule.name cosine
key data.batch_size 16
key train.epochs 2
key train.max_steps 1
key train.metrics '[accuracy,cross_entropy]'
key train.amp bf16
key train.math exact
key train.grad_accum 2
key train.ema.decay 0.9
key train.save.every 1steps
key train.early_stop.patience 1
key train.freeze.layers "[first*]"
key train.initializer.name orthogonal
key train.class_weights auto
key train.kvstore.wire bfloat16
key0 train.kvstore.shard_states true
key train.kvstore.batch per_rank
key0 train.kvstore.sync_batch_norm true
key train.kvstore.timeout 30s
key data.workers 1
key data.train.shuffle false
key train.lora.layers "[first]" "train.weights.file=/proc/self/cwd/w.safetensors"
refused 3 "rank 1: command line:1:7: error: train has no key 'epoch'" "" train.epoch=3

# --- environments and files
refused 3 "rank 1 has another configuration than rank 0: train.optimizer.lr is 0.07 instead of 0.05" "" RATE=0.07
refused 3 "rank 1 has another configuration than rank 0: train.optimizer.lr is 0.05 instead of 0.07" RATE=0.07 ""
weights="train.weights.file=/proc/self/cwd/w.safetensors"
echo 'train: {clip: {norm: 4}}' >rank1/part.yaml
refused 3 "rank 1 has another configuration than rank 0: train.clip.norm is 4 instead of 5" "" ""
cp rank0/part.yaml rank1
file "training data" points.csv < <(head -15 rank0/points.csv)
file "training data" points.csv < <(sed '4s/^./7/' rank0/points.csv)
file "validation data" val.csv < <(sed '4s/^./7/' rank0/points.csv)
sed 's/left/middle/' rank0/points.csv | tee rank1/points.csv >rank1/val.csv
differs "list of classes" "" ""
cp rank0/points.csv rank0/val.csv rank1
file "state of the weights" w.safetensors "$weights" <weights2.safetensors
file "state of the weights" w.safetensors "$weights 'train.freeze={layers: [first*, norm*]}'" <weights2.safetensors
file "checkpoint" c.ckpt "--resume-from /proc/self/cwd/c.ckpt" <trained2/checkpoints/last
# The same weights, but other averages of batch norm: those of a run in which nothing learned.
(cd rank0 && "$program" train net.yaml --out ../averages -q --threads 1 "$weights" train.optimizer.lr=1e-30) \
  || fail "no run with other averages"
"$program" export averages averages.safetensors -q >/dev/null
holds "a weight differs, too" test "$("$helper" compare trained1/checkpoints/last averages/checkpoints/last | grep -vc ^auxiliary)" = 0
file "state of the weights" w.safetensors "$weights" <averages.safetensors

# --- what each may have as it likes
accepted "" "--threads 2 --log-level debug --progress lines --color always"
accepted "" "--json --cpu-workers 1 -v"
accepted "OMP_NUM_THREADS=1" "OMP_NUM_THREADS=2 TMPDIR=/tmp"
accepted "--profile '$work/trace.json'" ""
holds "there are too few pairs: $pairs" test "$pairs" -ge 36
finish

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The log: levels, for all modules and for one, on the terminal and in the run folder's file, and its rotation.
. "$(dirname "$0")/common.sh"

write_points
lacks() {
  checks=$((checks + 1))
  ! grep -qF -- "$2" "$1" || fail "$last: $1 contains: $2"
}
has() {
  checks=$((checks + 1))
  grep -qE -- "$2" "$1" || fail "$last: $1 lacks: $2"
}

# --- by default: info
expect 0 train points.yaml --out plain train.epochs=1
lacks stderr "debug: "
lacks plain/mxtrain.log " debug "
has plain/mxtrain.log '^[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]{8}\.[0-9]{3}[+-][0-9]{2}:[0-9]{2} info program: epoch 1'

# --- debug for all, -v as its short form
expect 0 train points.yaml --out debug train.epochs=1 --log-level debug
says "debug: engine: a worker starts: compute on cpu(0)"
has debug/mxtrain.log ' debug engine: a worker starts: compute on cpu\(0\)$'
has debug/mxtrain.log ' debug executor: .* kernel '
has debug/mxtrain.log ' debug storage: cpu: peak '
has debug/mxtrain.log ' debug io: pipeline: [0-9]+ examples'
has debug/mxtrain.log ' debug kvstore: local, 1 worker$'
expect 0 train points.yaml --out verbose train.epochs=1 -v
has verbose/mxtrain.log ' debug engine: '

# --- for one module
expect 0 train points.yaml --out one train.epochs=1 --log-level warning,io=debug
says "debug: io: pipeline: "
lacks stderr "a worker starts"
lacks one/mxtrain.log " info "
has one/mxtrain.log ' debug io: '

# --- quiet is for the terminal, not for the file
expect 0 train points.yaml --out quiet train.epochs=1 --quiet
lacks stderr "epoch 1"
has quiet/mxtrain.log ' info program: epoch 1/1 '

# --- off, and mistakes
expect 0 train points.yaml --out off train.epochs=1 --log-level off
holds "messages in spite of --log-level off: $(cat stderr)" test ! -s stderr
holds "a log in spite of --log-level off" test ! -s off/mxtrain.log
expect 2 train points.yaml --log-level inof
says "error: log level 'inof': 'inof' is not one of debug, info, warning, error, off; did you mean 'info'?"
expect 2 train points.yaml --log-level enigne=debug
says "there is no log module 'enigne'"
says "did you mean 'engine'?"
expect 2 train points.yaml -v --log-level info
says "-v is short for --log-level debug; give one of them"
expect 2 train points.yaml --log-size huge
says "--log-size 'huge' is not a size; use 16MiB, 500KiB or a number of bytes"

# --- rotation: no message is lost before the oldest file is dropped, and --overwrite removes them all
expect 0 train points.yaml --out rotated train.epochs=30 --log-size 1KiB
for file in rotated/mxtrain.log rotated/mxtrain.1.log rotated/mxtrain.2.log rotated/mxtrain.3.log; do
  holds "$file is not there" test -f $file
  holds "$file is too large" test "$(stat -c %s $file)" -le 1024
done
holds "too many log files" test ! -e rotated/mxtrain.4.log
cat rotated/mxtrain.3.log rotated/mxtrain.2.log rotated/mxtrain.1.log rotated/mxtrain.log | grep -oE ': epoch +[0-9]+/30  train' | grep -oE '[0-9]+/' | tr -d / >epochs
holds "epochs are missing between rotated files: $(tr '\n' ' ' <epochs)" awk 'NR > 1 && $1 != before + 1 { exit 1 } { before = $1 }' epochs
expect 0 train points.yaml --out rotated train.epochs=1 --overwrite
holds "--overwrite keeps old log files" test ! -e rotated/mxtrain.1.log
expect 0 train points.yaml --out endless train.epochs=30 --log-size 0
holds "--log-size 0 rotates" test ! -e endless/mxtrain.1.log

finish

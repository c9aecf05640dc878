#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Does a model that left mxtrain in any of its formats predict what the run predicts?
#
#   check_exports.sh PROGRAM RUN INPUT...      images, folders or a table, as for `PROGRAM infer RUN INPUT...`
#
# Exports the run as a .safetensors file, as MXNet's symbol and .params, and as ONNX, takes each back (weights of a run without a step, a model
# by itself, the net of a run without a step), and compares all predictions with the run's, to the last digit that is written. Prints a line for
# each format; fails where predictions differ. A build without ONNX skips that format.
set -u
program=$1 run=$2
shift 2
work=$(mktemp -d "${TMPDIR:-/tmp}/mxtrain-exports-XXXXXX")
trap 'rm -rf "$work"' EXIT
status=0

predict() {  # MODEL NAME INPUT...
  local model=$1 name=$2
  shift 2
  "$program" infer "$model" "$@" --format csv --output "$work/$name.csv" -q >/dev/null && tail -n +2 "$work/$name.csv" >"$work/$name"
}
compare() {  # FORMAT NAME
  if cmp -s "$work/run" "$work/$2"; then
    echo "$1: $(wc -l <"$work/run") predictions are those of the run"
  else
    echo "$1: predictions differ: $(diff "$work/run" "$work/$2" | grep -c '^<') of $(wc -l <"$work/run")"
    status=1
  fi
}
again() {  # NAME SETTING...: a run of this configuration without a step
  local name=$1
  shift
  "$program" train "$run/config.yaml" --out "$work/again_$name" -q train.epochs=0 "$@" >/dev/null
}

predict "$run" run "$@" || exit 1

"$program" export "$run" "$work/model.safetensors" -q >/dev/null && again safetensors "train.weights.file=$work/model.safetensors" &&
  predict "$work/again_safetensors" safetensors "$@"
compare safetensors safetensors

"$program" export "$run" "$work/model@1" -q >/dev/null && predict "$work/model@1" mxnet "$@"
compare "symbol and .params" mxnet

if "$program" export "$run" "$work/model.onnx" -q >/dev/null 2>"$work/why"; then
  again onnx net.layers=null "net.onnx=$work/model.onnx" && predict "$work/again_onnx" onnx "$@"
  compare ONNX onnx
elif grep -q "this build of mxtrain has no ONNX" "$work/why"; then
  echo "ONNX: skipped: this build has none"
else
  cat "$work/why"
  status=1
fi
exit $status

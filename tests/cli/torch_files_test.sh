#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Weights that PyTorch itself saved, in both forms of torch.save. Without a python3 that has torch the test ends with 77, which ctest shows as
# skipped. MXTRAIN_PYTHON names another program.
. "${MXTRAIN_SOURCE_DIR:?}/tests/cli/common.sh"
python=${MXTRAIN_PYTHON:-python3}
if ! "$python" -c 'import numpy, torch' 2>/dev/null; then
  echo "skipped: $python has no torch and numpy"
  exit 77
fi
write_points

expect 0 train points.yaml --out first
expect 0 eval first --json
accuracy=$(grep -o '"accuracy": *[0-9.]*' stdout)
holds "eval shows no accuracy" test -n "$accuracy"
expect 0 export first net.safetensors
holds "torch does not save" "$python" - <<'P'
import argparse, collections, datetime, enum, functools, json, numpy, pathlib, torch
Mode = enum.Enum("Mode", "FAST SLOW")
data = open("net.safetensors", "rb").read()
size = int.from_bytes(data[:8], "little")
state = {}
for name, item in json.loads(data[8:8 + size]).items():
    if name == "__metadata__":
        continue
    begin, end = item["data_offsets"]
    array = numpy.frombuffer(data[8 + size + begin:8 + size + end], dtype=numpy.float32).reshape(item["shape"])
    state[name] = torch.from_numpy(array.T.copy()).t()  # strides that are not contiguous
for form, new in (("zip", True), ("stream", False)):
    torch.save(state, form + ".pth", _use_new_zipfile_serialization=new)
    torch.save({"epoch": 1, "state_dict": state}, form + "_checkpoint.pt", _use_new_zipfile_serialization=new)
    wrapped = {"module." + name: tensor for name, tensor in state.items()}
    averages = {"n_averaged": torch.tensor(3), **{"module._orig_mod." + name: 2 * tensor for name, tensor in state.items()}}
    torch.save({"model": wrapped, "model_ema": averages, "optimizer": torch.optim.Adam(torch.nn.Linear(2, 1).parameters()).state_dict(),
                "args": argparse.Namespace(lr=0.1, since=datetime.datetime.now(), output=pathlib.Path("/tmp"), mode=Mode.FAST),
                "rng": torch.get_rng_state()}, form + "_scripts.pth", _use_new_zipfile_serialization=new)
    torch.save({"best_acc1": numpy.float64(0.7), "history": numpy.arange(3), "state_dict": collections.OrderedDict(state),
                "seen": {1, 2}, "count": collections.Counter("ab"), "call": functools.partial(print, 1)},
               form + "_numpy.pth", pickle_protocol=2 if form == "stream" else 4, _use_new_zipfile_serialization=new)
    torch.save(torch.nn.Linear(2, 1), form + "_module.pth", _use_new_zipfile_serialization=new)
P
for form in zip stream; do
  for file in $form.pth ${form}_checkpoint.pt; do
    expect 0 train points.yaml --out "run_$file" train.weights="$file" train.optimizer.lr=0 train.epochs=1
    says "weights of $work/$file: 2 arrays taken"
    expect 0 eval "run_$file" --json
    holds "same accuracy as the first run's: $accuracy" grep -qF "$accuracy" stdout
  done
  # As training scripts save it: with the arguments, numbers of NumPy, averages, and wrappers of the net.
  for kind in scripts numpy; do
    expect 0 train points.yaml --out "run_$form$kind" train.weights="${form}_$kind.pth" train.optimizer.lr=0 train.epochs=1
    says "weights of $work/${form}_$kind.pth: 2 arrays taken"
    expect 0 eval "run_$form$kind" --json
    holds "same accuracy as the first run's: $accuracy" grep -qF "$accuracy" stdout
  done
  expect 0 train points.yaml --dry-run train.weights="${form}_scripts.pth"
  says "weights of $work/${form}_scripts.pth: 'model' is read; train.weights.state=model_ema reads 'model_ema' instead"
  says "weights of $work/${form}_scripts.pth: the names begin with 'module.' there, which is removed"
  expect 0 train points.yaml --dry-run train.weights="${form}_scripts.pth" train.weights.state=model_ema
  says "'model_ema' is read; train.weights.state=model reads 'model' instead"
  says "the names begin with 'module._orig_mod.' there"
  says "2 arrays taken; 1 of the file are unused: n_averaged"
  expect 4 train points.yaml --dry-run train.weights="${form}_scripts.pth" train.weights.state=ema
  says "it holds no tensors by name under 'ema'; it does under: 'model', 'model_ema'"
  expect 4 train points.yaml --out third train.weights=${form}_module.pth
  says "saved as a whole module, of 'torch.nn.modules.linear.Linear'"
done
finish

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
import json, numpy, torch
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
    torch.save(torch.nn.Linear(2, 1), form + "_module.pth", _use_new_zipfile_serialization=new)
P
for form in zip stream; do
  for file in $form.pth ${form}_checkpoint.pt; do
    expect 0 train points.yaml --out "run_$file" train.weights="$file" train.optimizer.lr=0 train.epochs=1
    says "weights of $work/$file: 2 arrays taken"
    expect 0 eval "run_$file" --json
    holds "same accuracy as the first run's: $accuracy" grep -qF "$accuracy" stdout
  done
  expect 4 train points.yaml --out third train.weights=${form}_module.pth
  says "saved as a whole module, of 'torch.nn.modules.linear.Linear'"
done
finish

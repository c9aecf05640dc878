#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The operator RNN beside PyTorch's modules: the same outputs and gradients, in float64 and float32?

  check_rnn.py FOLDER [--program PATH] [--filter REGEX]      in an environment with: pip install torch numpy

As check_operators.py, which makes the nets and files: every mode with one to three layers, both directions, lengths (packed sequences) and
projections. PyTorch computes in float64, for the same float32 numbers. Prints the largest differences of each case, relative to the largest
number of an array. Exits with 1 where one exceeds 1e-9 in float64 or 1e-5 in float32, or where a case is refused.
"""
import argparse
import os
import re
import subprocess
import sys
import zlib

import numpy as np
import torch

import check_operators as nets

TOLERANCES = {"float64": 1e-9, "float32": 1e-5}
STEPS, BATCH, INPUTS, UNITS = 9, 5, 6, 7
LENGTHS = [9, 4, 1, 7, 2]


def cases():
    """(mode, layers, directions, projection, lengths)"""
    for mode in "rnn_relu rnn_tanh lstm gru".split():
        for layers, directions in ((1, 1), (1, 2), (2, 1), (3, 2)):
            for lengths in (False, True):
                for projection in ((0, 3) if mode == "lstm" else (0,)):
                    yield mode, layers, directions, projection, lengths


def label(case, kind):
    mode, layers, directions, projection, lengths = case
    return "%s %s, layers %d%s%s%s" % (kind, mode, layers, ", bidirectional" * (directions == 2), ", projection" * (projection > 0), ", lengths" * lengths)


def module_of(case):
    mode, layers, directions, projection, _ = case
    options = {"num_layers": layers, "bidirectional": directions == 2, "dtype": torch.float64}
    if mode == "lstm":
        return torch.nn.LSTM(INPUTS, UNITS, proj_size=projection, **options)
    if mode == "gru":
        return torch.nn.GRU(INPUTS, UNITS, **options)
    return torch.nn.RNN(INPUTS, UNITS, nonlinearity=mode[4:], **options)


def packed_names(module):
    """Its parameters in the order of `parameters`: weights, then biases."""
    directions = module._all_weights  # pylint: disable=protected-access
    return [name for parts in (("weight_ih", "weight_hh", "weight_hr"), ("bias_ih", "bias_hh"))
            for names in directions for part in parts for name in names if name.startswith(part)]


def run_torch(case, module, arrays, heads):
    """Outputs and gradients by their names in the files of check_operators.py."""
    tensors = {name: torch.tensor(value, dtype=torch.float64, requires_grad=True) for name, value in arrays.items() if name != "sequence_length"}
    at, packed = 0, {}
    for name in packed_names(module):
        shape = dict(module.named_parameters())[name].shape
        packed[name] = tensors["parameters"][at:at + shape.numel()].view(shape)
        at += shape.numel()
    states = (tensors["state"], tensors["state_cell"]) if case[0] == "lstm" else tensors["state"]
    data = tensors["data"]
    if case[4]:
        data = torch.nn.utils.rnn.pack_padded_sequence(data, LENGTHS, enforce_sorted=False)
    output, last = torch.func.functional_call(module, packed, (data, states))
    if case[4]:
        output, _ = torch.nn.utils.rnn.pad_packed_sequence(output, total_length=STEPS)
    outputs = [output, *(last if case[0] == "lstm" else [last])]
    if heads is None:
        return [tuple(value.shape) for value in outputs]
    products = [value * torch.tensor(head) for value, head in zip(outputs, heads)]
    sum(product.sum() for product in products).backward()
    run = {"grad:" + name: tensor.grad.numpy() for name, tensor in tensors.items()}
    for i, (product, value) in enumerate(zip(products, outputs)):
        for kind in ("predict:", "train:"):
            run[kind + str(2 * i)], run[kind + str(2 * i + 1)] = product.detach().numpy(), value.detach().numpy()
    return run


def dump(case, kind, folder):
    """Writes the net and PyTorch's run; returns the operator's case and the line of nets.txt."""
    mode, layers, directions, projection, lengths = case
    rng = np.random.RandomState(zlib.crc32(label(case, kind).encode()))
    module = module_of(case)
    count = sum(parameter.numel() for parameter in module.parameters())
    shapes = {"data": (STEPS, BATCH, INPUTS), "parameters": (count,), "state": (layers * directions, BATCH, projection or UNITS)}
    if mode == "lstm":
        shapes["state_cell"] = (layers * directions, BATCH, UNITS)
    arrays = {name: rng.uniform(-0.7, 0.7, shape).astype(kind) for name, shape in shapes.items()}
    if lengths:
        arrays["sequence_length"] = np.array(LENGTHS, dtype=kind)
    heads = [rng.uniform(-1, 1, shape).astype(kind) for shape in run_torch(case, module, arrays, None)]
    run = run_torch(case, module, arrays, [head.astype(float) for head in heads])
    attrs = {"mode": mode, "state_size": UNITS, "num_layers": layers, "bidirectional": directions == 2, "state_outputs": True,
             "use_sequence_length": lengths}
    if projection:
        attrs["projection_size"] = projection
    made = nets.Case("RNN", dict.fromkeys(arrays), attrs, label(case, kind), outputs=len(heads))
    prefix = os.path.join(folder, made.name)
    with open(prefix + "-symbol.json", "w", encoding="utf-8") as file:
        file.write(nets.net_of(made))
    nets.save(prefix + "-0001.params", {})
    inputs = {**arrays, **{"head%d" % i: head for i, head in enumerate(heads)}}
    nets.save(prefix + "-run.params", {**{"in:" + name: value for name, value in inputs.items()}, **run}, kind)
    # What is compared with: PyTorch's numbers as they are.
    np.savez(prefix + ".npz", **run)
    return made, made.name + " gradients\n"


def differences(made, folder):
    """Of outputs and of gradients; a text if we refuse the net."""
    path = os.path.join(folder, "ours", made.name + "-run.params")
    if not os.path.exists(path):
        return "refused", "refused"
    ours, worst = nets.load(path), {"predict": 0.0, "grad": 0.0}
    with np.load(os.path.join(folder, made.name + ".npz")) as theirs:
        for key in theirs.files:
            kind = "grad" if key.startswith("grad:") else "predict"
            found = nets.difference(ours[key], theirs[key])
            if isinstance(found, str):
                return found, found
            worst[kind] = max(worst[kind], found)
    return worst["predict"], worst["grad"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--program", default=nets.PROGRAM, help="test_integration")
    parser.add_argument("--filter", default="", help="of the names of cases")
    args = parser.parse_args()
    os.makedirs(args.folder, exist_ok=True)
    chosen = [(case, kind) for kind in TOLERANCES for case in cases() if re.search(args.filter, label(case, kind))]
    dumped = [(kind, *dump(case, kind, args.folder)) for case, kind in chosen]
    with open(os.path.join(args.folder, "nets.txt"), "w", encoding="utf-8") as file:
        file.writelines(line for _, _, line in dumped)
    done = subprocess.run([args.program, "--test-suite=reference", "--no-skip"], env={**os.environ, "MXTRAIN_REFERENCE_DIR": args.folder},
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    with open(os.path.join(args.folder, "test_integration.log"), "w", encoding="utf-8") as file:
        file.write(done.stdout)
    bad = 0
    print("| RNN | outputs | gradients |\n|---|---|---|")
    for kind, made, _ in dumped:
        results = differences(made, args.folder)
        large = any(isinstance(result, str) or not result < TOLERANCES[kind] for result in results)
        bad += large
        cells = [result if isinstance(result, str) else "%.1e" % result for result in results]
        print("| %s | %s | %s |%s" % (made.note, *cells, " DIFFERS" if large else ""))
    print("\n%d cases; %d differ" % (len(dumped), bad))
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()

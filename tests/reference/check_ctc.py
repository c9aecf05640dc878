#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CTCLoss beside PyTorch's ctc_loss: the same losses and gradients, in float64 and float32?

  check_ctc.py FOLDER [--program PATH] [--filter REGEX]      in an environment with: pip install torch numpy

As check_rnn.py: PyTorch computes in float64, for the same numbers, with zero_infinity, since the loss of a label without a path is 0 here. Exits
with 1 where a difference, relative to the largest number of an array, exceeds 1e-9 in float64 or 1e-5 in float32, or where a case is refused.
MXNet's operator is among the cases of check_operators.py.
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
import check_rnn as runs


def cases():
    """(steps, batch, classes, labels, blank last, data lengths, label lengths)"""
    for last in (False, True):
        for lengths in ((False, False), (True, False), (False, True), (True, True)):
            yield (12, 7, 6, 5, last, *lengths)
    yield 200, 3, 40, 30, False, True, False
    yield 600, 2, 5, 80, True, False, True
    yield 4, 6, 3, 4, False, False, False   # labels without a path among them


def label(case, kind):
    steps, batch, classes, labels, last, data_lengths, label_lengths = case
    return "%s [%d, %d, %d], labels of %d, blank %s%s%s" % (
        kind, steps, batch, classes, labels, "last" if last else "first", ", data_lengths" * data_lengths, ", label_lengths" * label_lengths)


def draw(case, rng, kind):
    steps, batch, classes, labels, last, data_lengths, label_lengths = case
    arrays = {"data": rng.uniform(-3, 3, (steps, batch, classes)).astype(kind)}
    lowest = 0 if last else 1
    words = rng.randint(lowest, classes - 1 + lowest, (batch, labels)).astype(float)
    lengths = rng.randint(0, labels + 1, batch)
    lengths[0] = labels
    if not label_lengths:
        for word, length in zip(words, lengths):
            word[length:] = -1 if last else 0
    arrays["label"] = words.astype(kind)
    if data_lengths:
        arrays["data_lengths"] = rng.randint(max(1, steps // 2), steps + 1, batch).astype(kind)
    if label_lengths:
        arrays["label_lengths"] = lengths.astype(kind)
    return arrays, lengths


def run_torch(case, arrays, lengths, heads):
    steps, batch, classes = case[:3]
    data = torch.tensor(arrays["data"], dtype=torch.float64, requires_grad=True)
    steps_of = torch.tensor(arrays.get("data_lengths", np.full(batch, steps)).astype(int))
    loss = torch.nn.functional.ctc_loss(
        torch.log_softmax(data, 2), torch.tensor(np.maximum(arrays["label"], 0).astype(int)), steps_of, torch.tensor(lengths),
        blank=classes - 1 if case[4] else 0, reduction="none", zero_infinity=True)
    product = loss * torch.tensor(heads)
    product.sum().backward()
    run = {"grad:data": data.grad.numpy()}
    for kind in ("predict:", "train:"):
        run[kind + "0"], run[kind + "1"] = product.detach().numpy(), loss.detach().numpy()
    return run


def dump(case, kind, folder):
    rng = np.random.RandomState(zlib.crc32(label(case, kind).encode()))
    arrays, lengths = draw(case, rng, kind)
    heads = rng.uniform(-1, 1, case[1]).astype(kind)
    run = run_torch(case, arrays, lengths, heads.astype(float))
    attrs = {"blank_label": "last" if case[4] else "first", "use_data_lengths": case[5], "use_label_lengths": case[6]}
    made = nets.Case("CTCLoss", dict.fromkeys(arrays), attrs, label(case, kind))
    prefix = os.path.join(folder, made.name)
    with open(prefix + "-symbol.json", "w", encoding="utf-8") as file:
        file.write(nets.net_of(made))
    nets.save(prefix + "-0001.params", {})
    nets.save(prefix + "-run.params", {**{"in:" + name: value for name, value in {**arrays, "head0": heads}.items()}, **run}, kind)
    np.savez(prefix + ".npz", **run)
    return made, made.name + " gradients\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--program", default=nets.PROGRAM, help="test_integration")
    parser.add_argument("--filter", default="", help="of the names of cases")
    args = parser.parse_args()
    os.makedirs(args.folder, exist_ok=True)
    chosen = [(case, kind) for kind in runs.TOLERANCES for case in cases() if re.search(args.filter, label(case, kind))]
    dumped = [(kind, *dump(case, kind, args.folder)) for case, kind in chosen]
    with open(os.path.join(args.folder, "nets.txt"), "w", encoding="utf-8") as file:
        file.writelines(line for _, _, line in dumped)
    done = subprocess.run([args.program, "--test-suite=reference", "--no-skip"], env={**os.environ, "MXTRAIN_REFERENCE_DIR": args.folder},
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    with open(os.path.join(args.folder, "test_integration.log"), "w", encoding="utf-8") as file:
        file.write(done.stdout)
    bad = 0
    print("| CTCLoss | losses | gradients |\n|---|---|---|")
    for kind, made, _ in dumped:
        results = runs.differences(made, args.folder)
        large = any(isinstance(result, str) or not result < runs.TOLERANCES[kind] for result in results)
        bad += large
        cells = [result if isinstance(result, str) else "%.1e" % result for result in results]
        print("| %s | %s | %s |%s" % (made.note, *cells, " DIFFERS" if large else ""))
    print("\n%d cases; %d differ" % (len(dumped), bad))
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()

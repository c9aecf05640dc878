#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Loads nets that this library saved into MXNet 1.9.1 and compares its predictions with those saved beside them.

    VENV/bin/python check_ours.py DIR/ours        (made by tests/integration/reference_nets_test.cc with MXTRAIN_REFERENCE_DIR=DIR)

For every NAME-symbol.json: NAME-0001.params are the parameters, NAME-run.params the inputs (in:X) and our outputs (predict:I). Exits 1 on a
difference above 1e-4.
"""
import glob
import os
import sys

# MXNet 1.9.1 fuses conv(relu(bn(x))) + x in prediction into a kernel that adds to x after bn has
# overwritten it: its prediction then differs from its own forward pass with gradient arrays.
# Without the fusion both agree. MXNet reads the variable at bind.
os.environ["MXNET_SUBGRAPH_BACKEND"] = "NONE"

import mxnet as mx
import numpy as np


def check(prefix):
    net, args, aux = mx.model.load_checkpoint(prefix, 1)
    run = mx.nd.load(prefix + "-run.params")
    args.update({key[3:]: value for key, value in run.items() if key.startswith("in:")})
    executor = net.bind(mx.cpu(), args, args_grad=None, grad_req="null", aux_states=aux)
    worst = 0.0
    for i, output in enumerate(executor.forward(is_train=False)):
        ours, theirs = run["predict:%d" % i].asnumpy(), output.asnumpy()
        if ours.shape != theirs.shape:
            raise ValueError("%s: output %d has shape %s here, %s there" % (prefix, i, ours.shape, theirs.shape))
        worst = max(worst, float(np.max(np.abs(ours - theirs) / (1 + np.abs(theirs)))))
    again = mx.sym.load_json(net.tojson())  # must read back what it writes
    if again.list_arguments() != net.list_arguments():
        raise ValueError(prefix + ": the arguments changed in the round trip")
    return worst


def main():
    prefixes = sorted(path[: -len("-symbol.json")] for path in glob.glob(sys.argv[1] + "/*-symbol.json"))
    if not prefixes:
        sys.exit("no nets in " + sys.argv[1])
    bad = 0
    for prefix in prefixes:
        worst = check(prefix)
        bad += not worst < 1e-4
        print("%-40s largest difference %.2e%s" % (prefix, worst, "" if worst < 1e-4 else "  TOO LARGE"))
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Nets of one operator, exported to ONNX: does onnxruntime give what mxtrain gives?

  check_onnx_operators.py [--program PATH]      in an environment with: pip install onnx onnxruntime numpy

Runs the cases of tests/unit/onnx/operators_test.cc, which write a net for every operator with its inputs and outputs, checks each net with the
checker of onnx, and compares the outputs with onnxruntime's: within 1e-4 of the element plus 1e-5, integers exactly. Names the nets that differ and
fails if there is one.
"""
import argparse
import json
import os
import struct
import subprocess
import sys
import tempfile

import numpy
import onnx
import onnxruntime

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TYPES = {"F32": "<f4", "F64": "<f8", "I32": "<i4", "I64": "<i8", "U8": "u1"}
RELATIVE, ABSOLUTE = 1e-4, 1e-5


def read(path):
    """The arrays of a safetensors file by name."""
    data = open(path, "rb").read()
    (length,) = struct.unpack_from("<Q", data)
    arrays = {}
    for name, entry in json.loads(data[8:8 + length]).items():
        if name == "__metadata__":
            continue
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        arrays[name] = numpy.frombuffer(data[begin:end], TYPES[entry["dtype"]]).reshape(entry["shape"])
    return arrays


def difference(net, arrays):
    """"" if onnxruntime agrees, else what is wrong."""
    onnx.checker.check_model(onnx.load(net), full_check=True)
    session = onnxruntime.InferenceSession(net, providers=["CPUExecutionProvider"])
    inputs = {entry.name: arrays["input " + entry.name] for entry in session.get_inputs()}
    for entry, theirs in zip(session.get_outputs(), session.run(None, inputs)):
        ours = arrays["output " + entry.name]
        if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
            return f"{entry.name} is {theirs.dtype} {theirs.shape} instead of {ours.dtype} {ours.shape}"
        exact = ours.dtype.kind != "f"
        if not (numpy.array_equal(ours, theirs) if exact else numpy.allclose(theirs, ours, RELATIVE, ABSOLUTE)):
            return f"{entry.name} differs by {numpy.abs(theirs.astype(float) - ours).max():.1e}"
    return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=os.path.join(ROOT, "build/release/bin/test_onnx"), help="the built test_onnx")
    args = parser.parse_args()
    onnxruntime.set_default_logger_severity(3)
    bad = count = 0
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([args.program, "-tc=every operator is exported*"], check=True, stdout=subprocess.DEVNULL,
                       env={**os.environ, "MXTRAIN_ONNX_DIR": folder})
        for file in sorted(os.listdir(folder)):
            if not file.endswith(".onnx"):
                continue
            count += 1
            net = os.path.join(folder, file)
            try:
                text = difference(net, read(net[:-5] + ".safetensors"))
            except Exception as error:      # of the checker or of onnxruntime
                text = str(error).strip().splitlines()[0]
            if text:
                bad += 1
                print(f"{file[:-5]}: {text}")
    print(f"{count} nets, {bad} differ")
    sys.exit(1 if bad or count < 200 else 0)


if __name__ == "__main__":
    main()

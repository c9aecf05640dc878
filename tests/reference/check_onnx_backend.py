#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tests of ONNX's backends, read from the installed package `onnx`: which models does mxtrain import, and do they give the outputs?

  check_onnx_backend.py [--program PATH] [--list OUTCOME] [NAME...]    in an environment with: pip install onnx numpy

Each model is run as it is, and, where it has several inputs, once more with all but the first as arrays of the file, as weights and sizes are in
models that somebody exported. An import is for any batch if it can be, else for the sizes of the file. Prints how many are right, refused, wrong,
crash or hang, and refusals by their reason; NAME: of these models only, each with its outcome. Fails if one is wrong, crashes or hangs.
"""
import argparse
import collections
import glob
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import time
import warnings

import numpy
import onnx
from onnx import numpy_helper
from onnx.backend.test import loader

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DATA = loader.DATA_DIR
HANGS_S = 120
# Steps of the narrow types that outputs are rounded to: everything is float32 here.
STEPS = {"float16": 2e-3, "bfloat16": 1.6e-2}


class Model:
    """A model with its inputs and wanted outputs, None where they are no arrays of numbers."""

    def __init__(self, name, proto, inputs, outputs, rtol, atol):
        self.name, self.proto, self.inputs, self.outputs, self.rtol, self.atol = name, proto, inputs, outputs, rtol, atol


def array_of(path, kind):
    data = open(path, "rb").read()
    if not kind.HasField("tensor_type"):
        return None
    return numpy_helper.to_array(onnx.TensorProto.FromString(data))


def arrays_of(folder, what, values):
    files = sorted(glob.glob(os.path.join(folder, what + "_*.pb")), key=lambda path: int(re.findall(r"\d+", os.path.basename(path))[0]))
    return [array_of(path, value.type) for path, value in zip(files, values)]


def node_models():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tests = loader.load_model_tests(kind="node")
    for test in tests:
        for i, (inputs, outputs) in enumerate(test.data_sets):
            yield Model(test.name + (f"_{i}" if i else ""), test.model, inputs, outputs, test.rtol, test.atol)


def folder_models():
    for kind in ("simple", "pytorch-converted", "pytorch-operator"):
        for test in loader.load_model_tests(kind=kind):
            proto = onnx.load(os.path.join(test.model_dir, "model.onnx"))
            arrays = {array.name for array in proto.graph.initializer}
            values = [value for value in proto.graph.input if value.name not in arrays]
            for i, folder in enumerate(sorted(glob.glob(os.path.join(test.model_dir, "test_data_set_*")))):
                yield Model(f"{kind}_{test.name}" + (f"_{i}" if i else ""), proto, arrays_of(folder, "input", values),
                            arrays_of(folder, "output", proto.graph.output), test.rtol, test.atol)


def light_models():
    """Without weights of their own; the inputs are those that onnx makes for them."""
    for path in sorted(glob.glob(os.path.join(DATA, "light", "*.onnx"))):
        proto = onnx.load(path)
        arrays = {array.name for array in proto.graph.initializer}
        inputs = []
        for value in proto.graph.input:
            if value.name in arrays:
                continue
            shape = [dim.dim_value or 1 for dim in value.type.tensor_type.shape.dim]
            size = numpy.prod(shape)
            inputs.append((numpy.arange(size).reshape(shape) / size).astype(numpy.float32))
        outputs = [numpy_helper.to_array(onnx.load_tensor(path[:-5] + "_output_0.pb"))]
        yield Model(os.path.basename(path)[:-5], proto, inputs, outputs, 1e-3, 1e-5)


def with_arrays(model):
    """All inputs but the first as arrays of the file; None if there are none such."""
    arrays = {array.name for array in model.proto.graph.initializer}
    values = [value for value in model.proto.graph.input if value.name not in arrays]
    moved = [(value, array) for value, array in list(zip(values, model.inputs))[1:]
             if value.type.HasField("tensor_type") and isinstance(array, (numpy.ndarray, numpy.generic))]
    if not moved or len(moved) != len(values) - 1:
        return None
    proto = onnx.ModelProto()
    proto.CopyFrom(model.proto)
    kept = [value for value in proto.graph.input if value.name not in {value.name for value, _ in moved}]
    del proto.graph.input[:]
    proto.graph.input.extend(kept)
    try:
        proto.graph.initializer.extend(numpy_helper.from_array(numpy.asarray(array), value.name) for value, array in moved)
    except Exception:                       # types that NumPy does not have
        return None
    return Model(model.name + "+arrays", proto, model.inputs[:1], model.outputs, model.rtol, model.atol)


def floats(array):
    """The numbers as float32; None for what is not an array of them."""
    try:
        array = numpy_helper.to_array(array) if isinstance(array, onnx.TensorProto) else numpy.asarray(array)
        with numpy.errstate(over="ignore"):
            return None if array.dtype.kind in "USOcmM" else array.astype(numpy.float32)
    except Exception:
        return None


def write_inputs(path, arrays):
    """As float32, as numbers of every type are here."""
    header, data = {}, b""
    for i, array in enumerate(arrays):
        numbers = floats(array)
        if numbers is None:
            continue
        header[f"input {i}"] = {"dtype": "F32", "shape": list(numbers.shape), "data_offsets": [len(data), len(data) + numbers.nbytes]}
        data += numbers.tobytes()
    text = json.dumps(header).encode()
    open(path, "wb").write(struct.pack("<Q", len(text)) + text + data)


def read_outputs(path):
    types = {"F32": "<f4", "F64": "<f8", "I32": "<i4", "I64": "<i8", "U8": "u1", "BF16": None, "F16": "<f2"}
    data = open(path, "rb").read()
    (length,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8:8 + length])
    batch = header.pop("__metadata__")["batch"]
    arrays = {}
    for name, entry in header.items():
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        arrays[int(name.split()[1])] = numpy.frombuffer(data[begin:end], types[entry["dtype"]]).reshape(entry["shape"])
    return batch, arrays


def difference(model, ours):
    """"" if the outputs are those of the model, else what is wrong."""
    for i, wanted in enumerate(model.outputs):
        numbers = floats(wanted)
        if numbers is None:
            return f"output {i} is not an array of numbers"
        if i not in ours:
            return f"output {i} is missing"
        if tuple(ours[i].shape) != numbers.shape:
            return f"output {i} is {ours[i].shape} instead of {numbers.shape}"
        kind = (numpy_helper.to_array(wanted) if isinstance(wanted, onnx.TensorProto) else numpy.asarray(wanted)).dtype
        step = STEPS.get(kind.name, 0)
        rtol, atol = (max(model.rtol, step), max(model.atol, step * 1e-1, 1e-6)) if kind.kind in "fV" else (0, 0)
        if not numpy.allclose(ours[i].astype(numpy.float64), numbers, rtol, atol, equal_nan=True):
            with numpy.errstate(all="ignore"):
                return f"output {i} differs by {numpy.nanmax(numpy.abs(ours[i].astype(numpy.float64) - numbers)):.1e}"
    return ""


def run(program, folder, names):
    """Outcomes of crashes and hangs by name; the program goes on behind them."""
    bad = {}
    begun, at = os.path.join(folder, "begun"), 0
    while at < len(names):
        open(begun, "w").close()
        process = subprocess.Popen([program, "-tc=models of a folder are imported and run"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   env={**os.environ, "MXTRAIN_ONNX_MODELS": folder, "MXTRAIN_ONNX_FROM": str(at)})
        seen, since = 0, time.monotonic()
        while process.poll() is None:
            time.sleep(0.05)
            size = os.path.getsize(begun)
            if size != seen:
                seen, since = size, time.monotonic()
            if time.monotonic() - since > HANGS_S:
                process.kill()
                process.wait()
                bad["hang"] = True
        count = len(open(begun).read().split())
        done = at + count
        if count == 0:
            sys.exit("the program ends before the first model")
        last = names[done - 1]
        finished = any(os.path.exists(os.path.join(folder, last + end)) for end in (".outputs", ".refused"))
        if not finished:
            bad[last] = "hangs" if bad.pop("hang", False) else f"crashes ({process.returncode})"
        at = done
    return bad


def reason_of(text):
    """A refusal without names and numbers, so that equal ones can be counted."""
    text = re.sub(r"^(\S+) '[^']*'", r"\1", text)
    text = re.sub(r"'[^']*'", "'...'", text)
    text = re.sub(r"\(('...'|[\w/., ]+)\)", "", text)
    return re.sub(r"\[[-\d, ]*\]|-?\d+(\.\d+)?", "#", text)[:150]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=os.path.join(ROOT, "build/release/bin/test_onnx"), help="the built test_onnx")
    parser.add_argument("--list", default="wrong", help="the outcome whose models are named")
    parser.add_argument("--table", help="a file for the outcome of every model")
    parser.add_argument("names", nargs="*", help="parts of names of models")
    args = parser.parse_args()
    models = {}
    for source in (node_models(), folder_models(), light_models()):
        for model in source:
            for each in (model, with_arrays(model)):
                if each and (not args.names or any(name in each.name for name in args.names)):
                    models[each.name] = each
    outcomes, reasons, details = collections.defaultdict(collections.Counter), collections.Counter(), {}
    with tempfile.TemporaryDirectory() as folder:
        for model in models.values():
            onnx.save(model.proto, os.path.join(folder, model.name + ".onnx"))
            write_inputs(os.path.join(folder, model.name + ".safetensors"), model.inputs)
        names = list(models)
        open(os.path.join(folder, "list"), "w").write("".join(name + "\n" for name in names))
        bad = run(args.program, folder, names)
        for name, model in models.items():
            path, kind = os.path.join(folder, name), "with arrays" if name.endswith("+arrays") else "as they are"
            if name in bad:
                outcome, detail = bad[name].split()[0], bad[name]
            elif os.path.exists(path + ".outputs"):
                batch, ours = read_outputs(path + ".outputs")
                detail = difference(model, ours)
                outcome = "wrong" if detail else "right"
                detail = detail or "batch " + batch
            else:
                detail = open(path + ".refused").read()
                outcome = "refused"
                reasons[reason_of(detail)] += 1
            outcomes[kind][outcome] += 1
            details[name] = f"{outcome}: {detail}"
            if outcome in (args.list, "crashes", "hangs") or args.names:
                print(f"{name}: {details[name]}")
    for reason, count in reasons.most_common(None if args.list == "refused" else 60):
        print(f"{count:5} refused: {reason}")
    for kind, counts in outcomes.items():
        print(f"{kind}: {sum(counts.values())} models: " + ", ".join(f"{count} {outcome}" for outcome, count in counts.most_common()))
    total = sum(outcomes.values(), collections.Counter())
    print(f"together: {sum(total.values())} models: " + ", ".join(f"{count} {outcome}" for outcome, count in total.most_common()))
    if args.table:
        open(args.table, "w").write("".join(f"{name}\t{detail}\n" for name, detail in sorted(details.items())))
    sys.exit(1 if total["wrong"] + total["crashes"] + total["hangs"] else 0)


if __name__ == "__main__":
    main()

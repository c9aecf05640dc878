#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Nets of configs/imagenet, exported to ONNX: does onnxruntime give the scores that mxtrain gives?

  check_onnx.py [--program PATH] [--flags FLAG...] [NET...]      in an environment with: pip install onnx onnxruntime numpy pillow

Makes each net with random weights and random statistics of its batch norms, exports it as PREFIX@1 and from there as ONNX, runs the checker of
onnx and onnxruntime on four images, and compares the scores before the softmax with those of `mxtrain infer`. With --import the ONNX file is
also imported again and predicted by mxtrain. Prints a line per net and fails where they
differ by more than 1e-4 of the largest score.
"""
import argparse
import os
import struct
import subprocess
import sys
import tempfile

import numpy
import onnx
import onnxruntime
from PIL import Image

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
SIZES = {"inception_v3": 299, "efficientnet_v2_s": 300, "convnext_tiny": 176}
SCORES = {"squeezenet1_1": "scores"}      # the layer before the softmax, if not fc
TOLERANCE = 1e-4


def make_images(folder, size):
    draw = numpy.random.default_rng(0)
    files, arrays = [], []
    for i in range(4):
        file = os.path.join(folder, "ab"[i // 2], f"{i}.png")
        os.makedirs(os.path.dirname(file), exist_ok=True)
        image = Image.fromarray(draw.integers(0, 256, (8, 8, 3), dtype=numpy.uint8)).resize((size, size), Image.BICUBIC)
        image.save(file)
        files.append(file)
        arrays.append(((numpy.asarray(image) / 255 - MEAN) / STD).transpose(2, 0, 1))
    return files, numpy.stack(arrays).astype(numpy.float32)


def shake(path):
    """Draws gamma, beta and statistics of norms and layer scales in a .params file (MXNet's format V2)."""
    data = bytearray(open(path, "rb").read())
    draw = numpy.random.default_rng(1)
    at = 16
    (count,) = struct.unpack_from("<Q", data, at)
    at += 8
    places = []
    for _ in range(count):
        magic, _, ndim = struct.unpack_from("<Iii", data, at)
        assert magic in (0xF993FAC9, 0xF993FACA), hex(magic)
        dims = struct.unpack_from(f"<{ndim}q", data, at + 12)
        at += 12 + 8 * ndim + 8
        (kind,) = struct.unpack_from("<i", data, at)
        assert kind == 0, "float32 only"
        size = int(numpy.prod(dims))
        places.append((at + 4, size))
        at += 4 + 4 * size
    at += 8
    for start, size in places:
        (length,) = struct.unpack_from("<Q", data, at)
        name = data[at + 8:at + 8 + length].decode()
        at += 8 + length
        if name.endswith(("gamma", "moving_var", "layer_scale")):
            values = draw.uniform(0.5, 1.5, size)
        elif name.endswith(("beta", "moving_mean")):
            values = draw.normal(0, 0.1, size)
        else:
            continue
        data[start:start + 4 * size] = values.astype(numpy.float32).tobytes()
    open(path, "wb").write(data)


def scores_of_onnxruntime(path, layer, batch):
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    model.graph.output.append(onnx.helper.make_tensor_value_info(layer, onnx.TensorProto.FLOAT, None))
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run([layer], {session.get_inputs()[0].name: batch})[0]


def run(*command):
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def scores_of_import(program, path, folder, images, files, transforms, layer):
    """What mxtrain predicts with a net that it read from an ONNX file."""
    net, weights, trained, features = (os.path.join(folder, part) for part in ("net.yaml", "net.safetensors", "imported", "imported.npy"))
    with open(net, "w") as out:
        printed = subprocess.run([program, "import", path, "--weights", weights, "--overwrite", "-q"], check=True, capture_output=True, text=True).stdout
        if "SoftmaxOutput" not in printed:
            printed = printed.replace("\ntrain:", "\n    - SoftmaxOutput: {name: softmax}\ntrain:")
        out.write(printed)
    data = os.path.join(folder, "data.yaml")
    with open(data, "w") as out:
        out.write("data:\n  batch_size: 2\n")
        for part in ("train", "val"):
            out.write(f"  {part}: {{source: image_folder, path: {images}, transforms: {transforms}}}\n")
        out.write("train: {epochs: 0}\n")
    run(program, "train", data, "-c", net, "--out", trained, "--overwrite", "-q")
    run(program, "infer", trained, *files, "--output-layer", layer, "--output", features, "--overwrite", "-q")
    return numpy.load(features)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=os.path.join(ROOT, "build/release/bin/mxtrain"))
    parser.add_argument("--flags", default="", help="of mxtrain export, separated by commas: --fold-batch-norm,--float16")
    parser.add_argument("--import", dest="imported", action="store_true", help="import the ONNX file again")
    parser.add_argument("--tolerance", type=float, default=TOLERANCE)
    names = sorted(file[:-5] for file in os.listdir(os.path.join(ROOT, "configs/imagenet")) if file.endswith(".yaml"))
    parser.add_argument("nets", nargs="*", default=names)
    args = parser.parse_args()
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in args.nets:
            size, layer = SIZES.get(name, 224), SCORES.get(name, "fc")
            images = os.path.join(folder, f"images{size}")
            files, batch = make_images(images, size)
            trained, model, path, features = (os.path.join(folder, part) for part in ("run", "net@1", name + ".onnx", "scores.npy"))
            transforms = f"[{{resize: [{size}, {size}]}}, {{normalize: {{mean: {MEAN}, std: {STD}}}}}]"
            changes = ["data.batch_size=2", "train.epochs=1", "train.max_steps=1", "seed=3"]
            for part in ("train", "val"):
                changes += [f"data.{part}.path={images}", f"data.{part}.transforms={transforms}"]
            run(args.program, "train", os.path.join(ROOT, "configs/imagenet", name + ".yaml"), "--out", trained, "--overwrite", "-q", *changes)
            run(args.program, "export", trained, model, "--overwrite", "-q")
            shake(os.path.join(folder, "net-0001.params"))
            run(args.program, "export", model, path, "--overwrite", "-q", *[flag for flag in args.flags.split(",") if flag])
            run(args.program, "infer", model, *files, "--output-layer", layer, "--output", features, "--overwrite", "-q")
            ours = numpy.load(features)
            theirs = scores_of_onnxruntime(path, layer + "_output", batch).reshape(ours.shape)
            difference = float(numpy.abs(ours - theirs).max() / numpy.abs(ours).max())
            bad += not difference <= args.tolerance
            text = f"{name}: scores of onnxruntime differ by {difference:.1e} of the largest"
            if args.imported:
                again = scores_of_import(args.program, path, folder, images, files, transforms, layer).reshape(ours.shape)
                difference = float(numpy.abs(ours - again).max() / numpy.abs(ours).max())
                bad += not difference <= args.tolerance
                text += f", imported again by {difference:.1e}"
            print(text, flush=True)
            os.remove(path)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()

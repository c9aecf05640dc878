#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A run on images, exported to ONNX: does onnxruntime predict the classes that mxtrain predicts?

  check_onnx_run.py [--program PATH] [--flags FLAG...] RUN IMAGES      in an environment with: pip install onnx onnxruntime numpy "pillow>=13"

IMAGES is a folder with a folder for each class. Exports the run twice: plainly, where this script prepares the images with Pillow as the file's
metadata say, and with --with-preprocessing, where the model gets the pixels as Pillow decodes them. Prints how many images get the class of
`mxtrain infer`, by how much scores differ, and for how many the class is right; fails where a class is another. mxtrain decodes large JPEG files at
a smaller size where that is enough; `data.exact_decode: true` when training makes pixels the same.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

import numpy
import onnxruntime
from PIL import Image, ImageOps

from pillow_pixels import center_crop, crop_fraction, resize

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def numbers(value):
    """A parameter of a transform, "256" or "(146, 146)", as a number or a tuple."""
    parts = [float(part) if "." in part else int(part) for part in str(value).strip("()").split(",") if part.strip()]
    return parts[0] if len(parts) == 1 and not str(value).startswith("(") else tuple(parts)


def size_of(value):
    size = numbers(value)
    return size[0] if isinstance(size, tuple) and len(size) == 1 else size


def chain_of(pipeline):
    """The transforms of a model as functions of a Pillow image, and the normalization; None where Pillow has no equivalent."""
    steps, mean, std = [], 0, 1
    for transform in json.loads(pipeline)["transforms"]:
        params = dict(transform["params"])
        if transform["name"] == "normalize":
            mean, std = numbers(params["mean"]), numbers(params["std"])
        elif transform["name"] == "center_crop":
            steps.append(crop_fraction(float(params["fraction"]))[1] if "fraction" in params else center_crop(size_of(params["size"]))[1])
        elif transform["name"] == "resize" and params.get("antialias") == "True":
            steps.append(resize(size_of(params["size"]), params.get("interpolation", "bilinear"))[1])
        elif transform["name"] == "resize":
            return None  # area, or auto
        else:
            sys.exit(f"{transform['name']} {params}: this script knows normalize, center_crop, and resize with antialias")
    return steps, numpy.array(mean, numpy.float32), numpy.array(std, numpy.float32)


def prepared(image, chain):
    steps, mean, std = chain
    for step in steps:
        image = step(image)
    return ((numpy.asarray(image, numpy.float32) / 255 - mean) / std).transpose(2, 0, 1)[None]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=os.path.join(ROOT, "build/release/bin/mxtrain"))
    parser.add_argument("--flags", default="", help="more flags of mxtrain export, separated by commas: --fold-batch-norm,--float16")
    parser.add_argument("run")
    parser.add_argument("images")
    args = parser.parse_args()
    files = sorted(os.path.join(folder, name) for folder, _, names in os.walk(args.images) for name in names)
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        scores = os.path.join(folder, "scores.npy")
        subprocess.run([args.program, "infer", args.run, *files, "--probabilities", scores, "--overwrite", "-q"], check=True, stdout=subprocess.DEVNULL)
        ours = numpy.load(scores)
        for flags in ([], ["--with-preprocessing"]):
            path = os.path.join(folder, "model.onnx")
            more = [flag for flag in args.flags.split(",") if flag]
            subprocess.run([args.program, "export", args.run, path, "--overwrite", "-q", *flags, *more], check=True, stdout=subprocess.DEVNULL)
            session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
            metadata = session.get_modelmeta().custom_metadata_map
            classes = json.loads(metadata["classes"])
            chain = chain_of(metadata["pipeline"])
            if chain is None and not flags:
                print("Pillow does not resize as this run does: only --with-preprocessing is compared")
                continue
            theirs = []
            for file in files:
                image = ImageOps.exif_transpose(Image.open(file)).convert("RGB")
                batch = numpy.asarray(image)[None] if flags else prepared(image, chain)
                theirs.append(session.run(None, {session.get_inputs()[0].name: batch})[0][0])
            theirs = numpy.stack(theirs)
            same = ours.argmax(1) == theirs.argmax(1)
            right = sum(os.path.basename(os.path.dirname(file)) == classes[row.argmax()] for file, row in zip(files, theirs))
            bad += not same.all()
            print(f"{' '.join(['export', *flags, *more])}: {same.sum()} of {len(files)} images get the same class, {right} the right one; "
                  f"scores differ by at most {numpy.abs(ours - theirs).max():.1e}", flush=True)
            for i in numpy.flatnonzero(~same):
                print(f"  {files[i]}: {classes[ours[i].argmax()]} {ours[i].max():.4f}, in onnxruntime {classes[theirs[i].argmax()]} {theirs[i].max():.4f}")
    if bad and not json.loads(metadata["pipeline"])["exact_decode"]:
        print("mxtrain decoded large JPEG files at a smaller size: data.exact_decode is false")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()

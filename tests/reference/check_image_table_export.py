#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does onnxruntime give what `mxtrain infer` gives for the rows of a table with images?

  check_image_table_export.py MODEL.onnx TABLE.csv PREDICTED.csv SIZE

MODEL.onnx is what `mxtrain export RUN` writes of a run whose input `data` is the column `photo`, resized by `resize: {size: [SIZE, SIZE],
interpolation: bilinear, antialias: true}` and `normalize: imagenet`, and whose other inputs are columns of numbers, named by `preprocessing`
in the metadata. PREDICTED.csv is what `mxtrain infer RUN TABLE.csv --format csv` prints. Scores of classes must agree to 1e-4, numbers to 1e-4
of them. Needs onnxruntime, numpy and Pillow.
"""
import csv
import os
import re
import sys

import numpy
import onnxruntime
from PIL import Image

net = onnxruntime.InferenceSession(sys.argv[1])
text = net.get_modelmeta().custom_metadata_map["preprocessing"]
rows = list(csv.DictReader(open(sys.argv[2])))
size = int(sys.argv[4])


def image(path):
    pixels = Image.open(os.path.join(os.path.dirname(sys.argv[2]), path)).convert("RGB").resize((size, size), Image.BILINEAR)
    scaled = (numpy.asarray(pixels, "float64") / 255 - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
    return scaled.transpose(2, 0, 1)


inputs = {"data": numpy.array([image(row["photo"]) for row in rows], "float32")}
for value in net.get_inputs():
    if value.name == "data":
        continue
    named = re.search(r"'%s' \[[^]]*\]: columns? ([^:;]*?) of the table" % re.escape(value.name), text)
    inputs[value.name] = numpy.array([[float(row[c.strip().strip("'")]) for c in named.group(1).split(",")] for row in rows], "float32")
outputs = net.run(None, inputs)
largest = 0.0
with open(sys.argv[3]) as file:
    for i, row in enumerate(csv.DictReader(file)):
        for output in outputs:
            theirs = output[i]
            if theirs.size == 1:
                ours, mine = float(row[[k for k in row if k.startswith("price")][0]]), float(theirs.reshape(-1)[0])
                largest = max(largest, abs(ours - mine) / max(1.0, abs(ours)))
            else:
                largest = max(largest, abs(float(row["kind_score"]) - float(theirs.max())))
print(f"{len(rows)} rows, {len(outputs)} outputs: largest difference {largest:.2g}")
sys.exit(largest > 1e-4 or len(outputs) != 2)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does onnxruntime give the classes that `mxtrain infer` gives for a model of several classes for each row of a table?

  check_thresholds.py MODEL.onnx TABLE.csv PREDICTED.csv

MODEL.onnx is what `mxtrain export CHECKPOINT` writes after `mxtrain eval CHECKPOINT --calibrate`; its one input takes columns of numbers of
TABLE.csv, named by `preprocessing` in the metadata. PREDICTED.csv is what `mxtrain infer CHECKPOINT TABLE.csv --format csv` prints: classes
with ';' between them. All must agree. Needs onnxruntime and numpy.
"""
import csv
import json
import re
import sys

import numpy
import onnxruntime

net = onnxruntime.InferenceSession(sys.argv[1])
metadata = net.get_modelmeta().custom_metadata_map
classes, thresholds = json.loads(metadata["classes"]), json.loads(metadata["thresholds"])
value = net.get_inputs()[0]
named = re.search(r"'%s' \[[^]]*\]: columns? ([^:;]*?) of the table" % re.escape(value.name), metadata["preprocessing"])
columns = [c.strip().strip("'") for c in named.group(1).split(",")]
rows = list(csv.DictReader(open(sys.argv[2])))
numbers = numpy.array([[float(row[c]) for c in columns] for row in rows], "float32")
(scores_name, bounds), = thresholds.items()
scores, labels = net.run([scores_name, "labels"], {value.name: numbers})
wrong = int((labels != (scores.astype("float64") >= bounds)).sum())
with open(sys.argv[3]) as file:
    lines = list(csv.reader(file))[1:]
wrong += len(lines) != len(rows)
for line, row in zip(lines, labels):
    expected = {name for name, there in zip(classes, row) if there}
    wrong += {name for name in line[1].split(";") if name} != expected
print(f"{len(rows)} rows, {int(labels.sum())} classes by the thresholds {bounds}: {wrong} differences")
sys.exit(wrong > 0 or labels.sum() in (0, labels.size))

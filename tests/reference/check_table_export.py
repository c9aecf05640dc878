#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does onnxruntime give what `mxtrain infer` gives for the rows of a table?

  check_table_export.py MODEL.onnx TABLE.csv PREDICTED.csv [OUTPUT]

MODEL.onnx is what `mxtrain export RUN` writes of a run on a table of numbers and words, PREDICTED.csv what `mxtrain infer RUN TABLE.csv
--format csv` prints: of numbers the last column is compared, of classes the score. The columns of each input are those that `preprocessing`
in the metadata names, the codes of words those of `categories`; missing cells become the means that `pipeline` has. Fails where they differ by more than 1e-5 of the number. Needs onnxruntime
and numpy.
"""
import csv
import json
import re
import sys

import numpy
import onnxruntime

net = onnxruntime.InferenceSession(sys.argv[1])
metadata = net.get_modelmeta().custom_metadata_map
categories = json.loads(metadata.get("categories", "{}"))
params = dict(json.loads(metadata["pipeline"])["params"])
rows = list(csv.DictReader(open(sys.argv[2])))


def listed(parameter):
    """The items of "(a, b)"."""
    return [item.strip().strip("'\"") for item in params.get(parameter, "()").strip("()").split(",") if item.strip()]


missing = {"", "nan", "na", "n/a", "null"} | {word.lower() for word in listed("missing_words")}


def number(row, column, mean):
    told = re.fullmatch(r"missing\((.*)\)", column)
    if told and column not in row:
        return float(row[told.group(1)].strip().lower() in missing)
    return mean if row[column].strip().lower() in missing else float(row[column])


inputs = {}
for value in net.get_inputs():
    named = re.search(r"'%s' \[[^]]*\]: columns? ([^:;]*?) of the table" % re.escape(value.name), metadata["preprocessing"])
    columns = [name.strip().strip("'") for name in named.group(1).split(", ")]
    words = categories.get(value.name, {})
    means = [float(item.partition("=")[2]) for item in listed("field_means") if item.startswith(value.name + "=")] or [0] * len(columns)
    numbers = [[words[c].index(row[c]) + 1 if c in words and row[c] in words[c] else 0 if c in words else number(row, c, mean)
                for c, mean in zip(columns, means)] for row in rows]
    kind = {"tensor(float)": numpy.float32, "tensor(int32)": numpy.int32, "tensor(int64)": numpy.int64}[value.type]
    inputs[value.name] = numpy.array(numbers, kind).reshape([len(rows)] + value.shape[1:])
output = net.run([sys.argv[4]] if len(sys.argv) > 4 else None, inputs)[0].reshape(len(rows), -1)
theirs = output[:, 0] if output.shape[1] == 1 else output.max(axis=1)
ours = numpy.array([float(line[-1]) for line in list(csv.reader(open(sys.argv[3])))[1:]])
difference = float(numpy.max(numpy.abs(theirs - ours) / numpy.maximum(numpy.abs(ours), 1e-3)))
print(f"{len(rows)} rows, of {min(ours):.6g} to {max(ours):.6g}: largest relative difference {difference:.2g}")
sys.exit(difference > 1e-5)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A run on texts, exported to ONNX: does onnxruntime give the probabilities of `mxtrain infer`?

  check_text_classes.py [--program PATH] RUN TEXTS.txt      in an environment with: pip install onnx onnxruntime numpy

Makes ids of the lines of TEXTS.txt as the metadata of the file (`text_encoder`) say, with code of its own: lower case, punctuation marks, words, n-grams
by FNV-1a, padding. For runs with tokenizer: words. Prints the largest difference of probabilities; fails above 1e-5, and where a class is another.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import unicodedata

import numpy
import onnxruntime

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def is_punctuation(character):
    ascii_mark = character.isascii() and character.isprintable() and not character.isalnum() and character != " "
    return ascii_mark or unicodedata.category(character).startswith("P")


def fnv1a(ids):
    value = 14695981039346656037
    for number in ids:
        for byte in int(number).to_bytes(4, "little"):
            value = (value ^ byte) * 1099511628211 % (1 << 64)
    return value


def ids_of(text, encoder, words):
    if encoder["split_punctuation"]:
        text = "".join(f" {c} " if is_punctuation(c) else c for c in text)
    if encoder["lowercase"]:
        text = "".join(c.lower() for c in text)
    tokens = [words.get(word, 0) for word in text.split()]
    ids = list(tokens)
    vocabulary = len(words) + 2
    for n in range(2, encoder["ngrams"] + 1):
        ids += [vocabulary + fnv1a(tokens[i:i + n]) % encoder["buckets"] for i in range(len(tokens) - n + 1)]
    return ids, vocabulary + encoder["buckets"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=os.path.join(ROOT, "build/release/bin/mxtrain"))
    parser.add_argument("run")
    parser.add_argument("texts")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model, scores = os.path.join(folder, "model.onnx"), os.path.join(folder, "scores.npy")
        subprocess.run([arguments.program, "export", arguments.run, model, "--overwrite", "-q"], check=True, stdout=subprocess.DEVNULL)
        subprocess.run([arguments.program, "infer", arguments.run, arguments.texts, "--probabilities", scores, "--overwrite", "-q"], check=True,
                       stdout=subprocess.DEVNULL)
        session, expected = onnxruntime.InferenceSession(model), numpy.load(scores)
    encoder = json.loads(session.get_modelmeta().custom_metadata_map["text_encoder"])
    tokenizer = json.loads(encoder["tokenizer"])
    if tokenizer.get("kind") != "words":
        sys.exit("this script knows tokenizer: words")
    words = {word: 2 + i for i, word in enumerate(tokenizer["words"])}
    entry = session.get_inputs()[0]
    with open(arguments.texts, encoding="utf-8") as file:
        lines = file.read().splitlines()
    data = numpy.empty((len(lines), entry.shape[1]), numpy.float32)
    for row, line in zip(data, lines):
        ids, padding = ids_of(line, encoder, words)
        row[:] = padding
        kept = ids[:len(row)]
        row[:len(kept)] = kept
    given = session.run(None, {entry.name: data})[0]
    difference, others = abs(given - expected).max(), int((given.argmax(1) != expected.argmax(1)).sum())
    print(f"{len(lines)} texts: the largest difference is {difference:.2e}; {others} have another class")
    return difference > 1e-5 or others > 0


if __name__ == "__main__":
    sys.exit(main())

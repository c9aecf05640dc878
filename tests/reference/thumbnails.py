#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Accuracy of simple methods on a folder of images (train/ and val/ with a folder per class): nearest centroid and logistic regression on
8x8 thumbnails, gray and in colour, as they are and normalised. The set that `mxtrain synth` makes must keep them all under 60 %.

    thumbnails.py FOLDER        needs numpy, scikit-learn and Pillow; exits with 1 where one of them is at 60 % or more
"""
import glob
import os
import sys

import numpy as np
from PIL import Image
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import NearestCentroid


def load(root, mode):
    images, labels = [], []
    for number, name in enumerate(sorted(os.listdir(root))):
        for file in sorted(glob.glob(f"{root}/{name}/*")):
            thumbnail = Image.open(file).convert(mode).resize((8, 8), Image.BOX)
            images.append(np.asarray(thumbnail, dtype=np.float32).ravel() / 255)
            labels.append(number)
    return np.array(images), np.array(labels)


def main():
    best = 0
    for mode in ("L", "RGB"):
        x, y = load(sys.argv[1] + "/train", mode)
        v, w = load(sys.argv[1] + "/val", mode)
        mean, std = x.mean(0), x.std(0) + 1e-6
        variants = {
            "as they are": lambda a: a,
            "standardised": lambda a: (a - mean) / std,
            "each image standardised": lambda a: (a - a.mean(1, keepdims=True)) / (a.std(1, keepdims=True) + 1e-6),
            "distance from each image's mean": lambda a: np.abs(a - a.mean(1, keepdims=True)),
        }
        for name, variant in variants.items():
            centroid = NearestCentroid().fit(variant(x), y).score(variant(v), w)
            logistic = LogisticRegression(max_iter=300).fit(variant(x), y).score(variant(v), w)
            print(f"{mode:4} {name:36} nearest centroid {centroid:.3f}  logistic regression {logistic:.3f}")
            best = max(best, centroid, logistic)
    return best >= 0.6


if __name__ == "__main__":
    sys.exit(main())

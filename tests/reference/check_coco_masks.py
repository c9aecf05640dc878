#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the masks of COCO files (source: coco, label: mask) with pycocotools', pixel for pixel.

  check_coco_masks.py [--helper PATH] [--images 1000] [--seed 1]        in an environment with: pip install pycocotools numpy pillow

The helper is that of the CLI tests (build/release/bin/mxtrain_cli_helper). Makes images of random sizes, each with one object: polygons of every
kind (large and tiny, of several parts, crossing themselves, beyond the image, on the grid of tenths where rounding decides), counts as numbers, and
counts in the compressed form. Then as many with several objects, some of them crowds, for which pycocotools' masks are put together here by the rules of
lib/docs/user_guide/masks.md. Prints how many pixels and objects were compared, and fails where one differs.
"""
import argparse
import json
import math
import os
import random
import subprocess
import sys
import tempfile

import numpy
from PIL import Image
from pycocotools import mask as coco

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NO_CLASS = 255
CATEGORIES = 5


def rounded(value):
    """Coordinates as tools write them: whole, in tenths, hundredths, or with all digits."""
    digits = random.choice([0, 1, 1, 2, 2, None])
    return float(value) if digits is None else round(value, digits)


def corners(height, width):
    kind = random.choice(["random", "star", "tiny", "huge", "outside", "rectangle", "sliver", "repeated"])
    n = random.randint(3, 40)
    if kind == "star":  # as an outline of an object
        x, y, r = random.uniform(0, width), random.uniform(0, height), random.uniform(1, max(height, width))
        radii = [r * random.uniform(0.3, 1) for _ in range(n)]
        return [(x + radii[i] * math.cos(2 * math.pi * i / n), y + radii[i] * math.sin(2 * math.pi * i / n)) for i in range(n)]
    if kind == "tiny":
        x, y = random.uniform(-1, width + 1), random.uniform(-1, height + 1)
        return [(x + random.uniform(-1, 1), y + random.uniform(-1, 1)) for _ in range(random.randint(3, 6))]
    if kind == "huge":
        far = 10 ** random.randint(3, 5)
        return [(random.uniform(-far, far), random.uniform(-far, far)) for _ in range(random.randint(3, 8))]
    if kind == "outside":
        x = random.choice([-3 * width, 3 * width, 0])
        return [(x + random.uniform(-width, width), random.uniform(-2 * height, 3 * height)) for _ in range(n)]
    if kind == "rectangle":
        x0, x1, y0, y1 = (random.uniform(-2, end + 2) for end in (width, width, height, height))
        return [(x0, y0), (x1, y0), (x1, y1), (x0, y1)]
    if kind == "sliver":  # edges close to each other
        x0, y0, x1, y1 = (random.uniform(-5, end + 5) for end in (width, height, width, height))
        return [(x0, y0), (x1, y1), (x1 + random.uniform(-0.5, 0.5), y1 + random.uniform(-0.5, 0.5))]
    points = [(random.uniform(-0.2 * width, 1.2 * width), random.uniform(-0.2 * height, 1.2 * height)) for _ in range(n)]
    if kind == "repeated":
        points += random.sample(points, min(3, len(points)))
    return points


def polygon(height, width):
    return [rounded(value) for corner in corners(height, width) for value in corner]


def pixels(height, width):
    """A mask that is no polygon."""
    kind = random.choice(["noise", "blocks", "empty", "full"])
    if kind == "noise":
        return numpy.random.random((height, width)) < random.random()
    mask = numpy.full((height, width), kind == "full")
    for _ in range(random.randint(1, 4) if kind == "blocks" else 0):
        y, x = random.randrange(height), random.randrange(width)
        mask[y:y + random.randint(1, height), x:x + random.randint(1, width)] ^= True
    return mask


def segmentation(height, width):
    """As a COCO file has it, and its kind."""
    kind = random.choice(["polygon", "polygon", "polygon", "parts", "counts", "compressed"])
    if kind == "polygon":
        return [polygon(height, width)], kind
    if kind == "parts":
        return [polygon(height, width) for _ in range(random.randint(2, 5))], kind
    mask = numpy.asfortranarray(pixels(height, width).astype(numpy.uint8))
    if kind == "compressed":
        return {"size": [height, width], "counts": coco.encode(mask)["counts"].decode()}, kind
    flat = numpy.concatenate([[0], mask.flatten("F"), [2]])
    ends = numpy.flatnonzero(flat[1:] != flat[:-1])
    return {"size": [height, width], "counts": numpy.diff(numpy.concatenate([[0], ends])).tolist()}, kind


def pycocotools_mask(value, height, width):
    """annToMask of pycocotools.coco.COCO."""
    if isinstance(value, list):
        runs = coco.merge(coco.frPyObjects(value, height, width))
    elif isinstance(value["counts"], list):
        runs = coco.frPyObjects(value, height, width)
    else:
        runs = value
    return coco.decode(runs).astype(bool)


def expected(objects, height, width):
    classes = numpy.zeros((height, width), numpy.uint8)
    masks = [(pycocotools_mask(o["segmentation"], height, width), o) for o in objects]
    for mask, o in masks:
        if o["iscrowd"]:
            classes[mask] = NO_CLASS
    for mask, o in sorted((m for m in masks if not m[1]["iscrowd"]), key=lambda m: -m[0].sum()):
        classes[mask] = o["category_id"]
    return classes


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--helper", default=os.path.join(ROOT, "build/release/bin/mxtrain_cli_helper"))
    parser.add_argument("--images", type=int, default=1000, help="with one object, and as many with several")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    random.seed(options.seed)
    numpy.random.seed(options.seed)
    images, annotations, truth, kinds = [], [], [], {}
    with tempfile.TemporaryDirectory() as folder:
        for i in range(2 * options.images):
            longest = random.choice([4, 30, 200, 700])
            height, width = random.randint(1, longest), random.randint(1, longest)
            name = f"{i:06}.png"
            Image.fromarray(numpy.zeros((height, width), numpy.uint8)).save(os.path.join(folder, name))
            images.append({"id": i, "file_name": name, "height": height, "width": width})
            objects = []
            for _ in range(1 if i < options.images else random.randint(0, 6)):
                value, kind = segmentation(height, width)
                kinds[kind] = kinds.get(kind, 0) + 1
                crowd = int(i >= options.images and random.random() < 0.2)
                objects.append({"id": len(annotations) + len(objects), "image_id": i, "category_id": random.randint(1, CATEGORIES),
                                "segmentation": value, "iscrowd": crowd})
            annotations += objects
            truth.append(expected(objects, height, width))
        categories = [{"id": k, "name": f"c{k}"} for k in range(1, CATEGORIES + 1)]
        file, out = os.path.join(folder, "coco.json"), os.path.join(folder, "out")
        with open(file, "w") as f:
            json.dump({"images": images, "annotations": annotations, "categories": categories}, f)
        subprocess.run([options.helper, "masks", file, out], check=True)
        differing, refused, compared = [], [], 0
        for image, classes in zip(images, truth):
            path = os.path.join(out, image["file_name"])
            if not os.path.exists(path):
                refused.append(open(path[:-4] + ".txt").read())
                continue
            ours = numpy.asarray(Image.open(path))
            compared += ours.size
            if ours.shape != classes.shape or (ours != classes).any():
                differing.append(f"{image['file_name']}: {(ours != classes).sum()} of {classes.size} pixels")
    print(f"{len(images)} images, {len(annotations)} objects ({', '.join(f'{n} {k}' for k, n in sorted(kinds.items()))}), {compared} pixels: "
          f"{len(differing)} images differ, {len(refused)} are refused")
    for line in (differing + refused)[:20]:
        print(line)
    return 1 if differing or refused or not images else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""torchvision's nets for masks, loaded into those of configs/segmentation: the same scores, losses and gradient as in float64?

  check_segmentation_nets.py [--program PATH] [NET...]     in the environment of check_weights.py

Makes each net with random weights and random statistics (nothing is downloaded), saves it as torch.save does and gives it to `mxtrain train` by
train.weights, which has to take every array. The numbers of parameters are compared, then as in check_weights.py, with its limits: the scores of
each pixel for four images, from the head and the auxiliary one, and of a step of SGD without dropout the losses and, by the change of the weights,
the norm of the gradient. The sides of the images are no multiples of a stride, and one is longer than the largest dilation; the masks have
pixels of no class. A net with an auxiliary head is compared without it, too, in its scores.
"""
import argparse
import os
import sys
import tempfile

import numpy
import torch
import yaml
from PIL import Image
from torch.nn.functional import cross_entropy
from torchvision.models import segmentation

from torch_nets import (MEAN, MODES, PROGRAM, REFERENCE, ROOT, STD, Ours, batch_of, compare_step, difference, make_pixels, print_head, print_line,
                        randomize, without_dropout)

# The same name in torchvision; whether it may have an auxiliary head.
NETS = {"lraspp_mobilenet_v3_large": False, "deeplabv3_mobilenet_v3_large": True, "deeplabv3_resnet50": True, "fcn_resnet50": True}
IMAGES, CLASSES, NONE = 4, 21, 255
HEIGHT, WIDTH = 601, 75                                 # at a stride of 16, dilations of 36 fit into the height
AUXILIARY_WEIGHT = 0.5                                  # of torchvision's references/segmentation
LAYERS = {"out": "full_size", "aux": "auxiliary_full_size"}
COLUMNS = ["exact", "fast", REFERENCE]


def make_examples(folder):
    """Images and masks in two folders; the inputs of the nets, and the classes, of which NONE is none."""
    draw = numpy.random.default_rng(0)
    images, masks = [], []
    for part in ("images", "masks"):
        os.makedirs(os.path.join(folder, part))
    for i in range(IMAGES):
        pixels = make_pixels(draw, HEIGHT, WIDTH, (16, 4))
        classes = numpy.kron(draw.integers(0, CLASSES + 1, (HEIGHT // 15 + 1, WIDTH // 15)), numpy.ones((15, 15)))[:HEIGHT].astype(numpy.uint8)
        classes[classes == CLASSES] = NONE
        Image.fromarray(pixels).save(os.path.join(folder, "images", f"{i}.png"))
        Image.fromarray(classes).save(os.path.join(folder, "masks", f"{i}.png"))
        images.append(pixels)
        masks.append(classes.astype(numpy.int64))
    return batch_of(images, MEAN, STD), torch.from_numpy(numpy.stack(masks))


def blocks_without_dropout():
    """What switches off the dropout of the blocks that the nets include."""
    for file in ("decoder.yaml", "fcn_heads.yaml"):
        with open(os.path.join(ROOT, "configs/common", file), encoding="utf-8") as text:
            for name, block in yaml.safe_load(text)["blocks"].items():
                yield from (f"blocks.{name}.layers.{i}.Dropout.p=0" for i, layer in enumerate(block["layers"]) if "Dropout" in layer)


def our_masks(program, name, examples, folder):
    """What mxtrain makes of one net, the images and masks of a folder, and files of weights."""
    images = os.path.join(examples, "images")
    blocks = list(blocks_without_dropout()) if name.startswith(("deeplab", "fcn")) else []
    data = [f"data.{part}.{key}" for part in ("train", "val") for key in (
        f"path={images}", f"targets={os.path.join(examples, 'masks')}", f"transforms=[{{normalize: {{mean: {MEAN}, std: {STD}}}}}]")]
    changes = [*data, f"data.batch_size={IMAGES}", f"net.input=[3, {HEIGHT}, {WIDTH}]", "train.lr_schedule=null", *blocks]
    return Ours(program, os.path.join(ROOT, "configs/segmentation", name + ".yaml"), images, folder, changes)


def losses_of(outputs, masks):
    return {name: cross_entropy(scores, masks, ignore_index=NONE) for name, scores in outputs.items()}


def gradient_of_torch(net, batch, masks):
    """Of a training step without dropout: the sum of the losses, and parameter -> gradient of the one that torchvision minimizes."""
    losses = losses_of(without_dropout(net)(batch.to(next(net.parameters()).dtype)), masks)
    (losses["out"] + AUXILIARY_WEIGHT * losses.get("aux", 0)).backward()
    return sum(losses.values()).item(), {parameter: parameter.grad for parameter in net.parameters()}


def compare_scores(ours, net, batch, weights, mode, *changes):
    """How far the worst head is off."""
    ours.train(weights, "train.epochs=0", *MODES[mode], *changes)
    ours.check_count(net)
    with torch.no_grad():
        wanted = {name: scores.numpy() for name, scores in net(batch).items()}
    return max(difference(ours.output(LAYERS[name]), scores) for name, scores in wanted.items())


def compare(ours, net, batch, masks, weights):
    """Mode -> how far its scores, losses, norm of the gradient and gradient are off."""
    torch.save(net.state_dict(), weights)
    net = net.double()
    off = {mode: [compare_scores(ours, net, batch, weights, mode)] for mode in COLUMNS[:2]}
    for mode, more in compare_step(ours, net, weights, COLUMNS[:2], lambda which: gradient_of_torch(which, batch, masks)).items():
        off.setdefault(mode, []).extend(more)
    return off


def check(name, program, examples, folder, batch, masks):
    """Prints the lines of a net; how many have something that is off by too much."""
    bad = 0
    for auxiliary in (True, False) if NETS[name] else (None,):
        arguments = {} if auxiliary is None else {"aux_loss": auxiliary}
        net = randomize(getattr(segmentation, name)(weights=None, weights_backbone=None, num_classes=CLASSES, **arguments))
        weights = os.path.join(folder, "net.pth")
        ours = our_masks(program, name, examples, folder)
        if auxiliary is False:
            torch.save(net.state_dict(), weights)
            off = {"exact": [compare_scores(ours, net.double(), batch, weights, "exact", "vars.auxiliary=false")]}
        else:
            off = compare(ours, net, batch, masks, weights)
        bad += not print_line([name, "without auxiliary head" if auxiliary is False else ""], off, COLUMNS)
    return bad


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=PROGRAM)
    parser.add_argument("nets", nargs="*", default=list(NETS))
    args = parser.parse_args()
    torch.manual_seed(1)
    with tempfile.TemporaryDirectory() as folder:
        examples = os.path.join(folder, "examples")
        batch, masks = make_examples(examples)
        print_head(["net", ""], COLUMNS)
        bad = sum(check(name, args.program, examples, folder, batch, masks) for name in args.nets)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()

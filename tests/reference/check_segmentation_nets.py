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
import copy
import os
import subprocess
import sys
import tempfile

import numpy
import torch
import yaml
from PIL import Image
from torch.nn.functional import cross_entropy
from torchvision.models import segmentation

from check_weights import MEAN, MODES, ROOT, STD, Ours, misses, norm, randomize

# The same name in torchvision; whether it may have an auxiliary head.
NETS = {"lraspp_mobilenet_v3_large": False, "deeplabv3_mobilenet_v3_large": True, "deeplabv3_resnet50": True, "fcn_resnet50": True}
IMAGES, CLASSES, NONE = 4, 21, 255
HEIGHT, WIDTH = 601, 75                                 # at a stride of 16, dilations of 36 fit into the height
AUXILIARY_WEIGHT = 0.5                                  # of torchvision's references/segmentation
LAYERS = {"out": "full_size", "aux": "auxiliary_full_size"}
COLUMNS = ["exact", "fast", "PyTorch"]


def make_examples(folder):
    """Images and masks in two folders; the inputs of the nets, and the classes, of which NONE is none."""
    draw = numpy.random.default_rng(0)
    images, masks = [], []
    for part in ("images", "masks"):
        os.makedirs(os.path.join(folder, part))
    for i in range(IMAGES):
        smooth = numpy.asarray(Image.fromarray(draw.integers(48, 208, (16, 4, 3), dtype=numpy.uint8)).resize((WIDTH, HEIGHT), Image.BILINEAR))
        pixels = (smooth + draw.integers(-48, 48, smooth.shape)).astype(numpy.uint8)
        classes = numpy.kron(draw.integers(0, CLASSES + 1, (HEIGHT // 15 + 1, WIDTH // 15)), numpy.ones((15, 15)))[:HEIGHT].astype(numpy.uint8)
        classes[classes == CLASSES] = NONE
        Image.fromarray(pixels).save(os.path.join(folder, "images", f"{i}.png"))
        Image.fromarray(classes).save(os.path.join(folder, "masks", f"{i}.png"))
        images.append((pixels / 255 - MEAN) / STD)
        masks.append(classes.astype(numpy.int64))
    return torch.from_numpy(numpy.stack(images)).permute(0, 3, 1, 2).contiguous(), torch.from_numpy(numpy.stack(masks))


def without_dropout():
    """What switches off the dropout of the blocks that the nets include."""
    for file in ("decoder.yaml", "fcn_heads.yaml"):
        with open(os.path.join(ROOT, "configs/common", file), encoding="utf-8") as text:
            for name, block in yaml.safe_load(text)["blocks"].items():
                yield from (f"blocks.{name}.layers.{i}.Dropout.p=0" for i, layer in enumerate(block["layers"]) if "Dropout" in layer)


class OurMasks(Ours):
    """What mxtrain makes of one net, the images and masks of a folder, and files of weights."""

    def __init__(self, program, name, examples, folder):
        self.program, self.images, self.folder = program, os.path.join(examples, "images"), folder
        self.run = os.path.join(folder, "run")
        blocks = list(without_dropout()) if name.startswith(("deeplab", "fcn")) else []
        data = [f"data.{part}.{key}" for part in ("train", "val") for key in (
            f"path={self.images}", f"targets={os.path.join(examples, 'masks')}", f"transforms=[{{normalize: {{mean: {MEAN}, std: {STD}}}}}]")]
        self.command = [program, "train", os.path.join(ROOT, "configs/segmentation", name + ".yaml"), "--out", self.run, "--overwrite", "-q", *data,
                        "data.train.shuffle=false", f"data.batch_size={IMAGES}", f"net.input=[3, {HEIGHT}, {WIDTH}]", "train.lr_schedule=null",
                        "train.report_every=1", *blocks]

    def scores_of(self, layer):
        """Of the last run."""
        file = os.path.join(self.folder, "scores.npy")
        subprocess.run([self.program, "infer", self.run, self.images, "--output-layer", layer, "--output", file, "-q"], check=True,
                       stdout=subprocess.DEVNULL)
        return numpy.load(file).astype(numpy.float64)


def losses_of(outputs, masks):
    return {name: cross_entropy(scores, masks, ignore_index=NONE) for name, scores in outputs.items()}


def gradient_of_torch(net, batch, masks):
    """Of a training step without dropout: the sum of the losses, and parameter -> gradient of the one that torchvision minimizes."""
    for module in net.train().modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    losses = losses_of(net(batch), masks)
    (losses["out"] + AUXILIARY_WEIGHT * losses.get("aux", 0)).backward()
    return sum(losses.values()).item(), {parameter: parameter.grad for parameter in net.parameters()}


def difference(given, wanted):
    return float(numpy.abs(given - wanted).max() / numpy.abs(wanted).max())


def check_arrays(ours, net):
    """The last run has the parameters of the net: as many numbers."""
    given, wanted = (sum(array.numel() for array in arrays) for arrays in (ours.parameters().values(), net.parameters()))
    if given != wanted:
        sys.exit(f"{ours.command[2]}: {given} parameters, but torchvision's net has {wanted}")


def compare_scores(ours, net, batch, weights, mode, *changes):
    """How far the worst head is off."""
    ours.train(weights, "train.epochs=0", *MODES[mode], *changes)
    check_arrays(ours, net)
    with torch.no_grad():
        wanted = {name: scores.numpy() for name, scores in net(batch).items()}
    return max(difference(ours.scores_of(LAYERS[name]), scores) for name, scores in wanted.items())


def compare(ours, net, batch, masks, weights):
    """Mode -> how far its scores, losses, norm of the gradient and gradient are off."""
    torch.save(net.state_dict(), weights)
    single, net = copy.deepcopy(net), net.double()
    off = {mode: [compare_scores(ours, net, batch, weights, mode)] for mode in COLUMNS[:2]}
    before = ours.parameters()
    loss, gradient = gradient_of_torch(net, batch, masks)
    size = norm(gradient.values())
    rate = norm(gradient) / size                            # with which a step changes the weights by their own norm
    with torch.no_grad():
        for parameter, change in gradient.items():
            parameter -= rate * change
    torch.save({key: value.float() if value.is_floating_point() else value for key, value in net.state_dict().items()}, weights + ".after")
    ours.train(weights + ".after", "train.epochs=0")
    expected = ours.parameters()
    for mode in off:
        given_loss, given = ours.step(weights, rate, mode)
        given_size = norm(given[name] - before[name] for name in before) / rate
        off[mode] += [abs(given_loss - loss) / loss, abs(given_size - size) / size, norm(given[name] - expected[name] for name in before) / rate / size]
    single_loss, single_gradient = gradient_of_torch(single, batch.float(), masks)
    apart = norm(theirs.double() - exact for theirs, exact in zip(single_gradient.values(), gradient.values()))
    off["PyTorch"] = [abs(single_loss - loss) / loss, abs(norm(single_gradient.values()) - size) / size, apart / size]
    return off


def check(name, program, examples, folder, batch, masks):
    """Prints the lines of a net; how many have something that is off by too much."""
    bad = 0
    for auxiliary in (True, False) if NETS[name] else (None,):
        arguments = {} if auxiliary is None else {"aux_loss": auxiliary}
        net = randomize(getattr(segmentation, name)(weights=None, weights_backbone=None, num_classes=CLASSES, **arguments))
        weights = os.path.join(folder, "net.pth")
        ours = OurMasks(program, name, examples, folder)
        if auxiliary is False:
            torch.save(net.state_dict(), weights)
            off = {"exact": [compare_scores(ours, net.double(), batch, weights, "exact", "vars.auxiliary=false")]}
        else:
            off = compare(ours, net, batch, masks, weights)
        missed = misses(off)
        bad += bool(missed)
        cells = [" ".join(f"{value:.0e}" for value in off[column]) if column in off else "" for column in COLUMNS]
        which = "without auxiliary head" if auxiliary is False else ""
        print(f"| {name} | {which} | {' | '.join(cells)} |{' TOO MUCH: ' + missed if missed else ''}", flush=True)
    return bad


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=os.path.join(ROOT, "build/release/bin/mxtrain"))
    parser.add_argument("nets", nargs="*", default=list(NETS))
    args = parser.parse_args()
    torch.manual_seed(1)
    with tempfile.TemporaryDirectory() as folder:
        examples = os.path.join(folder, "examples")
        batch, masks = make_examples(examples)
        print(f"| net | | {' | '.join(COLUMNS)} |\n|---|---|{'---|' * len(COLUMNS)}")
        bad = sum(check(name, args.program, examples, folder, batch, masks) for name in args.nets)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()

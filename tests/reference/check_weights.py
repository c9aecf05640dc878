#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Nets of torchvision and timm, loaded into the nets of configs/imagenet: the same scores, loss and gradient as in float64?

  check_weights.py [--program PATH] [NET...]     in an environment with: pip install torch torchvision timm safetensors pyyaml pillow numpy

Makes each net with random weights and random statistics (nothing is downloaded), saves it as torch.save does and gives it to `mxtrain train` by
train.weights. With train.epochs=0, which needs every parameter of the net, `mxtrain infer` says what the last layer gives for five images. One step
of SGD on them, without dropout, says the loss in training and, by the change of the weights, the gradient. Both are compared with PyTorch in float64:
in exact and in fast arithmetic, and in bfloat16. Prints a table, and fails where

  a score in exact arithmetic is off by more than 1e-5 of the largest, in fast by more than 1e-4, in bfloat16 by more than 0.05;
  the loss is off by more than 1e-4 of itself, in bfloat16 by more than 0.005;
  the norm of the gradient is off by more than 1e-4 of itself, in fast arithmetic by more than 1e-3, in bfloat16 by more than 0.05.

A cell has how far these three and the whole gradient are off, in the last column that of PyTorch in float32, without scores (torch_nets.py). Of timm's
files, where there are torchvision's too, the scores in exact arithmetic are compared.
"""
import argparse
import os
import sys
import tempfile

import numpy
import timm
import torch
import torchvision
import yaml
from PIL import Image

from torch_nets import (MEAN, MODES, PROGRAM, REFERENCE, ROOT, STD, Ours, batch_of, compare_step, difference, make_pixels, print_head, print_line,
                        randomize, without_dropout)

# The same name in torchvision; the net in timm, where its names are mapped too.
NETS = {
    "alexnet": None, "googlenet": None, "inception_v3": None, "squeezenet1_1": None, "densenet121": "densenet121",
    "vgg11": "vgg11", "vgg13": "vgg13", "vgg16": "vgg16", "vgg19": "vgg19",
    "vgg11_bn": "vgg11_bn", "vgg13_bn": "vgg13_bn", "vgg16_bn": "vgg16_bn", "vgg19_bn": "vgg19_bn",
    "resnet18": "resnet18", "resnet34": "resnet34", "resnet50": "resnet50", "resnet101": "resnet101", "resnet152": "resnet152",
    "wide_resnet50_2": "wide_resnet50_2", "resnext50_32x4d": "resnext50_32x4d",
    "mobilenet_v2": "mobilenetv2_100", "mobilenet_v3_large": None, "mobilenet_v3_small": None, "mnasnet1_0": None, "shufflenet_v2_x1_0": None,
    "efficientnet_b0": "efficientnet_b0", "efficientnet_lite0": "efficientnet_lite0", "efficientnet_v2_s": None,
    "regnet_y_400mf": None, "convnext_tiny": None,
    "vit_b_16": "vit_base_patch16_224", "vit_small_patch16_224": "vit_small_patch16_224", "vit_tiny_patch16_224": "vit_tiny_patch16_224",
    "swin_t": "swin_tiny_patch4_window7_224",
}
MORE = {"googlenet": {"aux_logits": True, "init_weights": False}, "inception_v3": {"init_weights": False}}    # arguments in torchvision
SIZES = {"inception_v3": 299, "efficientnet_v2_s": 300, "convnext_tiny": 176}                                 # that the nets are made for, if not 224
SMALL = 96                                                                                                   # edge of images here, for nets that take any
FIXED = ("alexnet", "vgg", "vit", "swin", "inception")                                                       # prefixes of the others
SCORES = {"squeezenet1_1": "scores"}                                                                          # the layer, if not fc
IMAGES, CLASSES, SMOOTHING = 5, 1000, 0.1
COLUMNS = [*MODES, REFERENCE]


def origins(name):
    if hasattr(torchvision.models, name):
        yield "torchvision", getattr(torchvision.models, name)(**MORE.get(name, {}))
    if NETS[name]:
        yield "timm", timm.create_model(NETS[name])


def make_images(folder, size):
    """Images of different classes, and a list of them: its path, the inputs of the nets, the labels."""
    draw = numpy.random.default_rng(0)
    os.makedirs(folder, exist_ok=True)
    arrays, labels = [], [CLASSES // IMAGES * i + 7 for i in range(IMAGES)]
    for i in range(IMAGES):
        arrays.append(make_pixels(draw, size, size, (8, 8)))
        Image.fromarray(arrays[-1]).save(os.path.join(folder, f"{i}.png"))
    images = os.path.join(folder, "images.csv")
    with open(images, "w", encoding="utf-8") as out:
        out.writelines(f"{i}.png,{label}\n" for i, label in enumerate(labels))
    return images, batch_of(arrays, MEAN, STD), torch.tensor(labels)


def bare_nets(folder):
    """The nets of configs/ without recipes, data and dropout, and with the same label smoothing: their folder."""
    def bare(layers):
        for layer in layers:
            for kind, params in layer.items() if isinstance(layer, dict) else ():
                if kind == "Dropout":
                    params["p"] = 0
                elif kind == "SoftmaxOutput":
                    params["smooth_alpha"] = SMOOTHING
                elif kind == "repeat":
                    bare(params["layers"])

    for part in ("common", "imagenet"):
        os.makedirs(os.path.join(folder, part))
        for file in sorted(os.listdir(os.path.join(ROOT, "configs", part))):
            if not file.endswith(".yaml"):
                continue
            with open(os.path.join(ROOT, "configs", part, file), encoding="utf-8") as text:
                config = yaml.safe_load(text)
            config.pop("data", None)
            weights = config.pop("train", {}).get("weights")
            if weights:
                config["train"] = {"weights": {"map": os.path.join(ROOT, "configs", part, weights["map"])}}
            for net in (config.get("net", {}), *config.get("blocks", {}).values()):
                bare(net.get("layers", ()))
            with open(os.path.join(folder, part, file), "w", encoding="utf-8") as out:
                yaml.safe_dump(config, out, sort_keys=False)
    return os.path.join(folder, "imagenet")


def gradient_of_torch(net, batch, labels):
    """Of a training step without randomness: the loss, and parameter -> gradient."""
    scores = without_dropout(net)(batch.to(next(net.parameters()).dtype))
    scores = scores if isinstance(scores, torch.Tensor) else scores.logits     # the auxiliary heads learn nothing
    # PyTorch spreads the smoothing over all classes, MXNet over the others.
    loss = torch.nn.functional.cross_entropy(scores, labels, label_smoothing=SMOOTHING * CLASSES / (CLASSES - 1))
    loss.backward()
    return loss.item(), {parameter: parameter.grad for parameter in net.parameters() if parameter.grad is not None}


def compare(ours, layer, net, batch, labels, weights, step):
    """Mode -> how far its scores, loss, norm of the gradient and gradient are off; without `step` the scores in exact arithmetic alone."""
    torch.save(net.state_dict(), weights)
    net = net.double()
    with torch.no_grad():
        wanted = net(batch).numpy()
    off = {}
    for mode in MODES if step else ["exact"]:
        ours.train(weights, "train.epochs=0", *MODES[mode])
        off[mode] = [difference(ours.output(layer).reshape(IMAGES, -1), wanted)]
    if step:
        for mode, more in compare_step(ours, net, weights, MODES, lambda which: gradient_of_torch(which, batch, labels)).items():
            off.setdefault(mode, []).extend(more)
    return off


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=PROGRAM)
    parser.add_argument("nets", nargs="*", default=list(NETS))
    args = parser.parse_args()
    torch.manual_seed(1)
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        nets = bare_nets(os.path.join(folder, "configs"))
        print_head(["net", "origin"], COLUMNS)
        for name in args.nets:
            size = SIZES.get(name, 224) if name.startswith(FIXED) else SMALL
            images, batch, labels = make_images(os.path.join(folder, f"images{size}"), size)
            transforms = f"[{{resize: [{size}, {size}]}}, {{normalize: {{mean: {MEAN}, std: {STD}}}}}]"
            changes = ["data.train.source=list", f"data.train.path={images}", f"data.train.transforms={transforms}", f"data.batch_size={IMAGES}",
                       f"net.input=[3, {size}, {size}]", "vars.stochastic_depth=0"]
            ours = Ours(args.program, os.path.join(nets, name + ".yaml"), images, folder, changes)
            for number, (origin, net) in enumerate(origins(name)):
                off = compare(ours, SCORES.get(name, "fc"), randomize(net), batch, labels, os.path.join(folder, "net.pth"), number == 0)
                bad += not print_line([name, origin], off, COLUMNS)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()

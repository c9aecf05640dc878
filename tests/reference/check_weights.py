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

A cell has how far these three and the whole gradient are off, in the last column that of PyTorch in float32, without scores. The whole gradient has no
limit: where the input of a ReLU is nearly 0, or two places of a maximum are nearly equal, float32 may take the other side. Of timm's files, where
there are torchvision's too, the scores in exact arithmetic are compared.
"""
import argparse
import copy
import json
import math
import os
import subprocess
import sys
import tempfile

import numpy
import timm
import torch
import torchvision
import yaml
from PIL import Image
from safetensors.torch import load_file

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
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
MODES = {"exact": ["train.math=exact"], "fast": ["train.math=fast"], "bf16": ["train.amp=bf16"]}
COLUMNS = [*MODES, "PyTorch"]
LIMITS = {"exact": (1e-5, 1e-4, 1e-4), "fast": (1e-4, 1e-4, 1e-3), "bf16": (0.05, 0.005, 0.05)}              # of scores, loss, norm of the gradient


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
        smooth = numpy.asarray(Image.fromarray(draw.integers(48, 208, (8, 8, 3), dtype=numpy.uint8)).resize((size, size), Image.BILINEAR))
        pixels = (smooth + draw.integers(-48, 48, smooth.shape)).astype(numpy.uint8)        # no two places are alike
        Image.fromarray(pixels).save(os.path.join(folder, f"{i}.png"))
        arrays.append((pixels / 255 - MEAN) / STD)
    images = os.path.join(folder, "images.csv")
    with open(images, "w", encoding="utf-8") as out:
        out.writelines(f"{i}.png,{label}\n" for i, label in enumerate(labels))
    return images, torch.from_numpy(numpy.stack(arrays)).permute(0, 3, 1, 2).contiguous(), torch.tensor(labels)


def randomize(net):
    for module in net.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.5, 1.5)
        if isinstance(module, (torch.nn.BatchNorm2d, torch.nn.LayerNorm)):
            module.weight.data.uniform_(0.5, 1.5)
            # Where most ReLUs pass their input the gradient depends little on rounding; around 0, PyTorch's in float32 is off by 1e-2.
            module.bias.data.normal_(1 if isinstance(module, torch.nn.BatchNorm2d) else 0, 0.1)
        if hasattr(module, "layer_scale"):
            module.layer_scale.data.uniform_(0.5, 1.5)
    for name, parameter in net.named_parameters():  # what begins as zeros or nearly so
        if name.split(".")[-1] in ("class_token", "cls_token", "pos_embedding", "pos_embed", "relative_position_bias_table"):
            parameter.data.normal_(0, 0.5)
        if name.endswith(("in_proj_bias", "qkv.bias", "head.bias", "head.fc.bias")):
            parameter.data.normal_(0, 0.2)
        if name in ("heads.head.weight", "head.weight", "head.fc.weight"):
            parameter.data.normal_(0, 0.05)
    return net.eval()


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


class Ours:
    """What mxtrain makes of one net, some images and files of weights."""

    def __init__(self, program, config, images, layer, size, folder):
        self.program, self.images, self.layer, self.folder = program, images, layer, folder
        self.run = os.path.join(folder, "run")
        transforms = f"[{{resize: [{size}, {size}]}}, {{normalize: {{mean: {MEAN}, std: {STD}}}}}]"
        self.command = [program, "train", config, "--out", self.run, "--overwrite", "-q", "data.train.source=list", f"data.train.path={images}",
                        "data.train.shuffle=false", f"data.train.transforms={transforms}", f"data.batch_size={IMAGES}", f"net.input=[3, {size}, {size}]",
                        "vars.stochastic_depth=0", "train.report_every=1"]

    def train(self, weights, *changes):
        done = subprocess.run([*self.command, f"train.weights.file={weights}", *changes], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(done.args)}\n{done.stderr}")

    def scores(self, weights, mode):
        features = os.path.join(self.folder, "scores.npy")
        self.train(weights, "train.epochs=0", *MODES[mode])
        subprocess.run([self.program, "infer", self.run, self.images, "--output-layer", self.layer, "--output", features, "-q"], check=True,
                       stdout=subprocess.DEVNULL)
        return numpy.load(features).reshape(IMAGES, -1).astype(numpy.float64)

    def parameters(self):
        """Of the last run, in float64 and without the statistics of batch norms."""
        file = os.path.join(self.folder, "ours.safetensors")
        subprocess.run([self.program, "export", self.run, file, "-q"], check=True, stdout=subprocess.DEVNULL)
        return {name: array.double() for name, array in load_file(file).items() if "_moving_" not in name}

    def step(self, weights, rate, mode):
        """Loss, and parameters after a step of SGD."""
        self.train(weights, "train.epochs=1", f"train.optimizer={{name: sgd, lr: {rate}}}", *MODES[mode])
        with open(os.path.join(self.run, "events.jsonl"), encoding="utf-8") as lines:
            step, = (event for event in map(json.loads, lines) if event["event"] == "step")
        return step["loss"], self.parameters()


def norm(arrays):
    return math.sqrt(sum(float((array.detach() ** 2).sum()) for array in arrays))


def gradient_of_torch(net, batch, labels):
    """Of a training step without randomness: the loss, and parameter -> gradient."""
    for module in net.train().modules():
        for what in ("p", "drop_prob"):                     # of Dropout, StochasticDepth and DropPath
            if isinstance(getattr(module, what, None), float):
                setattr(module, what, 0.0)
    scores = net(batch)
    scores = scores if isinstance(scores, torch.Tensor) else scores.logits     # the auxiliary heads learn nothing
    # PyTorch spreads the smoothing over all classes, MXNet over the others.
    loss = torch.nn.functional.cross_entropy(scores, labels, label_smoothing=SMOOTHING * CLASSES / (CLASSES - 1))
    loss.backward()
    return loss.item(), {parameter: parameter.grad for parameter in net.parameters() if parameter.grad is not None}


def compare(ours, net, batch, labels, weights, step):
    """Mode -> how far its scores, loss, norm of the gradient and gradient are off; without `step` the scores in exact arithmetic alone."""
    torch.save(net.state_dict(), weights)
    single, net = copy.deepcopy(net), net.double()
    with torch.no_grad():
        wanted = net(batch).numpy()
    off = {mode: [float(numpy.abs(ours.scores(weights, mode) - wanted).max() / numpy.abs(wanted).max())] for mode in (MODES if step else ["exact"])}
    if not step:
        return off
    before = ours.parameters()
    loss, gradient = gradient_of_torch(net, batch, labels)
    size = norm(gradient.values())
    rate = norm(gradient) / size                            # with which a step changes the weights by their own norm
    with torch.no_grad():
        for parameter, change in gradient.items():
            parameter -= rate * change
    torch.save({key: value.float() if value.is_floating_point() else value for key, value in net.state_dict().items()}, weights + ".after")
    ours.train(weights + ".after", "train.epochs=0")
    expected = ours.parameters()
    for mode in MODES:
        given_loss, given = ours.step(weights, rate, mode)
        given_size = norm(given[name] - before[name] for name in before) / rate
        off[mode] += [abs(given_loss - loss) / loss, abs(given_size - size) / size, norm(given[name] - expected[name] for name in before) / rate / size]
    single_loss, single_gradient = gradient_of_torch(single, batch.float(), labels)
    apart = norm(theirs.double() - exact for theirs, exact in zip(single_gradient.values(), gradient.values()))
    off["PyTorch"] = [abs(single_loss - loss) / loss, abs(norm(single_gradient.values()) - size) / size, apart / size]
    return off


def misses(off):
    """What is off by more than its limit."""
    return ", ".join(f"{what} of {mode}" for mode, limits in LIMITS.items() if mode in off
                     for what, value, limit in zip(("scores", "loss", "norm"), off[mode], limits) if not value <= limit)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=os.path.join(ROOT, "build/release/bin/mxtrain"))
    parser.add_argument("nets", nargs="*", default=list(NETS))
    args = parser.parse_args()
    torch.manual_seed(1)
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        nets = bare_nets(os.path.join(folder, "configs"))
        print(f"| net | origin | {' | '.join(COLUMNS)} |\n|---|---|{'---|' * len(COLUMNS)}")
        for name in args.nets:
            size = SIZES.get(name, 224) if name.startswith(FIXED) else SMALL
            images, batch, labels = make_images(os.path.join(folder, f"images{size}"), size)
            ours = Ours(args.program, os.path.join(nets, name + ".yaml"), images, SCORES.get(name, "fc"), size, folder)
            for number, (origin, net) in enumerate(origins(name)):
                off = compare(ours, randomize(net), batch, labels, os.path.join(folder, "net.pth"), number == 0)
                missed = misses(off)
                bad += bool(missed)
                cells = [" ".join(f"{value:.0e}" for value in off[column]) if column in off else "" for column in COLUMNS]
                print(f"| {name} | {origin} | {' | '.join(cells)} |{' TOO MUCH: ' + missed if missed else ''}", flush=True)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Nets of torchvision and timm, loaded into the nets of configs/imagenet: the same scores for the same images?

  check_weights.py [--program PATH] [NET...]      in an environment with: pip install torch torchvision timm safetensors pillow numpy

Makes each net with random weights and random statistics (nothing is downloaded), saves it as safetensors, gives it to `mxtrain train` by
train.weights with train.epochs=0, which needs every parameter of the net, and compares what `mxtrain infer` finds at the last layer with what
the net itself gives. Prints a line per net and fails where they differ by more than 1e-4 of the largest score.
"""
import argparse
import os
import subprocess
import sys
import tempfile

import numpy
import timm
import torch
import torchvision
from PIL import Image
from safetensors.torch import save_file

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
SIZES = {"inception_v3": 299, "efficientnet_v2_s": 300, "convnext_tiny": 176}
SCORES = {"squeezenet1_1": "scores"}                                                                          # the layer, if not fc
TOLERANCE = 1e-4


def origins(name):
    if hasattr(torchvision.models, name):
        yield "torchvision", getattr(torchvision.models, name)(**MORE.get(name, {}))
    if NETS[name]:
        yield "timm", timm.create_model(NETS[name])


def make_images(folder, size):
    """Four images in two classes: their paths, and the inputs of the nets."""
    draw = numpy.random.default_rng(0)
    files, arrays = [], []
    for i in range(4):
        file = os.path.join(folder, "ab"[i // 2], f"{i}.png")
        os.makedirs(os.path.dirname(file), exist_ok=True)
        image = Image.fromarray(draw.integers(0, 256, (8, 8, 3), dtype=numpy.uint8)).resize((size, size), Image.BICUBIC)
        image.save(file)
        files.append(file)
        arrays.append((numpy.asarray(image) / 255 - MEAN) / STD)
    return files, torch.tensor(numpy.stack(arrays), dtype=torch.float32).permute(0, 3, 1, 2)


def randomize(net):
    for module in net.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.5, 1.5)
        if isinstance(module, (torch.nn.BatchNorm2d, torch.nn.LayerNorm)):
            module.weight.data.uniform_(0.5, 1.5)
            module.bias.data.normal_(0, 0.1)
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


def scores_of_mxtrain(program, name, weights, images, files, folder, size):
    run, features = os.path.join(folder, "run"), os.path.join(folder, "scores.npy")
    transforms = f"[{{resize: [{size}, {size}]}}, {{normalize: {{mean: {MEAN}, std: {STD}}}}}]"
    changes = [f"train.weights.file={weights}", "data.batch_size=2", "train.epochs=0"]
    for part in ("train", "val"):
        changes += [f"data.{part}.path={images}", f"data.{part}.transforms={transforms}"]
    subprocess.run([program, "train", os.path.join(ROOT, "configs/imagenet", name + ".yaml"), "--out", run, "--overwrite", "-q", *changes], check=True)
    subprocess.run([program, "infer", run, *files, "--output-layer", SCORES.get(name, "fc"), "--output", features, "-q"], check=True, stdout=subprocess.DEVNULL)
    return numpy.load(features)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=os.path.join(ROOT, "build/release/bin/mxtrain"))
    parser.add_argument("nets", nargs="*", default=list(NETS))
    args = parser.parse_args()
    torch.manual_seed(1)
    worst = 0
    with tempfile.TemporaryDirectory() as folder:
        weights = os.path.join(folder, "net.safetensors")
        for name in args.nets:
            size = SIZES.get(name, 224)
            images = os.path.join(folder, f"images{size}")
            files, batch = make_images(images, size)
            for origin, net in origins(name):
                randomize(net)
                with torch.no_grad():
                    wanted = net(batch).numpy()
                save_file({key: value.contiguous() for key, value in net.state_dict().items()}, weights)
                given = scores_of_mxtrain(args.program, name, weights, images, files, folder, size)
                difference = float(numpy.abs(given - wanted).max() / numpy.abs(wanted).max())
                print(f"{name} of {origin}: scores differ by {difference:.1e} of the largest")
                worst = max(worst, difference)
    sys.exit(0 if worst <= TOLERANCE else 1)


if __name__ == "__main__":
    main()

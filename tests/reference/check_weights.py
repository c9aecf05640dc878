#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Nets of torchvision and timm, loaded into the nets of configs/imagenet: the same scores for the same images?

  check_weights.py [--program PATH] [NET...]      in an environment with: pip install torch torchvision timm safetensors pillow numpy

Makes each net with random weights and random statistics (nothing is downloaded), saves it as safetensors, gives it to `mxtrain train` by
train.weights for one step that changes nothing (learning rate 0, the statistics of batch norm fixed), and compares what `mxtrain infer` finds
at the last layer with what the net itself gives. Prints a line per net and fails where they differ by more than 1e-4 of the largest score.
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
TRANSFORMS = f"[{{resize: [224, 224]}}, {{normalize: {{mean: {MEAN}, std: {STD}}}}}]"
NETS = {
    "resnet18": [torchvision.models.resnet18, lambda: timm.create_model("resnet18")],
    "resnet50": [torchvision.models.resnet50, lambda: timm.create_model("resnet50")],
    "vgg16": [torchvision.models.vgg16, lambda: timm.create_model("vgg16")],
    "mobilenet_v2": [torchvision.models.mobilenet_v2, lambda: timm.create_model("mobilenetv2_100")],
    "googlenet": [lambda: torchvision.models.googlenet(aux_logits=True, init_weights=False, transform_input=False)],
}
# Batch norm of these nets is inside a block; its statistics must not change.
FIXED = {"resnet18": "conv_bn", "resnet50": "conv_bn", "mobilenet_v2": "conv_bn", "googlenet": "conv"}
TOLERANCE = 1e-4


def make_images(folder):
    """Four images in two classes: their paths, and the inputs of the nets."""
    draw = numpy.random.default_rng(0)
    files, arrays = [], []
    for i in range(4):
        file = os.path.join(folder, "ab"[i // 2], f"{i}.png")
        os.makedirs(os.path.dirname(file), exist_ok=True)
        image = Image.fromarray(draw.integers(0, 256, (8, 8, 3), dtype=numpy.uint8)).resize((224, 224), Image.BICUBIC)
        image.save(file)
        files.append(file)
        arrays.append((numpy.asarray(image) / 255 - MEAN) / STD)
    return files, torch.tensor(numpy.stack(arrays), dtype=torch.float32).permute(0, 3, 1, 2)


def randomize(net):
    for module in net.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.5, 1.5)
            module.weight.data.uniform_(0.5, 1.5)
            module.bias.data.normal_(0, 0.1)
    return net.eval()


def scores_of_mxtrain(program, name, weights, images, files, folder):
    run, features = os.path.join(folder, "run"), os.path.join(folder, "fc.npy")
    changes = [f"train.weights.file={weights}", "data.batch_size=2", "train.max_steps=1", "train.optimizer={name: sgd, lr: 0, weight_decay: 0}",
               "train.lr_schedule=constant"]
    for part in ("train", "val"):
        changes += [f"data.{part}.path={images}", f"data.{part}.transforms={TRANSFORMS}"]
    if name in FIXED:
        changes.append(f"blocks.{FIXED[name]}.layers.1.BatchNorm.use_global_stats=true")
    subprocess.run([program, "train", os.path.join(ROOT, "configs/imagenet", name + ".yaml"), "--out", run, "--overwrite", "-q", *changes], check=True)
    subprocess.run([program, "infer", run, *files, "--output-layer", "fc", "--output", features, "-q"], check=True, stdout=subprocess.DEVNULL)
    return numpy.load(features)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=os.path.join(ROOT, "build/release/bin/mxtrain"))
    parser.add_argument("nets", nargs="*", default=list(NETS))
    args = parser.parse_args()
    torch.manual_seed(1)
    worst = 0
    with tempfile.TemporaryDirectory() as folder:
        images, weights = os.path.join(folder, "images"), os.path.join(folder, "net.safetensors")
        files, batch = make_images(images)
        for name in args.nets:
            for origin, make in zip(("torchvision", "timm"), NETS[name]):
                net = randomize(make())
                with torch.no_grad():
                    wanted = net(batch).numpy()
                save_file({key: value.contiguous() for key, value in net.state_dict().items()}, weights)
                given = scores_of_mxtrain(args.program, name, weights, images, files, folder)
                difference = float(numpy.abs(given - wanted).max() / numpy.abs(wanted).max())
                print(f"{name} of {origin}: scores differ by {difference:.1e} of the largest")
                worst = max(worst, difference)
    sys.exit(0 if worst <= TOLERANCE else 1)


if __name__ == "__main__":
    main()

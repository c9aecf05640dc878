#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Nets of torchvision, exported to ONNX by PyTorch and imported by mxtrain: the same scores for the same images?

  check_torch_onnx.py [--program PATH] [--old] [NET...]     in an environment with: pip install torch torchvision timm safetensors onnx onnxscript onnxruntime pillow numpy

Makes each net with random weights and random statistics (nothing is downloaded), exports it with PyTorch's default exporter (--old: with the one
that traces TorchScript), and compares what `mxtrain infer` gives with the net itself. A net that PyTorch cannot export is named. Prints a line per
net and fails where they differ by more than 1e-4 of the largest score, or where the import is refused.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

import numpy
import torch
import torchvision

from check_onnx import MEAN, ROOT, STD, make_images, scores_of_import
from check_weights import MORE, SIZES, randomize

NETS = ["alexnet", "googlenet", "inception_v3", "squeezenet1_1", "densenet121", "vgg11_bn", "resnet18", "resnet50", "resnext50_32x4d", "mobilenet_v2",
        "mobilenet_v3_large", "mobilenet_v3_small", "mnasnet1_0", "shufflenet_v2_x1_0", "efficientnet_b0", "efficientnet_v2_s", "regnet_y_400mf",
        "convnext_tiny", "vit_b_16", "swin_t", "swin_v2_t", "maxvit_t", "regnet_x_400mf", "mnasnet0_5", "efficientnet_b1", "resnext101_32x8d",
        "convnext_small"]
TOLERANCE = 1e-4


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=os.path.join(ROOT, "build/release/bin/mxtrain"))
    parser.add_argument("--old", action="store_true")
    parser.add_argument("nets", nargs="*", default=NETS)
    args = parser.parse_args()
    torch.manual_seed(1)
    bad = 0
    for name in args.nets:
        size = SIZES.get(name, 224)
        with tempfile.TemporaryDirectory() as folder:
            images = os.path.join(folder, "images")
            files, batch = make_images(images, size)
            transforms = f"[{{resize: [{size}, {size}]}}, {{normalize: {{mean: {MEAN}, std: {STD}}}}}]"
            net = randomize(getattr(torchvision.models, name)(**MORE.get(name, {})))
            for module in net.modules():                    # a head that begins with zeros
                if isinstance(module, torch.nn.Linear) and not module.weight.any():
                    module.weight.data.normal_(0, 0.02)
            batch = torch.from_numpy(numpy.ascontiguousarray(batch))
            with torch.no_grad():
                wanted = net(batch).numpy()
            path = os.path.join(folder, name + ".onnx")
            try:
                if args.old:
                    torch.onnx.export(net, batch[:2], path, dynamo=False, input_names=["data"], output_names=["scores"],
                                      dynamic_axes={"data": {0: "N"}, "scores": {0: "N"}})
                else:
                    torch.onnx.export(net, (batch[:2],), path, dynamo=True, verbose=False, input_names=["data"], output_names=["scores"],
                                      dynamic_shapes=({0: torch.export.Dim("N")},))
            except Exception as error:                      # whatever the exporter throws
                print(f"{name}: PyTorch does not export it: {str(error).splitlines()[0]}", flush=True)
                continue
            listed = subprocess.run([args.program, "import", path, "--json", "-q"], capture_output=True, text=True)
            if listed.returncode != 0:
                print(f"{name}: {listed.stderr.strip()}", flush=True)
                bad += 1
                continue
            layer = json.loads(listed.stdout)["outputs"][0]
            given = scores_of_import(args.program, path, folder, images, files, transforms, layer)
            difference = float(numpy.abs(given - wanted).max() / numpy.abs(wanted).max())
            bad += not difference <= TOLERANCE
            print(f"{name}: scores differ by {difference:.1e} of the largest", flush=True)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()

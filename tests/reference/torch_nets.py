# SPDX-License-Identifier: Apache-2.0
"""What check_weights.py, check_segmentation_nets.py and check_detection_nets.py share: a net of PyTorch with random weights and statistics, saved as
torch.save does; the net of configs/ that `mxtrain train` makes of the file; how far the two are apart.

Three things are compared with PyTorch in float64: what the net says (scores), the loss of a step of SGD and, by the change of the weights, the
gradient, its norm and as a whole. PyTorch in float32 stands beside them, without scores. The whole gradient has no limit: where the input of a ReLU is
nearly 0, or two places of a maximum are nearly equal, float32 may take the other side.
"""
import copy
import json
import math
import os
import subprocess
import sys

import numpy
import torch
from PIL import Image
from safetensors.torch import load_file

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.path.join(ROOT, "build/release/bin/mxtrain")
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
MODES = {"exact": ["train.math=exact"], "fast": ["train.math=fast"], "bf16": ["train.amp=bf16"]}
LIMITS = {"exact": (1e-5, 1e-4, 1e-4), "fast": (1e-4, 1e-4, 1e-3), "bf16": (0.05, 0.005, 0.05)}              # of scores, loss, norm of the gradient
REFERENCE = "PyTorch"                                                                                        # the column of float32


def make_pixels(draw, height, width, cells):
    """A smooth image with noise, of which no two places are alike; `cells`: (height, width) of what is made smooth."""
    smooth = numpy.asarray(Image.fromarray(draw.integers(48, 208, (*cells, 3), dtype=numpy.uint8)).resize((width, height), Image.BILINEAR))
    return (smooth + draw.integers(-48, 48, smooth.shape)).astype(numpy.uint8)


def batch_of(images, mean, std):
    """The images [H, W, 3] as a net reads them."""
    return torch.from_numpy(numpy.stack([(pixels / 255 - mean) / std for pixels in images])).permute(0, 3, 1, 2).contiguous()


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


def without_dropout(net):
    """The net as it trains, without randomness."""
    for module in net.train().modules():
        for what in ("p", "drop_prob"):                     # of Dropout, StochasticDepth and DropPath
            if isinstance(getattr(module, what, None), float):
                setattr(module, what, 0.0)
    return net


class Ours:
    """What mxtrain makes of a configuration, examples and files of weights."""

    def __init__(self, program, config, images, folder, changes):
        """`images`: what `infer` reads; `changes`: the keys that name the examples."""
        self.program, self.images, self.folder = program, images, folder
        self.run = os.path.join(folder, "run")
        self.command = [program, "train", config, "--out", self.run, "--overwrite", "-q", "data.train.shuffle=false", "train.report_every=1", *changes]

    def train(self, weights, *changes):
        done = subprocess.run([*self.command, f"train.weights.file={weights}", *changes], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(done.args)}\n{done.stderr}")

    def output(self, layer):
        """Of the last run."""
        file = os.path.join(self.folder, "output.npy")
        subprocess.run([self.program, "infer", self.run, self.images, "--output-layer", layer, "--output", file, "--overwrite", "-q"], check=True,
                       stdout=subprocess.DEVNULL)
        return numpy.load(file).astype(numpy.float64)

    def parameters(self):
        """Of the last run, in float64 and without the statistics of batch norms."""
        file = os.path.join(self.folder, "ours.safetensors")
        subprocess.run([self.program, "export", self.run, file, "--overwrite", "-q"], check=True, stdout=subprocess.DEVNULL)
        return {name: array.double() for name, array in load_file(file).items() if "_moving_" not in name}

    def check_count(self, net):
        """The last run has as many parameters as the net."""
        given, wanted = (sum(array.numel() for array in arrays) for arrays in (self.parameters().values(), net.parameters()))
        if given != wanted:
            sys.exit(f"{self.command[2]}: {given} parameters, but PyTorch's net has {wanted}")

    def step_loss(self):
        """Of the last run, of one step."""
        with open(os.path.join(self.run, "events.jsonl"), encoding="utf-8") as lines:
            step, = (event for event in map(json.loads, lines) if event["event"] == "step")
        return step["loss"]

    def step(self, weights, rate, mode, *changes):
        """Loss, and parameters after a step of SGD."""
        self.train(weights, "train.epochs=1", f"train.optimizer={{name: sgd, lr: {rate}}}", *MODES[mode], *changes)
        return self.step_loss(), self.parameters()


def norm(arrays):
    return math.sqrt(sum(float((array.detach() ** 2).sum()) for array in arrays))


def difference(given, wanted):
    return float(numpy.abs(given - wanted).max() / numpy.abs(wanted).max())


def compare_step(ours, net, weights, modes, gradient_of):
    """Mode -> how far the loss, the norm of the gradient and the gradient are off. `net`: in float64, of which `weights` is the file;
    `gradient_of(net)`: the loss of a training step, and parameter -> gradient."""
    single = copy.deepcopy(net).float()
    before = ours.parameters()                              # of the last run, of these weights
    loss, gradient = gradient_of(net)
    size = norm(gradient.values())
    rate = norm(gradient) / size                            # with which a step changes the weights by their own norm
    with torch.no_grad():
        for parameter, change in gradient.items():
            parameter -= rate * change
    torch.save({key: value.float() if value.is_floating_point() else value for key, value in net.state_dict().items()}, weights + ".after")
    ours.train(weights + ".after", "train.epochs=0")
    expected = ours.parameters()
    off = {}
    for mode in modes:
        given_loss, given = ours.step(weights, rate, mode)
        given_size = norm(given[name] - before[name] for name in before) / rate
        off[mode] = [abs(given_loss - loss) / loss, abs(given_size - size) / size, norm(given[name] - expected[name] for name in before) / rate / size]
    single_loss, single_gradient = gradient_of(single)
    apart = norm(theirs.double() - exact for theirs, exact in zip(single_gradient.values(), gradient.values()))
    off[REFERENCE] = [abs(single_loss - loss) / loss, abs(norm(single_gradient.values()) - size) / size, apart / size]
    return off


def misses(off):
    """What is off by more than its limit."""
    return ", ".join(f"{what} of {mode}" for mode, limits in LIMITS.items() if mode in off
                     for what, value, limit in zip(("scores", "loss", "norm"), off[mode], limits) if not value <= limit)


def print_head(first, columns):
    print(f"| {' | '.join([*first, *columns])} |\n|{'---|' * (len(first) + len(columns))}")


def print_line(first, off, columns):
    """Whether all is within its limit."""
    missed = misses(off)
    cells = [" ".join(f"{value:.0e}" for value in off[column]) if column in off else "" for column in columns]
    print(f"| {' | '.join([*first, *cells])} |{' TOO MUCH: ' + missed if missed else ''}", flush=True)
    return not missed

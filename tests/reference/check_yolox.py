#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The authors' YOLOX, loaded into the nets of configs/detection: the same boxes, losses and gradient as in float64?

  check_yolox.py [--program PATH] [NET...]     in the environment of check_weights.py, with: pip install loguru opencv-python-headless thop
                                               tabulate pycocotools psutil, and pip install --no-deps --no-build-isolation yolox

Makes each net with random weights and random statistics (nothing is downloaded), saves it as the authors' scripts do and gives it to `mxtrain
train` by train.weights, which has to take every array; then one with a head for other classes, too. Compared are the number of parameters; in
evaluation the boxes and scores of every point, and of the detections the best hundred, in their order; and for three batches of random objects
(many that overlap, few, an image without any) each part of the loss alone, the loss and, by the change of the weights in a step of SGD, the norm of
the gradient: in exact arithmetic with the term that the last epochs add. Limits are those of check_weights.py, of the parts that of the loss.
"""
import argparse
import copy
import csv
import os
import sys
import tempfile

import numpy
import torch
import yaml
from PIL import Image
from yolox.models import YOLOPAFPN, YOLOX, YOLOXHead
from yolox.utils import postprocess

from torch_nets import MODES, ROOT, Ours, difference, misses, norm, randomize

# Depth, width and whether depthwise; the published number of parameters, in millions.
NETS = {"yolox_nano": (0.33, 0.25, True, 0.91), "yolox_tiny": (0.33, 0.375, False, 5.06), "yolox_s": (0.33, 0.5, False, 9.0)}
IMAGES, CLASSES, BATCHES, MOST = 3, 80, 3, 100
HEIGHT, WIDTH = 192, 256
PARTS = {"iou_loss": "box_weight", "conf_loss": "objectness_weight", "cls_loss": "class_weight", "l1_loss": "l1_weight"}
STANDARD = {"box_weight": 5, "objectness_weight": 1, "class_weight": 1, "l1_weight": 1}
COLUMNS = ["exact", "fast"]


def make_examples(folder, batch):
    """Images and boxes in a table; the inputs of the authors' nets, and their labels [N, most, 5] of class, centre and size."""
    draw = numpy.random.default_rng(batch)
    os.makedirs(folder)
    images, labels = [], torch.zeros(IMAGES, 20, 5, dtype=torch.float64)
    with open(os.path.join(folder, "boxes.csv"), "w", encoding="utf-8", newline="") as out:
        table = csv.writer(out)
        table.writerow(["filename", "class", "xmin", "ymin", "xmax", "ymax"])
        for i in range(IMAGES):
            pixels = draw.integers(0, 256, (HEIGHT, WIDTH, 3), dtype=numpy.uint8)
            Image.fromarray(pixels).save(os.path.join(folder, f"{i}.png"))
            images.append(pixels[:, :, ::-1].astype(numpy.float64))         # blue, green, red
            objects = [20, 4, 1][batch] if i != 1 else [12, 0, 3][batch]
            if objects == 0:
                table.writerow([f"{i}.png", "", "", "", "", ""])
            for m in range(objects):
                width, height = draw.integers(6, 90, 2)
                left, top = draw.integers(0, WIDTH - width), draw.integers(0, HEIGHT - height)
                label = int(draw.integers(0, CLASSES))
                table.writerow([f"{i}.png", label, left, top, left + width, top + height])
                labels[i, m] = torch.tensor([label, left + width / 2, top + height / 2, width, height])
    return torch.from_numpy(numpy.stack(images)).permute(0, 3, 1, 2).contiguous(), labels


def make_net(name, classes=CLASSES):
    depth, width, depthwise, _ = NETS[name]
    net = YOLOX(YOLOPAFPN(depth, width, depthwise=depthwise), YOLOXHead(classes, width, depthwise=depthwise))
    for module in net.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.eps, module.momentum = 1e-3, 0.03
    randomize(net)
    for boxes in net.head.reg_preds:
        boxes.bias.data[2:] = 1                             # of some strides, so that objects have several points
    return net


def loss_layer():
    with open(os.path.join(ROOT, "configs/common/yolox.yaml"), encoding="utf-8") as text:
        return next(f"net.layers.{i}.SimOtaLoss" for i, layer in enumerate(yaml.safe_load(text)["net"]["layers"]) if "SimOtaLoss" in layer)


class OurBoxes(Ours):
    """What mxtrain makes of one net, the images and boxes of a folder, and files of weights."""

    def __init__(self, program, name, examples, folder, classes=CLASSES):
        names = "[" + ", ".join(f"'{k}'" for k in range(classes)) + "]"
        data = (f"{{source: box_csv, path: {examples}/boxes.csv, root: {examples}, classes: {names}, "
                f"transforms: [{{normalize: {{mean: 0, std: {1 / 255}}}}}]}}")
        super().__init__(program, os.path.join(ROOT, "configs/detection", name + ".yaml"), examples, folder,
                         [f"data.train={data}", "data.train.shuffle=false", f"data.val={data}", f"data.batch_size={IMAGES}",
                          f"net.input=[3, {HEIGHT}, {WIDTH}]", f"vars.classes={classes}", "train.lr_schedule=null", "train.ema=null",
                          "train.mosaic=null", "train.multi_scale=null"])

    def part(self, weights, part):
        """One of the losses alone."""
        layer = loss_layer()
        self.step(weights, 0.0, "exact", *(f"{layer}.{key}={STANDARD[key] if name == part else 0}" for name, key in PARTS.items()))
        return self.step_loss()


def rows_of(outputs):
    """The authors' [N, points, 5 + classes] as rows of class, score and corners."""
    score, label = outputs[:, :, 5:].max(dim=2)
    center, half = outputs[:, :, :2], outputs[:, :, 2:4] / 2
    return torch.cat([label[..., None].to(outputs), (score * outputs[:, :, 4])[..., None], center - half, center + half], dim=2).numpy()


def detections_of(outputs):
    """[N, MOST, 6]: the best, then -1."""
    kept = numpy.full((IMAGES, MOST, 6), -1.0)
    for rows, found in zip(kept, postprocess(outputs.clone(), CLASSES, conf_thre=0.01, nms_thre=0.65)):
        found = found.numpy()[numpy.argsort(-(found[:, 4] * found[:, 5]).numpy(), kind="stable")][:MOST]
        rows[:len(found)] = numpy.stack([found[:, 6], found[:, 4] * found[:, 5], *found[:, :4].T], axis=1)
    return kept


def compare_outputs(ours, net, images, weights, mode):
    """How far the worst of scores and boxes is off; of boxes where the class is the same, since two scores may be nearly equal."""
    ours.train(weights, "train.epochs=0", *MODES[mode])
    with torch.no_grad():
        outputs = net.eval()(images)
    given, wanted = ours.output("proposals"), rows_of(outputs)
    same = given[:, :, 0] == wanted[:, :, 0]
    if same.mean() < 0.99:
        sys.exit(f"{(~same).sum()} of {same.size} points have another class")
    off = [numpy.abs(given[:, :, 1] - wanted[:, :, 1]).max(), difference(given[same][:, 2:], wanted[same][:, 2:])]
    scale = numpy.array([1e-9, 1, *[numpy.abs(wanted[:, :, 2:]).max()] * 4])
    for found, rows in zip(ours.output("detections"), detections_of(outputs)):
        if (numpy.diff(found[:, 1]) > 0).any():
            sys.exit("detections are not in the order of their scores")
        # Of nearly equal scores either may be first, and the last.
        off.append((numpy.abs(found[:, None] - rows[None, :-10]) / scale).max(axis=2).min(axis=0).max())
    return float(max(off))


def losses_of_torch(net, images, labels, last_epochs):
    net = net.train()
    net.head.use_l1 = last_epochs
    return net(images, labels)


def compare_steps(ours, net, before, images, labels, weights, mode, l1):
    """How far the loss and the norm of the gradient are off. `before`: our parameters."""
    net = copy.deepcopy(net)
    loss = losses_of_torch(net, images, labels, l1)["total_loss"]
    loss.backward()
    gradient = {parameter: parameter.grad for parameter in net.parameters()}
    size = norm(gradient.values())
    rate = norm(gradient) / size                            # with which a step changes the weights by their own norm
    given_loss, given = ours.step(weights, rate, mode, f"vars.l1_weight={int(l1)}")
    given_size = norm(given[name] - before[name] for name in before) / rate
    return [abs(given_loss - loss.item()) / loss.item(), abs(given_size - size) / size]


def check(name, program, folder, examples):
    net = make_net(name)
    count = sum(parameter.numel() for parameter in net.parameters())
    if abs(count / 1e6 - NETS[name][3]) > 0.04:
        sys.exit(f"{name}: {count} parameters, published are {NETS[name][3]} million")
    weights = os.path.join(folder, "net.pth")
    torch.save({"start_epoch": 300, "model": net.state_dict(), "optimizer": {}}, weights)
    net = net.double()
    bad, before = 0, None
    for batch, (path, images, labels) in enumerate(examples):
        ours = OurBoxes(program, name, path, folder)
        off = {mode: [compare_outputs(ours, copy.deepcopy(net), images, weights, mode) if batch == 0 else 0.0] for mode in COLUMNS}
        if before is None:
            before = ours.parameters()
            if sum(array.numel() for array in before.values()) != count:
                sys.exit(f"{name}: the authors' net has {count} parameters, ours another number")
        for mode in COLUMNS:                                # each with other terms
            off[mode] += compare_steps(ours, net, before, images, labels, weights, mode, mode == "exact")
        wanted = losses_of_torch(copy.deepcopy(net), images, labels, True)
        parts = {part: abs(ours.part(weights, part) / float(wanted[part]) - 1) for part in PARTS}
        missed = ", ".join([misses(off)] * bool(misses(off)) + [part for part, value in parts.items() if not value <= 1e-4])
        bad += bool(missed)
        cells = [" ".join(f"{value:.0e}" for value in values) for values in (*off.values(), parts.values())]
        print(f"| {name} | {batch} | {float(wanted['num_fg']):.2f} | {' | '.join(cells)} |{' TOO MUCH: ' + missed if missed else ''}", flush=True)
    return bad


def check_other_classes(name, program, folder, examples):
    """A net for other classes begins with all arrays but those of the scores: the arrays have the same norm."""
    net = make_net(name)
    weights = os.path.join(folder, "net.pth")
    torch.save({"model": net.state_dict()}, weights)
    ours = OurBoxes(program, name, examples[0][0], folder, classes=CLASSES + 1)
    _, given = ours.step(weights, 0.0, "exact")
    off = norm(array for key, array in given.items() if not key.endswith(("_score_weight", "_score_bias"))) / norm(
        array.double() for key, array in net.named_parameters() if "cls_preds" not in key) - 1
    if not abs(off) < 1e-6:
        print(f"{name} for other classes does not begin with the arrays of the file: {off}")
    return not abs(off) < 1e-6


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=os.path.join(ROOT, "build/release/bin/mxtrain"))
    parser.add_argument("nets", nargs="*", default=list(NETS))
    args = parser.parse_args()
    torch.manual_seed(1)
    with tempfile.TemporaryDirectory() as folder:
        examples = []
        for batch in range(BATCHES):
            path = os.path.join(folder, f"examples{batch}")
            examples.append((path, *make_examples(path, batch)))
        print(f"| net | batch | points of an object | exact: boxes, loss, norm | fast | {', '.join(PARTS)} |\n|---|---|---|---|---|---|")
        bad = sum(check(name, args.program, folder, examples) + check_other_classes(name, args.program, folder, examples) for name in args.nets)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""torchvision's detectors, loaded into those of configs/detection: the same boxes, losses and gradient as in float64?

  check_detection_nets.py [--program PATH]       in the environment of check_weights.py, with: pip install onnxruntime

Makes the net with random weights and random statistics (nothing is downloaded), saves it as torch.save does and gives it to `mxtrain train` by
train.weights, which has to take every array. The number of parameters is compared with the published one, then as in torch_nets.py, with its limits:
the scores and offsets of all anchors for four images, the loss of a step of SGD and, by the change of the weights, the norm of the gradient.
Besides, with limits of 1e-4:

  each of the two parts of the loss: of scores (box_weight=0) and, by what the whole loss has more, of boxes;
  what is detected: each of torchvision's boxes is among ours, with its class, score and sides (relative to the image), and in the order of the
  scores; there are as many. Where the last scores are equal within the limit, others may be among them. So too by the exported ONNX file, in
  onnxruntime.

An image has many objects, one a few, of which some want the same anchor, one has none.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

import numpy
import onnxruntime
import torch
import yaml
from PIL import Image
from torchvision.models import detection
from torchvision.models.detection.image_list import ImageList
from torchvision.ops import box_iou

from torch_nets import PROGRAM, REFERENCE, ROOT, MODES, Ours, batch_of, compare_step, difference, make_pixels, print_head, print_line, randomize

# Parameters as published, for COCO's 91 classes with the background; the side of images.
NETS = {"ssdlite320_mobilenet_v3_large": (3440060, 320)}
OBJECTS = (13, 5, 0, 2)                                     # in each image
LIMIT = 1e-4
COLUMNS = ["exact", "fast", REFERENCE]


def make_objects(draw, count, classes, side):
    """Corners in quarters of a pixel, which float32 has; and classes from 0."""
    corners = numpy.sort(draw.integers(0, 4 * side + 1, (count, 2, 2)), axis=1).reshape(count, 4) / 4
    corners[:, 2:] = numpy.maximum(corners[:, 2:], corners[:, :2] + 4)
    if count > 3:
        corners[1] = corners[0] + (0, 0, 0.25, 0.25)        # nearly the same
    return numpy.minimum(corners, side), draw.integers(0, classes, count)


def is_clear(corners, anchors):
    """Whether what matches what does not depend on rounding: a small object lies in several anchors of one size, which overlap it equally."""
    margin = 1e-4
    overlaps = box_iou(torch.from_numpy(corners), anchors)
    of_objects, of_anchors = overlaps.topk(2, dim=1).values, overlaps.topk(min(2, len(corners)), dim=0).values
    decided = (of_anchors[0] - of_anchors[-1] > margin) | (of_anchors[0] < 0.5 - margin) if len(corners) > 1 else torch.tensor(True)
    return bool((of_objects[:, 0] - of_objects[:, 1] > margin).all() and ((overlaps - 0.5).abs() > margin).all() and decided.all())


def make_examples(folder, side, names, anchors):
    """Images in a folder, and a file of COCO; the inputs of the nets, and the targets as torchvision wants them."""
    draw = numpy.random.default_rng(0)
    os.makedirs(os.path.join(folder, "images"))
    coco = {"images": [], "annotations": [], "categories": [{"id": i + 1, "name": name} for i, name in enumerate(names)]}
    images, targets = [], []
    for i, count in enumerate(OBJECTS):
        images.append(make_pixels(draw, side, side, (10, 10)))
        Image.fromarray(images[-1]).save(os.path.join(folder, "images", f"{i}.png"))
        coco["images"].append({"id": i, "file_name": f"{i}.png", "width": side, "height": side})
        boxes, labels = make_objects(draw, count, len(names), side)
        while count > 0 and not is_clear(boxes, anchors):
            boxes, labels = make_objects(draw, count, len(names), side)
        targets.append({"boxes": torch.from_numpy(boxes), "labels": torch.from_numpy(labels + 1)})
        for (left, top, right, bottom), label in zip(boxes.tolist(), labels.tolist()):
            box = [left, top, right - left, bottom - top]
            coco["annotations"].append({"id": len(coco["annotations"]), "image_id": i, "category_id": label + 1, "bbox": box, "area": box[2] * box[3],
                                        "iscrowd": 0})
    with open(os.path.join(folder, "objects.json"), "w", encoding="utf-8") as out:
        json.dump(coco, out)
    return images, targets


def differing(net, batch):
    """The net with weights that let differences of images and of places reach the scores, and statistics near those of the batch: where activations
    grow from layer to layer, ReLU6 makes of rounding errors large ones."""
    norms = [module for module in net.modules() if isinstance(module, torch.nn.BatchNorm2d)]
    momenta = [module.momentum for module in norms]
    for module in net.modules():
        if isinstance(module, torch.nn.Conv2d):
            module.weight.data.normal_(0, (2 / module.weight[0].numel()) ** 0.5)
    for module in norms:
        module.momentum = 1.0
    with torch.no_grad():
        net.head(list(net.train().backbone(batch.float()).values()))
    for module, momentum in zip(norms, momenta):
        module.momentum = momentum
        module.running_mean += module.running_var.sqrt() * torch.empty_like(module.running_mean).normal_(0, 0.1)
        module.running_var *= torch.empty_like(module.running_var).uniform_(0.7, 1.4)
    return net.eval()


def anchors_of(net, side):
    image = torch.zeros(1, 3, side, side)
    with torch.no_grad():
        return net.anchor_generator(ImageList(image, [(side, side)]), list(net.backbone(image).values()))[0].double()


def our_net(program, name, side, examples, folder):
    images = os.path.join(examples, "images")
    data = [f"data.{part}.{key}" for part in ("train", "val") for key in (
        f"path={os.path.join(examples, 'objects.json')}", f"root={images}", "transforms=[{normalize: {mean: 0.5, std: 0.5}}]")]
    changes = [*data, f"data.batch_size={len(OBJECTS)}", f"vars.size={side}", "train.lr_schedule=null"]
    return Ours(program, os.path.join(ROOT, "configs/detection", name + ".yaml"), images, folder, changes)


def losses_of(net, images, targets):
    """torchvision's parts of the loss, of images with values from 0 to 1."""
    kind = next(net.parameters()).dtype
    return net.train()([image.to(kind) for image in images], [{"boxes": t["boxes"].to(kind), "labels": t["labels"]} for t in targets])


def gradient_of_torch(net, images, targets):
    loss = sum(losses_of(net, images, targets).values())
    loss.backward()
    return loss.item(), {parameter: parameter.grad for parameter in net.parameters()}


def compare_detections(ours, theirs, side):
    """How far the boxes [most, 6] are off from those of torchvision; infinite for a box that is missing or has another place in the order."""
    ours = ours[ours[:, 0] >= 0]
    scores = theirs["scores"].numpy()
    if len(ours) != len(scores) or (numpy.diff(ours[:, 1]) > 0).any():
        return numpy.inf
    worst, free = float(numpy.abs(ours[:, 1] - scores).max()), numpy.ones(len(ours), bool)
    for score, label, box in zip(scores, theirs["labels"].numpy() - 1, theirs["boxes"].numpy()):
        apart = numpy.maximum(numpy.abs(ours[:, 1] - score), numpy.abs(ours[:, 2:] - box).max(1) / side)
        apart[(ours[:, 0] != label) | ~free] = numpy.inf
        if apart.min() <= LIMIT:
            free[apart.argmin()] = False
            worst = max(worst, float(apart.min()))
        elif score > scores[-1] + LIMIT * scores[0]:
            return numpy.inf
    return worst


def compare_answers(ours, net, batch, images, side, weights, mode):
    """How far scores and offsets are off; and boxes."""
    ours.train(weights, "train.epochs=0", *MODES[mode])
    ours.check_count(net)
    with torch.no_grad():
        wanted, boxes = net.head(list(net.backbone(batch).values())), net(images)
    heads = max(difference(ours.output(layer), wanted[theirs].numpy()) for layer, theirs in (("scores", "cls_logits"), ("offsets", "bbox_regression")))
    found = ours.output("detections")
    return heads, max(compare_detections(rows, theirs, side) for rows, theirs in zip(found, boxes))


def compare_onnx(ours, net, batch, images, side):
    """How far the boxes are off that the last run finds in onnxruntime."""
    file = os.path.join(ours.folder, "net.onnx")
    subprocess.run([ours.program, "export", ours.run, file, "--overwrite", "-q"], check=True, stdout=subprocess.DEVNULL)
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    found, = session.run(None, {session.get_inputs()[0].name: batch.float().numpy()})
    with torch.no_grad():
        boxes = net(images)
    return max(compare_detections(rows.astype(numpy.float64), theirs, side) for rows, theirs in zip(found, boxes))


def compare_parts(ours, weights, mode, parts):
    """How far the two parts of the loss are off."""
    ours.train(weights, "train.epochs=1", "train.optimizer={name: sgd, lr: 0}", *MODES[mode])
    whole = ours.step_loss()
    ours.train(weights, "train.epochs=1", "train.optimizer={name: sgd, lr: 0}", "vars.box_weight=0", *MODES[mode])
    of_scores = ours.step_loss()
    return max(abs(of_scores / parts["classification"] - 1), abs((whole - of_scores) / parts["bbox_regression"] - 1))


def check(name, program, folder):
    """Whether a net agrees; prints its lines."""
    parameters, side = NETS[name]
    with open(os.path.join(ROOT, "configs/detection", name + ".yaml"), encoding="utf-8") as text:
        names = yaml.safe_load(text)["data"]["train"]["classes"]
    examples = os.path.join(folder, "examples")
    net = randomize(getattr(detection, name)(weights=None, weights_backbone=None, num_classes=len(names) + 1))
    pixels, targets = make_examples(examples, side, names, anchors_of(net, side))
    batch = batch_of(pixels, 0.5, 0.5)
    images = [torch.from_numpy(image / 255).permute(2, 0, 1).contiguous() for image in pixels]
    net = differing(net, batch)
    if sum(array.numel() for array in net.parameters()) != parameters:
        sys.exit(f"{name}: torchvision's net does not have {parameters} parameters")
    weights = os.path.join(folder, "net.pth")
    torch.save(net.state_dict(), weights)
    net = net.double()
    ours = our_net(program, name, side, examples, folder)
    off, more = {}, {}
    for mode in COLUMNS[:2]:
        heads, boxes = compare_answers(ours, net.eval(), batch, images, side, weights, mode)
        off[mode], more[mode] = [heads], [boxes]
    in_onnx = compare_onnx(ours, net, batch, images, side)
    statistics = {key: value.clone() for key, value in net.state_dict().items()}
    parts = {part: loss.item() for part, loss in losses_of(net, images, targets).items()}
    net.load_state_dict(statistics)                         # as before that step
    for mode in COLUMNS[:2]:
        more[mode].append(compare_parts(ours, weights, mode, parts))
    for mode, values in compare_step(ours, net, weights, COLUMNS[:2], lambda which: gradient_of_torch(which, images, targets)).items():
        off.setdefault(mode, []).extend(values)
    good = print_line([name], off, COLUMNS) and in_onnx <= LIMIT
    for mode, values in more.items():
        print(f"  {mode}: boxes {values[0]:.0e}, parts of the loss {values[1]:.0e}{'' if max(values) <= LIMIT else ' TOO MUCH'}", flush=True)
    print(f"  ONNX: boxes {in_onnx:.0e}{'' if in_onnx <= LIMIT else ' TOO MUCH'}", flush=True)
    return good and all(max(values) <= LIMIT for values in more.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=PROGRAM)
    parser.add_argument("nets", nargs="*", default=list(NETS))
    args = parser.parse_args()
    torch.manual_seed(1)
    print_head(["net"], COLUMNS)
    good = True
    for name in args.nets:
        with tempfile.TemporaryDirectory() as folder:
            good = check(name, args.program, folder) and good
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()

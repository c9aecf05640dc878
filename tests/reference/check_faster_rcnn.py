#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""torchvision's Faster R-CNN, loaded into configs/detection/fasterrcnn_resnet50_fpn.yaml: the same boxes, losses and gradient as in float64?

  check_faster_rcnn.py [--program PATH] [--side PIXELS] [--seed N]       in the environment of check_weights.py, with: pip install onnxruntime

Makes the net with random weights and frozen batch norms (nothing is downloaded), saves it as torch.save does and gives it to `mxtrain train` by
train.weights, which has to take every array. Compared are, with limits of 1e-4:

  the number of parameters, with the published one;
  what is found in four images, as check_detection_nets.py does, also by the exported ONNX file in onnxruntime;
  each of the four parts of the loss of a training step, and as in torch_nets.py the loss and the norm of the gradient. Samplers take all anchors and
  all regions on both sides, so that nothing is random.

Which boxes are suppressed depends on rounding where an overlap is near its threshold: if boxes are missing, try another --seed.
"""
import argparse
import json
import os
import sys
import tempfile

import numpy
import torch
from PIL import Image
from torchvision.models import detection
from torchvision.models.detection.image_list import ImageList
from torchvision.ops import FrozenBatchNorm2d, box_iou

from check_detection_nets import LIMIT, compare_detections, compare_onnx
from torch_nets import MEAN, MODES, PROGRAM, REFERENCE, ROOT, STD, Ours, batch_of, compare_step, make_pixels, print_head, print_line

NAME, CLASSES, PARAMETERS = "fasterrcnn_resnet50_fpn", 90, 41755286
OBJECTS = (7, 3, 0, 2)                                      # in each image
REGIONS = 100                                               # from which the net learns: fewer than the sampler takes
COLUMNS = ["exact", "fast", REFERENCE]


def frozen(module):
    """With FrozenBatchNorm2d in place of BatchNorm2d, as torchvision's net with its weights."""
    for name, child in module.named_children():
        if isinstance(child, torch.nn.BatchNorm2d):
            fixed = FrozenBatchNorm2d(child.num_features, eps=0.0)
            fixed.load_state_dict({key: value for key, value in child.state_dict().items() if key != "num_batches_tracked"})
            setattr(module, name, fixed)
        else:
            frozen(child)
    return module


def spread(layer, std, values):
    """Scales a layer so that its outputs `values` have that standard deviation."""
    layer.weight.data *= std / values.std()


def make_net(batch, side):
    """The net with weights that let differences of images and of places reach scores and boxes."""
    net = getattr(detection, NAME)(weights=None, weights_backbone=None, num_classes=CLASSES + 1, min_size=side, max_size=side,
                                   rpn_post_nms_top_n_train=REGIONS, rpn_batch_size_per_image=1 << 20)
    net.rpn._pre_nms_top_n["training"] = 300
    norms = [module for module in net.modules() if isinstance(module, torch.nn.BatchNorm2d)]
    for module in net.modules():
        if isinstance(module, (torch.nn.Conv2d, torch.nn.Linear)):
            module.weight.data.normal_(0, (2 / module.weight[0].numel()) ** 0.5)
            if module.bias is not None:
                module.bias.data.normal_(0, 0.1)
    for module in norms:
        module.momentum = 1.0
        module.weight.data.uniform_(0.5, 1.5)
        module.bias.data.normal_(1, 0.1)
    with torch.no_grad():
        features = list(net.train().backbone(batch.float()).values())
    for module in norms:
        module.running_var *= torch.empty_like(module.running_var).uniform_(0.7, 1.4)
    net = frozen(net).eval()
    with torch.no_grad():
        features = net.backbone(batch.float())
        scale = features["0"].std()
        for block in net.backbone.fpn.layer_blocks:
            block[0].weight.data /= scale
        features = net.backbone(batch.float())
        scores, offsets = net.rpn.head(list(features.values()))
        spread(net.rpn.head.cls_logits, 2, scores[0])
        spread(net.rpn.head.bbox_pred, 0.2, offsets[0])
        regions, _ = net.rpn(ImageList(batch.float(), [(side, side)] * len(batch)), features)
        pooled = net.roi_heads.box_roi_pool(features, regions, [(side, side)] * len(batch))
        scores, offsets = net.roi_heads.box_predictor(net.roi_heads.box_head(pooled))
        spread(net.roi_heads.box_predictor.cls_score, 3, scores)
        spread(net.roi_heads.box_predictor.bbox_pred, 1, offsets)
    return net


def is_clear(corners, anchors):
    """Whether which anchor is to find which object does not depend on rounding."""
    overlaps = box_iou(torch.from_numpy(corners), anchors)
    best = overlaps.topk(2, dim=1).values
    apart = min(float((overlaps - limit).abs().min()) for limit in (0.3, 0.7))
    return bool((best[:, 0] - best[:, 1] > 1e-5).all()) and apart > 1e-5


def make_examples(folder, side, pixels, anchors, draw):
    os.makedirs(os.path.join(folder, "images"))
    coco = {"images": [], "annotations": [], "categories": [{"id": i + 1, "name": f"class{i}"} for i in range(CLASSES)]}
    targets = []
    for i, count in enumerate(OBJECTS):
        Image.fromarray(pixels[i]).save(os.path.join(folder, "images", f"{i}.png"))
        coco["images"].append({"id": i, "file_name": f"{i}.png", "width": side, "height": side})
        boxes = numpy.zeros((0, 4))
        while len(boxes) < count:
            box = numpy.sort(draw.integers(0, 64 * side + 1, (1, 2, 2)), axis=1).reshape(1, 4) / 64
            if (box[:, 2:] - box[:, :2] > 8).all() and is_clear(box, anchors):
                boxes = numpy.concatenate([boxes, box])
        labels = draw.integers(0, CLASSES, count)
        targets.append({"boxes": torch.from_numpy(boxes), "labels": torch.from_numpy(labels + 1)})
        for (left, top, right, bottom), label in zip(boxes.tolist(), labels.tolist()):
            box = [left, top, right - left, bottom - top]
            coco["annotations"].append({"id": len(coco["annotations"]), "image_id": i, "category_id": label + 1, "bbox": box, "area": box[2] * box[3],
                                        "iscrowd": 0})
    with open(os.path.join(folder, "objects.json"), "w", encoding="utf-8") as out:
        json.dump(coco, out)
    return targets


def our_net(program, side, examples, folder):
    images = os.path.join(examples, "images")
    data = [f"data.{part}.{key}" for part in ("train", "val") for key in (
        f"path={os.path.join(examples, 'objects.json')}", f"root={images}", f"transforms=[{{normalize: {{mean: {MEAN}, std: {STD}}}}}]")]
    changes = [*data, "data.train.classes=null", f"data.batch_size={len(OBJECTS)}", f"vars.size={side}", "train.lr_schedule=null",
               "train.freeze=null", "vars.bn_frozen=true", "vars.bn_eps=0", "vars.anchor_samples=1048576", "vars.learnt_candidates=300",
               f"vars.learnt_regions={REGIONS}"]
    return Ours(program, os.path.join(ROOT, "configs/detection", NAME + ".yaml"), images, folder, changes)


def losses_of(net, images, targets):
    kind = next(net.parameters()).dtype
    return net.train()([image.to(kind) for image in images], [{"boxes": t["boxes"].to(kind), "labels": t["labels"]} for t in targets])


def gradient_of(net, images, targets):
    loss = sum(losses_of(net, images, targets).values())
    loss.backward()
    return loss.item(), {parameter: parameter.grad for parameter in net.parameters()}


def compare_parts(ours, weights, mode, parts):
    """How far each part of the loss is off."""
    def given(*changes):
        ours.train(weights, "train.epochs=1", "train.optimizer={name: sgd, lr: 0}", *MODES[mode], *changes)
        with open(os.path.join(ours.run, "events.jsonl"), encoding="utf-8") as lines:
            epoch, = (event for event in map(json.loads, lines) if event["event"] == "epoch")
        return {name: epoch["train"][name + "_loss"] for name in ("boxes", "regions")}
    whole, of_scores = given(), given("vars.box_weight=0", "vars.proposal_box_weight=0")
    found = {"loss_objectness": of_scores["boxes"], "loss_rpn_box_reg": whole["boxes"] - of_scores["boxes"],
             "loss_classifier": of_scores["regions"], "loss_box_reg": whole["regions"] - of_scores["regions"]}
    return max(abs(found[name] / value - 1) for name, value in parts.items())


def check(program, side, seed, folder):
    """Whether the net agrees; prints its lines."""
    torch.manual_seed(seed)
    draw = numpy.random.default_rng(seed)
    pixels = [make_pixels(draw, side, side, (10, 10)) for _ in OBJECTS]
    batch = batch_of(pixels, MEAN, STD)
    net = make_net(batch, side)
    with torch.no_grad():
        maps = list(net.backbone(batch[:1].float()).values())
        anchors = net.rpn.anchor_generator(ImageList(batch[:1].float(), [(side, side)]), maps)[0].double()
    if sum(array.numel() for array in net.parameters()) != PARAMETERS:
        sys.exit(f"torchvision's net does not have {PARAMETERS} parameters")
    examples = os.path.join(folder, "examples")
    targets = make_examples(examples, side, pixels, anchors, draw)
    images = [torch.from_numpy(image / 255).permute(2, 0, 1).contiguous() for image in pixels]
    weights = os.path.join(folder, "net.pth")
    torch.save(net.state_dict(), weights)
    net = net.double()
    ours = our_net(program, side, examples, folder)
    off, more = {}, {}
    with torch.no_grad():
        boxes = net.eval()(images)
    for mode in COLUMNS[:2]:
        ours.train(weights, "train.epochs=0", *MODES[mode])
        of_norms = sum(array.numel() for name, array in ours.parameters().items() if name.endswith(("_bn_gamma", "_bn_beta")))
        if sum(array.numel() for array in ours.parameters().values()) != PARAMETERS + of_norms:
            sys.exit(f"the net has other than {PARAMETERS} parameters beside {of_norms} of batch norms")
        found = ours.output("detections")
        more[mode] = [max(compare_detections(rows, theirs, side) for rows, theirs in zip(found, boxes))]
        off[mode] = [more[mode][0]]
    in_onnx = compare_onnx(ours, net, batch, images, side)
    parts = {part: loss.item() for part, loss in losses_of(net, images, targets).items()}
    for mode in COLUMNS[:2]:
        more[mode].append(compare_parts(ours, weights, mode, parts))
    for mode, values in compare_step(ours, net, weights, COLUMNS[:2], lambda which: gradient_of(which, images, targets)).items():
        off.setdefault(mode, []).extend(values)
    good = print_line([NAME], off, COLUMNS) and in_onnx <= LIMIT
    for mode, values in more.items():
        print(f"  {mode}: {sum(len(found['scores']) for found in boxes)} boxes {values[0]:.0e}, parts of the loss {values[1]:.0e}"
              f"{'' if max(values) <= LIMIT else ' TOO MUCH'}", flush=True)
    print(f"  ONNX: boxes {in_onnx:.0e}{'' if in_onnx <= LIMIT else ' TOO MUCH'}", flush=True)
    return good and all(max(values) <= LIMIT for values in more.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=PROGRAM)
    parser.add_argument("--side", type=int, default=96)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    print_head(["net"], COLUMNS)
    with tempfile.TemporaryDirectory() as folder:
        sys.exit(0 if check(args.program, args.side, args.seed, folder) else 1)


if __name__ == "__main__":
    main()

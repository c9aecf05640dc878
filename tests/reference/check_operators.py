#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Operators beside MXNet 1.9.1, or beside PyTorch: the same outputs and gradients for random numbers?

  check_operators.py mxnet FOLDER [--program PATH] [--filter REGEX]      in the environment of make_reference_nets.py
  check_operators.py torch FOLDER [--program PATH] [--filter REGEX]      in an environment with: pip install torch numpy

Writes a net of one operator for each case into FOLDER, in the format of make_reference_nets.py, with what MXNet or PyTorch computes; has
test_integration run them (tests/integration/reference_nets_test.cc), which writes FOLDER/ours; and prints a table of the largest differences,
relative to the largest number of an array. Exits with 1 where one exceeds 1e-4, or where we refuse a case. Nets end in MakeLoss of the outputs
times random head gradients, so that the gradients are those of the operator; losses of MXNet stand alone.
"""
import argparse
import json
import os
import re
import struct
import subprocess
import sys
import zlib

import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.path.join(ROOT, "build", "release", "bin", "test_integration")
TOLERANCE = 1e-4
MAGIC, VERSION = 0x112, 0xF993FAC9


class Uniform:
    """Numbers in [low, high)."""

    def __init__(self, shape, low=-1.0, high=1.0):
        self.shape, self.low, self.high = shape, low, high

    def draw(self, rng):
        return rng.uniform(self.low, self.high, self.shape)


class Apart(Uniform):
    """Different numbers, none near a whole number or a half: away from kinks and ties."""

    def draw(self, rng):
        count = int(np.prod(self.shape))
        steps = np.arange(count) / max(count, 1) * (self.high - self.low) + self.low
        near = np.abs(steps * 2 - np.round(steps * 2)) < 0.1
        return rng.permutation(steps + near * 0.07).reshape(self.shape)


class Whole(Uniform):
    """Whole numbers in [low, high), without a gradient. `kind`: the type that MXNet wants; our files have float32."""

    def __init__(self, shape, low, high, kind="float32"):
        super().__init__(shape, low, high)
        self.kind = kind

    def draw(self, rng):
        return rng.randint(self.low, self.high, self.shape).astype(float)


class Fixed:
    """Given numbers, without a gradient."""

    def __init__(self, values, kind="float32"):
        self.values, self.kind = np.array(values, dtype=float), kind

    def draw(self, _):
        return self.values


class Detections:
    """What a detector says of `anchors` anchors: probabilities of classes, no two alike."""

    def __init__(self, images, classes, anchors):
        self.shape = (images, classes, anchors)

    def draw(self, rng):
        count = int(np.prod(self.shape))
        return (rng.permutation(count) + 0.5).reshape(self.shape) / count


class Objects:
    """Labels [images, most, 6] with 0 to `most` objects each, then rows of -1."""

    def __init__(self, images, most, classes):
        self.shape, self.classes = (images, most, 6), classes

    def draw(self, rng):
        labels = np.full(self.shape, -1.0)
        for image in labels:
            for row in image[:rng.randint(0, len(image) + 1)]:
                low, size = rng.uniform(0, 0.6, 2), rng.uniform(0.1, 0.4, 2)
                row[:] = [rng.randint(self.classes), *low, *(low + size), 7]
        return labels


class Case:
    """One operator. `inputs`: its arguments by name; `aux`: its auxiliary states. `loss`: it needs no head gradient. `grads`: whether gradients
    are compared; `torch`: the same in PyTorch."""

    def __init__(self, op, inputs, attrs=None, note="", outputs=1, loss=False, grads=True, aux=None, torch=None):
        self.op, self.attrs, self.inputs, self.note = op, attrs or {}, inputs, note
        self.outputs, self.loss, self.grads, self.aux, self.torch = outputs, loss, grads, aux or {}, torch

    @property
    def label(self):
        return self.op + (" " + self.note if self.note else "")

    @property
    def name(self):
        return re.sub(r"[^A-Za-z0-9]+", "_", self.label).strip("_")


# --- the cases ---

X = {"data": Uniform((3, 4, 5))}


def unary(op, low=-2.0, high=2.0, **attrs):
    return Case(op, {"data": Apart((4, 33), low, high)}, attrs)


def pair(op, low=-2.0, high=2.0, **attrs):
    return Case(op, {"lhs": Apart((6, 9), low, high), "rhs": Apart((6, 9), low + 0.013, high)}, attrs)


def wide(op, low=-2.0, high=2.0):
    return Case(op, {"lhs": Apart((3, 1, 5), low, high), "rhs": Apart((1, 4, 5), low + 0.013, high)})


def scalar(op, value=1.7, low=-2.0, high=2.0):
    return Case(op, {"data": Apart((4, 33), low, high)}, {"scalar": value})


def reduced(op, note="", low=-2.0, high=2.0, grads=True, **attrs):
    return Case(op, {"data": Apart((3, 4, 5), low, high)}, attrs, note, grads=grads)


def anchors(seed, count):
    """Overlapping boxes within the image, [1, count, 4]."""
    rng = np.random.RandomState(seed)
    low, size = rng.uniform(0, 0.7, (count, 2)), rng.uniform(0.1, 0.5, (count, 2))
    return Fixed(np.concatenate([low, low + size], 1)[None])


def box_cases():
    """Operators of boxes and of anchors. Those of anchors have zero gradients in MXNet."""
    maps = {"data": Uniform((2, 3, 5, 7))}
    yield Case("_contrib_MultiBoxPrior", maps)
    yield Case("_contrib_MultiBoxPrior", maps, {"sizes": (0.3, 0.52, 0.7), "ratios": (1, 2, 0.5)}, "sizes, ratios")
    yield Case("_contrib_MultiBoxPrior", maps, {"sizes": (0.3, 0.52), "ratios": (3, 2, 0.5), "clip": True}, "first ratio, clip")
    yield Case("_contrib_MultiBoxPrior", maps, {"sizes": (0.3,), "steps": (0.21, 0.13), "offsets": (0.25, 1)}, "steps, offsets")
    target = {"anchor": anchors(1, 300), "label": Objects(6, 9, 4), "cls_pred": Uniform((6, 5, 300), -2, 2)}
    for note, attrs in (("", {}), ("matched", {"overlap_threshold": 0}),
                        ("low", {"overlap_threshold": 0.3, "ignore_label": -7, "variances": (1, 0.5, 0.3, 0.2)}),
                        ("mining", {"negative_mining_ratio": 3}), ("easy mining", {"negative_mining_ratio": 1.5, "negative_mining_thresh": 0.2})):
        yield Case("_contrib_MultiBoxTarget", target, attrs, note, outputs=3)
    grid = {"anchor": anchors(2, 2000), "label": Objects(3, 40, 20), "cls_pred": Uniform((3, 21, 2000), -3, 3)}
    yield Case("_contrib_MultiBoxTarget", grid, {"negative_mining_ratio": 3}, "many", outputs=3)
    found = {"cls_prob": Detections(3, 4, 200), "loc_pred": Uniform((3, 800), -1, 1), "anchor": anchors(3, 200)}
    for note, attrs in (("", {}), ("forced", {"force_suppress": True, "nms_threshold": 0.3}), ("topk", {"nms_topk": 17, "threshold": 0.4}),
                        ("all", {"nms_threshold": 0, "threshold": 0.7}), ("none", {"threshold": 1.5}),
                        ("far", {"clip": False, "variances": (0.5, 0.3, 0.7, 0.9), "nms_threshold": 0.7})):
        yield Case("_contrib_MultiBoxDetection", found, attrs, note)
    crowd = {"cls_prob": Detections(2, 21, 3000), "loc_pred": Uniform((2, 12000), -1, 1), "anchor": anchors(4, 3000)}
    yield Case("_contrib_MultiBoxDetection", crowd, {}, "many")
    for note, attrs in (("", {"threshold": 0.2}), ("ascending", {"threshold": 0.7, "is_ascend": True}), ("topk", {"threshold": -1, "topk": 3})):
        yield Case("_contrib_bipartite_matching", {"data": Apart((3, 13, 9), 0, 1)}, attrs, note, outputs=2)
    samples = {"samples": Whole((3, 50), -1, 2), "matches": Whole((3, 50), 0, 7)}
    corners = {"anchors": Fixed(np.repeat(anchors(5, 50).values, 3, 0)), "refs": Fixed(np.repeat(anchors(6, 7).values, 3, 0))}
    yield Case("_contrib_box_encode", {**samples, **corners, "means": Uniform((4,)), "stds": Uniform((4,), 0.1, 1)}, outputs=2)
    offsets = {"data": Uniform((3, 50, 4), -2, 2), "anchors": Uniform((1, 50, 4), 0.1, 1)}
    yield Case("_contrib_box_decode", offsets)
    scaled = {"format": "corner", "clip": 0.3, "std0": 0.1, "std1": 0.2, "std2": 0.5, "std3": 0.7}
    yield Case("_contrib_box_decode", {**offsets, "anchors": anchors(7, 50)}, scaled, "corners")


def recurrent_cases():
    """RNN, as far as MXNet has it on CPUs: without lengths and projections."""
    for mode, gates in (("rnn_relu", 1), ("rnn_tanh", 1), ("lstm", 4), ("gru", 3)):
        for layers, bidirectional, states in ((1, False, False), (1, True, True), (2, False, True), (3, True, False)):
            directions = 2 if bidirectional else 1
            inputs = 6 + (layers - 1) * directions * 5 + layers * (5 + 2)
            state = Uniform((layers * directions, 4, 5))
            arrays = {"data": Uniform((7, 4, 6)), "parameters": Uniform((directions * gates * 5 * inputs,), -0.5, 0.5), "state": state}
            outputs = 2 if states else 1
            if mode == "lstm":
                arrays["state_cell"] = state
                outputs += states
            attrs = {"mode": mode, "state_size": 5, "num_layers": layers, "bidirectional": bidirectional, "state_outputs": states}
            note = "%s, %d layers%s%s" % (mode, layers, ", bidirectional" * bidirectional, ", states" * states)
            yield Case("RNN", arrays, attrs, note, outputs=outputs)


def mxnet_cases():
    yield from [unary(op) for op in (
        "abs sign rint ceil floor trunc fix round square exp expm1 sin cos sinh cosh tanh arcsinh arctan degrees radians erf relu sigmoid softsign "
        "negative logical_not zeros_like ones_like cbrt reciprocal _copy hard_sigmoid smooth_l1 BlockGrad").split()]
    yield from [unary(op, 0.2, 3) for op in "sqrt rsqrt rcbrt log log10 log2 log1p gamma gammaln".split()]
    yield from [unary(op, -0.9, 0.9) for op in "tan arcsin arccos arctanh erfinv".split()]
    yield unary("arccosh", 1.2, 3)
    yield unary("clip", a_min=-0.8, a_max=1.1)
    yield from [pair(op) for op in "elemwise_add elemwise_sub elemwise_mul elemwise_div _maximum _minimum _hypot".split()]
    yield from [pair(op, 0.3, 2.5) for op in "_power _mod".split()]
    yield from [Case(op, {"lhs": Whole((6, 9), -1, 2), "rhs": Whole((6, 9), -1, 2)}, grads=False) for op in (
        "_equal _not_equal _greater _greater_equal _lesser _lesser_equal _logical_and _logical_or _logical_xor").split()]
    yield from [scalar(op) for op in (
        "_plus_scalar _minus_scalar _rminus_scalar _mul_scalar _div_scalar _rdiv_scalar _maximum_scalar _minimum_scalar _hypot_scalar").split()]
    yield from [scalar(op, low=0.3, high=2.5) for op in "_power_scalar _rpower_scalar _mod_scalar _rmod_scalar".split()]
    yield from [scalar(op, 0.0) for op in "_equal_scalar _not_equal_scalar _greater_scalar _lesser_scalar".split()]
    yield from [wide(op) for op in "broadcast_add broadcast_sub broadcast_mul broadcast_div broadcast_maximum broadcast_minimum broadcast_hypot".split()]
    yield from [wide(op, 0.3, 2.5) for op in "broadcast_power broadcast_mod".split()]
    yield from [Case(op, {"lhs": Whole((3, 1, 5), -1, 2), "rhs": Whole((1, 4, 5), -1, 2)}, grads=False) for op in (
        "broadcast_equal broadcast_not_equal broadcast_greater broadcast_greater_equal broadcast_lesser broadcast_lesser_equal broadcast_logical_and "
        "broadcast_logical_or broadcast_logical_xor").split()]
    # reductions
    for op in "sum mean prod nansum nanprod max min".split():
        yield reduced(op, "axis 1", axis=1, low=0.4)
        yield reduced(op, "exclude", axis=1, exclude=True, keepdims=True, low=0.4)
        yield reduced(op, "all", low=0.6, high=1.5)
    yield reduced("norm", "2", ord=2, axis=(0, 2))
    yield reduced("norm", "1", ord=1, axis=1, keepdims=True)
    for op in "argmax argmin".split():
        yield reduced(op, axis=2, grads=False)
    yield Case("argmax_channel", {"data": Apart((5, 7))}, grads=False)
    yield Case("moments", {"data": Uniform((3, 4, 5))}, {"axes": (0, 2)}, outputs=2)
    yield Case("cumsum", {"a": Uniform((3, 4, 5))}, {"axis": 1}, "axis 1")
    yield Case("cumsum", {"a": Uniform((3, 4))}, {}, "flat")
    # products
    yield Case("dot", {"lhs": Uniform((4, 5)), "rhs": Uniform((5, 3))})
    yield Case("dot", {"lhs": Uniform((5, 4)), "rhs": Uniform((3, 5))}, {"transpose_a": True, "transpose_b": True}, "transposed")
    yield Case("batch_dot", {"lhs": Uniform((2, 5, 4)), "rhs": Uniform((2, 5, 3))}, {"transpose_a": True})
    yield Case("_linalg_gemm2", {"A": Uniform((2, 5, 4)), "B": Uniform((2, 4, 3))}, {"alpha": 0.7})
    # shapes
    yield Case("Flatten", X)
    yield Case("Reshape", X, {"shape": (0, -1)})
    yield Case("Reshape", X, {"shape": (-4, 3, -1, -2)}, "split")
    yield Case("Reshape", X, {"shape": (-3, 0), "reverse": True}, "merge, reverse")
    yield Case("transpose", X, {"axes": (2, 0, 1)})
    yield Case("SwapAxis", X, {"dim1": 0, "dim2": 2})
    yield Case("expand_dims", X, {"axis": -2})
    yield Case("squeeze", {"data": Uniform((3, 1, 4, 1))}, {"axis": 1})
    yield Case("slice", X, {"begin": (0, "None", 4), "end": (2, 3, 0), "step": (1, 2, -2)})
    yield Case("slice_axis", X, {"axis": -1, "begin": 1, "end": -1})
    yield Case("slice_like", {"data": Uniform((3, 4, 5)), "shape_like": Uniform((2, 4, 3))}, {"axes": (0, -1)})
    yield Case("reverse", X, {"axis": (0, 2)})
    yield Case("repeat", X, {"repeats": 3, "axis": 1})
    yield Case("repeat", X, {"repeats": 2}, "flat")
    yield Case("tile", X, {"reps": (2, 1, 3)})
    yield Case("stack", {"arg0": Uniform((3, 4)), "arg1": Uniform((3, 4))}, {"num_args": 2, "axis": 1})
    yield Case("Concat", {"arg0": Uniform((3, 4)), "arg1": Uniform((3, 2))}, {"num_args": 2, "dim": 1})
    yield Case("SliceChannel", {"data": Uniform((3, 4, 5))}, {"num_outputs": 2, "axis": 1}, outputs=2)
    yield Case("add_n", {"arg0": Uniform((3, 4)), "arg1": Uniform((3, 4)), "arg2": Uniform((3, 4))}, {"num_args": 3})
    yield Case("depth_to_space", {"data": Uniform((2, 12, 3, 2))}, {"block_size": 2})
    yield Case("space_to_depth", {"data": Uniform((2, 3, 4, 6))}, {"block_size": 2})
    yield Case("Crop", {"arg0": Uniform((2, 3, 6, 7))}, {"num_args": 1, "offset": (1, 2), "h_w": (3, 4)})
    for mode in "constant edge reflect".split():
        yield Case("Pad", {"data": Uniform((2, 3, 4, 5))}, {"mode": mode, "pad_width": (0, 0, 0, 0, 1, 2, 3, 0), "constant_value": 0.5}, mode)
    yield Case("where", {"condition": Whole((3, 4), 0, 2), "x": Uniform((3, 4)), "y": Uniform((3, 4))})
    yield Case("where", {"condition": Whole((3,), 0, 2), "x": Uniform((3, 4)), "y": Uniform((3, 4))}, note="rows")
    yield Case("broadcast_to", {"data": Uniform((3, 1, 5))}, {"shape": (0, 4, 0)})
    yield Case("broadcast_axis", {"data": Uniform((3, 1, 1))}, {"axis": (1, 2), "size": (4, 2)})
    yield Case("broadcast_like", {"lhs": Uniform((3, 1, 5)), "rhs": Uniform((3, 4, 5))})
    yield Case("reshape_like", {"lhs": Uniform((3, 4)), "rhs": Uniform((2, 6))})
    yield Case("diag", {"data": Uniform((4, 5))}, {"k": 1})
    yield Case("diag", {"data": Uniform((4,))}, {"k": -1}, "matrix")
    yield Case("im2col", {"data": Uniform((2, 3, 6, 7))}, {"kernel": (3, 2), "stride": (2, 1), "pad": (1, 0)})
    yield Case("col2im", {"data": Uniform((2, 18, 18))}, {"output_size": (6, 7), "kernel": (3, 2), "stride": (2, 1), "pad": (1, 0)})
    yield Case("_contrib_arange_like", {"data": Uniform((3, 4))}, {"start": -2, "step": 0.5}, grads=False)
    yield Case("_contrib_arange_like", {"data": Uniform((3, 4))}, {"axis": 1, "repeat": 2}, "axis, repeat", grads=False)
    yield Case("_npi_full_like", {"a": Uniform((3, 4))}, {"fill_value": 1.5}, grads=False)
    # indices
    yield Case("take", {"a": Uniform((5, 4)), "indices": Whole((2, 3), -2, 8)}, {"axis": 0, "mode": "clip"}, "clip")
    yield Case("take", {"a": Uniform((3, 5)), "indices": Whole((4,), -7, 8)}, {"axis": 1, "mode": "wrap"}, "wrap")
    yield Case("batch_take", {"a": Uniform((5, 4)), "indices": Whole((5,), 0, 4, "int32")}, grads=False)
    yield Case("pick", {"data": Uniform((5, 4)), "index": Whole((5,), 0, 4)}, {"axis": 1})
    yield Case("one_hot", {"indices": Whole((5,), -1, 5)}, {"depth": 4, "on_value": 2, "off_value": -1}, grads=False)
    yield Case("gather_nd", {"data": Uniform((4, 5, 2)), "indices": Whole((2, 3), 0, 4)})
    yield Case("scatter_nd", {"data": Uniform((3,)), "indices": Fixed([[0, 2, 1], [3, 0, 1]])}, {"shape": (3, 4)})
    yield Case("Embedding", {"data": Whole((2, 3), 0, 6), "weight": Uniform((6, 4))}, {"input_dim": 6, "output_dim": 4})
    for kind in "indices value mask".split():
        yield Case("topk", {"data": Apart((4, 9))}, {"k": 3, "ret_typ": kind}, kind, grads=kind == "value")
    yield Case("topk", {"data": Apart((4, 9))}, {"k": 3, "ret_typ": "both", "axis": 0, "is_ascend": True}, "both", outputs=2, grads=False)
    yield Case("sort", {"data": Apart((4, 9))}, {"axis": 0, "is_ascend": False})
    yield Case("argsort", {"data": Apart((4, 9))}, grads=False)
    # layers
    yield Case("FullyConnected", {"data": Uniform((3, 2, 4)), "weight": Uniform((5, 8)), "bias": Uniform((5,))}, {"num_hidden": 5})
    yield Case("FullyConnected", {"data": Uniform((3, 2, 4)), "weight": Uniform((5, 4))}, {"num_hidden": 5, "no_bias": True, "flatten": False}, "rows")
    image = Uniform((2, 4, 7, 8))
    yield Case("Convolution", {"data": image, "weight": Uniform((6, 2, 3, 2)), "bias": Uniform((6,))},
               {"kernel": (3, 2), "stride": (2, 1), "pad": (1, 0), "dilate": (1, 2), "num_filter": 6, "num_group": 2})
    yield Case("Deconvolution", {"data": Uniform((2, 4, 3, 4)), "weight": Uniform((4, 3, 3, 2))},
               {"kernel": (3, 2), "stride": (2, 1), "pad": (1, 0), "adj": (1, 0), "num_filter": 6, "num_group": 2})
    for kind in "relu sigmoid tanh softrelu softsign".split():
        yield Case("Activation", {"data": Apart((4, 33), -3, 3)}, {"act_type": kind}, kind)
    for kind in "leaky elu selu gelu".split():
        yield Case("LeakyReLU", {"data": Apart((4, 33), -3, 3)}, {"act_type": kind, "slope": 0.3}, kind)
    yield Case("BatchNorm", {"data": image, "gamma": Uniform((4,), 0.5, 1.5), "beta": Uniform((4,))}, {"fix_gamma": False, "eps": 1e-3},
               aux={"moving_mean": Uniform((4,)), "moving_var": Uniform((4,), 0.5, 1.5)})
    yield Case("InstanceNorm", {"data": image, "gamma": Uniform((4,)), "beta": Uniform((4,))})
    yield Case("LayerNorm", {"data": image, "gamma": Uniform((8,)), "beta": Uniform((8,))})
    yield Case("GroupNorm", {"data": image, "gamma": Uniform((2,)), "beta": Uniform((2,))}, {"num_groups": 2})
    for mode in "instance channel spatial".split():
        yield Case("L2Normalization", {"data": image}, {"mode": mode}, mode)
    yield Case("LRN", {"data": image}, {"nsize": 3, "alpha": 0.1})
    for kind, more in [("max", {}), ("avg", {}), ("avg", {"count_include_pad": False}), ("sum", {}), ("lp", {"p_value": 2})]:
        yield Case("Pooling", {"data": Apart((2, 3, 7, 8), 0.1, 3)},
                   {"kernel": (3, 2), "stride": (2, 2), "pad": (1, 1), "pool_type": kind, **more}, kind + (" real cells" if more and kind == "avg" else ""))
        yield Case("Pooling", {"data": Apart((2, 3, 7, 8), 0.1, 3)},
                   {"kernel": (3, 2), "stride": (2, 3), "pool_type": kind, "pooling_convention": "full", **more},
                   kind + " full" + (" real cells" if more and kind == "avg" else ""))
    yield Case("Pooling", {"data": Apart((2, 3, 7, 8))}, {"global_pool": True, "pool_type": "avg"}, "global")
    yield Case("UpSampling", {"arg0": image}, {"scale": 3, "sample_type": "nearest", "num_args": 1}, "nearest")
    yield Case("UpSampling", {"data": image, "weight": Uniform((4, 1, 5, 5))},
               {"scale": 3, "sample_type": "bilinear", "num_args": 2, "num_filter": 4}, "bilinear")
    for op in "softmax log_softmax softmin".split():
        yield Case(op, {"data": Uniform((3, 4, 5), -3, 3)}, {"axis": 1, "temperature": 0.7})
    yield Case("softmax", {"data": Uniform((3, 5), -3, 3), "length": Fixed([2, 5, 1], "int32")}, {"use_length": True}, "length")
    yield Case("SoftmaxActivation", {"data": Uniform((3, 4, 5))}, {"mode": "channel"}, "channel")
    yield Case("_contrib_BilinearResize2D", {"data": image}, {"height": 5, "width": 13})
    yield Case("_contrib_BilinearResize2D", {"data": image}, {"height": 5, "width": 13, "align_corners": False}, "corners apart")
    yield Case("_contrib_AdaptiveAvgPooling2D", {"data": image}, {"output_size": (3, 5)})
    boxes = Fixed([[0, 0, 0, 5, 6], [1, 2, 1, 7, 4], [1, 3.2, 2.6, 6.1, 5.9]])
    yield Case("ROIPooling", {"data": Apart((2, 3, 8, 9)), "rois": boxes}, {"pooled_size": (2, 3), "spatial_scale": 1})
    yield Case("_contrib_ROIAlign", {"data": Uniform((2, 3, 8, 9)), "rois": boxes}, {"pooled_size": (2, 3), "spatial_scale": 0.7, "sample_ratio": 2})
    yield Case("GridGenerator", {"data": Uniform((2, 6))}, {"transform_type": "affine", "target_shape": (4, 5)}, "affine")
    yield Case("GridGenerator", {"data": Uniform((2, 2, 4, 5))}, {"transform_type": "warp"}, "warp")
    yield Case("BilinearSampler", {"data": image, "grid": Uniform((2, 2, 4, 5), -1.2, 1.2)})
    yield Case("SpatialTransformer", {"data": image, "loc": Uniform((2, 6), -0.7, 0.7)},
               {"target_shape": (4, 5), "transform_type": "affine", "sampler_type": "bilinear"})
    yield Case("Correlation", {"data1": image, "data2": image}, {"kernel_size": 3, "max_displacement": 2, "stride2": 2, "pad_size": 3})
    # boxes
    yield from box_cases()
    # losses
    scores, classes = Uniform((5, 4), -2, 2), Whole((5,), 0, 4)
    yield Case("SoftmaxOutput", {"data": scores, "label": classes}, loss=True)
    yield Case("SoftmaxOutput", {"data": scores, "label": classes}, {"smooth_alpha": 0.2, "grad_scale": 1.5, "normalization": "batch"}, "smooth", loss=True)
    yield Case("SoftmaxOutput", {"data": scores, "label": Fixed([0, -1, 2, -1, 3])}, {"use_ignore": True, "normalization": "valid"}, "ignore", loss=True)
    yield Case("SoftmaxOutput", {"data": Uniform((2, 4, 3)), "label": Whole((2, 3), 0, 4)}, {"multi_output": True}, "multi", loss=True)
    for op in "LinearRegressionOutput LogisticRegressionOutput MAERegressionOutput".split():
        yield Case(op, {"data": Uniform((4, 3)), "label": Uniform((4, 3))}, {"grad_scale": 0.5}, loss=True)
    yield Case("SVMOutput", {"data": scores, "label": classes}, {"margin": 0.7}, loss=True)
    yield Case("SVMOutput", {"data": scores, "label": classes}, {"use_linear": True}, "linear", loss=True)
    yield Case("MakeLoss", {"data": Uniform((4, 3))}, {"grad_scale": 2, "normalization": "valid"}, loss=True)
    yield Case("make_loss", {"data": Uniform((4, 3))}, loss=True)
    yield Case("softmax_cross_entropy", {"data": scores, "label": classes})
    words = [[1, 2, 0, 0], [2, 2, 3, 0], [0, 0, 0, 0], [3, 1, 3, 1], [4, 4, 4, 4]]   # the last one has no path of six steps
    spoken = {"data": Uniform((6, 5, 6), -3, 3), "label": Fixed(words)}
    yield Case("CTCLoss", spoken, note="blank first")
    yield Case("CTCLoss", {**spoken, "label": Fixed([[k - 1 for k in word] for word in words])}, {"blank_label": "last"}, "blank last")
    yield Case("CTCLoss", {**spoken, "data_lengths": Fixed([6, 4, 3, 5, 6])}, {"use_data_lengths": True}, "data_lengths")
    yield Case("_contrib_ctc_loss", {**spoken, "label": Fixed([[1, 2, 3, 4]] * 5), "label_lengths": Fixed([4, 0, 1, 2, 3])},
               {"use_label_lengths": True}, "label_lengths")
    # others
    yield Case("_contrib_div_sqrt_dim", X)
    qkv = Uniform((5, 2, 3 * 4 * 3))
    yield Case("_contrib_interleaved_matmul_selfatt_qk", {"queries_keys_values": qkv}, {"heads": 3})
    yield Case("_contrib_interleaved_matmul_selfatt_valatt", {"queries_keys_values": qkv, "attention": Uniform((6, 5, 5))}, {"heads": 3})
    yield Case("_contrib_interleaved_matmul_encdec_qk", {"queries": Uniform((4, 2, 12)), "keys_values": Uniform((5, 2, 24))}, {"heads": 3})
    yield Case("_contrib_interleaved_matmul_encdec_valatt", {"keys_values": Uniform((5, 2, 24)), "attention": Uniform((6, 4, 5))}, {"heads": 3})
    yield Case("_contrib_quadratic", {"data": Uniform((3, 4))}, {"a": 2, "b": -0.5, "c": 3})
    yield Case("_contrib_gradientmultiplier", {"data": Uniform((3, 4))}, {"scalar": -0.5})
    yield Case("_contrib_round_ste", {"data": Apart((3, 4), -3, 3)})
    yield Case("_contrib_sign_ste", {"data": Apart((3, 4), -3, 3)})
    yield from recurrent_cases()
    for op in "SequenceLast SequenceMask SequenceReverse".split():
        yield Case(op, {"data": Uniform((5, 3, 2)), "sequence_length": Fixed([2, 5, 1])}, {"use_sequence_length": True})


def torch_cases():
    import torch
    from torch.nn import functional as F

    def attention(query, key, value, **more):
        return F.scaled_dot_product_attention(query, key, value, **more)

    heads = {"query": Uniform((2, 3, 5, 4)), "key": Uniform((2, 3, 7, 4)), "value": Uniform((2, 3, 7, 4))}
    square = {name: Uniform((2, 3, 6, 4)) for name in heads}
    flat = {"data": Apart((4, 33), -4, 4)}
    image = {"data": Uniform((2, 4, 7, 8)), "weight": Uniform((6, 4, 3, 4))}
    yield Case("gelu", flat, torch=F.gelu)
    yield Case("gelu", flat, {"approximate": "tanh"}, "tanh", torch=lambda x: F.gelu(x, approximate="tanh"))
    yield Case("silu", flat, torch=F.silu)
    yield Case("hard_swish", flat, torch=F.hardswish)
    yield Case("mish", flat, torch=F.mish)
    yield Case("log_sigmoid", flat, torch=F.logsigmoid)
    yield Case("digamma", {"data": Apart((4, 33), -2.9, 4)}, torch=torch.digamma)
    yield Case("RMSNorm", {"data": Uniform((3, 4, 8)), "gamma": Uniform((8,))}, {"eps": 1e-5}, torch=lambda x, g: F.rms_norm(x, (8,), g, 1e-5))
    yield Case("logsumexp", {"data": Uniform((3, 4, 5), -3, 3)}, {"axis": (0, 2)}, torch=lambda x: torch.logsumexp(x, (0, 2)))
    yield Case("roll", {"data": Uniform((3, 4, 5))}, {"shift": (2, -1), "axis": (0, 2)}, torch=lambda x: torch.roll(x, (2, -1), (0, 2)))
    yield Case("scaled_dot_product_attention", heads, torch=attention)
    yield Case("scaled_dot_product_attention", square, {"is_causal": True}, "causal", torch=lambda q, k, v: attention(q, k, v, is_causal=True))
    yield Case("triplet_loss", {name: Uniform((6, 5)) for name in ("data", "positive", "negative")}, {"distance": "euclidean", "margin": 0.5},
               torch=lambda a, p, n: F.triplet_margin_loss(a, p, n, margin=0.5, eps=0, reduction="none"))
    yield Case("margin_ranking_loss", {"lhs": Uniform((9,)), "rhs": Uniform((9,)), "label": Fixed([1, -1, 1, 1, -1, -1, 1, -1, 1])}, {"margin": 0.3},
               torch=lambda x, y, label: F.margin_ranking_loss(x, y, label, margin=0.3, reduction="none"))
    chosen = [0, 1, 1, 0, 1]
    yield Case("boolean_mask", {"data": Uniform((5, 3)), "index": Fixed(chosen)}, {"size": 3}, torch=lambda x, index: x[index != 0])
    yield Case("Convolution", image, {"kernel": (3, 4), "num_filter": 6, "no_bias": True, "pad": "same"}, "same",
               torch=lambda x, w: F.conv2d(x, w, padding="same"))
    yield Case("Convolution", {**image, "weight": Uniform((6, 4, 3, 3))},
               {"kernel": (3, 3), "dilate": (2, 2), "num_filter": 6, "no_bias": True, "pad": "same"}, "same, dilated",
               torch=lambda x, w: F.conv2d(x, w, padding="same", dilation=2))
    yield Case("Pooling", {"data": Apart((2, 3, 7, 8))}, {"kernel": (3, 3), "stride": (2, 2), "pad": "same"}, "same",
               torch=lambda x: F.max_pool2d(F.pad(x, (0, 1, 1, 1), value=-9.0), 3, 2))
    yield Case("Pooling", {"data": Apart((2, 3, 7, 8))}, {"kernel": (3, 3), "stride": (2, 2), "pool_type": "avg", "pad": "same"}, "avg same",
               torch=lambda x: F.avg_pool2d(F.pad(x, (0, 1, 1, 1)), 3, 2) / F.avg_pool2d(F.pad(torch.ones_like(x), (0, 1, 1, 1)), 3, 2))
    for mode in "constant reflect replicate".split():
        yield Case("Pad", {"data": Uniform((2, 3, 4, 5, 4))},
                   {"mode": mode.replace("replicate", "edge"), "pad_width": (0, 0, 0, 0, 1, 2, 0, 1, 2, 1)}, mode + " volumes",
                   torch=lambda x, mode=mode: F.pad(x, (2, 1, 0, 1, 1, 2), mode=mode))
    yield Case("AdaptiveAvgPooling2D", {"data": image["data"]}, {"output_size": (3, 5)}, torch=lambda x: F.adaptive_avg_pool2d(x, (3, 5)))
    yield Case("GroupNorm", {"data": image["data"], "gamma": Uniform((2,)), "beta": Uniform((2,))}, {"num_groups": 2},
               torch=lambda x, g, b: F.group_norm(x, 2, g.repeat_interleave(2), b.repeat_interleave(2)))


# --- nets and files ---


def text(value):
    """An attribute as MXNet writes it."""
    if not isinstance(value, tuple):
        return str(value)
    return "(%s,)" % value[0] if len(value) == 1 else "(%s)" % ", ".join(map(str, value))


def net_of(case):
    """The net in MXNet's JSON."""
    nodes = [{"op": "null", "name": name, "inputs": []} for name in [*case.inputs, *case.aux]]
    arguments = [[i, 0, 0] for i in range(len(nodes))]

    def add(op, name, inputs, attrs=None):
        nodes.append({"op": op, "name": name, "inputs": inputs, "attrs": {key: text(value) for key, value in (attrs or {}).items()}})
        return len(nodes) - 1

    at = add(case.op, "net", arguments, case.attrs)
    heads = []
    for i in range(case.outputs):
        if case.loss or not case.grads:
            heads.append([at, i, 0])
            continue
        nodes.append({"op": "null", "name": "head%d" % i, "inputs": []})
        product = add("elemwise_mul", "product%d" % i, [[at, i, 0], [len(nodes) - 1, 0, 0]])
        heads.append([add("MakeLoss", "loss%d" % i, [[product, 0, 0]]), 0, 0])
        heads.append([add("BlockGrad", "result%d" % i, [[at, i, 0]]), 0, 0])
    variables = [i for i, node in enumerate(nodes) if node["op"] == "null"]
    return json.dumps({"nodes": nodes, "arg_nodes": variables, "heads": heads, "attrs": {"mxnet_version": ["int", 10901]}})


def save(path, arrays, kind="float32"):
    """MXNet's format of arrays, all of one type: float32 or float64."""
    with open(path, "wb") as file:
        file.write(struct.pack("<QQQ", MAGIC, 0, len(arrays)))
        for array in arrays.values():
            data = np.ascontiguousarray(array, dtype=kind)
            code = {"float32": 0, "float64": 1}[kind]
            file.write(struct.pack("<Iii%dqiii" % data.ndim, VERSION, 0, data.ndim, *data.shape, 1, 0, code))
            file.write(data.tobytes())
        file.write(struct.pack("<Q", len(arrays)))
        for name in arrays:
            file.write(struct.pack("<Q", len(name)) + name.encode())


def load(path):
    with open(path, "rb") as file:
        data = file.read()
    at = 0

    def take(kind):
        nonlocal at
        values = struct.unpack_from("<" + kind, data, at)
        at += struct.calcsize("<" + kind)
        return values

    types = {0: "<f4", 1: "<f8", 4: "<i4", 6: "<i8"}
    magic, _, count = take("QQQ")
    assert magic == MAGIC, path
    arrays = []
    for _ in range(count):
        version, storage, ndim = take("Iii")
        assert version == VERSION and storage == 0, path
        shape = take("%dq" % ndim)
        _, _, kind = take("iii")
        size = int(np.prod(shape)) * np.dtype(types[kind]).itemsize
        arrays.append(np.frombuffer(data, types[kind], int(np.prod(shape)), at).reshape(shape))
        at += size
    names = []
    for _ in range(take("Q")[0]):
        length = take("Q")[0]
        names.append(data[at:at + length].decode())
        at += length
    return dict(zip(names, arrays))


def wants_gradient(generator):
    return not isinstance(generator, (Whole, Fixed, Objects))


def run_mxnet(case, inputs, aux, gradients):
    import mxnet as mx
    net = mx.sym.load_json(net_of(case))
    arrays = {name: mx.nd.array(value, dtype=getattr(case.inputs.get(name), "kind", "float32")) for name, value in inputs.items()}
    grads = {name: mx.nd.zeros(arrays[name].shape) for name in gradients}
    executor = net.bind(mx.cpu(), arrays, args_grad=grads or None, grad_req={name: "write" if name in grads else "null" for name in arrays},
                        aux_states={name: mx.nd.array(value) for name, value in aux.items()})
    run = {"predict:%d" % i: output.asnumpy() for i, output in enumerate(executor.forward(is_train=False))}
    if gradients:
        run.update({"train:%d" % i: output.asnumpy() for i, output in enumerate(executor.forward(is_train=True))})
        executor.backward()
        run.update({"grad:" + name: value.asnumpy() for name, value in grads.items()})
        run.update({"after:" + name: value.asnumpy() for name, value in executor.aux_dict.items()})
    return run


def run_torch(case, inputs, _, gradients):
    import torch
    arrays = {name: torch.tensor(value, dtype=torch.float64) for name, value in inputs.items()}
    for name in gradients:
        arrays[name].requires_grad_()
    outputs = case.torch(*[arrays[name] for name in case.inputs])
    outputs = [outputs] if torch.is_tensor(outputs) else list(outputs)
    products = [output * arrays["head%d" % i] for i, output in enumerate(outputs)]
    run = {}
    for i, (product, output) in enumerate(zip(products, outputs)):
        for kind in ("predict:", "train:"):
            run[kind + str(2 * i)], run[kind + str(2 * i + 1)] = product.detach().numpy(), output.detach().numpy()
    sum(product.sum() for product in products).backward()
    run.update({"grad:" + name: arrays[name].grad.numpy() for name in gradients})
    return run


def shapes_of_outputs(case, framework, inputs):
    """Of the operator alone, for its head gradients."""
    if framework == "torch":
        import torch
        outputs = case.torch(*[torch.tensor(value) for value in inputs.values()])
        return [tuple(outputs.shape)] if torch.is_tensor(outputs) else [tuple(output.shape) for output in outputs]
    import mxnet as mx
    alone = Case(case.op, case.inputs, case.attrs, outputs=case.outputs, loss=True, aux=case.aux)
    return mx.sym.load_json(net_of(alone)).infer_shape(**{name: value.shape for name, value in inputs.items()})[1]


def dump(case, folder, framework):
    """Writes the net and its run; returns the line of nets.txt."""
    rng = np.random.RandomState(zlib.crc32(case.label.encode()))
    inputs = {name: np.float32(generator.draw(rng)) for name, generator in case.inputs.items()}
    aux = {name: np.float32(generator.draw(rng)) for name, generator in case.aux.items()}
    if case.grads and not case.loss:
        for i, shape in enumerate(shapes_of_outputs(case, framework, inputs)):
            inputs["head%d" % i] = np.float32(rng.uniform(-1, 1, shape))
    gradients = [name for name, generator in case.inputs.items() if case.grads and name != "label" and wants_gradient(generator)]
    run = (run_mxnet if framework == "mxnet" else run_torch)(case, inputs, aux, gradients)
    prefix = os.path.join(folder, case.name)
    with open(prefix + "-symbol.json", "w", encoding="utf-8") as file:
        file.write(net_of(case))
    save(prefix + "-0001.params", {"aux:" + name: value for name, value in aux.items()})
    save(prefix + "-run.params", {**{"in:" + name: value for name, value in inputs.items()}, **run})
    return "%s %s\n" % (case.name, "gradients" if gradients else "predict")


def difference(ours, theirs):
    if ours.shape != theirs.shape:
        return "shape %s, not %s" % (ours.shape, theirs.shape)
    if ours.size == 0:
        return 0.0
    same = (ours == theirs) | (np.isnan(ours) & np.isnan(theirs))
    apart = np.where(same, 0, np.abs(ours.astype(float) - theirs))
    finite = np.abs(theirs[np.isfinite(theirs)])
    return float(np.max(apart) / max(1.0, np.max(finite, initial=0)))


def compare(case, folder):
    """The differences of outputs and of gradients: numbers, or texts."""
    theirs = load(os.path.join(folder, case.name + "-run.params"))
    path = os.path.join(folder, "ours", case.name + "-run.params")
    if not os.path.exists(path):
        return "refused", "refused"
    ours = load(path)
    worst = {"predict": 0.0, "grad": 0.0}
    for key, value in theirs.items():
        kind = {"predict": "predict", "train": "predict", "after": "predict", "grad": "grad"}.get(key.split(":")[0])
        if kind is None or isinstance(worst[kind], str):
            continue
        found = difference(ours[key], value) if key in ours else "missing " + key
        worst[kind] = found if isinstance(found, str) else max(worst[kind], found)
    return worst["predict"], worst["grad"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("framework", choices=["mxnet", "torch"])
    parser.add_argument("folder")
    parser.add_argument("--program", default=PROGRAM, help="test_integration")
    parser.add_argument("--filter", default="", help="of the names of cases")
    args = parser.parse_args()
    os.makedirs(args.folder, exist_ok=True)
    os.environ["MXNET_SUBGRAPH_BACKEND"] = "NONE"  # see check_ours.py
    cases = [case for case in (mxnet_cases() if args.framework == "mxnet" else torch_cases()) if re.search(args.filter, case.label)]
    assert len({case.name for case in cases}) == len(cases), "two cases have one name"
    lines, failed = [], {}
    for case in cases:
        try:
            lines.append(dump(case, args.folder, args.framework))
        except Exception as error:  # the case is listed, and the others run
            failed[case.name] = str(error).strip().splitlines()[-1][:100]
    with open(os.path.join(args.folder, "nets.txt"), "w", encoding="utf-8") as file:
        file.writelines(lines)
    done = subprocess.run([args.program, "--test-suite=reference", "--no-skip"], env={**os.environ, "MXTRAIN_REFERENCE_DIR": args.folder},
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    with open(os.path.join(args.folder, "test_integration.log"), "w", encoding="utf-8") as file:
        file.write(done.stdout)
    bad = 0
    print("| operator | outputs | gradients |\n|---|---|---|")
    for case in cases:
        if case.name in failed:
            print("| %s | not run there: %s | |" % (case.label, failed[case.name]))
            bad += 1
            continue
        results = compare(case, args.folder)
        large = any(isinstance(result, str) or not result < TOLERANCE for result in results)
        bad += large
        cells = [result if isinstance(result, str) else "%.1e" % result for result in results]
        print("| %s | %s | %s |%s" % (case.label, cells[0], cells[1] if case.grads else "-", " DIFFERS" if large else ""))
    print("\n%d cases of %d operators; %d differ" % (len(cases), len({case.op for case in cases}), bad))
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()

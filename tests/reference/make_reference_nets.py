#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes nets with MXNet 1.9.1 and dumps its results, for tests/integration/reference_nets_test.cc.

    python3.11 -m venv VENV && VENV/bin/pip install numpy==1.23.5 mxnet==1.9.1
    VENV/bin/python make_reference_nets.py DIR
    MXTRAIN_REFERENCE_DIR=DIR build/dev/bin/test_integration -tc='*MXNet*'

Writes for every net DIR/NAME-symbol.json and DIR/NAME-0001.params (a checkpoint of random parameters) and DIR/NAME-run.params:
    in:X       inputs (labels too)
    predict:I  output I of a forward pass for prediction
    train:I    output I of a forward pass for training, grad:X gradients and after:X auxiliary states after it (nets of GRADIENTS)
and DIR/nets.txt, a line "NAME predict" or "NAME gradients" each. Nothing of it is committed.
"""
import os
import sys

# MXNet 1.9.1's fusion in prediction gives other numbers than its own forward pass, see
# check_ours.py. Read at bind.
os.environ["MXNET_SUBGRAPH_BACKEND"] = "NONE"

import mxnet as mx
import numpy as np

S = mx.sym


def conv(x, name, filters, kernel=3, pad=1, **more):
    return S.Convolution(x, name=name, num_filter=filters, kernel=(kernel, kernel), pad=(pad, pad), **more)


def head(x, classes=5):
    return S.SoftmaxOutput(S.FullyConnected(S.Flatten(x), name="fc_out", num_hidden=classes), name="softmax")


def mlp(x):
    x = S.Activation(S.FullyConnected(x, name="fc1", num_hidden=16), name="relu1", act_type="relu")
    x = S.Activation(S.FullyConnected(x, name="fc2", num_hidden=12, no_bias=True), name="tanh2", act_type="tanh")
    return head(S.Activation(x, name="soft", act_type="softrelu"))


def lenet(x):
    for i, filters in enumerate([8, 12]):
        x = S.Activation(conv(x, "conv%d" % i, filters, kernel=5, pad=0), name="tanh%d" % i, act_type="tanh")
        x = S.Pooling(x, name="pool%d" % i, pool_type="max", kernel=(2, 2), stride=(2, 2))
    return head(S.Activation(S.FullyConnected(S.Flatten(x), name="fc1", num_hidden=20), name="tanh_fc", act_type="tanh"))


def bn_conv(x):
    for i in range(2):
        x = conv(x, "conv%d" % i, 8, no_bias=True)
        x = S.Activation(S.BatchNorm(x, name="bn%d" % i, fix_gamma=(i == 0), eps=2e-5), name="relu%d" % i, act_type="relu")
    return head(S.Pooling(x, name="pool", global_pool=True, kernel=(1, 1), pool_type="avg"))


def grouped(x):
    x = S.Activation(conv(x, "conv0", 8), name="relu0", act_type="relu")
    x = conv(x, "group", 12, num_group=4, stride=(2, 2))
    x = conv(x, "dilated", 12, pad=2, dilate=(2, 2))
    x = conv(x, "depthwise", 12, num_group=12, no_bias=True)
    x = S.Convolution(x, name="wide", num_filter=6, kernel=(1, 3), pad=(0, 1), stride=(1, 2))
    return head(x)


def inception(x):
    x = S.Activation(conv(x, "stem", 8), name="stem_relu", act_type="relu")
    a = conv(x, "a1x1", 4, kernel=1, pad=0)
    b = conv(conv(x, "b1x1", 4, kernel=1, pad=0), "b3x3", 6)
    c = conv(conv(x, "c1x1", 2, kernel=1, pad=0), "c5x5", 4, kernel=5, pad=2)
    d = conv(S.Pooling(x, name="d_pool", pool_type="max", kernel=(3, 3), stride=(1, 1), pad=(1, 1)), "d1x1", 4, kernel=1, pad=0)
    return head(S.Activation(S.Concat(a, b, c, d, name="joined"), name="joined_relu", act_type="relu"))


def residual(x):
    x = S.BatchNorm(x, name="bn_data", fix_gamma=True, eps=2e-5)
    x = conv(x, "conv0", 8, no_bias=True)
    for i, stride in enumerate([1, 2]):
        pre = S.Activation(S.BatchNorm(x, name="bn%d_1" % i, fix_gamma=False), name="relu%d_1" % i, act_type="relu")
        y = conv(pre, "conv%d_1" % i, 8, stride=(stride, stride), no_bias=True)
        y = S.Activation(S.BatchNorm(y, name="bn%d_2" % i, fix_gamma=False), name="relu%d_2" % i, act_type="relu")
        y = conv(y, "conv%d_2" % i, 8, no_bias=True)
        x = y + (x if stride == 1 else conv(pre, "short%d" % i, 8, kernel=1, pad=0, stride=(stride, stride), no_bias=True))
    return head(S.Pooling(x, name="pool", global_pool=True, kernel=(7, 7), pool_type="avg"))


def alexnet(x):
    x = S.Activation(conv(x, "conv1", 8, kernel=5, pad=2, stride=(2, 2)), name="relu1", act_type="relu")
    x = S.Pooling(S.LRN(x, name="norm1", nsize=5, alpha=1e-2), name="pool1", pool_type="max", kernel=(3, 3), stride=(2, 2))
    x = S.Activation(conv(x, "conv2", 12, num_group=2), name="relu2", act_type="relu")
    x = S.Dropout(S.FullyConnected(S.Flatten(x), name="fc6", num_hidden=16), name="drop6", p=0.5)
    return head(x)


def leaky(x):
    # The prelu is applied to the data, whose gradient has its own array. Elsewhere MXNet 1.9.1
    # overwrites the head gradient with the gradient of the prelu's input before it sums that of
    # gamma, which is then gamma times too large (sum of g gamma x, not g x, over x <= 0).
    x = S.LeakyReLU(x, name="prelu", act_type="prelu")
    x = S.LeakyReLU(conv(x, "conv0", 6), name="leaky", act_type="leaky", slope=0.1)
    x = S.LeakyReLU(conv(x, "conv1", 6), name="elu", act_type="elu", slope=0.5)
    return head(x)


def pooling_full(x):
    kinds = [dict(pool_type="avg", pad=(1, 1)), dict(pool_type="avg", pad=(1, 1), count_include_pad=False), dict(pool_type="max", pad=(1, 1)),
             dict(pool_type="sum", pad=(1, 1))]
    parts = [S.Pooling(x, name="pool%d" % i, kernel=(3, 3), stride=(2, 2), pooling_convention="full", **kind) for i, kind in enumerate(kinds)]
    return head(S.Concat(*parts, name="joined"))


def arithmetic(x):
    a, b = conv(x, "a", 4), conv(x, "b", 4)
    bias = S.Variable("bias", shape=(1, 4, 1, 1))
    y = S.broadcast_add(a * b - a / (S.abs(b) + 2.0), bias, name="biased")
    y = S.broadcast_mul(y, S.sigmoid(bias), name="gated")
    y = 1.0 - S.add_n(y, a, b, name="total") * 0.25
    halves = S.SliceChannel(y, name="halves", num_outputs=2)
    y = S.Concat(halves[0], S.BlockGrad(halves[1]), S.sqrt(S.square(halves[1]) + 1.0), dim=1, name="joined")
    y = S.transpose(S.Reshape(y, name="rows", shape=(0, 6, -1)), axes=(0, 2, 1))
    return S.Group([head(y), S.mean(y, axis=1, name="mean"), S.max(y, axis=(1, 2), keepdims=True, name="peak")])


def attention(x):
    """transpose, batch_dot, norm, broadcasting, argmax: self-attention over the positions of a map."""
    x = S.Reshape(conv(x, "maps", 6, stride=(4, 4)), shape=(0, 0, -1), name="rows")
    query, keys = S.transpose(x, axes=(0, 2, 1), name="query"), S.SwapAxis(x, dim1=1, dim2=2, name="keys")
    scores = S.batch_dot(query, keys, transpose_b=True, name="scores")
    length = S.norm(scores, ord=2, axis=2, keepdims=True, name="length")
    scores = scores / S.broadcast_like(length + 1.0, scores, name="lengths")
    mixed = S.batch_dot(scores, x, transpose_b=True, name="mixed")
    scale = S.broadcast_axis(S.expand_dims(S.norm(mixed, ord=1, axis=(1, 2), name="sum"), axis=1), axis=1, size=6, name="scale")
    total = S.squeeze(S.broadcast_to(S.mean(mixed, axis=1, keepdims=True), shape=(0, 1, 6), name="same"), axis=1) * (scale * 0.01)
    best = S.argmax(scores, axis=2, name="best") + S.argmin(scores, axis=1, name="worst")
    return S.Group([head(total), S.BlockGrad(best, name="places"), S.BlockGrad(S.argmax_channel(total, name="channel"))])


def slices(x):
    """Several outputs of one node, some of them read twice or not at all, along several axes."""
    parts = S.SliceChannel(conv(x, "maps", 8), name="parts", num_outputs=4)
    columns = S.SliceChannel(parts[0], name="columns", num_outputs=22, axis=3, squeeze_axis=True)
    turned = S.slice_axis(S.reverse(parts[2], axis=(1, 3), name="turned"), axis=-1, begin=1, end=None, name="tail")
    rows = S.Concat(parts[1], S.tanh(parts[2]), parts[1] * parts[2], dim=1, name="joined")
    rows = S.slice_axis(rows, axis=3, begin=0, end=-1, name="front") * S.Concat(turned, turned, turned, dim=1, name="thrice")
    return head(S.Concat(S.Flatten(rows), S.Flatten(columns[3] * columns[21]), dim=1, name="flat"))


def dilated(x):
    """Convolutions with both groups and dilation, uneven strides and pads."""
    x = S.Activation(conv(x, "conv0", 8), name="relu0", act_type="relu")
    x = S.Convolution(x, name="uneven", num_filter=12, kernel=(3, 2), pad=(2, 1), stride=(2, 1), dilate=(2, 3), num_group=4)
    x = conv(x, "depthwise", 12, pad=3, dilate=(3, 3), num_group=12, no_bias=True)
    return head(conv(S.Activation(x, name="sig", act_type="sigmoid"), "last", 4, num_group=2, dilate=(2, 1), pad=0))


def decoder(x):
    """Transposed convolutions: groups, adj, dilation, a bias. With target_shape MXNet 1.9.1 fails in its own use of oneDNN."""
    x = S.Activation(conv(x, "conv0", 8, stride=(2, 2)), name="relu0", act_type="relu")
    y = S.Deconvolution(x, name="up", num_filter=6, kernel=(4, 4), stride=(2, 2), pad=(1, 1))
    z = S.Deconvolution(x, name="grouped", num_filter=4, num_group=2, kernel=(3, 3), stride=(2, 3), adj=(1, 2), no_bias=False)
    v = S.Deconvolution(x, name="wide", num_filter=2, kernel=(3, 2), pad=(1, 0), dilate=(1, 2))
    return head(S.Concat(*[S.Flatten(part) for part in (y, z, v)], dim=1, name="flat"))


def sequences(x):
    x = S.Activation(S.Convolution(S.Reshape(x, name="steps", shape=(0, 3, -1)), name="conv0", num_filter=6, kernel=(5,), stride=(2,), pad=(1,), dilate=(2,)),
                     name="relu0", act_type="relu")
    kinds = [dict(pool_type="max", pad=(1,)), dict(pool_type="avg", pad=(1,), count_include_pad=False), dict(pool_type="sum", pooling_convention="full")]
    x = S.Concat(*[S.Pooling(x, name="pool%d" % i, kernel=(3,), stride=(3,), **kind) for i, kind in enumerate(kinds)], dim=2, name="joined")
    return head(S.Deconvolution(x, name="up", num_filter=2, kernel=(4,), stride=(2,), pad=(1,)))


def volumes(x):
    x = S.Reshape(x, name="layers", shape=(0, 1, 3, 24, 22))
    x = S.Activation(S.Convolution(x, name="conv0", num_filter=4, kernel=(2, 3, 3), stride=(1, 2, 2), pad=(1, 1, 0)), name="relu0", act_type="relu")
    kinds = [dict(pool_type="max"), dict(pool_type="avg", pad=(0, 1, 1)), dict(pool_type="lp", p_value=2)]
    parts = [S.Flatten(S.Pooling(x, name="pool%d" % i, kernel=(2, 3, 2), stride=(2, 2, 2), **kind)) for i, kind in enumerate(kinds)]
    return head(S.Concat(*parts, dim=1, name="joined"))


def places(x):
    """Windows as columns, and images read at computed places."""
    x = conv(x, "conv0", 4)
    loc = S.FullyConnected(S.Flatten(x) * 0.01, name="loc", num_hidden=6)
    y = S.SpatialTransformer(x, loc, name="turned", target_shape=(9, 8), transform_type="affine", sampler_type="bilinear")
    columns = S.im2col(x, name="columns", kernel=(3, 2), stride=(2, 2), pad=(1, 0), dilate=(2, 1))
    back = S.col2im(columns * 0.5, name="back", output_size=(24, 22), kernel=(3, 2), stride=(2, 2), pad=(1, 0), dilate=(2, 1))
    return head(S.Concat(S.Flatten(y), S.Flatten(back), dim=1, name="flat"))


def matching(x):
    a, b = conv(x, "a", 4), conv(x, "b", 4)
    y = S.Correlation(a, b, name="products", kernel_size=3, max_displacement=3, stride1=2, stride2=2, pad_size=3)
    z = S.Correlation(a, b, name="differences", kernel_size=1, max_displacement=2, stride1=1, stride2=1, pad_size=2, is_multiply=False)
    return head(S.Concat(S.Flatten(y), S.Flatten(z), dim=1, name="flat"))


def regression(x):
    return S.LinearRegressionOutput(S.FullyConnected(S.Flatten(x), name="fc", num_hidden=3), name="lro", grad_scale=2.0)


GRADIENTS = [mlp, lenet, bn_conv, inception, residual, leaky, regression, attention, slices, dilated, decoder, sequences, volumes, places, matching]
PREDICTIONS = [grouped, alexnet, pooling_full, arithmetic]


def dump(folder, make, gradients):
    name, rng = make.__name__, np.random.RandomState(len(make.__name__) * 7 + 1)
    net = make(S.Variable("data"))
    data_shape = (4, 3, 24, 22) if make is not mlp else (4, 30)
    arg_shapes, _, aux_shapes = net.infer_shape(data=data_shape)
    args = {n: mx.nd.array(rng.normal(0, 0.3, s)) for n, s in zip(net.list_arguments(), arg_shapes)}
    aux = {n: mx.nd.array(rng.uniform(0.5, 1.5, s)) for n, s in zip(net.list_auxiliary_states(), aux_shapes)}
    inputs = {n: args.pop(n) for n in list(args) if n == "data" or n.endswith("label")}
    if "softmax_label" in inputs:
        inputs["softmax_label"] = mx.nd.array(rng.randint(0, 5, inputs["softmax_label"].shape))
    run = {"in:" + n: a for n, a in inputs.items()}
    mx.model.save_checkpoint("%s/%s" % (folder, name), 1, net, args, aux)

    grads = {n: mx.nd.zeros(a.shape) for n, a in {**args, **inputs}.items() if not n.endswith("label")}
    executor = net.bind(mx.cpu(), {**args, **inputs}, args_grad=grads, aux_states=aux)
    run.update({"predict:%d" % i: o.copy() for i, o in enumerate(executor.forward(is_train=False))})
    mx.nd.waitall()  # else the training pass overwrites outputs before they are copied: usually 5 % off in bn_conv
    if gradients:
        run.update({"train:%d" % i: o.copy() for i, o in enumerate(executor.forward(is_train=True))})
        executor.backward()
        run.update({"grad:" + n: g for n, g in grads.items()})
        run.update({"after:" + n: a for n, a in executor.aux_dict.items()})
    mx.nd.save("%s/%s-run.params" % (folder, name), run)
    return "%s %s\n" % (name, "gradients" if gradients else "predict")


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    with open(folder + "/nets.txt", "w") as nets:
        nets.writelines([dump(folder, make, True) for make in GRADIENTS] + [dump(folder, make, False) for make in PREDICTIONS])


if __name__ == "__main__":
    main()

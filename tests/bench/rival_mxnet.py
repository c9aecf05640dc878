#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training steps of MXNet 1.9.1 on the CPU, synthetic data: run by rivals.py for comparison. Prints one JSON line.

  rival_mxnet.py NET --batch N [--size S] [--classes C] [--threads T] [--seconds T]

NET is lenet or a name of torchvision.models that gluon's model zoo has too. A step is forward, cross entropy, backward, SGD with momentum, of a
hybridized net whose memory is allocated once.
"""
import argparse
import json
import os
import resource
import sys
import time

NAMES = {"resnet18": "resnet18_v1", "resnet50": "resnet50_v1", "vgg16": "vgg16", "mobilenet_v2": "mobilenet_v2_1_0"}


def build(mx, net, classes):
    from mxnet.gluon import nn
    if net == "lenet":
        layers = nn.HybridSequential()
        layers.add(nn.Conv2D(20, 5, activation="relu"), nn.MaxPool2D(2), nn.Conv2D(50, 5, activation="relu"), nn.MaxPool2D(2), nn.Flatten(),
                   nn.Dense(500, activation="relu"), nn.Dense(classes))
        return layers
    if net not in NAMES:
        sys.exit(f"rival_mxnet.py: gluon's model zoo has no {net}")
    return getattr(mx.gluon.model_zoo.vision, NAMES[net])(classes=classes)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("net")
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=5, help="minimum measured time")
    args = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(args.threads)  # read when the library is loaded
    import mxnet as mx
    net = build(mx, args.net, args.classes)
    net.initialize(mx.init.Xavier())
    net.hybridize(static_alloc=True, static_shape=True)
    shape = (1, 28, 28) if args.net == "lenet" else (3, args.size, args.size)
    x, y = mx.nd.random.normal(shape=(args.batch, *shape)), mx.nd.random.randint(0, args.classes, (args.batch,)).astype("float32")
    loss_of = mx.gluon.loss.SoftmaxCrossEntropyLoss()
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.01, "momentum": 0.9})

    def step():
        with mx.autograd.record():
            loss = loss_of(net(x), y)
        loss.backward()
        trainer.step(args.batch)
        mx.nd.waitall()

    for _ in range(2):
        step()
    begin, steps = time.perf_counter(), 0
    while steps < 2 or time.perf_counter() - begin < args.seconds:
        step()
        steps += 1
    rate = steps * args.batch / (time.perf_counter() - begin)
    print(json.dumps({"images_per_second": rate, "peak_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
                      "version": "mxnet " + mx.__version__}))


main()

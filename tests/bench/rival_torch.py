#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training or inference steps of PyTorch, synthetic data: run by rivals.py and gpu_check.sh for comparison. Prints one JSON line.

  rival_torch.py NET --batch N [--mode eager|channels_last|compile|channels_last+compile|onnxruntime] [--device cpu|cuda] [--amp off|bf16|fp16]
                 [--tf32 on|off] [--infer] [--size S] [--classes C] [--seconds T]
  torchrun --nproc-per-node R rival_torch.py NET --batch N --ddp --steps N ...

NET is lenet or a name of torchvision.models. A training step is forward, cross entropy, backward, SGD with momentum, gradients set to None;
with fp16 losses are scaled. `onnxruntime` exports the net and runs it there (inference alone, on the CPU). On a GPU cuDNN chooses by
measurement, TF32 is used where PyTorch uses it by default unless --tf32 says otherwise, and the memory is the most that was allocated there in the steps that are measured.
--ddp: DistributedDataParallel over gloo, a core and a batch for each rank; the rate is that of all ranks, and rank 0 prints it.
"""
import argparse
import json
import os
import resource
import time

import torch


def lenet(classes):
    nn = torch.nn
    return nn.Sequential(nn.Conv2d(1, 20, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(20, 50, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                         nn.Linear(800, 500), nn.ReLU(), nn.Linear(500, classes))


def build(args):
    """The net, and a batch for it."""
    if args.net == "lenet":
        net, shape = lenet(args.classes), (1, 28, 28)
    else:
        import torchvision
        options = {"aux_logits": False, "init_weights": False} if args.net == "googlenet" else {}
        net, shape = getattr(torchvision.models, args.net)(num_classes=args.classes, **options), (3, args.size, args.size)
    return net.to(args.device), torch.randn(args.batch, *shape, device=args.device), torch.randint(0, args.classes, (args.batch,), device=args.device)


def torch_step(args, net, x, y):
    net.train(not args.infer)
    if "channels_last" in args.mode:
        net, x = net.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    run = torch.compile(net) if "compile" in args.mode else net
    if args.ddp:
        run = torch.nn.parallel.DistributedDataParallel(run)
    optimizer = torch.optim.SGD(net.parameters(), 0.01, momentum=0.9)
    loss_of = torch.nn.CrossEntropyLoss()
    amp = torch.autocast(args.device, dtype=torch.float16 if args.amp == "fp16" else torch.bfloat16, enabled=args.amp != "off")
    scaler = torch.amp.GradScaler(args.device, enabled=args.amp == "fp16")

    def train():
        optimizer.zero_grad(set_to_none=True)
        with amp:
            loss = loss_of(run(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

    def infer():
        with torch.inference_mode(), amp:
            run(x)

    return infer if args.infer else train


def onnxruntime_step(args, net, x):
    import tempfile

    import onnxruntime
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "net.onnx")
        torch.onnx.export(net.eval(), (x,), path, input_names=["data"], dynamo=False)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = args.threads
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    values = x.numpy()
    return lambda: session.run(None, {"data": values})


def rate_of(args, step):
    """Examples per second, after warm-up steps."""
    on_gpu = args.device == "cuda"
    for _ in range(5 if on_gpu else 2):
        step()
    if on_gpu:
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
    begin, steps = time.perf_counter(), 0
    while steps < args.steps if args.steps else steps < 2 or time.perf_counter() - begin < args.seconds:
        step()
        steps += 1
    if on_gpu:
        torch.cuda.synchronize()
    return steps * args.batch / (time.perf_counter() - begin)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("net")
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--mode", choices=["eager", "channels_last", "compile", "channels_last+compile", "onnxruntime"], default="eager")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--amp", choices=["off", "bf16", "fp16"], default="off")
    parser.add_argument("--tf32", choices=["on", "off"])
    parser.add_argument("--infer", action="store_true")
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=5, help="minimum measured time")
    parser.add_argument("--steps", type=int, help="measured steps, instead of a time")
    parser.add_argument("--ddp", action="store_true")
    args = parser.parse_args()
    if args.ddp:
        if not args.steps:
            parser.error("--ddp needs --steps: all ranks take as many")
        os.sched_setaffinity(0, {int(os.environ["LOCAL_RANK"])})
        torch.distributed.init_process_group("gloo")
    ranks = torch.distributed.get_world_size() if args.ddp else 1
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    if args.tf32:
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = args.tf32 == "on"
    net, x, y = build(args)
    version = "torch " + torch.__version__
    if args.mode == "onnxruntime":
        import onnxruntime
        version = "onnxruntime " + onnxruntime.__version__
        step = onnxruntime_step(args, net, x)
    else:
        step = torch_step(args, net, x, y)
    rate = rate_of(args, step) * ranks
    peak = torch.cuda.max_memory_allocated() if args.device == "cuda" else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    if args.ddp and torch.distributed.get_rank() > 0:
        return
    print(json.dumps({"images_per_second": rate, "peak_memory_bytes": peak, "version": version}))


main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Speed and memory compared with PyTorch: same nets, batches and threads; contenders alternate in repeated rounds.

  rivals.py --python PYTHON [--mxnet PYTHON] [--program PATH] [--rounds N] [--seconds T] [--modes fast,exact] [--rival-modes ...] [--allocators ...] [--output FILE] [CASE...]

PYTHON is an interpreter that has torch and torchvision (for inference onnxruntime and onnx too): pip install torch torchvision, in its
own environment. --mxnet names one that has MXNet 1.9.1 (numpy==1.23.5 mxnet==1.9.1), another rival in training, which is excluded from
"best". CASE is a name of the table below (resnet50, lenet-infer1, ...); default: all training cases.

A contender is a process that runs for one measurement; a round measures each once, so other load affects all alike.
Writes a table of images/s (median of the rounds, quartiles), the ratios to PyTorch as installed (eager mode, default allocator) and at its best
(the fastest of eager, channels_last and compile, each with the default allocator and with one tuned to keep its memory, and in inference
onnxruntime), and peak memory of the same runs. A contender that fails is skipped, with its last line on stderr.
"""
import argparse
import json
import os
import platform
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
MXNET = "mxnet 1.9.1"
# Makes glibc's allocator keep its memory: half of an untuned PyTorch's time is page faults.
ALLOCATORS = {"default": {}, "tuned": {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "-1", "MALLOC_TOP_PAD_": "268435456"}}

# name: (configuration, its changes, the rival's net, batch, its further arguments)
NETS = {
    "resnet50": ("configs/imagenet/resnet50.yaml", [], "resnet50", 32, []),
    "resnet18": ("configs/imagenet/resnet18.yaml", [], "resnet18", 64, []),
    "vgg16": ("configs/imagenet/vgg16.yaml", [], "vgg16", 16, []),
    "mobilenet_v2": ("configs/imagenet/mobilenet_v2.yaml", [], "mobilenet_v2", 64, []),
    "googlenet": ("configs/imagenet/googlenet.yaml", [], "googlenet", 32, []),
    **{name: (f"configs/imagenet/{name}.yaml", [], name, batch, [])
       for name, batch in (("efficientnet_b0", 32), ("mobilenet_v3_large", 32), ("shufflenet_v2_x1_0", 32), ("densenet121", 32),
                           ("resnext50_32x4d", 32), ("convnext_tiny", 32), ("vit_b_16", 8))},
    "lenet": ("configs/mnist/lenet.yaml", [], "lenet", 64, ["--classes", "10"]),
    "resnet18-128": ("configs/imagenet/resnet18.yaml", ["vars.classes=10", "net.input=[3, 128, 128]"], "resnet18", 64,
                     ["--classes", "10", "--size", "128"]),
}


def cases():
    """Training cases, then inference of the ImageNet nets with one image and with 32."""
    table = {name: (net, False) for name, net in NETS.items()}
    for name, (config, changes, rival, _, more) in NETS.items():
        if changes or not config.startswith("configs/imagenet/"):
            continue
        for batch in (1, 32):
            table[f"{name}-infer{batch}"] = ((config, changes, rival, batch, more), True)
    return table


def contenders(args, case):
    """Label -> (command, environment) of one case."""
    (config, changes, rival, batch, more), infer = case
    made = {}
    for math in args.modes.split(","):
        command = [args.program, "bench", os.path.join(ROOT, config), f"data.batch_size={batch}", f"train.math={math}", "--synthetic", "--json",
                   "--rounds", "1", "--seconds", str(args.seconds), "--threads", str(args.threads), *changes]
        made[f"mxtrain {math}"] = (command + (["--infer"] if infer else []), {})
    for mode in args.rival_modes.split(","):
        if mode == "onnxruntime":                           # it has an allocator of its own
            continue
        for allocator in args.allocators.split(","):
            command = [args.python, os.path.join(HERE, "rival_torch.py"), rival, "--batch", str(batch), "--mode", mode, "--threads", str(args.threads),
                       "--seconds", str(args.seconds), *more]
            made[f"{mode}, {allocator}"] = (command + (["--infer"] if infer else []), ALLOCATORS[allocator])
    if args.mxnet and not infer:
        command = [args.mxnet, os.path.join(HERE, "rival_mxnet.py"), rival, "--batch", str(batch), "--threads", str(args.threads), "--seconds",
                   str(args.seconds), *more]
        made[MXNET] = (command, {})
    if infer and "onnxruntime" in args.rival_modes.split(","):
        command = [args.python, os.path.join(HERE, "rival_torch.py"), rival, "--batch", str(batch), "--mode", "onnxruntime", "--infer", "--threads",
                   str(args.threads), "--seconds", str(args.seconds), *more]
        made["onnxruntime"] = (command, {})
    return made


def measure(command, settings, limit):
    """The JSON line that a contender prints, or None."""
    try:
        done = subprocess.run(command, env={**os.environ, **settings}, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        print(f"rivals.py: more than {limit} s: {' '.join(command)}", file=sys.stderr)
        return None
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        print(f"rivals.py: {last}: {' '.join(command)}", file=sys.stderr)
        return None
    return json.loads(done.stdout.strip().splitlines()[-1])


def quartiles(rates):
    return statistics.quantiles(rates, n=4, method="inclusive") if len(rates) > 1 else [rates[0]] * 3


def run_case(args, name, case, out):
    (_, _, _, batch, _), infer = case
    running = contenders(args, case)
    rates = {label: [] for label in running}
    peaks = {}
    for round_number in range(args.rounds):
        for label in list(running):
            result = measure(*running[label], args.limit)
            if result is None:
                del running[label], rates[label]
                continue
            rates[label].append(result["images_per_second"])
            peaks[label] = max(peaks.get(label, 0), result["peak_memory_bytes"])
            print(f"{name} round {round_number + 1}: {label}: {result['images_per_second']:.1f}", file=sys.stderr)
    ours = [label for label in rates if label.startswith("mxtrain")]
    rivals = [label for label in rates if label not in ours and label != MXNET]
    if not ours or not rivals:
        print(f"rivals.py: {name}: nothing to compare", file=sys.stderr)
        return
    median = {label: statistics.median(values) for label, values in rates.items()}
    best = max(rivals, key=median.get)
    installed = "eager, default"
    print(f"\n### {name}: {'inference' if infer else 'training'}, batch {batch}\n", file=out)
    print("| | images/s (quartiles) | over as installed | over best | peak memory | over as installed |\n|---|---|---|---|---|---|", file=out)
    for label in sorted(rates, key=median.get, reverse=True):
        low, middle, high = quartiles(rates[label])
        cells = ["", "", f"{peaks[label] / 2**20:.0f} MiB", ""]
        if label in ours:
            cells[1] = f"{median[label] / median[best]:.2f}"
            if installed in median:
                cells[0] = f"{median[label] / median[installed]:.2f}"
                cells[3] = f"{peaks[label] / peaks[installed]:.2f}"
        mark = " (best)" if label == best else ""
        print(f"| {label}{mark} | {middle:.1f} ({low:.1f}, {high:.1f}) | " + " | ".join(cells) + " |", file=out)
    out.flush()


def main():
    table = cases()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", nargs="*", metavar="CASE", help=", ".join(table))
    parser.add_argument("--python", required=True)
    parser.add_argument("--mxnet")
    parser.add_argument("--program", default=os.path.join(ROOT, "build/release/bin/mxtrain"))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--modes", default="fast,exact", help="of train.math")
    parser.add_argument("--rival-modes", default="eager,channels_last,compile,onnxruntime", help="onnxruntime: inference alone")
    parser.add_argument("--allocators", default="default,tuned", help="of the rival")
    parser.add_argument("--limit", type=float, default=600, help="seconds for one process")
    parser.add_argument("--output", help="a file for the tables, instead of stdout")
    args = parser.parse_args()
    names = args.case or [name for name, (_, infer) in table.items() if not infer]
    unknown = [name for name in names if name not in table]
    if unknown:
        parser.error(f"no case {unknown[0]}; there are {', '.join(table)}")
    unknown = [name for name in args.allocators.split(",") if name not in ALLOCATORS]
    if unknown:
        parser.error(f"no allocator {unknown[0]}; there are {', '.join(ALLOCATORS)}")
    out = open(args.output, "a", encoding="utf-8") if args.output else sys.stdout
    cpu = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo", encoding="utf-8") if line.startswith("model name")), platform.machine())
    versions = "import torch, torchvision; print('torch', torch.__version__, 'torchvision', torchvision.__version__)"
    rival = subprocess.run([args.python, "-c", versions], capture_output=True, text=True, check=True).stdout.strip()
    print(f"{cpu}, {args.threads} threads; {rival}; {args.rounds} rounds of {args.seconds:g} s", file=out, flush=True)
    for name in names:
        run_case(args, name, table[name], out)


if __name__ == "__main__":
    main()

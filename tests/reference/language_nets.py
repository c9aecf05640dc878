#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the checks of language models share: a net of transformers beside mxtrain's of the same weights."""
import json
import os
import subprocess
import sys

import numpy
import torch
from safetensors.torch import load_file

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FIRST = 0x4E00                                              # the character of id 0: letters that no tokenizer treats specially


def text_of(ids):
    return "".join(chr(FIRST + int(i)) for i in ids)


def ids_of(text):
    return [ord(c) - FIRST for c in text]


class Ours:
    """What mxtrain makes of a net of one configuration. Its text is the rows, then every character once, which names the tokens."""

    def __init__(self, program, config_file, vocabulary, variables, rows, following, folder):
        """config_file: below configs/. variables: of the configuration, by their names."""
        self.program, self.folder, self.length = program, folder, rows.shape[1]
        self.run = os.path.join(folder, "run")
        os.makedirs(folder, exist_ok=True)
        text = os.path.join(folder, "rows.txt")
        with open(text, "w", encoding="utf-8") as out:
            out.write(text_of(rows.ravel()) + text_of([following]) + text_of(range(vocabulary)) * (1 + self.length // vocabulary))
        self.ids = os.path.join(folder, "ids.npy")
        numpy.save(self.ids, rows.astype(numpy.float32))
        self.command = [program, "train", os.path.join(ROOT, "configs", config_file), "--out", self.run, "--overwrite", "-q",
                        *(f"data.{part}={{source: text, path: {text}}}" for part in ("train", "val")), "data.train.shuffle=false",
                        f"data.batch_size={len(rows)}", "train.lr_schedule=null", "train.clip=null", "train.report_every=1",
                        "vars.dropout=0", f"vars.length={self.length}", *(f"vars.{k}={v}" for k, v in variables.items())]

    def call(self, *arguments, **more):
        done = subprocess.run([self.program, *arguments], capture_output=True, text=True, **more)
        if done.returncode != 0:
            sys.exit(f"{' '.join(done.args)}\n{done.stderr}")
        return done.stdout

    def train(self, weights, *changes):
        self.call(*self.command[1:], f"train.weights.file={weights}", *changes)

    def logits(self):
        """Of the last run."""
        file = os.path.join(self.folder, "scores.npy")
        self.call("infer", self.run, "--input", f"data={self.ids}", "--output-layer", "scores", "--output", file, "--overwrite", "-q")
        return numpy.load(file)

    def parameters(self):
        file = os.path.join(self.folder, "ours.safetensors")
        self.call("export", self.run, file, "--names", "own", "--overwrite", "-q")
        return {name: array.double() for name, array in load_file(file).items()}

    def step(self, weights, rate):
        """The loss, and by the change of the weights the norm of the gradient, of a step of SGD."""
        before = self.parameters()
        self.train(weights, "train.max_steps=1", f"train.optimizer={{name: sgd, lr: {rate}, weight_decay: 0}}")
        with open(os.path.join(self.run, "events.jsonl"), encoding="utf-8") as lines:
            loss, = (event["loss"] for event in map(json.loads, lines) if event["event"] == "step")
        after = self.parameters()
        return loss, sum(float(((after[name] - before[name]) ** 2).sum()) for name in before) ** 0.5 / rate

    def generate(self, prompts, count, *flags):
        file = os.path.join(self.folder, "prompts.txt")
        with open(file, "w", encoding="utf-8") as out:
            out.writelines(text_of(prompt) + "\n" for prompt in prompts)
        lines = self.call("generate", self.run, "--prompts", file, "--temperature", "0", "--max-tokens", str(count), "--json", *flags).splitlines()
        return [ids_of(json.loads(line)["text"]) for line in lines]

    def export(self, net_class):
        """As transformers loads what is exported."""
        folder = os.path.join(self.folder, "exported")
        self.call("export", self.run, os.path.join(folder, "model.safetensors"), "--overwrite", "-q")
        return net_class.from_pretrained(folder).eval()


def greedy(net, prompt, count, window):
    """The tokens after a prompt. As soon as the text does not fit into the window, half of it stays, and the window fills again."""
    ids, step = list(prompt), window - window // 2
    for _ in range(count):
        begin = 0 if len(ids) <= window else -(-(len(ids) - window) // step) * step
        with torch.no_grad():
            ids.append(int(net(torch.tensor([ids[begin:]])).logits[0, -1].argmax()))
    return ids[len(prompt):]


def loss_of(net, rows, following):
    """Of each token of the rows the next one, as a text of them in sequence has it."""
    labels = torch.tensor(numpy.append(rows.ravel()[1:], following))
    return torch.nn.functional.cross_entropy(net(torch.tensor(rows)).logits.flatten(0, 1), labels)


class Limits:
    def __init__(self):
        self.bad = 0

    def check(self, what, off, limit):
        self.bad += not off <= limit
        print(f"  {what}: {off:.1e}{'' if off <= limit else f', MORE THAN {limit:.0e}'}", flush=True)

    def same(self, what, given, wanted):
        self.bad += given != wanted
        print(f"  {what}: {'the same' if given == wanted else f'DIFFERENT: {given}, not {wanted}'}", flush=True)


def check_tokens(ours, net, rows, window, limits):
    prompts, count = [rows[0][:7], rows[2][:window], rows[1][:1]], 2 * window
    wanted = [greedy(net, prompt, count, window) for prompt in prompts]
    limits.same("tokens with caches", ours.generate(prompts, count), wanted)
    limits.same("one after the other", ours.generate(prompts, count, "--batch", "1"), wanted)
    limits.same("on one thread", ours.generate(prompts, count, "--threads", "1"), wanted)
    limits.same("without caches", ours.generate(prompts, count, "--no-cache"), wanted)


def check_weights(ours, net, files, rows, following, limits):
    """files: of the net's weights, by what is said of them. The last run has those of the last file, untrained."""
    with torch.no_grad():
        wanted = net(torch.tensor(rows)).logits.numpy()
    for what, file in files.items():
        ours.train(file, "train.epochs=0")
        limits.check(f"logits, {what}", float(numpy.abs(ours.logits() - wanted).max()), 1e-4)
    loss = loss_of(net, rows, following)
    loss.backward()
    size = sum(float((parameter.grad.double() ** 2).sum()) for parameter in net.parameters()) ** 0.5
    given_loss, given_size = ours.step(file, 0.01)
    limits.check("loss", abs(given_loss - loss.item()) / loss.item(), 1e-5)
    limits.check("norm of the gradient", abs(given_size - size) / size, 1e-4)
    ours.train(file, "train.epochs=0")


def check_export(ours, net_class, rows, limits):
    exported = ours.export(net_class)
    with torch.no_grad():
        limits.check("logits of the export", float(numpy.abs(exported(torch.tensor(rows)).logits.numpy() - ours.logits()).max()), 1e-5)

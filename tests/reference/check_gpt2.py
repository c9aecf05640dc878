#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GPT-2 as Hugging Face's transformers has it, beside configs/text/gpt2_124m.yaml: the same logits, loss, gradient and tokens, in both directions?

  check_gpt2.py [--program PATH]     in an environment with: pip install torch transformers safetensors numpy

Makes nets of several sizes with random weights (nothing is downloaded), saves them as transformers does and as older files are (no prefix, with
the masks of attention), and gives them to `mxtrain train` by train.weights. Where MXTRAIN_DATA_DIR has text/gpt2/tiny.safetensors, its logits and
tokens, they are compared too. Fails where

  a logit is off by more than 1e-4 (of weights and inputs of float32), or the loss of the whole batch by more than 1e-5 of itself;
  the norm of the gradient of a step of SGD, without dropout, is off by more than 1e-4 of itself;
  `mxtrain generate --temperature 0` writes another token than the largest logit of transformers says, also far beyond the window, of which then
  half stays, with caches and without, alone and among other prompts;
  transformers cannot load what `mxtrain export` writes, or gives logits that are off by more than 1e-5.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

import numpy
import torch
from safetensors.torch import load_file, save_file
from transformers import GPT2Config, GPT2LMHeadModel

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ROWS = 3
NETS = {  # as GPT2Config says it
    "tiny": {"vocab_size": 97, "n_positions": 40, "n_embd": 48, "n_layer": 3, "n_head": 6, "activation_function": "gelu_new"},
    "wide": {"vocab_size": 301, "n_positions": 70, "n_embd": 96, "n_layer": 2, "n_head": 3, "activation_function": "gelu_new"},
    "one head": {"vocab_size": 50, "n_positions": 17, "n_embd": 20, "n_layer": 1, "n_head": 1, "activation_function": "gelu"},
}
FIRST = 0x4E00                                              # the character of id 0: letters that no tokenizer treats specially


def text_of(ids):
    return "".join(chr(FIRST + int(i)) for i in ids)


def ids_of(text):
    return [ord(c) - FIRST for c in text]


class Ours:
    """What mxtrain makes of a net of one configuration. Its text is the rows, then every character once, which names the tokens."""

    def __init__(self, program, config, rows, following, folder):
        self.program, self.folder, self.length = program, folder, rows.shape[1]
        self.run = os.path.join(folder, "run")
        os.makedirs(folder, exist_ok=True)
        text = os.path.join(folder, "rows.txt")
        with open(text, "w", encoding="utf-8") as out:
            out.write(text_of(rows.ravel()) + text_of([following]) + text_of(range(config.vocab_size)) * (1 + self.length // config.vocab_size))
        self.ids = os.path.join(folder, "ids.npy")
        numpy.save(self.ids, rows.astype(numpy.float32))
        gelu = {"gelu_new": "tanh", "gelu": "none"}[config.activation_function]
        sizes = {"positions": config.n_positions, "length": self.length, "width": config.n_embd, "heads": config.n_head, "units": config.n_layer}
        self.command = [program, "train", os.path.join(ROOT, "configs/text/gpt2_124m.yaml"), "--out", self.run, "--overwrite", "-q",
                        *(f"data.{part}={{source: text, path: {text}}}" for part in ("train", "val")), "data.train.shuffle=false",
                        f"data.batch_size={len(rows)}", "train.lr_schedule=null", "train.clip=null", "train.report_every=1",
                        "vars.dropout=0", f"vars.gelu={gelu}", *(f"vars.{k}={v}" for k, v in sizes.items())]

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
        self.call("infer", self.run, "--input", f"data={self.ids}", "--output-layer", "scores", "--output", file, "-q")
        return numpy.load(file)

    def parameters(self):
        file = os.path.join(self.folder, "ours.safetensors")
        self.call("export", self.run, file, "--names", "own", "-q")
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

    def export(self):
        folder = os.path.join(self.folder, "exported")
        self.call("export", self.run, os.path.join(folder, "model.safetensors"), "-q")
        return GPT2LMHeadModel.from_pretrained(folder).eval()


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


def save_old(net, path):
    """As files from before the prefix: bare names, and the masks of attention."""
    arrays = {name.removeprefix("transformer."): array.contiguous() for name, array in net.state_dict().items() if name != "lm_head.weight"}
    size = net.config.n_positions
    for i in range(net.config.n_layer):
        arrays[f"h.{i}.attn.bias"] = torch.tril(torch.ones(1, 1, size, size)).to(torch.uint8)
        arrays[f"h.{i}.attn.masked_bias"] = torch.tensor(-1e4)
    save_file(arrays, path)


def random_net(sizes):
    net = GPT2LMHeadModel(GPT2Config(**sizes, bos_token_id=0, eos_token_id=0)).eval()
    for name, parameter in net.named_parameters():
        parameter.data.normal_(1 if "ln_" in name and name.endswith("weight") else 0, 0.15)
    return net


def check_net(sizes, program, folder, limits):
    net = random_net(sizes)
    config, draw = net.config, numpy.random.default_rng(1)
    rows, following = draw.integers(0, config.vocab_size, (ROWS, config.n_positions)), 5
    ours = Ours(program, config, rows, following, folder)
    weights = os.path.join(folder, "saved", "model.safetensors")
    net.save_pretrained(os.path.dirname(weights))
    old = os.path.join(folder, "old.safetensors")
    save_old(net, old)
    with torch.no_grad():
        wanted = net(torch.tensor(rows)).logits.numpy()
    for what, file in (("with prefix", weights), ("without prefix", old)):
        ours.train(file, "train.epochs=0")
        limits.check(f"logits, names {what}", float(numpy.abs(ours.logits() - wanted).max()), 1e-4)
    loss = loss_of(net, rows, following)
    loss.backward()
    size = sum(float((parameter.grad.double() ** 2).sum()) for parameter in net.parameters()) ** 0.5
    given_loss, given_size = ours.step(weights, 0.01)
    limits.check("loss", abs(given_loss - loss.item()) / loss.item(), 1e-5)
    limits.check("norm of the gradient", abs(given_size - size) / size, 1e-4)
    ours.train(weights, "train.epochs=0")
    check_tokens(ours, net, rows, limits)
    exported = ours.export()
    with torch.no_grad():
        limits.check("logits of the export", float(numpy.abs(exported(torch.tensor(rows)).logits.numpy() - ours.logits()).max()), 1e-5)


def check_tokens(ours, net, rows, limits):
    prompts, count = [rows[0][:7], rows[2][:net.config.n_positions], rows[1][:1]], 2 * net.config.n_positions
    wanted = [greedy(net, prompt, count, net.config.n_positions) for prompt in prompts]
    limits.same("tokens with caches", ours.generate(prompts, count), wanted)
    limits.same("one after the other", ours.generate(prompts, count, "--batch", "1"), wanted)
    limits.same("on one thread", ours.generate(prompts, count, "--threads", "1"), wanted)
    limits.same("without caches", ours.generate(prompts, count, "--no-cache"), wanted)


def check_given(given, program, folder, limits):
    """A net whose logits and tokens were computed elsewhere."""
    with open(os.path.join(given, "tiny.config.json"), encoding="utf-8") as text:
        config = GPT2Config(**json.load(text))
    with open(os.path.join(given, "tiny_expected.json"), encoding="utf-8") as text:
        expected = json.load(text)
    rows, wanted = numpy.load(os.path.join(given, "tiny_ids.npy")), numpy.load(os.path.join(given, "tiny_logits.npy"))
    ours = Ours(program, config, rows, 0, folder)
    ours.train(os.path.join(given, "tiny.safetensors"), "train.epochs=0")
    logits = ours.logits()
    limits.check("logits", float(numpy.abs(logits - wanted).max()), 1e-4)
    loss = torch.nn.functional.cross_entropy(torch.tensor(logits[:, :-1]).flatten(0, 1), torch.tensor(rows[:, 1:]).flatten()).item()
    limits.check("loss of the next tokens", abs(loss - expected["loss_next_token_mean"]), 1e-5)
    tokens = expected["greedy_from_first_8_ids_of_row_0"]
    prompt = rows[0][:8]
    tokens = tokens[8:] if tokens[:8] == prompt.tolist() else tokens
    for flags in ((), ("--no-cache",)):
        limits.same(f"tokens {' '.join(flags)}", ours.generate([prompt], len(tokens), *flags), [tokens])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=os.path.join(ROOT, "build/release/bin/mxtrain"))
    args = parser.parse_args()
    torch.manual_seed(1)
    torch.set_num_threads(1)                                # these nets are small
    limits = Limits()
    given = os.path.join(os.environ.get("MXTRAIN_DATA_DIR", ""), "text/gpt2")
    with tempfile.TemporaryDirectory() as folder:
        for name, sizes in NETS.items():
            print(name)
            check_net(sizes, args.program, os.path.join(folder, name.replace(" ", "_")), limits)
        if os.path.exists(os.path.join(given, "tiny.safetensors")):
            print(given)
            check_given(given, args.program, os.path.join(folder, "given"), limits)
    sys.exit(1 if limits.bad else 0)


if __name__ == "__main__":
    main()

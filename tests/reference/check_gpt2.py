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
import sys
import tempfile

import numpy
import torch
from safetensors.torch import save_file
from transformers import GPT2Config, GPT2LMHeadModel

from language_nets import ROOT, Limits, Ours, check_export, check_tokens, check_weights

ROWS = 3
NETS = {  # as GPT2Config says it
    "tiny": {"vocab_size": 97, "n_positions": 40, "n_embd": 48, "n_layer": 3, "n_head": 6, "activation_function": "gelu_new"},
    "wide": {"vocab_size": 301, "n_positions": 70, "n_embd": 96, "n_layer": 2, "n_head": 3, "activation_function": "gelu_new"},
    "one head": {"vocab_size": 50, "n_positions": 17, "n_embd": 20, "n_layer": 1, "n_head": 1, "activation_function": "gelu"},
}
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


def variables_of(config):
    gelu = {"gelu_new": "tanh", "gelu": "none"}[config.activation_function]
    return {"positions": config.n_positions, "width": config.n_embd, "heads": config.n_head, "units": config.n_layer, "gelu": gelu}


def check_net(sizes, program, folder, limits):
    net = random_net(sizes)
    config, draw = net.config, numpy.random.default_rng(1)
    rows, following = draw.integers(0, config.vocab_size, (ROWS, config.n_positions)), 5
    ours = Ours(program, "text/gpt2_124m.yaml", config.vocab_size, variables_of(config), rows, following, folder)
    weights = os.path.join(folder, "saved", "model.safetensors")
    net.save_pretrained(os.path.dirname(weights))
    old = os.path.join(folder, "old.safetensors")
    save_old(net, old)
    check_weights(ours, net, {"names without prefix": old, "names with prefix": weights}, rows, following, limits)
    check_tokens(ours, net, rows, config.n_positions, limits)
    check_export(ours, GPT2LMHeadModel, rows, limits)


def check_given(given, program, folder, limits):
    """A net whose logits and tokens were computed elsewhere."""
    with open(os.path.join(given, "tiny.config.json"), encoding="utf-8") as text:
        config = GPT2Config(**json.load(text))
    with open(os.path.join(given, "tiny_expected.json"), encoding="utf-8") as text:
        expected = json.load(text)
    rows, wanted = numpy.load(os.path.join(given, "tiny_ids.npy")), numpy.load(os.path.join(given, "tiny_logits.npy"))
    ours = Ours(program, "text/gpt2_124m.yaml", config.vocab_size, variables_of(config), rows, 0, folder)
    ours.train(os.path.join(given, "tiny.safetensors"), "train.epochs=0")
    logits = ours.logits()
    limits.check("logits", float(numpy.abs(logits - wanted).max()), 1e-4)
    loss = torch.nn.functional.cross_entropy(torch.tensor(logits[:, :-1]).flatten(0, 1), torch.tensor(rows[:, 1:]).flatten().long()).item()
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

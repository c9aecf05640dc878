#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Llama-like nets as Hugging Face's transformers has them, beside configs/text/llama.yaml: the same logits, loss, gradient and tokens, in both
directions?

  check_llama.py [--program PATH]     in an environment with: pip install torch transformers safetensors numpy

Makes nets of several sizes with random weights (nothing is downloaded): with and without heads that share keys, with one weight for embedding and
output and two, with other depths of heads than width / heads, and with a sliding window (Mistral). Fails where

  a logit is off by more than 1e-4 (of weights and inputs of float32), or the loss of the whole batch by more than 1e-5 of itself;
  the norm of the gradient of a step of SGD is off by more than 1e-4 of itself;
  `mxtrain generate --temperature 0` writes another token than the largest logit of transformers says, also far beyond the window, of which then
  half stays, with caches and without, alone and among other prompts;
  transformers cannot load what `mxtrain export` writes, or gives logits that are off by more than 1e-5;
  a config.json that the net is not as is not refused, with its key.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

import numpy
import torch
from transformers import LlamaConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM

from language_nets import ROOT, Limits, Ours, check_export, check_tokens, check_weights

ROWS = 3
NETS = {  # as LlamaConfig says it; LENGTH is ours
    "shared keys, tied": {"vocab_size": 97, "hidden_size": 48, "intermediate_size": 80, "num_hidden_layers": 3, "num_attention_heads": 6,
                          "num_key_value_heads": 2, "rope_theta": 100000.0, "tie_word_embeddings": True, "LENGTH": 40},
    "one key each": {"vocab_size": 301, "hidden_size": 96, "intermediate_size": 256, "num_hidden_layers": 2, "num_attention_heads": 3,
                     "num_key_value_heads": 3, "rms_norm_eps": 1e-6, "LENGTH": 70},
    "one key for all, deep heads": {"vocab_size": 50, "hidden_size": 20, "intermediate_size": 28, "num_hidden_layers": 1, "num_attention_heads": 4,
                                    "num_key_value_heads": 1, "head_dim": 12, "LENGTH": 17},
    "sliding window": {"vocab_size": 97, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4,
                       "num_key_value_heads": 2, "sliding_window": 9, "LENGTH": 40},
}
REFUSED = {  # changes of a config.json, and what the error names
    "rope_theta": ({"rope_theta": 5000.0, "rope_parameters": None}, "rope_theta is 5000"),
    "scaled rotation": ({"rope_scaling": {"rope_type": "llama3", "factor": 8.0}}, "'llama3'"),
    "linear rotation, by its old name": ({"rope_scaling": {"type": "linear", "factor": 2.0}}, "'linear'"),
    "heads of keys": ({"num_key_value_heads": 1}, "num_key_value_heads is 1"),
    "eps": ({"rms_norm_eps": 1e-3}, "rms_norm_eps is 0.001"),
    "biases of attention": ({"attention_bias": True}, "attention_bias"),
    "biases of mlps": ({"mlp_bias": True}, "mlp_bias"),
    "activation": ({"hidden_act": "gelu"}, "hidden_act"),
    "tie": ({"tie_word_embeddings": False}, "tie_word_embeddings"),
    "another kind": ({"model_type": "qwen2"}, "model_type is 'qwen2'"),
    "quantized": ({"quantization_config": {"bits": 4}}, "quantization_config"),
}


def random_net(sizes):
    more = {k: v for k, v in sizes.items() if k != "LENGTH"}
    more = {"rms_norm_eps": 1e-5, "max_position_embeddings": sizes["LENGTH"], "bos_token_id": 0, "eos_token_id": 0, **more}
    made = MistralForCausalLM(MistralConfig(**more)) if "sliding_window" in sizes else LlamaForCausalLM(LlamaConfig(**more))
    for name, parameter in made.named_parameters():
        parameter.data.normal_(1 if "norm" in name else 0, 0.1)
    return made.eval()


def variables_of(net, sizes):
    config = net.config
    return {"width": config.hidden_size, "heads": config.num_attention_heads, "key_heads": config.num_key_value_heads,
            "depth": sizes.get("head_dim") or config.hidden_size // config.num_attention_heads, "hidden": config.intermediate_size,
            "units": config.num_hidden_layers, "base": int(sizes.get("rope_theta", 10000)), "norm_eps": config.rms_norm_eps,
            "tied": str(config.tie_word_embeddings).lower(), "sliding_window": sizes.get("sliding_window")}


def check_refusals(ours, weights, limits):
    folder = os.path.join(ours.folder, "other")
    os.makedirs(folder)
    other = shutil.copy(weights, folder)
    with open(os.path.join(os.path.dirname(weights), "config.json"), encoding="utf-8") as text:
        config = json.load(text)
    for what, (changes, named) in REFUSED.items():
        with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as out:
            json.dump({**config, **changes}, out)
        done = subprocess.run([*ours.command, f"train.weights.file={other}", "train.epochs=0"], capture_output=True, text=True)
        limits.same(f"refused: {what}", done.returncode == 3 and named in done.stderr or (done.returncode, done.stderr), True)


def check_net(sizes, program, folder, limits):
    net = random_net(sizes)
    rows, following = numpy.random.default_rng(1).integers(0, sizes["vocab_size"], (ROWS, sizes["LENGTH"])), 5
    ours = Ours(program, "text/llama.yaml", sizes["vocab_size"], variables_of(net, sizes), rows, following, folder)
    weights = os.path.join(folder, "saved", "model.safetensors")
    net.save_pretrained(os.path.dirname(weights))
    check_weights(ours, net, {"as transformers saves them": weights}, rows, following, limits)
    check_tokens(ours, net, rows, sizes["LENGTH"], limits)
    check_export(ours, type(net), rows, limits)
    if sizes.get("tie_word_embeddings"):
        check_refusals(ours, weights, limits)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=os.path.join(ROOT, "build/release/bin/mxtrain"))
    args = parser.parse_args()
    torch.manual_seed(1)
    torch.set_num_threads(1)                                # these nets are small
    limits = Limits()
    with tempfile.TemporaryDirectory() as folder:
        for name, sizes in NETS.items():
            print(name, flush=True)
            check_net(sizes, args.program, os.path.join(folder, name.replace(" ", "_").replace(",", "")), limits)
    sys.exit(1 if limits.bad else 0)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GGUF files that `mxtrain export` writes: does llama.cpp split texts and continue them as mxtrain does?

  check_gguf.py [--program PATH]     in an environment with: pip install llama-cpp-python gguf numpy

Trains byte-level BPE and small nets (Llama's form with and without heads that share keys, tied and not; GPT-2's) on a text that it writes, and exports them
as float32, float16 and bfloat16. Fails where

  llama.cpp has other ids of a text than `mxtrain tokenize`;
  a text of 24 tokens after one of several prompts, with the most probable token each time, is another (in float32; in the other types its first eight
  characters);
  an array that the package gguf reads is not that of the net, as `mxtrain export` writes it to a .safetensors file, rounded to the type.
"""
import argparse
import json
import os
import random
import struct
import subprocess
import sys
import tempfile

import numpy
from gguf import GGUFReader
from llama_cpp import Llama

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NETS = {
    "llama, shared keys": ("llama.yaml", {"width": 64, "heads": 4, "key_heads": 2, "hidden": 96, "units": 2, "base": 5000}),
    "llama, one key each, untied": ("llama.yaml", {"width": 48, "heads": 3, "key_heads": 3, "hidden": 64, "units": 3, "tied": "false"}),
    "llama, deep heads": ("llama.yaml", {"width": 64, "heads": 2, "key_heads": 1, "depth": 48, "hidden": 96, "units": 1}),
    "gpt2": ("gpt2_124m.yaml", {"width": 64, "heads": 4, "units": 2, "positions": 80, "dropout": 0}),
}
LENGTH, TOKENS = 64, 24
PROMPTS = ["The first of", "Seven birds, and 12 of", "nine", "It's what we'll see: 2024 ways,\n  indeed. A", "\u00dcber 30\u00b0, na\u00efve \u2014 \u4e2d"]


def write_text(path):
    words = "the a of and in bird birds tree river stone first second seven nine walks sees takes small old green it's we'll they're 12 305 \u00fcber na\u00efve".split()
    draw = random.Random(1)
    with open(path, "w", encoding="utf-8") as out:
        for _ in range(3000):
            line = " ".join(draw.choice(words) for _ in range(draw.randint(3, 12)))
            out.write(line.capitalize() + draw.choice([".", "!", ", ", ": \u00b0"]) + draw.choice(["\n", " ", "\n\n"]))


def arrays_of(path):
    """Of a .safetensors file."""
    with open(path, "rb") as file:
        size, = struct.unpack("<Q", file.read(8))
        header, data = json.loads(file.read(size)), file.read()
    header.pop("__metadata__", None)
    return {name: numpy.frombuffer(data[slice(*of["data_offsets"])], numpy.float32).reshape(of["shape"]) for name, of in header.items()}


def rounded(array, kind):
    if kind == "float16":
        return array.astype(numpy.float16).astype(numpy.float32)
    if kind == "bfloat16":
        bits = array.view(numpy.uint32).astype(numpy.uint64)
        return ((bits + 0x7FFF + (bits >> 16 & 1) >> 16).astype(numpy.uint32) << 16).view(numpy.float32)
    return array


class Check:
    def __init__(self, program, folder):
        self.program, self.folder, self.bad = program, folder, 0

    def call(self, *arguments):
        done = subprocess.run([self.program, *arguments], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(done.args)}\n{done.stderr}")
        return done.stdout

    def say(self, what, good, detail=""):
        self.bad += not good
        print(f"  {what}: {'as it should be' if good else 'DIFFERENT ' + detail}", flush=True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def generated(self, run, prompt):
        prompts = self.path("prompt.txt")
        with open(prompts, "w", encoding="utf-8") as out:
            out.write(prompt)
        return json.loads(self.call("generate", run, "--prompt-file", prompts, "--temperature", "0", "--max-tokens", str(TOKENS), "--json"))["text"]

    def train(self, name, config, variables):
        run = self.path(name)
        self.call("train", os.path.join(ROOT, "configs/text", config), "--out", run, "-q", "train.epochs=1", "train.max_steps=150", "data.batch_size=8",
                  f"data.train={{source: text, path: {self.path('text.txt')}, tokenizer_file: {self.path('tokenizer.json')}, shuffle: true}}",
                  f"data.val={{source: text, path: {self.path('text.txt')}}}", "train.optimizer={name: adamw, lr: 0.003}", "train.lr_schedule=null",
                  f"vars.length={LENGTH}", *(f"vars.{k}={v}" for k, v in variables.items()))
        return run

    def check_arrays(self, run, file, kind, variables):
        own = self.path("own.safetensors")
        self.call("export", run, own, "--names", "huggingface", "--overwrite", "-q")
        theirs, reader = arrays_of(own), GGUFReader(file)
        found = {}
        for tensor in reader.tensors:
            raw = tensor.data
            if tensor.tensor_type.name == "BF16":
                raw = (numpy.frombuffer(raw.tobytes(), numpy.uint16).astype(numpy.uint32) << 16).view(numpy.float32)
            found[tensor.name] = raw.astype(numpy.float32).reshape([int(n) for n in reversed(tensor.shape)])
        wanted = {}
        for name, array in theirs.items():
            name = name.removeprefix("model.").removeprefix("transformer.")
            for a, b in (("embed_tokens.", "token_embd."), ("wte.", "token_embd."), ("wpe.", "position_embd."), ("lm_head.", "output."), ("layers.", "blk."),
                         ("input_layernorm", "attn_norm"), ("post_attention_layernorm", "ffn_norm"), ("self_attn.o_proj", "attn_output"),
                         ("self_attn.", "attn_"), ("mlp.c_fc", "ffn_up"), ("mlp.c_proj", "ffn_down"), ("attn.c_attn", "attn_qkv"),
                         ("attn.c_proj", "attn_output"), ("mlp.", "ffn_"), ("_proj", ""), ("ln_1", "attn_norm"), ("ln_2", "ffn_norm"),
                         ("ln_f", "output_norm")):
                name = name.replace(a, b)
            name = "output_norm.weight" if name == "norm.weight" else "blk." + name[2:] if name.startswith("h.") else name
            matrix = array.ndim == 2 and "position" not in name
            if array.ndim == 2 and name.startswith("blk.") and "position_embd.weight" in map(str, found):
                array = array.T                                       # Conv1D
            for key, heads in (("attn_q.", variables.get("heads")), ("attn_k.", variables.get("key_heads"))):
                if key in name:                                       # as llama.cpp's convert_hf_to_gguf.py permutes
                    array = array.reshape(heads, 2, -1, array.shape[1]).swapaxes(1, 2).reshape(array.shape)
            wanted[name] = rounded(numpy.ascontiguousarray(array), kind) if matrix else array
        if "output.weight" not in wanted and "output.weight" in found:
            wanted["output.weight"] = wanted["token_embd.weight"]
        self.say(f"names of arrays, {kind}", sorted(wanted) == sorted(found), f"{sorted(set(wanted) ^ set(found))}")
        wrong = [name for name in wanted if name in found and not numpy.array_equal(wanted[name], found[name])]
        self.say(f"arrays, {kind}", not wrong, f"{wrong}")

    def check_net(self, name, config, variables):
        print(name, flush=True)
        run = self.train(name.replace(" ", "_").replace(",", ""), config, variables)
        texts = {prompt: self.generated(run, prompt) for prompt in PROMPTS}
        for kind in ("float32", "float16", "bfloat16"):
            file = self.path("net.gguf")
            self.call("export", run, file, "--type", kind, "--overwrite", "-q")
            self.check_arrays(run, file, kind, variables)
            theirs = Llama(model_path=file, n_ctx=LENGTH, n_threads=1, verbose=False)
            for prompt, text in texts.items():
                given = theirs.create_completion(prompt, max_tokens=TOKENS, temperature=0.0, top_k=1)["choices"][0]["text"]
                same = given == text if kind == "float32" else given[:8] == text[:8]
                self.say(f"the text after {prompt!r}, {kind}", same, f"{given!r}, not {text!r}")
            if kind == "float32":
                self.check_ids(theirs)

    def check_ids(self, theirs):
        for sample in (*PROMPTS, open(self.path("text.txt"), encoding="utf-8").read()[:2000]):
            with open(self.path("sample.txt"), "w", encoding="utf-8") as out:
                out.write(sample)
            tokens = self.path("sample.tokens")
            self.call("tokenize", self.path("sample.txt"), "--tokenizer", self.path("tokenizer.json"), "--output", tokens, "--overwrite", "-q")
            self.say(f"ids of {sample[:20]!r}", theirs.tokenize(sample.encode(), add_bos=False) == ids_in(tokens))


def ids_in(path):
    """Of a token file of one document, as lib/mxtrain/text/token_file.h describes it."""
    with open(path, "rb") as file:
        data = file.read()
    width, = struct.unpack_from("<I", data, 12)
    text, = struct.unpack_from("<Q", data, 24)
    count, = struct.unpack_from("<Q", data, len(data) - 40)
    begin = (64 + text + 63) // 64 * 64
    return [int(i) for i in numpy.frombuffer(data, {2: numpy.uint16, 4: numpy.uint32}[width], count, begin)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=os.path.join(ROOT, "build/release/bin/mxtrain"))
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        check = Check(args.program, folder)
        write_text(check.path("text.txt"))
        check.call("tokenize", check.path("text.txt"), "--train", "400", "--save", check.path("tokenizer.json"), "-q")
        for name, (config, variables) in NETS.items():
            check.check_net(name, config, variables)
        sys.exit(1 if check.bad else 0)


if __name__ == "__main__":
    main()

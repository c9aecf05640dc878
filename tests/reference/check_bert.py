#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""BERT with a classifier as Hugging Face's transformers has it, beside configs/text/bert_base.yaml: the same logits of texts, the same loss and step,
and the same logits of what `mxtrain export` writes?

  check_bert.py [--program PATH]     in an environment with: pip install torch transformers tokenizers safetensors numpy

Makes nets of several sizes with random weights and a WordPiece tokenizer of a few words (nothing is downloaded), and texts of other lengths, some of them
longer than the net reads. Fails where

  a logit is off by more than 1e-4, of texts that transformers pads to the longest and mxtrain to its length;
  the loss of a batch is off by more than 1e-5 of itself, or the norm of the gradient of a step of SGD, without dropout, by more than 1e-4 of itself;
  transformers cannot load what is exported, or gives logits that are off by more than 1e-5;
  a config.json that the net is not as is not refused, with its key.
"""
import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile

import numpy
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

from language_nets import ROOT, Limits

CLASSES = ["city", "number", "person"]
WORDS = "who where what is are the a of in how many people city number 1 2 ? , . ##s ##ing walk river tower \u00fcber uber".split()
NETS = {
    "tiny": ({"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64, "max_position_embeddings": 40}, 24),
    "wide": ({"hidden_size": 96, "num_hidden_layers": 3, "num_attention_heads": 3, "intermediate_size": 200, "max_position_embeddings": 16,
              "hidden_act": "gelu_new", "layer_norm_eps": 1e-6}, 16),
    "one head": ({"hidden_size": 20, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 28, "max_position_embeddings": 30,
                  "type_vocab_size": 1}, 9),
}
REFUSED = {
    "heads": ({"num_attention_heads": 2}, "num_attention_heads is 2"),
    "eps": ({"layer_norm_eps": 1e-3}, "layer_norm_eps is 0.001"),
    "activation": ({"hidden_act": "relu"}, "hidden_act is relu"),
    "relative positions": ({"position_embedding_type": "relative_key"}, "position_embedding_type"),
    "another kind": ({"model_type": "roberta"}, "model_type is 'roberta'"),
}


def save_tokenizer(path):
    vocabulary = {token: i for i, token in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS])}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.add_special_tokens(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    tokenizer.save(path)
    return len(vocabulary)


def write_texts(path, draw, count):
    rows = []
    for i in range(count):
        words = [draw.choice([*(w for w in WORDS if not w.startswith("#")), "walks", "Towers", "unknown"]) for _ in range(draw.randint(1, 30))]
        rows.append((" ".join(words), draw.choice(CLASSES) if i >= len(CLASSES) else CLASSES[i]))
    with open(path, "w", encoding="utf-8") as out:
        out.write("text\tlabel\n" + "".join(f"{text}\t{label}\n" for text, label in rows))
    return rows


class Ours:
    def __init__(self, program, folder, sizes, length, batch):
        self.program, self.folder, self.run = program, folder, os.path.join(folder, "run")
        gelu = "tanh" if sizes.get("hidden_act") == "gelu_new" else "none"
        variables = {"length": length, "positions": sizes["max_position_embeddings"], "width": sizes["hidden_size"], "heads": sizes["num_attention_heads"],
                     "hidden": sizes["intermediate_size"], "units": sizes["num_hidden_layers"], "kinds": sizes.get("type_vocab_size", 2), "dropout": 0,
                     "gelu": gelu, "norm_eps": sizes.get("layer_norm_eps", 1e-12)}
        path = os.path.join(folder, "texts.tsv")
        self.command = [program, "train", os.path.join(ROOT, "configs/text/bert_base.yaml"), "--out", self.run, "--overwrite", "-q",
                        f"data.train={{source: labelled_text, path: {path}, tokenizer_file: {folder}/tokenizer.json, special_tokens: true}}",
                        f"data.val={{source: labelled_text, path: {path}}}", f"data.batch_size={batch}", "train.lr_schedule=null", "train.clip=null",
                        "train.report_every=1", *(f"vars.{k}={v}" for k, v in variables.items())]

    def call(self, *arguments):
        done = subprocess.run([self.program, *arguments], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(done.args)}\n{done.stderr}")
        return done.stdout

    def train(self, weights, *changes):
        self.call(*self.command[1:], f"train.weights.file={weights}", *changes)

    def logits(self):
        file = os.path.join(self.folder, "scores.npy")
        self.call("infer", self.run, os.path.join(self.folder, "texts.tsv"), "--output-layer", "scores", "--output", file, "--overwrite", "-q")
        return numpy.load(file)

    def parameters(self):
        file = os.path.join(self.folder, "own.safetensors")
        self.call("export", self.run, file, "--names", "own", "--overwrite", "-q")
        return {name: array.double() for name, array in load_file(file).items()}

    def step(self, weights, rate):
        before = self.parameters()
        self.train(weights, "train.max_steps=1", f"train.optimizer={{name: sgd, lr: {rate}, weight_decay: 0}}")
        with open(os.path.join(self.run, "events.jsonl"), encoding="utf-8") as lines:
            loss, = (event["loss"] for event in map(json.loads, lines) if event["event"] == "step")
        after = self.parameters()
        return loss, sum(float(((after[name] - before[name]) ** 2).sum()) for name in before) ** 0.5 / rate


def random_net(sizes, vocabulary):
    more = {"layer_norm_eps": 1e-12, **sizes}
    net = BertForSequenceClassification(BertConfig(vocab_size=vocabulary, num_labels=len(CLASSES), **more)).eval()
    for name, parameter in net.named_parameters():
        parameter.data.normal_(1 if "LayerNorm.weight" in name else 0, 0.2)
    return net


def check_net(sizes, length, program, folder, limits):
    os.makedirs(folder)
    vocabulary = save_tokenizer(os.path.join(folder, "tokenizer.json"))
    rows = write_texts(os.path.join(folder, "texts.tsv"), random.Random(1), 12)
    net = random_net(sizes, vocabulary)
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=os.path.join(folder, "tokenizer.json"), pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]")
    given = tokenizer([text for text, _ in rows], padding=True, truncation=True, max_length=length, return_tensors="pt")
    given.pop("token_type_ids", None)
    labels = torch.tensor([CLASSES.index(label) for _, label in rows])
    ours = Ours(program, folder, sizes, length, len(rows))
    weights = os.path.join(folder, "saved", "model.safetensors")
    net.save_pretrained(os.path.dirname(weights))
    bare = os.path.join(folder, "bare.safetensors")                 # as of BertModel, with the names of older files
    save_file({name.removeprefix("bert.").replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): array.contiguous()
               for name, array in net.state_dict().items()}, bare)
    with torch.no_grad():
        wanted = net(**given).logits.numpy()
    for what, file in (("names of BertModel", bare), ("names with prefix", weights)):
        ours.train(file, "train.epochs=0")
        limits.check(f"logits, {what}", float(numpy.abs(ours.logits() - wanted).max()), 1e-4)
    loss = torch.nn.functional.cross_entropy(net(**given).logits, labels)
    loss.backward()
    size = sum(float((parameter.grad.double() ** 2).sum()) for parameter in net.parameters()) ** 0.5
    given_loss, given_size = ours.step(weights, 0.01)
    limits.check("loss", abs(given_loss - loss.item()) / loss.item(), 1e-5)
    limits.check("norm of the gradient", abs(given_size - size) / size, 1e-4)
    ours.train(weights, "train.epochs=0")
    exported_to = os.path.join(folder, "exported")
    ours.call("export", ours.run, os.path.join(exported_to, "model.safetensors"), "--overwrite", "-q")
    exported = BertForSequenceClassification.from_pretrained(exported_to).eval()
    with torch.no_grad():
        limits.check("logits of the export", float(numpy.abs(exported(**given).logits.numpy() - ours.logits()).max()), 1e-5)
    limits.same("names of classes", exported.config.id2label, dict(enumerate(CLASSES)))
    check_refusals(ours, weights, limits)


def check_refusals(ours, weights, limits):
    folder = os.path.join(ours.folder, "other")
    os.makedirs(folder)
    other = shutil.copy(weights, folder)
    with open(os.path.join(os.path.dirname(weights), "config.json"), encoding="utf-8") as text:
        config = json.load(text)
    for what, (changes, named) in REFUSED.items():
        if all(config.get(key) == value for key, value in changes.items()):
            continue
        with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as out:
            json.dump({**config, **changes}, out)
        done = subprocess.run([*ours.command, f"train.weights.file={other}", "train.epochs=0"], capture_output=True, text=True)
        limits.same(f"refused: {what}", done.returncode == 3 and named in done.stderr or (done.returncode, done.stderr), True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=os.path.join(ROOT, "build/release/bin/mxtrain"))
    args = parser.parse_args()
    torch.manual_seed(1)
    torch.set_num_threads(1)                                        # these nets are small
    limits = Limits()
    with tempfile.TemporaryDirectory() as folder:
        for name, (sizes, length) in NETS.items():
            print(name, flush=True)
            check_net(sizes, length, args.program, os.path.join(folder, name.replace(" ", "_")), limits)
    sys.exit(1 if limits.bad else 0)


if __name__ == "__main__":
    main()

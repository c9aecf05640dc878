#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tokenizers: the same ids, texts and merges as the package `tokenizers`?

  check_tokenizers.py --tool BUILD/bin/text_tool [--megabytes 10] [--seed 1]     in an environment with: pip install tokenizers

Compares GPT-2, byte-level BPE that both train, BERT-like WordPiece, and tokenizer.json files with other parts, on mixed text: the files of
MXTRAIN_DATA_DIR/text (else data/text), sources of this project, and generated text of many scripts, emoji, combining marks, line ends, digits. Prints
a line for each with the speed of both on one core, and fails where anything differs. Generated characters are those that Unicode 3.2 knows and has
in the same category as today, and emoji: the two programs have different versions of Unicode.
"""
import argparse
import json
import os
import random
import struct
import subprocess
import sys
import tempfile
import time
import unicodedata

os.environ["TOKENIZERS_PARALLELISM"] = "false"
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
END = 0xFFFFFFFF
CL100K = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")


def settled_characters():
    """Of Unicode 3.2, in the category of today; no controls but line ends and tabs."""
    old = unicodedata.ucd_3_2_0
    return [chr(c) for c in range(0x20, 0x30000) if not 0xD800 <= c <= 0xDFFF
            and old.category(chr(c)) == unicodedata.category(chr(c)) and unicodedata.category(chr(c)) not in ("Cn", "Cs", "Co", "Cc")]


def generated_text(rng, characters):
    """One document."""
    emoji = ["\U0001f600", "\U0001f44d\U0001f3fd", "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\u2764\ufe0f", "\U0001f1e9\U0001f1ea"]
    blocks = {}
    for c in characters:
        blocks.setdefault(ord(c) >> 7, []).append(c)
    blocks = list(blocks.values())
    parts = []
    for _ in range(rng.randrange(50, 400)):
        kind = rng.randrange(12)
        if kind < 5:
            block = rng.choice(blocks)
            parts.append("".join(rng.choice(block) for _ in range(rng.randrange(1, 12))))
        elif kind == 5:
            parts.append(rng.choice(emoji))
        elif kind == 6:
            parts.append(rng.choice("aeioun") + "".join(rng.choice("\u0301\u0308\u0323\u0327") for _ in range(rng.randrange(1, 3))))
        elif kind == 7:
            parts.append(str(rng.randrange(10 ** rng.randrange(1, 20))))
        elif kind == 8:
            parts.append(rng.choice(["don't", "we'LL", "it's", "I'M", "they've", "x'\u017f", "'", "''s"]))
        elif kind == 9:
            parts.append(rng.choice(["\r\n", "\n\n", "\t\t", "   ", "\u00a0", "\u3000", "\u2028", "\n \n", "  \r\n  "]))
        elif kind == 10:
            parts.append("".join(rng.choice(characters) for _ in range(rng.randrange(1, 8))))
        else:
            parts.append(rng.choice(["if(a<b){", "return x[i]++;", "// ===", "#include <x>", "a_b->c", "[CLS]", "<|endoftext|>", "<s>", "\u4e2d\u6587\u5b57"]))
        if rng.randrange(3):
            parts.append(" ")
    return "".join(parts)


def mixed_documents(folder, megabytes, rng):
    documents = []
    roots = [folder, os.path.join(ROOT, "lib")]
    for top in roots:
        for base, _, names in os.walk(top):
            for name in sorted(names):
                if name.endswith((".txt", ".csv", ".tsv", ".cc", ".h", ".md", ".json")) and "tiny" not in name:
                    text = open(os.path.join(base, name), encoding="utf-8", newline="").read()
                    documents += [text[i:i + 5000] for i in range(0, min(len(text), 1_500_000), 5000)]
    rng.shuffle(documents)
    characters = settled_characters()
    chosen, size, limit = [], 0, int(megabytes * 1e6)
    while size < limit * 0.8 and documents:
        chosen.append(documents.pop())
        size += len(chosen[-1].encode())
    while size < limit:
        chosen.append(generated_text(rng, characters))
        size += len(chosen[-1].encode())
    rng.shuffle(chosen)
    return chosen


class Ours:
    def __init__(self, tool, folder):
        self.tool, self.folder = tool, folder

    def path(self, name):
        return os.path.join(self.folder, name)

    def run(self, *args):
        return subprocess.run([self.tool, *args], stdout=subprocess.PIPE, check=True).stdout

    def write(self, documents):
        with open(self.path("documents"), "wb") as f:
            for text in documents:
                f.write(text.encode() + b"\xff")
        return self.path("documents")

    def encode(self, tokenizer, documents, special=False):
        out = self.run("encode", tokenizer, self.write(documents), *(["special"] if special else []))
        ids = struct.unpack(f"<{len(out) // 4}I", out)
        lists, now = [], []
        for i in ids:
            if i == END:
                lists.append(now)
                now = []
            else:
                now.append(i)
        return lists

    def decode(self, tokenizer, ids):
        with open(self.path("ids"), "wb") as f:
            f.write(struct.pack(f"<{len(ids)}I", *ids))
        return self.run("decode", tokenizer, self.path("ids"))

    def speed(self, tokenizer, documents):
        lines = self.run("time", tokenizer, self.write(documents)).decode().splitlines()
        return max(float(line.split(", ")[1].split()[0]) for line in lines)


def compare(name, theirs, path, ours, documents, failures, speed=True):
    """The same ids, of special tokens as text and as tokens with what stands around a text; the same text again."""
    theirs.encode_special_tokens = True
    begin = time.process_time()
    expected = [e.ids for e in theirs.encode_batch(documents, add_special_tokens=False)]
    seconds = time.process_time() - begin
    size = sum(len(d.encode()) for d in documents) * 1e-6
    problems = []

    def same(what, a, b):
        wrong = [i for i in range(len(b)) if a[i] != b[i]]
        if len(a) != len(b) or wrong:
            problems.append(f"{what}: {len(wrong)} of {len(b)} differ")
            for i in wrong[:2]:
                at = next((k for k in range(min(len(a[i]), len(b[i]))) if a[i][k] != b[i][k]), 0)
                tokens = [theirs.id_to_token(t) for t in b[i][max(at - 3, 0):at + 5]], [theirs.id_to_token(t) for t in a[i][max(at - 3, 0):at + 5]]
                problems.append(f"    {ascii(documents[i][:40])}: theirs {ascii(tokens[0])}, ours {ascii(tokens[1])}")

    same("ids", ours.encode(path, documents), expected)
    theirs.encode_special_tokens = False
    sample = documents[:200]
    with_special = [e.ids for e in theirs.encode_batch(sample)]
    same("ids with special tokens", ours.encode(path, sample, special=True), with_special)
    for ids in with_special[:50]:
        text = theirs.decode(ids, skip_special_tokens=False)
        mine = ours.decode(path, ids).decode(errors="replace")
        if mine != text:
            at = next((i for i, (a, b) in enumerate(zip(mine, text)) if a != b), min(len(mine), len(text)))
            problems.append(f"decoded text: theirs {ascii(text[max(at - 10, 0):at + 20])}, ours {ascii(mine[max(at - 10, 0):at + 20])}")
            break
    rates = f"{ours.speed(path, documents):8.1f} MB/s, tokenizers {size / seconds:6.1f} MB/s" if speed else ""
    print(f"{name:34} {sum(map(len, expected)):9} ids  {'DIFFERENT' if problems else 'same'}  {rates}", flush=True)
    for problem in problems:
        print("   ", problem)
    failures += problems


def byte_level(model, special=()):
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(list(special))
    return tokenizer


def save(tokenizer, path):
    tokenizer.save(path)
    return path


def check_training(ours, documents, size, minimum, failures):
    """The same vocabulary and merges; the package loads our file, and gives the same ids with it."""
    trainer = trainers.BpeTrainer(vocab_size=size, min_frequency=minimum, special_tokens=["<|endoftext|>"], show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    theirs = byte_level(models.BPE())
    begin = time.process_time()
    theirs.train_from_iterator(documents, trainer)
    their_seconds = time.process_time() - begin
    source = ours.write(documents)
    begin = time.time()
    made = ours.run("train", str(size), str(minimum), source)
    seconds = time.time() - begin
    with open(ours.path("trained.json"), "wb") as f:
        f.write(made)
    mine, other = json.loads(made)["model"], json.loads(theirs.to_str())["model"]
    merges = [m if isinstance(m, list) else m.split(" ") for m in other["merges"]]
    same = mine["vocab"] == other["vocab"] and mine["merges"] == merges
    print(f"training: {len(merges)} merges {'same' if same else 'DIFFERENT'}: {seconds:.2f} s, tokenizers {their_seconds:.2f} s")
    if not same:
        first = next((i for i, (a, b) in enumerate(zip(mine["merges"], merges)) if a != b), None)
        failures.append(f"training of {size}: merges differ at {first}, {len(mine['merges'])} and {len(merges)}")
        print("   ", failures[-1])
    return Tokenizer.from_file(ours.path("trained.json"))


def wordpiece(documents):
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer.train_from_iterator(documents, trainers.WordPieceTrainer(vocab_size=20000, special_tokens=special, show_progress=False))
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", tokenizer.token_to_id("[SEP]")), ("[CLS]", tokenizer.token_to_id("[CLS]")))
    return tokenizer


def variants(trained_json):
    """Tokenizers with other parts, around the trained model."""
    def of(pre, normalizer=None, post=None, added=()):
        tokenizer = Tokenizer.from_str(trained_json)
        tokenizer.pre_tokenizer = pre
        if normalizer:
            tokenizer.normalizer = normalizer
        if post:
            tokenizer.post_processor = post
        tokenizer.add_tokens(list(added))
        return tokenizer
    byte = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    split = pre_tokenizers.Split
    yield "cl100k's pattern", of(pre_tokenizers.Sequence([split(Regex(CL100K), "isolated"), byte]))
    yield "single digits", of(pre_tokenizers.Sequence([split(Regex(CL100K.replace("{1,3}", "")), "removed", invert=True), byte]))
    yield "a pattern of classes", of(pre_tokenizers.Sequence([split(Regex(r"[\w']+|\d+|[^\s\w]+|\s"), "isolated"), byte]))
    yield "digits, prefix space", of(pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel()]))
    yield "punctuation, merged", of(pre_tokenizers.Sequence([pre_tokenizers.Punctuation("merged_with_previous"), split(" ", "merged_with_next"), byte]))
    yield "contiguous, scripts", of(pre_tokenizers.Sequence([split(Regex(r"[\p{Han}\p{Hiragana}]|\p{Cyrillic}"), "contiguous"), byte]))
    yield "whitespace, NFKC", of(pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), byte]), normalizers.NFKC())
    yield "NFD, accents, lower case", of(pre_tokenizers.ByteLevel(), normalizers.Sequence(
        [normalizers.NFD(), normalizers.StripAccents(), normalizers.Lowercase(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Prepend("_")]))
    yield "added tokens, template", of(pre_tokenizers.ByteLevel(), normalizers.Lowercase(), processors.TemplateProcessing(
        single="<|endoftext|> $A <|endoftext|>", special_tokens=[("<|endoftext|>", 0)]),
        [AddedToken("<s>", lstrip=True, rstrip=True, normalized=False), AddedToken("the", single_word=True, normalized=True),
         AddedToken("ING", normalized=True), AddedToken("return", normalized=False), AddedToken("\u4e2d\u6587", normalized=False, rstrip=True)])


def character_bpe(documents):
    tokenizer = Tokenizer(models.BPE(unk_token="[UNK]", fuse_unk=True))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.train_from_iterator(documents, trainers.BpeTrainer(vocab_size=6000, special_tokens=["[UNK]"], limit_alphabet=300, show_progress=False))
    return tokenizer


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", required=True)
    parser.add_argument("--megabytes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    data = os.path.join(os.environ.get("MXTRAIN_DATA_DIR") or os.path.join(ROOT, "data"), "text")
    if not os.path.isdir(data):
        sys.exit(f"{data} is missing; set MXTRAIN_DATA_DIR to the folder that holds text/")
    documents = mixed_documents(data, options.megabytes, random.Random(options.seed))
    small = documents[:len(documents) // 5]
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        ours = Ours(os.path.abspath(options.tool), folder)
        gpt2 = [os.path.join(data, "gpt2", name) for name in ("encoder.json", "vocab.bpe")]
        theirs = byte_level(models.BPE.from_file(*gpt2), ["<|endoftext|>"])
        compare("GPT-2", theirs, ",".join(gpt2), ours, documents, failures)
        compare("GPT-2 as tokenizer.json", theirs, save(theirs, ours.path("gpt2.json")), ours, small, failures, speed=False)
        for size, minimum in ((1000, 1), (8000, 2), (30000, 1)):
            trained = check_training(ours, small, size, minimum, failures)
        compare("BPE that we trained", trained, ours.path("trained.json"), ours, documents, failures)
        bert = wordpiece(small)
        compare("WordPiece like BERT's", bert, save(bert, ours.path("bert.json")), ours, documents, failures)
        for name, tokenizer in variants(trained.to_str()):
            compare(name, tokenizer, save(tokenizer, ours.path("variant.json")), ours, small, failures, speed=name.startswith("cl100k"))
        plain = character_bpe(small)
        compare("BPE of characters", plain, save(plain, ours.path("plain.json")), ours, small, failures, speed=False)
    sys.exit(1 if failures else 0)


main()

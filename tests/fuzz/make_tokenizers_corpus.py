#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes corpus/tokenizers: a tokenizer.json with every part that is covered, and token files.

  make_tokenizers_corpus.py     in an environment with: pip install xxhash
"""
import json
import os
import struct

import xxhash

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus", "tokenizers")
CL100K = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")


def write(name, content):
    with open(os.path.join(FOLDER, name), "wb") as f:
        f.write(content if isinstance(content, bytes) else json.dumps(content, ensure_ascii=False).encode())


def bpe(**parts):
    model = {"type": "BPE", "unk_token": None, "vocab": {"H": 0, "e": 1, "l": 2, "o": 3, "ll": 4, "He": 5, "Hell": 6, "a": 7, "\u0120": 8, "aa": 9},
             "merges": ["l l", ["H", "e"], ["He", "ll"], "a a"]}
    model.update(parts.pop("model", {}))
    return {"added_tokens": [], "normalizer": None, "pre_tokenizer": None, "post_processor": None, "decoder": None, **parts, "model": model}


def token_file(text, width, vocabulary, documents):
    """As lib/mxtrain/text/token_file.h describes it."""
    checksum = xxhash.xxh3_64_intdigest
    text = text.encode()
    header = b"MXTOKENS" + struct.pack("<IIQQQQQ", 1, width, vocabulary, len(text), checksum(text), 1 << 20, 0)
    front = header + struct.pack("<Q", checksum(header)) + text
    front += bytes(-len(front) % 64)
    ids = [i for d in documents for i in d]
    tokens = struct.pack("<" + "HI"[width // 4] * len(ids), *ids)
    ends = [sum(len(d) for d in documents[:k + 1]) for k in range(len(documents))]
    index = struct.pack(f"<{len(ends)}Q", *ends) + (struct.pack("<Q", checksum(tokens)) if tokens else b"")
    trailer = b"MXTOKEND" + struct.pack("<QQQQ", len(ids), len(ends), checksum(index), checksum(front))
    return front + tokens + bytes(-len(tokens) % 8) + index + trailer + struct.pack("<Q", checksum(trailer))


def main():
    os.makedirs(FOLDER, exist_ok=True)
    byte_level = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
    split = {"type": "Split", "pattern": {"Regex": CL100K}, "behavior": "Removed", "invert": True}
    other = {"type": "Split", "pattern": {"Regex": r"[\w'\s]+|\p{Han}{1,2}|(?i:a)\b"}, "behavior": "MergedWithNext", "invert": False}
    no_regex = {**byte_level, "add_prefix_space": False, "use_regex": False}
    write("byte_level.json", bpe(pre_tokenizer=byte_level, decoder=byte_level, post_processor=byte_level))
    write("split.json", bpe(pre_tokenizer={"type": "Sequence", "pretokenizers": [split, other, {"type": "Digits", "individual_digits": True}, no_regex]}))
    write("normalizers.json", bpe(
        model={"unk_token": "o", "fuse_unk": True, "ignore_merges": True},
        normalizer={"type": "Sequence", "normalizers": [
            {"type": "NFKD"}, {"type": "NFC"}, {"type": "StripAccents"}, {"type": "Lowercase"}, {"type": "Prepend", "prepend": "a"},
            {"type": "Strip", "strip_left": True, "strip_right": True}, {"type": "Replace", "pattern": {"Regex": r"\s+"}, "content": " "}]},
        pre_tokenizer={"type": "Sequence", "pretokenizers": [
            {"type": "WhitespaceSplit"}, {"type": "Punctuation", "behavior": "Contiguous"}, {"type": "CharDelimiterSplit", "delimiter": "-"}]},
        added_tokens=[{"id": 10, "content": "<s>", "special": True, "lstrip": True, "rstrip": True, "single_word": False, "normalized": False},
                      {"id": 11, "content": "Wor", "special": False, "single_word": True, "normalized": True}]))
    special = {name: {"id": name, "ids": [i], "tokens": [name]} for name, i in (("[CLS]", 1), ("[SEP]", 2))}
    write("bert.json", {
        "added_tokens": [{"id": 1, "content": "[CLS]", "special": True}, {"id": 2, "content": "[SEP]", "special": True}],
        "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "TemplateProcessing", "special_tokens": special, "single": [
            {"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "[SEP]", "type_id": 0}}]},
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
                  "vocab": {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "hello": 3, "wor": 4, "##ld": 5, ",": 6, "a": 7, "##a": 8}}})
    write("bytes.json", {"mxtrain_tokenizer": 1, "kind": "bytes"})
    write("characters.json", {"mxtrain_tokenizer": 1, "kind": "characters", "characters": " Hadelorw", "unknown": "<unk>"})
    write("words.json", {"mxtrain_tokenizer": 1, "kind": "words", "words": ["Hello,", "world"]})
    kind = '{"kind":"bytes","mxtrain_tokenizer":1}'
    write("two.tokens", token_file(kind, 2, 256, [[1, 2, 3], [], [255]]))
    write("none.tokens", token_file(kind, 2, 256, []))
    write("wide.tokens", token_file(kind, 4, 70000, [[1, 69999]]))
    write("outside.tokens", token_file(kind, 2, 3, [[1, 2, 3]]))


main()

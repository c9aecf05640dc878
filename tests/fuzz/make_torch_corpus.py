#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes corpus/torch_file: files of PyTorch in both forms, and some that must be refused.

  make_torch_corpus.py      in an environment with: pip install torch numpy
"""
import argparse
import collections
import datetime
import os
import pathlib
import zipfile

import numpy
import torch

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus/torch_file")
STREAM = bytes.fromhex("80028a0a6cfc9c46f9206aa85019") + b".\x80\x02M\xe9\x03.\x80\x02}.\x80\x02"


def objects():
    base = torch.arange(6, dtype=torch.float32).view(2, 3)
    floats, others = (torch.float64, torch.float16, torch.bfloat16), (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool)
    tensors = {str(dtype): torch.ones(2).to(dtype) for dtype in floats + others}
    views = collections.OrderedDict(whole=base, turned=base.t(), row=base[1], scalar=base[0, 1], repeated=base[:1, :1].expand(2, 2),
                                    empty=torch.zeros(0, 3), parameter=torch.nn.Parameter(base))
    net = torch.nn.Linear(2, 1)
    yield "types", tensors
    yield "views", views
    yield "checkpoint", {"epoch": 3, "loss": 0.5, "model": net.state_dict(), "optimizer": torch.optim.SGD(net.parameters(), 0.1).state_dict()}
    yield "module", net
    yield "scripts", {"args": argparse.Namespace(lr=0.1, since=datetime.date(2026, 1, 2), out=pathlib.PurePosixPath("/tmp")),
                      "best": numpy.float64(0.5), "history": numpy.arange(2), "seen": {1, 2}, "model": net.state_dict(),
                      "model_ema": {"n_averaged": torch.tensor(3), **{"module." + name: tensor for name, tensor in net.state_dict().items()}},
                      "defaults": collections.defaultdict(list, a=[1]), "complex": torch.ones(1, dtype=torch.complex64)}


def main():
    torch.manual_seed(0)
    os.makedirs(FOLDER, exist_ok=True)
    for name, value in objects():
        for form, new in (("zip", True), ("stream", False)):
            if name == "module" and form == "stream":
                continue  # it would contain the source of the class
            torch.save(value, os.path.join(FOLDER, f"{name}_{form}.pth"), _use_new_zipfile_serialization=new)
        if name == "scripts":
            torch.save(value, os.path.join(FOLDER, f"{name}_protocol_5.pth"), pickle_protocol=5)
    hostile = {
        "system": b"cos\nsystem\n(U\x02idtR.",
        "self": b"}q\x01(U\x05modelh\x01U\x03neth\x01u.",
        "pairs": b"ccollections\nOrderedDict\n](](U\x01wNee\x85R.",
    }
    for name, pickle in hostile.items():
        with open(os.path.join(FOLDER, f"{name}.pth"), "wb") as file:
            file.write(STREAM + pickle + b"\x80\x02].")
    for name, method in (("deflated", zipfile.ZIP_DEFLATED), ("stored", zipfile.ZIP_STORED)):
        with zipfile.ZipFile(os.path.join(FOLDER, f"{name}.pth"), "w", method) as archive:
            archive.writestr("net/data.pkl", b"\x80\x02" + hostile["self"])


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes corpus/archive: tar and zip files of small "images", as they are and compressed, with links and paths that lead out. Python's own library does."""
import io
import os
import tarfile
import zipfile

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus", "archive")
ENTRIES = [("train/cat/1.jpg", b"image one " * 9), ("train/dog/2.png", b"image two"), ("val/cat/3.jpg", b""), ("../out.jpg", b"x"), ("/abs.jpg", b"x"),
           (".hidden/4.jpg", b"x"), ("notes.txt", b"no image")]


def write(name, content):
    os.makedirs(FOLDER, exist_ok=True)
    with open(os.path.join(FOLDER, name), "wb") as f:
        f.write(content)


def tar(mode, kind=tarfile.USTAR_FORMAT):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode, format=kind) as archive:
        for name, content in ENTRIES:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
        for link in (tarfile.SYMTYPE, tarfile.LNKTYPE):
            info = tarfile.TarInfo("train/cat/link.jpg")
            info.type, info.linkname = link, "/etc/passwd"
            archive.addfile(info)
        if kind == tarfile.PAX_FORMAT:
            archive.addfile(tarfile.TarInfo("train/cat/" + "\u5e3d" * 90 + ".jpg"))
    return out.getvalue()


def zipped(method, entries):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, content in entries:
            archive.writestr(zipfile.ZipInfo(name), content, method)
    return out.getvalue()


def main():
    write("ustar.tar", tar("w"))
    write("pax.tar", tar("w", tarfile.PAX_FORMAT))
    write("gnu.tar", tar("w", tarfile.GNU_FORMAT)[:6000])
    for compression in ("gz", "bz2", "xz"):
        write(f"tar.{compression}", tar(f"w:{compression}"))
    write("stored.zip", zipped(zipfile.ZIP_STORED, ENTRIES))
    write("deflated.zip", zipped(zipfile.ZIP_DEFLATED, ENTRIES))
    write("lzma.zip", zipped(zipfile.ZIP_LZMA, ENTRIES[:2]))
    write("many.zip", zipped(zipfile.ZIP_DEFLATED, [(f"{'ab'[i % 2]}/{i}.jpg", b"many " * 20) for i in range(24)]))
    write("cut.zip", zipped(zipfile.ZIP_DEFLATED, ENTRIES)[:300])


if __name__ == "__main__":
    main()

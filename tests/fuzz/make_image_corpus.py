#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the seeds of tests/fuzz/image.cc that another program makes: small GIF, WebP, TIFF, TGA and PNM files, by Pillow.

  make_image_corpus.py [FOLDER]      default: tests/fuzz/corpus/image; in an environment with: pip install "pillow>=13"
"""
import os
import struct
import sys

from PIL import Image

HERE = os.path.dirname(os.path.abspath(__file__))


def pattern(mode):
    image = Image.new("RGB", (9, 7))
    image.putdata([(29 * x % 256, 37 * y % 256, (x * y * 11) % 256) for y in range(7) for x in range(9)])
    if mode == "P":
        return image.quantize(16)
    if mode in ("RGBA", "LA"):
        image.putalpha(image.convert("L"))
    return image.convert(mode)


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "corpus", "image")
    os.makedirs(folder, exist_ok=True)

    def save(name, mode, **options):
        pattern(mode).save(os.path.join(folder, name), **options)

    save("interlaced.gif", "P", interlace=1, transparency=3)
    save("animated.gif", "P", save_all=True, append_images=[pattern("P").rotate(180)])
    save("lossy.webp", "RGB", quality=60)
    save("lossless_alpha.webp", "RGBA", lossless=True)
    save("animated.webp", "RGBA", save_all=True, append_images=[pattern("RGBA").rotate(180)], lossless=True)
    for compression in ("raw", "tiff_lzw", "tiff_adobe_deflate", "packbits", "jpeg"):
        save(f"rgb_{compression}.tif", "RGB", compression=compression)
    save("palette.tif", "P", compression="tiff_lzw")
    save("group4.tif", "1", compression="group4")
    save("alpha.tif", "RGBA", compression="raw")
    save("cmyk.tif", "CMYK", compression="tiff_lzw")
    save("gray16.tif", "I;16", compression="raw")
    for mode in ("RGB", "RGBA", "L", "LA", "P"):
        save(f"{mode.lower()}.tga", mode)
        save(f"{mode.lower()}_runs.tga", mode, compression="tga_rle")
    save("rgb.ppm", "RGB")
    save("gray.pgm", "L")
    save("bits.pbm", "1")
    palette = bytes(i * 37 % 256 for i in range(64))
    head = struct.pack("<IiiHHIIiiII", 40, 5, 3, 1, 8, 1, 0, 0, 0, 16, 0)
    runs = b"\5\1\0\0" + b"\0\5\1\2\3\4\5\0\0\0" + b"\0\2\1\0\4\6\0\1"
    with open(os.path.join(folder, "runs.bmp"), "wb") as out:
        out.write(b"BM" + struct.pack("<IHHI", 0, 0, 0, 14 + len(head) + len(palette)) + head + palette + runs)
    old = struct.pack("<IHHHH", 12, 5, 3, 1, 4)
    with open(os.path.join(folder, "os2.bmp"), "wb") as out:
        out.write(b"BM" + struct.pack("<IHHI", 0, 0, 0, 14 + len(old) + 48) + old + palette[:48] + b"\x12\x34\x50\0" * 3)
    with open(os.path.join(folder, "text.ppm"), "w") as out:
        out.write("P3\n# as text\n3 2\n100\n" + "\n".join("10 50 100" for _ in range(6)) + "\n")


if __name__ == "__main__":
    main()

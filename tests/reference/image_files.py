# SPDX-License-Identifier: Apache-2.0
"""Files of every image format that is read, for pillow_pixels.py: by Pillow, and by hand where Pillow writes no such form."""
import os
import random
import struct

import numpy
from PIL import Image

SIZE = HEIGHT, WIDTH = 29, 37
TIFF_COMPRESSIONS = ("raw", "tiff_lzw", "tiff_adobe_deflate", "packbits", "jpeg", "lzma", "zstd")


def images():
    """{mode: image}, each with smooth and rough parts."""
    y, x = numpy.mgrid[0:HEIGHT, 0:WIDTH]
    pixels = numpy.stack([x * 7 % 256, y * 9 % 256, (x * 5 + y * 3) % 256], -1).astype(numpy.uint8)
    pixels[5:12, 4:20] = numpy.random.default_rng(1).integers(0, 256, (7, 16, 3))
    rgb, alpha = Image.fromarray(pixels), Image.fromarray((x * 7 % 256).astype(numpy.uint8))
    gray = rgb.convert("L")
    deep = Image.fromarray(numpy.asarray(gray).astype(numpy.uint16) * 256 + 77)
    made = {"RGB": rgb, "RGBA": Image.merge("RGBA", [*rgb.split(), alpha]), "L": gray, "LA": Image.merge("LA", [gray, alpha])}
    made.update({"P": rgb.quantize(200), "1": rgb.convert("1"), "CMYK": rgb.convert("CMYK"), "YCbCr": rgb.convert("YCbCr"), "I16": deep})
    return made


def padded(row):
    return row + b"\0" * (-len(row) % 4)


def bmp_runs(indices, bits):
    """Rows from the bottom: runs of equal values, and of others as they are."""
    out = b""
    for row in indices[::-1].tolist():
        x = 0
        while x < WIDTH:
            run = 1
            while x + run < WIDTH and row[x + run] == row[x] and run < 255:
                run += 1
            rest = row[x : x + 7]
            if run >= 3 or len(rest) < 3:
                out += bytes([run, row[x] << 4 | row[x] if bits == 4 else row[x]])
                x += run
                continue
            nibbles = rest + [0]
            data = bytes(nibbles[i] << 4 | nibbles[i + 1] for i in range(0, len(rest), 2)) if bits == 4 else bytes(rest)
            out += bytes([0, len(rest)]) + data + b"\0" * (len(data) % 2)
            x += len(rest)
        out += b"\0\0"
    return out + b"\0\1"


class Writer:
    def __init__(self, folder):
        os.makedirs(folder, exist_ok=True)
        self.folder, self.files, self.images = folder, [], images()
        self.pixels = numpy.asarray(self.images["RGB"])
        few = self.images["RGB"].quantize(13)
        self.indices, self.colours = numpy.asarray(few), numpy.array(few.getpalette()[:39]).reshape(13, 3)

    def path(self, name):
        return os.path.join(self.folder, name)

    def put(self, name, data):
        with open(self.path(name), "wb") as out:
            out.write(data)
        self.files.append(self.path(name))

    def save(self, name, mode, **options):
        try:
            self.images[mode].save(self.path(name), **options)
            self.files.append(self.path(name))
        except (OSError, KeyError, ValueError, SystemError, RuntimeError):  # a form that Pillow does not write
            if os.path.exists(self.path(name)):
                os.remove(self.path(name))

    def by_pillow(self):
        for mode in ("RGB", "RGBA", "L", "LA", "P", "1"):
            for orientation in (1, -1):
                self.save(f"tga_{mode}_{orientation}.tga", mode, orientation=orientation)
                self.save(f"tga_{mode}_{orientation}_runs.tga", mode, orientation=orientation, compression="tga_rle")
            self.save(f"bmp_{mode}.bmp", mode)
            self.save(f"png_{mode}.png", mode)
            for interlace in (0, 1):
                self.save(f"gif_{mode}_{interlace}.gif", mode, interlace=interlace)
            for lossless in (False, True):
                self.save(f"webp_{mode}_{lossless}.webp", mode, lossless=lossless, quality=90)
        for mode, ending in (("RGB", "ppm"), ("L", "pgm"), ("1", "pbm"), ("I16", "pgm")):
            self.save(f"pnm_{mode}.{ending}", mode)
        for mode in ("RGB", "RGBA", "L", "LA", "P", "1", "CMYK", "YCbCr", "I16"):
            for compression in TIFF_COMPRESSIONS if mode != "1" else (*TIFF_COMPRESSIONS, "group3", "group4"):
                self.save(f"tiff_{mode}_{compression}.tif", mode, compression=compression)
        self.save("gif_transparent.gif", "P", transparency=5)
        self.save("gif_animated.gif", "P", save_all=True, append_images=[self.images["P"].rotate(180)])
        self.save("webp_animated.webp", "RGBA", save_all=True, append_images=[self.images["RGBA"].rotate(180)], lossless=True)
        for orientation in (2, 3, 4):  # the others have another size
            exif = Image.Exif()
            exif[0x112] = orientation
            self.save(f"webp_turned_{orientation}.webp", "RGB", lossless=True, exif=exif)
            self.save(f"tiff_turned_{orientation}.tif", "RGB", tiffinfo={0x112: orientation})

    def bmp(self, name, bits, rows, compression=0, palette=b"", header=40, masks=(), colours=0, height=HEIGHT):
        extra = b"".join(struct.pack("<I", mask) for mask in masks)
        head = struct.pack("<IHHHH", 12, WIDTH, HEIGHT, 1, bits)
        if header > 12:
            head = struct.pack("<IiiHHIIiiII", header, WIDTH, height, 1, bits, compression, 0, 0, 0, colours, 0)
        if header > 40:
            head, extra = head + extra.ljust(header - 40, b"\0"), b""
        begin = 14 + len(head) + len(extra) + len(palette)
        self.put(f"bmp_{name}.bmp", b"BM" + struct.pack("<IHHI", 0, 0, 0, begin) + head + extra + palette + rows)

    def bmp_forms(self):
        wide = b"".join(bytes([b, g, r, 0]) for r, g, b in self.colours.tolist())
        narrow = b"".join(bytes([b, g, r]) for r, g, b in self.colours.tolist())
        rows8 = b"".join(padded(row.astype(numpy.uint8).tobytes()) for row in self.indices[::-1])
        pairs = [numpy.append(row, 0).astype(numpy.uint8) for row in self.indices[::-1]]
        rows4 = b"".join(padded((row[0::2] << 4 | row[1::2]).tobytes()) for row in pairs)
        self.bmp("palette8", 8, rows8, palette=wide, colours=13)
        self.bmp("palette4", 4, rows4, palette=wide, colours=13)
        self.bmp("os2_4", 4, rows4, palette=narrow.ljust(48, b"\0"), header=12)
        self.bmp("os2_8", 8, rows8, palette=narrow.ljust(768, b"\0"), header=12)
        self.bmp("os2_24", 24, b"".join(padded(row[:, ::-1].tobytes()) for row in self.pixels[::-1]), header=12)
        self.bmp("runs8", 8, bmp_runs(self.indices, 8), compression=1, palette=wide, colours=13)
        self.bmp("runs4", 4, bmp_runs(self.indices, 4), compression=2, palette=wide, colours=13)
        bgra = numpy.dstack([self.pixels[..., ::-1], numpy.asarray(self.images["RGBA"])[..., 3]])
        up, masks = bgra[::-1].tobytes(), (0xFF0000, 0xFF00, 0xFF)
        self.bmp("reserved", 32, up)
        self.bmp("reserved_down", 32, bgra.tobytes(), height=-HEIGHT)
        self.bmp("reserved_v5", 32, up, header=124)
        self.bmp("masks", 32, up, compression=3, masks=masks)
        self.bmp("alpha_v4", 32, up, compression=3, header=108, masks=(*masks, 0xFF000000))
        r, g, b = (self.pixels[..., i].astype(numpy.uint16) for i in range(3))
        for name, values, given in (("555", r >> 3 << 10 | g >> 3 << 5 | b >> 3, ()), ("565", r >> 3 << 11 | g >> 2 << 5 | b >> 3, (0xF800, 0x7E0, 0x1F))):
            rows = b"".join(padded(row.astype("<u2").tobytes()) for row in values[::-1])
            self.bmp(name, 16, rows, compression=3 if given else 0, masks=given)

    def tga(self, name, kind, bits, data, first=0, colours=0, colour_bits=0, descriptor=0x20):
        head = struct.pack("<BBBHHBHHHHBB", 3, int(colours > 0), kind, first, colours, colour_bits, 0, 0, WIDTH, HEIGHT, bits, descriptor)
        self.put(f"tga_{name}.tga", head + b"abc" + data)

    def tga_forms(self):
        five = (self.pixels >> 3).astype(numpy.uint16)
        five = (five[..., 0] << 10 | five[..., 1] << 5 | five[..., 2]).astype("<u2")
        palette = b"".join(bytes([b, g, r]) for r, g, b in self.colours.tolist())
        indices = self.indices.astype(numpy.uint8)
        self.tga("16", 2, 16, five.tobytes())
        self.tga("15", 2, 15, five.tobytes())
        self.tga("palette_from_7", 1, 8, palette + (indices + 7).tobytes(), first=7, colours=13, colour_bits=24)
        opaque = b"".join(bytes([b, g, r, 255]) for r, g, b in self.colours.tolist())
        self.tga("palette_32", 1, 8, opaque + indices.tobytes(), colours=13, colour_bits=32)
        for descriptor in (0x10, 0x30):
            self.tga(f"from_right_{descriptor}", 2, 24, self.pixels[..., ::-1].tobytes(), descriptor=descriptor)

    def pnm_forms(self):
        pixels = self.pixels.astype(int)
        for kind, values, most in ((3, pixels, 1000), (3, pixels, 255), (2, pixels[..., 0], 100), (1, pixels[..., 0] % 2, 0)):
            text = "\n".join(" ".join(map(str, row)) for row in (values * most // 255 if most else values).reshape(HEIGHT, -1).tolist())
            self.put(f"pnm_text_{kind}_{most}.pnm", f"P{kind}\n# a comment\n{WIDTH} {HEIGHT}\n{most or ''}\n{text}\n".encode())
        for most in (1, 100, 4095, 65535):
            values = (pixels * most // 255).astype(">u2" if most > 255 else numpy.uint8)
            self.put(f"pnm_{most}.ppm", f"P6 {WIDTH} {HEIGHT} {most}\n".encode() + values.tobytes())

    def tiff(self, name, samples, planes, entries=(), order="<"):
        """One strip per plane; entries: further (tag, value), both of 16 bits."""
        bits, data = samples.dtype.itemsize * 8, [plane.astype(samples.dtype.newbyteorder(order)).tobytes() for plane in (samples.transpose(2, 0, 1) if planes == 2 else [samples])]
        count, pack = samples.shape[2], (lambda text, *values: struct.pack(order + text, *values))
        tables = pack("H" * count, *[bits] * count)
        begin = 8 + len(tables)
        offsets = [begin + sum(map(len, data[:i])) for i in range(len(data))]
        lists = begin + sum(map(len, data))
        data_lists = pack("I" * len(data), *offsets) + pack("I" * len(data), *map(len, data))
        many = len(data) > 1
        tags = [(256, 3, 1, WIDTH), (257, 3, 1, HEIGHT), (258, 3, count, 8 if count > 2 else bits), (259, 3, 1, 1), (262, 3, 1, 2 if count > 2 else 1)]
        tags += [(273, 4, len(data), lists if many else offsets[0]), (277, 3, 1, count), (278, 3, 1, HEIGHT)]
        tags += [(279, 4, len(data), lists + 4 * len(data) if many else len(data[0])), (284, 3, 1, planes)] + [(tag, 3, 1, value) for tag, value in entries]
        directory = pack("H", len(tags))
        for tag, kind, number, value in sorted(tags):
            short = kind == 3 and number == 1
            directory += pack("HHI", tag, kind, number) + (pack("HH", value, 0) if short else pack("I", value))
        body = b"II*\0" if order == "<" else b"MM\0*"
        self.put(f"tiff_{name}.tif", body + pack("I", lists + len(data_lists)) + tables + b"".join(data) + data_lists + directory + pack("I", 0))

    def tiff_forms(self):
        deep = self.pixels.astype(numpy.uint16) * 257
        rgba = numpy.asarray(self.images["RGBA"])
        for order in "<>":
            for planes in (1, 2):
                self.tiff(f"rgb8_{planes}_{'II' if order == '<' else 'MM'}", self.pixels, planes, order=order)
            self.tiff(f"rgb16_{'II' if order == '<' else 'MM'}", deep, 1, order=order)  # Pillow misreads planes of 16 bits
        self.tiff("unspecified", rgba, 1, [(338, 0)])
        self.tiff("unassociated", rgba, 1, [(338, 2)])


def write(folder):
    """Returns the paths."""
    writer = Writer(folder)
    for forms in (writer.by_pillow, writer.bmp_forms, writer.tga_forms, writer.pnm_forms, writer.tiff_forms):
        forms()
    return writer.files


def damage(files, folder, cuts=5, changes=5, seed=1):
    """Each file cut off, and with bytes of its first 64 changed; returns the paths."""
    os.makedirs(folder, exist_ok=True)
    draws, made = random.Random(seed), []
    for file in files:
        with open(file, "rb") as given:
            data = given.read()
        base, ending = os.path.splitext(os.path.basename(file))
        damaged = [data[: draws.randrange(10, len(data) - 4)] for _ in range(cuts)]
        for _ in range(changes):
            changed = bytearray(data)
            changed[draws.randrange(min(64, len(data)))] = draws.randrange(256)
            damaged.append(bytes(changed))
        for i, part in enumerate(damaged):
            made.append(os.path.join(folder, f"{base}_{i}{ending}"))
            with open(made[-1], "wb") as out:
                out.write(part)
    return made

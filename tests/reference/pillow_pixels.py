#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares pixels with Pillow's: of resize and center_crop on photographs of many sizes, and of files of every format.

  MXTRAIN_DATA_DIR=FOLDER pillow_pixels.py [--program PATH] [--images 20]      in an environment with: pip install "pillow>=13" numpy
  pillow_pixels.py --formats [--program PATH]                                  the formats alone, without photographs

--formats makes files (image_files.py) and compares what reaches the net with Pillow's pixels over white; then it cuts each file off and changes
bytes, and compares which files are refused, also with OpenCV if it is installed (pip install opencv-python-headless). Fails where a pixel differs by
more than a level, or where a file is used that Pillow refuses. OpenCV shows much that is damaged, and knows fewer formats: what it refuses alone is
listed by format, and by name where Pillow refuses it as well.

What torchvision's Resize and CenterCrop make of a Pillow image is Image.resize of Pillow and three lines of arithmetic, which stand here again
(torchvision/transforms/functional.py: _compute_resized_output_size, center_crop), so that nothing of PyTorch is needed. The photographs are
those of clothing/ and camvid/ in FOLDER, with as many different sizes as there are. `mxtrain infer --output-layer` gives the numbers that
reach the net. Prints for each chain the largest and the mean difference, in steps of 1/255: of PNG files with Pillow's decoded pixels, and of the
JPEG files, which may be decoded at 1/2, 1/4 or 1/8 of their size. Fails where pixels of a PNG file differ at all.
"""
import argparse
import glob
import os
import subprocess
import sys
import tempfile

import image_files
import numpy
from PIL import Image, ImageOps

os.environ.setdefault("OPENCV_LOG_LEVEL", "OFF")  # of damaged files it speaks at length
try:
    import cv2
except ImportError:
    cv2 = None

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FILTERS = {"bilinear": Image.BILINEAR, "bicubic": Image.BICUBIC, "nearest": Image.NEAREST}


def resize(size, interpolation):
    """size: of the shorter edge, or (height, width)."""
    antialias = interpolation != "nearest"  # Pillow's bilinear and bicubic always are

    def apply(image):
        w, h = image.size
        if isinstance(size, tuple):
            return image.resize(size[::-1], FILTERS[interpolation])
        new = (size, int(size * h / w)) if w <= h else (int(size * w / h), size)
        return image.resize(new, FILTERS[interpolation])

    text = list(size) if isinstance(size, tuple) else size
    return f"{{resize: {{size: {text}, interpolation: {interpolation}, antialias: {str(antialias).lower()}}}}}", apply


def center_crop(size):
    def apply(image):
        top, left = int(round((image.height - size) / 2.0)), int(round((image.width - size) / 2.0))
        return image.crop((left, top, left + size, top + size))

    return f"{{center_crop: {size}}}", apply


def crop_fraction(fraction):
    def apply(image):
        edge = int(fraction * min(image.size))
        top, left = (image.height - edge) // 2, (image.width - edge) // 2
        return image.crop((left, top, left + edge, top + edge))

    return f"{{center_crop: {{fraction: {fraction}}}}}", apply


CHAINS = {
    "bilinear 256, middle 224": [resize(256, "bilinear"), center_crop(224)],
    "bicubic 256, middle 224": [resize(256, "bicubic"), center_crop(224)],
    "nearest 256, middle 224": [resize(256, "nearest"), center_crop(224)],
    "nearest 600, middle 301": [resize(600, "nearest"), center_crop(301)],
    "bicubic 224 x 224": [resize((224, 224), "bicubic")],
    "bilinear 131 x 97": [resize((131, 97), "bilinear")],
    "bicubic 64 x 64": [resize((64, 64), "bicubic")],
    "bilinear 600, middle 301": [resize(600, "bilinear"), center_crop(301)],
    "middle 0.875, bicubic 224": [crop_fraction(0.875), resize(224, "bicubic")],
    "middle 0.6, bilinear 111": [crop_fraction(0.6), resize(111, "bilinear")],
}


def choose(folder, count):
    """One photograph of each size first, then others."""
    files = sorted(glob.glob(os.path.join(folder, "clothing/*/*/*.jpg")) + glob.glob(os.path.join(folder, "camvid/*/images/*.jpg"))[:3])
    sizes = {}
    for file in files:
        sizes.setdefault(Image.open(file).size, []).append(file)
    first = [group[0] for group in sizes.values()]
    odd = [file for file in first if 1 in (Image.open(file).width % 2, Image.open(file).height % 2)]
    chosen = (odd + [file for file in first if file not in odd])[:count]
    return chosen + [file for file in files if file not in chosen][: count - len(chosen)]


def pixels_of_mxtrain(program, folder, files, steps, size):
    """[N, H, W, 3]: the input of a net, as pixels."""
    config, run, output = (os.path.join(folder, name) for name in ("pixels.yaml", "run", "pixels.npy"))
    with open(config, "w") as out:
        transforms = "[" + ", ".join(text for text, _ in steps) + "]"
        out.write(
            f"net:\n  input: [3, {size[0]}, {size[1]}]\n  layers:\n"
            "    - Flatten: {name: pixels}\n    - FullyConnected: {num_hidden: 2}\n    - SoftmaxOutput: {name: softmax}\n"
            "data:\n  batch_size: 2\n"
            f"  train: {{source: image_folder, path: images, transforms: {transforms}}}\n"
            "train: {epochs: 1, max_steps: 1, optimizer: {name: sgd, lr: 0}}\n"
        )
    subprocess.run([program, "train", config, "--out", run, "--overwrite", "-q"], check=True)
    subprocess.run([program, "infer", run, *files, "--output-layer", "pixels", "--output", output, "--overwrite", "-q"], check=True, stdout=subprocess.DEVNULL)
    return numpy.load(output).reshape(len(files), 3, *size).transpose(0, 2, 3, 1) * 255


def configure(folder, size):
    """A run in `folder` whose layer `pixels` is its input; returns it."""
    images = os.path.join(folder, "images")
    for name in "ab":
        os.makedirs(os.path.join(images, name), exist_ok=True)
        Image.new("RGB", size[::-1]).save(os.path.join(images, name, "x.png"))
    config, run = os.path.join(folder, "formats.yaml"), os.path.join(folder, "run")
    with open(config, "w") as out:
        out.write(
            f"net:\n  input: [3, {size[0]}, {size[1]}]\n  layers:\n"
            "    - Flatten: {name: pixels}\n    - FullyConnected: {num_hidden: 2}\n    - SoftmaxOutput: {name: softmax}\n"
            f"data:\n  batch_size: 2\n  train: {{source: image_folder, path: {images}, transforms: [{{resize: [{size[0]}, {size[1]}]}}]}}\n"
            "train: {epochs: 1, max_steps: 1, optimizer: {name: sgd, lr: 0}}\n"
        )
    return config, run


def decoded_by_mxtrain(program, folder, files, size):
    """{file: [H, W, 3] pixels}, and {file: why it was refused}."""
    config, run = configure(folder, size)
    output = os.path.join(folder, "pixels.npy")
    subprocess.run([program, "train", config, "--out", run, "--overwrite", "-q"], check=True)
    names = os.path.join(folder, "names.txt")
    with open(names, "w") as out:
        out.write("\n".join(files) + "\n")
    with open(names) as given:
        done = subprocess.run(
            [program, "infer", run, "-", "--output-layer", "pixels", "--output", output, "--overwrite"], stdin=given, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
    if done.returncode not in (0, 4):
        sys.exit(f"infer: exit code {done.returncode}: {done.stderr[-1000:]}")
    refused = {}
    for line in done.stderr.splitlines():
        name, colon, why = line.removeprefix("warning: ").partition(": ")
        if colon and name in files:
            refused[name] = why
    pixels = numpy.load(output).reshape(len(files), 3, *size).transpose(0, 2, 3, 1) * 255
    return {file: image for file, image in zip(files, pixels) if file not in refused}, refused


def decoded_by_pillow(file):
    """[H, W, 3] pixels over white, or None if it refuses the file."""
    try:
        image = Image.open(file)
        image.load()
    except Exception:  # it raises many kinds
        return None
    if image.format != "PNG":
        image = ImageOps.exif_transpose(image)
    if image.mode.startswith("I"):
        gray = numpy.asarray(image, dtype=numpy.float64) // 256
        return numpy.repeat(gray[..., None], 3, axis=2)
    pixels = numpy.asarray(image.convert("RGBA"), dtype=numpy.float64)
    alpha = pixels[..., 3:] / 255
    return pixels[..., :3] * alpha + 255 * (1 - alpha)


def shown_by_opencv(file):
    try:  # from memory: imread goes by the name for some formats
        return cv2.imdecode(numpy.fromfile(file, dtype=numpy.uint8), cv2.IMREAD_UNCHANGED) is not None
    except cv2.error:
        return False


def compare_with_opencv(whole, damaged, used, refused):
    """Of the formats that OpenCV reads; returns whether a file is used that neither of the others shows."""
    if cv2 is None:
        print("OpenCV is not installed: damaged files are compared with Pillow alone (pip install opencv-python-headless)")
        return False

    def kind(file):
        return os.path.basename(file).split("_")[0]

    known = {kind(file) for file in whole if shown_by_opencv(file)}
    failed = False
    print(f"OpenCV {cv2.__version__} reads {', '.join(sorted(known))}")
    for name in sorted(known):
        files = [file for file in damaged if kind(file) == name]
        shown = {file for file in files if shown_by_opencv(file)}
        alone = [file for file in files if file in used and file not in shown]
        strict = [file for file in files if file in refused and file in shown]
        print(f"{name:8}{len(files):5} damaged: {len(shown)} shown by OpenCV, {len(strict)} of them refused here; {len(alone)} used that OpenCV refuses")
        for file in alone:
            if decoded_by_pillow(file) is None:
                print(f"used, and refused by Pillow and OpenCV: {os.path.basename(file)}")
                failed = True
    return failed


def compare_formats(program):
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        files = image_files.write(os.path.join(folder, "whole"))
        used, refused = decoded_by_mxtrain(program, folder, files, image_files.SIZE)
        worst = {}
        for file in files:
            wanted, format_name = decoded_by_pillow(file), os.path.basename(file).split("_")[0]
            if wanted is None or file in refused:
                print(f"{os.path.basename(file)}: refused by {'both' if wanted is None and file in refused else 'us: ' + refused[file] if file in refused else 'Pillow'}")
                failed |= wanted is None and file in used
                continue
            difference = numpy.abs(used[file] - wanted).max()
            count, most = worst.get(format_name, (0, 0))
            worst[format_name] = (count + 1, max(most, difference))
            if difference > 1.01:
                print(f"{os.path.basename(file)}: pixels differ by {difference:.1f}")
                failed = True
        for format_name, (count, most) in worst.items():
            print(f"{format_name:8}{count:4} files, largest difference {most:.2f}")
        damaged = image_files.damage(files, os.path.join(folder, "damaged"))
        used, refused = decoded_by_mxtrain(program, folder, damaged, image_files.SIZE)
        too_much = [file for file in damaged if file in used and decoded_by_pillow(file) is None]
        strict = [file for file in damaged if file in refused and decoded_by_pillow(file) is not None]
        print(f"{len(damaged)} damaged files: {len(refused)} refused; {len(strict)} of them shown by Pillow; {len(too_much)} used that Pillow refuses")
        for file in too_much:
            print(f"used: {os.path.basename(file)}")
        failed |= compare_with_opencv(files, damaged, used, refused)
    return failed or bool(too_much)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=os.path.join(ROOT, "build/release/bin/mxtrain"))
    parser.add_argument("--images", type=int, default=20)
    parser.add_argument("--formats", action="store_true", help="compare files of every format instead")
    args = parser.parse_args()
    if args.formats:
        sys.exit(1 if compare_formats(args.program) else 0)
    data = os.environ.get("MXTRAIN_DATA_DIR", os.path.join(ROOT, "data"))
    files = choose(data, args.images)
    if not files:
        sys.exit(f"{data} has no photographs in clothing/ or camvid/; set MXTRAIN_DATA_DIR")
    images = [ImageOps.exif_transpose(Image.open(file)).convert("RGB") for file in files]
    print(f"{len(files)} photographs, {len({image.size for image in images})} sizes, " f"{min(image.size for image in images)} to {max(image.size for image in images)}")
    print(f"{'':28}{'PNG':>22}{'JPEG, scaled decoding':>22}\n{'':28}{'largest':>11}{'mean':>11}{'largest':>11}{'mean':>11}")
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        decoded = []
        for i, image in enumerate(images):  # also the training data, which do not matter
            decoded.append(os.path.join(folder, "images", "ab"[i % 2], f"{i}.png"))
            os.makedirs(os.path.dirname(decoded[-1]), exist_ok=True)
            image.save(decoded[-1])
        for name, steps in CHAINS.items():
            wanted = []
            for image in images:
                for _, apply in steps:
                    image = apply(image)
                wanted.append(numpy.asarray(image, dtype=numpy.float64))
            wanted = numpy.stack(wanted)
            row = f"{name:28}"
            for inputs in (decoded, files):
                difference = numpy.abs(pixels_of_mxtrain(args.program, folder, inputs, steps, wanted.shape[1:3]) - wanted)
                row += f"{difference.max():11.1f}{difference.mean():11.4f}"
                failed |= inputs is decoded and difference.max() > 0.01
            print(row, flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

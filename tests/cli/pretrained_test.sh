#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A published net with its published weights (pretrained/ beside the other data: EfficientNet-Lite0, with TensorFlow's padding) computes what
# its publisher's program does: logits of three images, within 1e-4 of their largest. Without the data or python3 the test ends with 77.
. "$(dirname "$0")/common.sh"
python=$(command -v python3 || true)
bases=("$source_dir/data" "$source_dir/../shared/data")
[ -z "${MXTRAIN_DATA_DIR:-}" ] || bases=("$MXTRAIN_DATA_DIR")
for base in "${bases[@]}"; do
  pretrained=$base/pretrained
  [ ! -e "$pretrained/logits.npy" ] || break
done
if [ -z "$python" ]; then
  echo "skipped: no python3"
  exit 77
fi
if [ ! -e "$pretrained/logits.npy" ]; then
  echo "skipped: no pretrained; set MXTRAIN_DATA_DIR to the folder that holds it"
  exit 77
fi

cat >arrays.py <<'P'
import ast
import struct
import sys
import zlib


def read(path, code):
    """Shape and values of a .npy file."""
    data = open(path, "rb").read()
    major = data[6]
    size = int.from_bytes(data[8:10 if major == 1 else 12], "little")
    begin = (10 if major == 1 else 12) + size
    header = ast.literal_eval(data[begin - size:begin].decode())
    assert header["descr"].endswith(code) and not header["fortran_order"], header
    return header["shape"], data[begin:]


def write_png(path, planes, height, width):
    rows = b"".join(
        b"\0" + b"".join(bytes(plane[y * width + x] for plane in planes) for x in range(width)) for y in range(height))

    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) +
                   chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


if sys.argv[1] == "images":
    (count, channels, height, width), pixels = read(sys.argv[2], "u1")
    plane = height * width
    for i in range(count):
        planes = [pixels[(i * channels + c) * plane:][:plane] for c in range(channels)]
        write_png(f"images/{i}.png", planes, height, width)
else:
    (count, classes), mine = read(sys.argv[2], "f4")
    (_, wanted_classes), theirs = read(sys.argv[3], "f4")
    assert count == 3 and classes == wanted_classes == 1000, (count, classes)
    size = count * classes
    mine, theirs = (struct.unpack(f"<{size}f", data[:4 * size]) for data in (mine, theirs))
    largest = max(abs(value) for value in theirs)
    error = max(abs(a - b) for a, b in zip(mine, theirs))
    print(f"largest logit {largest:.4g}, largest difference {error:.3g}: {error / largest:.2g} of it")
    sys.exit(error > 1e-4 * largest)
P
mkdir images
"$python" arrays.py images "$pretrained/inputs.npy"
"$helper" images train 2
cat >lite0.yaml <<'END2'
net: {use: efficientnet_lite0, classes: 1000}
vars: {bn_eps: 0.001, same_padding: true}
data:
  batch_size: 2
  train:
    source: image_folder
    path: train
    transforms:
      - resize: [224, 224]
      - normalize: {mean: [0.498039216, 0.498039216, 0.498039216], std: [0.501960784, 0.501960784, 0.501960784]}
train:
  epochs: 0
END2
for kind in pth safetensors; do
  expect 0 train lite0.yaml --out $kind train.weights.file="$pretrained/efficientnet_lite0.$kind"
  holds "there is a warning" sh -c '! grep -q "rely on" stderr'
  expect 0 infer $kind images --output-layer fc --output $kind.npy
  holds "the logits are not those of the publisher" "$python" arrays.py compare $kind.npy "$pretrained/logits.npy"
done
# Settings of other weights fit as well; a warning says what they should be.
expect 0 train lite0.yaml --out other train.weights.file="$pretrained/efficientnet_lite0.safetensors" vars.same_padding=false
says "has the names of lukemelas, whose weights rely on vars.same_padding=true; the configuration has it otherwise"
expect 0 train lite0.yaml --dry-run train.epochs=1 train.weights.file="$pretrained/efficientnet_lite0.safetensors" vars.same_padding=false vars.bn_eps=1.0e-5 \
  "data.train.transforms.1={normalize: imagenet}"
says "whose weights rely on vars.bn_eps=0.001, vars.same_padding=true, the transform normalize: {mean: [0.498039216, 0.498039216, 0.498039216]"
expect 0 infer other images --output-layer fc --output other.npy
holds "padding makes no difference" sh -c '! "$0" arrays.py compare other.npy "$1"' "$python" "$pretrained/logits.npy"
finish

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `synth`: its output, reproducible for a seed, and its errors.
. "$(dirname "$0")/common.sh"

sums() { (cd "$1" && find . -type f | LC_ALL=C sort | xargs sha256sum); }
files() { find "$1" -type f -name "$2" | wc -l; }

expect 0 synth shapes --count 120 --seed 5
prints "shapes: 96 images in train, 24 in val; classes disc, ring, square, triangle, star, cross"
holds "train has not six classes" test "$(ls shapes/train | tr '\n' ' ')" = "cross disc ring square star triangle "
holds "val has not 4 images of each class" test "$(files shapes/val/star '*')" -eq 4
holds "there are no PNGs" test "$(files shapes '*.png')" -gt 20
holds "there are no JPEGs" test "$(files shapes '*.jpg')" -gt 20
holds "a PNG is no PNG" test "$(find shapes -name '*.png' -exec head -c 4 {} \; | tr -d '\0' | grep -ao PNG | wc -l)" -eq "$(files shapes '*.png')"

# the same again, bit for bit; another seed gives other images
expect 0 synth again --count 120 --seed 5
holds "the same seed gave other images" test "$(sums shapes)" = "$(sums again)"
expect 0 synth other --count 120 --seed 6
holds "another seed gave the same image" test "$(cd shapes && cat val/star/* | sha256sum)" != "$(cd other && cat val/star/* | sha256sum)"

# a trailing slash, folders that do not exist yet, JSON, an empty folder
mkdir -p deep/empty
expect 0 synth deep/empty/ --count 16 --classes 8 --size 40 --val 0.5 --json
prints '"train":8'
prints '"classes":["disc","ring","square","triangle","star","cross","crescent","bar"]'
holds "nothing unfinished stays" test "$(ls deep)" = empty
expect 0 synth new/folders/shapes --count 12
holds "deeper folders are made" test -d new/folders/shapes/val

# refused: a folder with something in it (8), numbers that make no sense (2), a place that cannot be written (8)
expect 8 synth shapes --count 120
says "shapes is not empty; choose another folder, or remove it first"
touch file
expect 8 synth file
says "file is a file; give a folder that does not exist yet"
expect 2 synth few --count 6 --classes 6
says "--count 6 leaves 1 images for each of 6 classes; at least 2 are needed"
expect 2 synth many --classes 9
expect 2 synth small --size 8
expect 2 synth
holds "a refused call left something" test ! -e few -a ! -e many -a ! -e small
if [ "$(id -u)" -ne 0 ]; then
  mkdir locked && chmod a-w locked
  expect 8 synth locked/shapes --count 12
  says "cannot create locked/shapes"
fi
finish

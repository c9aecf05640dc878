// SPDX-License-Identifier: Apache-2.0
#pragma once
// Generated images of shapes, for experiments without photographs: of any colour, size, position
// and angle, on a background of gradient, waves and noise, among lines and dots. Only the outline
// depends on the class, not colour or brightness.
#include <cstdint>
#include <string>
#include <vector>

#include "mxtrain/io/image.h"

namespace mxtrain::tasks {

// Names of the shapes, in the order in which data of fewer classes has them.
const std::vector<std::string>& ShapeNames();

struct SynthImage {
  io::Image image;
  bool jpeg = false;  // else PNG
  int quality = 0;    // of a JPEG

  std::string Bytes() const;  // of the file
  const char* ending() const { return jpeg ? ".jpg" : ".png"; }
};

// Image `number` of the shape (an index into ShapeNames): a pure function of its arguments. Height
// and width are between 3/4 and 3/2 of `size` pixels and differ by up to a fifth.
SynthImage DrawSynthImage(uint64_t seed, size_t shape, int64_t number, int size);

struct SynthObject {
  size_t shape;                  // an index into ShapeNames
  int left, top, right, bottom;  // the edges of its pixels, hidden ones too
};
struct SynthScene {
  SynthImage image;
  // Gray, of its size: 0 background, from 1 the shapes in the order of their names.
  io::Image classes;
  std::vector<SynthObject> objects;  // those of which at least half is seen
};

// Image `number` of one to four shapes of the first `shapes`, which may hide one another: a pure
// function of its arguments, of sizes as those of DrawSynthImage.
SynthScene DrawSynthScene(uint64_t seed, size_t shapes, int64_t number, int size);

}  // namespace mxtrain::tasks

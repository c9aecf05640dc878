// SPDX-License-Identifier: Apache-2.0
#pragma once
// Generated images of shapes, for experiments without photographs: one shape per image, of any
// colour, size, position and angle, on a background of gradient, waves and noise, among lines and
// dots. Only the outline depends on the class, not colour or brightness.
#include <cstdint>
#include <string>
#include <vector>

#include "app/tasks/recipe.h"
#include "mxtrain/io/image.h"

namespace mxtrain::tasks {

// Names of the shapes, in the order in which data of fewer classes has them.
const std::vector<std::string>& ShapeNames();

struct SynthImage {
  io::Image image;
  bool jpeg = false;  // else PNG
  int quality = 0;    // of a JPEG
};

// Image `number` of the shape (an index into ShapeNames): a pure function of its arguments. Height
// and width are between 3/4 and 3/2 of `size` pixels and differ by up to a fifth.
SynthImage DrawSynthImage(uint64_t seed, size_t shape, int64_t number, int size);

// Writes such images into folders of the classes in train/ and val/. Six classes by default. Throws
// kUsage for more than there are shapes, and for too few images; kFileSystem.
SynthResult SynthesizeShapes(const SynthRequest& request);

}  // namespace mxtrain::tasks

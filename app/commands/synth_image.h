#pragma once
// Generated pictures of shapes, to try things on where there are no photographs: one shape per picture, of any colour, size, place and
// angle, on a background of gradient, waves and noise, among lines and dots. The class lies in the outline alone, so colour and coarse
// brightness do not tell it.
#include <cstdint>
#include <string>
#include <vector>

#include "mxtrain/io/image.h"

namespace mxtrain::commands {

// Names of the shapes, in the order in which `synth --classes` takes them.
const std::vector<std::string>& ShapeNames();

struct SynthImage {
  io::Image image;
  bool jpeg = false;  // else PNG
  int quality = 0;    // of a JPEG
};

// Picture `number` of the shape (an index into ShapeNames): a pure function of its arguments. Height and width lie between 3/4 and 3/2 of
// `size` pixels and differ by up to a fifth.
SynthImage DrawSynthImage(uint64_t seed, size_t shape, int64_t number, int size);

}  // namespace mxtrain::commands

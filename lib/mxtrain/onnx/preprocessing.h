// SPDX-License-Identifier: Apache-2.0
#pragma once
// What is done to images before a net sees them, as operators of ONNX in front of it.
#include <string>
#include <vector>

#include "mxtrain/onnx/model.h"

namespace mxtrain::onnx {

struct PixelStep {
  enum Kind {
    kResizeShorter,   // the shorter edge becomes `height`; the longer one is rounded down
    kResize,          // to height x width
    kCenterCrop,      // height x width; half a pixel is rounded to even
    kCenterFraction,  // a square of `fraction` of the shorter edge, rounded down
  };
  Kind kind = kResize;
  int64_t height = 0, width = 0;
  double fraction = 0;
  // Of the resizing. kArea takes the mean of what a pixel covers, or is kLinear along an edge that
  // is not reduced; kAuto is kArea if an edge is at least halved, else kLinear.
  enum Method { kLinear, kCubic, kArea, kAuto };
  Method method = kLinear;
  bool antialias = false;  // of kLinear and kCubic
};

struct Preprocessing {
  std::vector<PixelStep> steps;
  std::vector<float> mean, std;  // per channel, of pixel / 255
};

// Puts the steps before the model's only input, [N, C, H, W] of float32, which then is uint8
// [N, height, width, C]: pixels as decoders give them, RGB. With steps, images are of any size, of
// one size in a batch. kArea and kAuto, which ONNX lacks, are products with matrices of weights
// that the file computes from the size of the images. Resized pixels are rounded to whole numbers,
// as the pipeline does; they may differ by one from those of another implementation. Antialiasing
// raises the model's opset to 18. Throws kConfig if the steps do not give images of H x W, whatever
// their size was, or the model has several inputs or others than images.
MXTRAIN_API void AddPreprocessing(const Preprocessing& preprocessing, Model* model);

// Takes out again what AddPreprocessing put there, for a program that prepares images itself: the
// model's input is that of the net, [N, C, height, width] of float32. False, and the model is as it
// was, if it does not begin as AddPreprocessing left it, for example since another program
// rewrote it.
MXTRAIN_API bool RemovePreprocessing(int64_t height, int64_t width, Model* model);

}  // namespace mxtrain::onnx

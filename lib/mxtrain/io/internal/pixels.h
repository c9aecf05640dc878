// SPDX-License-Identifier: Apache-2.0
#pragma once
// Pixel value operations by a given amount, used by the random transforms. Private to io. In place,
// rounded to 8 bits.
#include "mxtrain/io/image.h"

namespace mxtrain::io {

constexpr double kLuma[3] = {0.299, 0.587, 0.114};  // ITU-R BT.601

// value * factor + offset, on every channel.
MXTRAIN_API void Stretch(double factor, double offset, Image* image);
// Away from the mean luma of the image (factor above 1), or towards it.
MXTRAIN_API void ScaleContrast(double factor, Image* image);
// Away from each pixel's luma, or towards it; no effect on gray images.
MXTRAIN_API void ScaleSaturation(double factor, Image* image);
// Away from a 3x3 blur (weights 1, center 5), or towards it; border pixels are unchanged. *scratch
// is reusable memory.
MXTRAIN_API void ScaleSharpness(double factor, Image* image, Image* scratch);
// Keeps the upper `bits` of each value, 0 .. 8.
MXTRAIN_API void Posterize(int bits, Image* image);
// Inverts the values that are `threshold` or more.
MXTRAIN_API void Solarize(double threshold, Image* image);
// Maps each channel's range to 0 .. 255.
MXTRAIN_API void AutoContrast(Image* image);
// Equalizes each channel's histogram, like PIL's ImageOps.equalize.
MXTRAIN_API void Equalize(Image* image);

}  // namespace mxtrain::io

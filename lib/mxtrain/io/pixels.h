#pragma once
// What is done to the values of pixels, by a given amount: the parts that random transforms are made of. Private to io. In place, rounded
// to 8 bits.
#include "mxtrain/io/image.h"

namespace mxtrain::io {

constexpr double kLuma[3] = {0.299, 0.587, 0.114};  // ITU-R BT.601

// value * factor + offset, on every channel.
MXTRAIN_API void Stretch(double factor, double offset, Image* image);
// Away from the mean luma of the picture (above 1), or towards it.
MXTRAIN_API void ScaleContrast(double factor, Image* image);
// Away from each pixel's luma, or towards it; nothing for gray pictures.
MXTRAIN_API void ScaleSaturation(double factor, Image* image);
// Away from a 3x3 blur (of weights 1, and 5 in the middle), or towards it; the border pixels stay. *scratch is memory to use.
MXTRAIN_API void ScaleSharpness(double factor, Image* image, Image* scratch);
// Keeps the upper `bits` of each value, 0 .. 8.
MXTRAIN_API void Posterize(int bits, Image* image);
// Inverts the values that are `threshold` or more.
MXTRAIN_API void Solarize(double threshold, Image* image);
// Each channel from its least and greatest value to 0 .. 255.
MXTRAIN_API void AutoContrast(Image* image);
// Each channel so that its values are spread evenly, as PIL's ImageOps.equalize.
MXTRAIN_API void Equalize(Image* image);

}  // namespace mxtrain::io

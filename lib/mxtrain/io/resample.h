#pragma once
// Antialiased resizing, to the pixels that Pillow makes of the same box. Private to io.
#include "mxtrain/io/crop_resize.h"

namespace mxtrain::io {

// What ApplyToPixels does with a crop that is resized and antialiased, bilinear or cubic. Each new pixel is a mean of those within the
// filter's support, which grows with the factor by which the image shrinks: 1 pixel for bilinear, 2 for cubic (a = -0.5). Taps beyond the
// box are left out. Along rows first, and then along columns; each pass rounds to 8 bits.
void Resample(const CropResize& crop, const Image& from, const Frame& frame, uint8_t* pixels);

}  // namespace mxtrain::io

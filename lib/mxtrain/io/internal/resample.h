// SPDX-License-Identifier: Apache-2.0
#pragma once
// Antialiased resizing with the same pixels as Pillow for the same box. Private to io.
#include "mxtrain/io/crop_resize.h"

namespace mxtrain::io {

// ApplyToPixels for an antialiased resize, bilinear or cubic. Each new pixel is a weighted mean
// over the filter's support (1 pixel for bilinear, 2 for cubic with a = -0.5), which scales with
// the reduction factor. Taps outside the box are skipped. First along rows, then along columns, or
// the other way round where the height shrinks by more than twice as many pixels as the width; each
// pass rounds to 8 bits.
void Resample(const CropResize& crop, const Image& from, const Frame& frame, uint8_t* pixels);

}  // namespace mxtrain::io

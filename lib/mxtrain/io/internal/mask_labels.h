// SPDX-License-Identifier: Apache-2.0
#pragma once
// Labels that are classes of the pixels of an image. Private to io.
#include <optional>

#include "mxtrain/base/expected.h"
#include "mxtrain/io/image_origin.h"
#include "mxtrain/io/source.h"

namespace mxtrain::io {

inline constexpr float kNoClassLabel = -1;  // of a pixel of no class, and of padding

// Writes to the row `to`, [H, W], for each pixel the class of the pixel of `classes` (a FieldValue)
// that its centre comes from; where the image shows nothing of its file, and for kNoClass,
// kNoClassLabel. Refuses a mask whose size is not that of the file of `origin`.
MXTRAIN_API std::optional<Refusal> WriteMask(const FieldSpec& spec, const Image& classes,
                                             const ImageOrigin& origin, const TShape& shape,
                                             float* to);

}  // namespace mxtrain::io

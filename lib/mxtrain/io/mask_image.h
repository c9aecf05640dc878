// SPDX-License-Identifier: Apache-2.0
#pragma once
// Masks: images whose pixels are classes.
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "mxtrain/base/expected.h"
#include "mxtrain/io/image.h"

namespace mxtrain::io {

// How the files of a data set say the classes of pixels: as numbers, which an indexed PNG holds as
// its indices and others as gray, or as colours. Immutable: calls may come from any thread.
class MXTRAIN_API MaskCode {
 public:
  // `classes`: how many there are, numbered from 0; 0: every number but the ignored ones is one.
  // `colours`: "#rrggbb" of each class; empty: pixels are numbers. `ignored`: numbers, or with
  // colours "#rrggbb", of pixels of no class. Throws kConfig for what is neither, for a number of
  // colours that is not that of the classes, for two of one meaning, and for more than 255 classes.
  MaskCode(int64_t classes, const std::vector<std::string>& colours,
           const std::vector<std::string>& ignored);

  // Decodes a file to a gray image of class numbers and kNoClass (source.h). Refuses what cannot be
  // decoded, a JPEG or WebP, which do not keep numbers, and a value of no meaning, with its place.
  std::optional<Refusal> Decode(std::string_view bytes, ImageDecoder* decoder,
                                Image* classes) const;

 private:
  std::optional<Refusal> FromNumbers(Image* image) const;
  std::optional<Refusal> FromColours(const Image& image, Image* classes) const;

  std::array<uint8_t, 256> class_of_;  // of a number
  std::array<bool, 256> known_;
  std::unordered_map<uint32_t, uint8_t> class_of_colour_;  // empty: pixels are numbers
};

}  // namespace mxtrain::io

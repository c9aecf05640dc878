#pragma once
// Words on a picture, for people who look through what a model said.
#include <string>

#include "mxtrain/io/image.h"

namespace mxtrain::io {

// Draws a line of text onto a dark band along the upper edge; the letters are as large as the width lets them be, up to a twelfth of the
// height. *image becomes RGB; one whose shorter edge is below 128 pixels is first enlarged by a whole number, so that letters can be read,
// as far as the longer edge stays within 4096.
// The font knows ASCII: a character that is not becomes '?'. Throws kData for an empty picture.
MXTRAIN_API void DrawLabel(const std::string& text, Image* image);

}  // namespace mxtrain::io

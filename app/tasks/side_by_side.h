// SPDX-License-Identifier: Apache-2.0
#pragma once
// Images of what was given beside what was asked and answered.
#include "mxtrain/io/image.h"

namespace mxtrain::tasks {

// Two images side by side with a white line between them, on black where they differ in height;
// gray ones beside RGB become RGB.
io::Image Beside(const io::Image& left, const io::Image& right);

}  // namespace mxtrain::tasks

// SPDX-License-Identifier: Apache-2.0
#pragma once
// train.multi_scale: the sizes of training images.
#include <vector>

#include "app/session/session_view.h"
#include "mxtrain/io/multi_scale.h"

namespace mxtrain::session {

// Reports values out of range, and a net whose input is not one image.
void CheckImageSizes(const SessionView& session);

// Of checked values: by rising area, that of the net's input among them; empty without the key.
std::vector<io::ImageSize> ImageSizes(const config::Config& config, const config::Net& net);

// The net with its input of that size.
config::Net WithImageSize(config::Net net, io::ImageSize size);

}  // namespace mxtrain::session

// SPDX-License-Identifier: Apache-2.0
#include "my_channel_scale.h"

MXTRAIN_OPERATOR(my_channel_scale, registry) {
  registry.AddProperty("my_channel_scale", {},
                       [] { return std::make_unique<my_channel_scale::Property>(); });
}

// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/device/cpu/onednn/version.h"

namespace mxtrain {

std::string OneDnnVersion() {
  return "";
}

}  // namespace mxtrain

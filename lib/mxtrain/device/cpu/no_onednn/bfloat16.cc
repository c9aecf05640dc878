// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/device/cpu/onednn/bfloat16.h"

namespace mxtrain {

std::string WhyNoBfloat16() {
  return "this build has no oneDNN";
}

}  // namespace mxtrain

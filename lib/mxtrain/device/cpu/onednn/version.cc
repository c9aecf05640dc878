// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/device/cpu/onednn/version.h"

#include "mxtrain/base/format.h"
#include "mxtrain/device/cpu/onednn/internal/call.h"

namespace mxtrain {

std::string OneDnnVersion() {
  const dnnl_version_t* v = dnnl_version();
  return format("{}.{}.{}", v->major, v->minor, v->patch);
}

}  // namespace mxtrain

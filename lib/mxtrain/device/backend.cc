// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/device/backend.h"

#include "mxtrain/base/error.h"

namespace mxtrain {

void CheckDevice(const Backend& backend, Context ctx) {
  if (const std::string why = backend.WhyAbsent(); !why.empty())
    Throw(ErrorKind::kDevice, "{} is not available: {}", ctx.ToString(), why);
  if (ctx.id >= backend.DeviceCount()) {
    Throw(ErrorKind::kDevice, "{} is not available: this machine has {}", ctx.ToString(),
          Counted(backend.DeviceCount(), "such device"));
  }
}

}  // namespace mxtrain

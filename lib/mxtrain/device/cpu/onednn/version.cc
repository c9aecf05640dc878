#include "mxtrain/device/cpu/onednn/version.h"

#include "mxtrain/base/format.h"
#include "mxtrain/device/cpu/onednn/internal.h"

namespace mxtrain {

std::string OneDnnVersion() {
  const dnnl_version_t* v = dnnl_version();
  return format("{}.{}.{}", v->major, v->minor, v->patch);
}

}  // namespace mxtrain

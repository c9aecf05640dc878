// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/ndarray/as_float32.h"

#include <algorithm>

#include "mxtrain/ndarray/internal/with_type.h"

namespace mxtrain {

TBlob AsFloat32(const TBlob& blob, std::vector<float>* room) {
  if (blob.type == DType::kFloat32) return blob;
  room->resize(static_cast<size_t>(blob.Size()));
  WithType(blob.type, [&](auto tag) {
    using T = decltype(tag);
    std::transform(blob.dptr<T>(), blob.dptr<T>() + blob.Size(), room->begin(),
                   [](T v) { return static_cast<float>(v); });
  });
  TBlob converted = blob;
  converted.data = room->data();
  converted.type = DType::kFloat32;
  return converted;
}

void RequireHostFloat32(const TBlob& blob, const char* what, const std::string& name) {
  if (blob.type == DType::kFloat32 && blob.layout.plain() && blob.ctx.type != DeviceType::kGPU)
    return;
  Throw(ErrorKind::kBug, "{} {} reads plain float32 arrays on the host, not {} in layout {} on {}",
        what, name, NameOf(blob.type), blob.layout.Name(), blob.ctx.ToString());
}

}  // namespace mxtrain

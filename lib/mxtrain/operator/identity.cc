// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/identity.h"

#include <cstring>

namespace mxtrain {

void CopyBlob(const OnCpu& device, OpReqType req, const TBlob& from, const TBlob& to) {
  MXTRAIN_ASSERT(from.type == to.type && from.StoredSize() == to.StoredSize());
  if (req == OpReqType::kAddTo) {
    SwitchType(to.type, "a copy", [&](auto tag) {
      using T = typename decltype(tag)::type;
      MapOn<T>(device, to, req, [x = from.dptr<T>()](int64_t i) { return AccumulatorOf<T>(x[i]); });
    });
  } else if (req != OpReqType::kNullOp && from.data != to.data) {
    const int64_t width = SizeOf(to.type);
    ParallelFor(to.StoredSize(), 4 * kParallelGrain, [&](int64_t begin, int64_t end) {
      std::memcpy(to.dptr<char>() + begin * width, from.dptr<char>() + begin * width,
                  static_cast<size_t>((end - begin) * width));
    });
  }
}

void ZeroBlob(const OnCpu&, OpReqType req, const TBlob& to) {
  const int64_t bytes = to.StoredSize() * SizeOf(to.type);
  if (req != OpReqType::kNullOp && req != OpReqType::kAddTo && bytes > 0)
    std::memset(to.data, 0, static_cast<size_t>(bytes));
}

}  // namespace mxtrain

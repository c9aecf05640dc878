// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/kvstore/internal/rounded_gradient.h"

#include "mxtrain/base/math.h"

namespace mxtrain {
namespace {

constexpr int64_t kAlignment = 64;

// All elements of an array in this type.
NDArray Flat(const NDArray& owner, int64_t byte_offset, int64_t elements, DType type) {
  return NDArray(owner, byte_offset, TShape({elements}), type, {});
}

PreparedCall Cast(const NDArray& from, const NDArray& to) {
  return PreparedCall("Cast", std::span(&from, 1), std::span(&to, 1), OpReqType::kWriteTo,
                      Kwargs{{"dtype", NameOf(to.dtype())}}, {});
}

}  // namespace

int64_t StoredElements(const TensorSpec& spec) {
  return spec.Bytes() / SizeOf(spec.type);
}

int64_t AlignedInBuffer(int64_t bytes) {
  return CeilDivide(bytes, kAlignment) * kAlignment;
}

RoundedGradient::RoundedGradient(const NDArray& gradient, const NDArray& buffer,
                                 int64_t byte_offset)
    : gradient_(gradient),
      leave_(Cast(Flat(gradient, 0, StoredElements(gradient.spec()), DType::kFloat32),
                  Flat(buffer, byte_offset, StoredElements(gradient.spec()), DType::kBfloat16))),
      come_back_(Cast(Flat(buffer, byte_offset, StoredElements(gradient.spec()), DType::kBfloat16),
                      Flat(gradient, 0, StoredElements(gradient.spec()), DType::kFloat32))) {}

}  // namespace mxtrain

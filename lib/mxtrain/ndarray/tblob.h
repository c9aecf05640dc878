// SPDX-License-Identifier: Apache-2.0
#pragma once
// A non-owning view of an array's bytes for kernels; trivially copyable.
#include <type_traits>

#include "mxtrain/device/context.h"
#include "mxtrain/device/layout.h"

namespace mxtrain {

struct TBlob {
  // Null: not given (a backward input that the plan does not read), or no elements.
  void* data = nullptr;
  TShape shape;
  DType type = DType::kUnknown;
  Layout layout;
  Context ctx;

  template <typename T>
  MXTRAIN_HD T* dptr() const {
    return static_cast<T*>(data);
  }
  int64_t Size() const { return shape.Size(); }
  // Elements including padding, for flat kernels.
  int64_t StoredSize() const {
    return layout.plain() ? shape.Size() : layout.Bytes(shape, type) / SizeOf(type);
  }
};
static_assert(std::is_trivially_copyable_v<TBlob>);

}  // namespace mxtrain

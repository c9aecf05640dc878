// SPDX-License-Identifier: Apache-2.0
#pragma once
// A layout that a kernel computes from an array and that cannot be converted back, such as weights
// transformed once for inference. An array requested in such a layout is created beside the
// original, which is unchanged.
#include "mxtrain/device/layout.h"

namespace mxtrain {

class MXTRAIN_API DerivedLayout : public LayoutDesc {
 public:
  // `from` is plain or a BlockedLayout; `to` has Bytes(from.shape, from.type). Uses the calling
  // thread's team.
  virtual void Derive(const TensorSpec& from, const void* source, void* to) const = 0;
};

// Null for layouts that can be converted back.
inline const DerivedLayout* Derived(Layout layout) {
  return dynamic_cast<const DerivedLayout*>(layout.desc());
}

}  // namespace mxtrain

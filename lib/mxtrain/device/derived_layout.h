#pragma once
// A form that a kernel computes from an array and that cannot be turned back, as weights transformed once for inference. Where an array is
// asked for in such a form, it is made beside the array, which keeps its own.
#include "mxtrain/device/layout.h"

namespace mxtrain {

class MXTRAIN_API DerivedLayout : public LayoutDesc {
 public:
  // `from` is plain or a BlockedLayout; `to` has Bytes(from.shape, from.type). Uses the calling thread's team.
  virtual void Derive(const TensorSpec& from, const void* source, void* to) const = 0;
};

// Null for layouts that can be turned back.
inline const DerivedLayout* Derived(Layout layout) {
  return dynamic_cast<const DerivedLayout*>(layout.desc());
}

}  // namespace mxtrain

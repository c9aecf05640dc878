// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "mxtrain/operator/property.h"

namespace mxtrain {

// A property also implements this if arguments may be missing: in a symbol they are then zeros
// (RNN's initial states), while other missing arguments become variables.
class MXTRAIN_API ZerosIfMissing {
 public:
  virtual ~ZerosIfMissing() = default;
  virtual bool IsZeroIfMissing(int argument) const = 0;
};

inline bool IsZeroIfMissing(const OperatorProperty& op, int argument) {
  const auto* some = dynamic_cast<const ZerosIfMissing*>(&op);
  return some && some->IsZeroIfMissing(argument);
}

}  // namespace mxtrain

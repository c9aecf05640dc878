// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/operator.h"

#include "mxtrain/base/error.h"

namespace mxtrain {

void Operator::Backward(const OpContext&, std::span<const TBlob>, std::span<const TBlob>,
                        std::span<const TBlob>, std::span<const OpReqType>, std::span<const TBlob>,
                        std::span<const TBlob>) {
  Throw(ErrorKind::kBug,
        "Backward was called on an operator without a backward pass; its kernel must refuse such "
        "plans");
}

}  // namespace mxtrain

#include "mxtrain/operator/operator.h"

#include "mxtrain/base/error.h"

namespace mxtrain {

void Operator::Backward(const OpContext&, std::span<const TBlob>, std::span<const TBlob>, std::span<const TBlob>,
                        std::span<const OpReqType>, std::span<const TBlob>, std::span<const TBlob>) {
  Throw(ErrorKind::kBug, "Backward was called on an operator that has none; its row must refuse plans that need a backward pass");
}

}  // namespace mxtrain

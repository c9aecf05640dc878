// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/operator.h"

#include "mxtrain/base/error.h"

namespace mxtrain {
namespace {

[[noreturn]] void NoBackward() {
  Throw(ErrorKind::kBug,
        "Backward was called on an operator without a backward pass; its kernel must refuse such "
        "plans");
}

}  // namespace

void Operator::Backward(const BackwardArgs&) {
  NoBackward();
}

void PositionalOperator::Backward(const OpContext&, std::span<const TBlob>, std::span<const TBlob>,
                                  std::span<const TBlob>, std::span<const OpReqType>,
                                  std::span<const TBlob>, std::span<const TBlob>) {
  NoBackward();
}

void PositionalOperator::Forward(const ForwardArgs& args) {
  Forward(args.ctx, args.in_data, args.req, args.out_data, args.aux_states);
}

void PositionalOperator::Backward(const BackwardArgs& args) {
  Backward(args.ctx, args.out_grad, args.in_data, args.out_data, args.req, args.in_grad,
           args.aux_states);
}

}  // namespace mxtrain

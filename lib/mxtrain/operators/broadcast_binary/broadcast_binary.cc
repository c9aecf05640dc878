// SPDX-License-Identifier: Apache-2.0
// Functions of two arrays whose axes have equal length or length 1. The ranks must be equal.
#include "mxtrain/operators/elemwise_binary/elemwise_binary.h"
#include "mxtrain/operators/elemwise_binary/formula.h"

namespace mxtrain::broadcast_binary {
namespace {

TShape BroadcastShape(const TShape& lhs, const TShape& rhs, const EnvArguments&) {
  const auto fail = [&] {
    Throw(ErrorKind::kConfig,
          "shapes {} and {} do not broadcast: each axis must have the same length in both, or "
          "length 1 in one",
          lhs.ToString(), rhs.ToString());
  };
  if (lhs.ndim() != rhs.ndim()) fail();
  TShape out = lhs;
  for (int i = 0; i < lhs.ndim(); ++i) {
    if (lhs[i] != rhs[i] && lhs[i] != 1 && rhs[i] != 1) fail();
    out[i] = lhs[i] == 1 ? rhs[i] : lhs[i];
  }
  return out;
}

}  // namespace

MXTRAIN_OPERATOR(broadcast_binary, registry) {
  elemwise_binary::ForEachBinary([&registry](auto f) {
    using F = decltype(f);
    SimpleOp(registry, F::kBroadcastName)
        .set_shape_function(BroadcastShape)
        .describe(
            format("{}, element by element; an axis of length 1 is repeated along the other's",
                   elemwise_binary::Formula(F::kBroadcastName, "lhs", "rhs")));
  });
  SimpleOp(registry, "broadcast_add").add_alias("broadcast_plus");
  SimpleOp(registry, "broadcast_sub").add_alias("broadcast_minus");
}

}  // namespace mxtrain::broadcast_binary

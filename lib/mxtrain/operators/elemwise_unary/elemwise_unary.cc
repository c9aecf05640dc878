#include "mxtrain/operators/elemwise_unary/elemwise_unary.h"

namespace mxtrain::elemwise_unary {

MXTRAIN_OPERATOR(elemwise_unary, registry) {
  ForEachUnary([&registry](auto f) {
    using F = decltype(f);
    SimpleOp(registry, F::kName).describe(format("{} of every element", F::kName));
  });
  SimpleOp(registry, "_copy").add_alias("identity").set_identity({{0, 0}}, {{0, 0}}).describe("the input itself");
}

}  // namespace mxtrain::elemwise_unary

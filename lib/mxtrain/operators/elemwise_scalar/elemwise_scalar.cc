// SPDX-License-Identifier: Apache-2.0
// An array and a number: f(x, scalar), and the reversed variants f(scalar, x).
#include "mxtrain/operators/elemwise_binary/formula.h"
#include "mxtrain/operators/elemwise_scalar/elemwise_scalar_loops.h"

namespace mxtrain::elemwise_scalar {
namespace {

void Describe(OperatorRegistry& registry, const std::string& name, const std::string& alias,
              const std::string& text) {
  SimpleOp(registry, name + "_scalar").add_alias(alias).set_enable_scalar(true).describe(text);
}

}  // namespace

MXTRAIN_OPERATOR(elemwise_scalar, registry) {
  ForEachScalar([&registry](auto f) {
    SimpleOp(registry, std::string(f.kName) + "_scalar").set_elementwise(f.kElementwise);
  });
  elemwise_binary::ForEachBinary([&registry](auto f) {
    using F = decltype(f);
    const std::string alias = elemwise_binary::CamelCase(std::string(F::kScalarName) + "_scalar");
    Describe(registry, F::kScalarName, alias,
             elemwise_binary::Formula(F::kBroadcastName, "data", "scalar") + ", for every element");
    if (*F::kReversedName)
      Describe(
          registry, F::kReversedName, "_R" + alias.substr(1),
          elemwise_binary::Formula(F::kBroadcastName, "scalar", "data") + ", for every element");
  });
}

}  // namespace mxtrain::elemwise_scalar

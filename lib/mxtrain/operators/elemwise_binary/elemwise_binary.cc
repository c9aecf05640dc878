// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/elemwise_binary/elemwise_binary.h"

#include <algorithm>
#include <cctype>

#include "mxtrain/operators/elemwise_binary/formula.h"

namespace mxtrain::elemwise_binary {

std::string Capitalised(const std::string& name) {
  std::string text = name;
  for (size_t i = 1; i < text.size(); ++i) {
    if (text[i - 1] == '_') text[i] = static_cast<char>(std::toupper(text[i]));
  }
  return text;
}

std::string CamelCase(const std::string& name) {
  std::string text = Capitalised(name);
  text.erase(std::remove(text.begin() + 1, text.end(), '_'), text.end());
  return text;
}

MXTRAIN_OPERATOR(elemwise_binary, registry) {
  ForEachBinary([&registry](auto f) {
    using F = decltype(f);
    SimpleOp op(registry, F::kName);
    op.set_elementwise(F::kElementwise)
        .describe(format("{}, element-wise; both arrays have the same shape",
                         Formula(F::kBroadcastName, "lhs", "rhs")));
    if (F::kName[0] == '_') op.add_alias(Capitalised(F::kName));
  });
  SimpleOp(registry, "elemwise_add")
      .add_alias("_plus")
      .add_alias("_Plus")
      .add_alias("_add")
      .set_mixed_precision({MixedPrecision::kFollows})
      .set_identity({}, {{0, 0}, {0, 1}});
  SimpleOp(registry, "elemwise_sub")
      .add_alias("_minus")
      .add_alias("_Minus")
      .add_alias("_sub")
      .set_identity({}, {{0, 0}});
  SimpleOp(registry, "elemwise_mul").add_alias("_mul").add_alias("_Mul");
  SimpleOp(registry, "elemwise_div").add_alias("_div").add_alias("_Div");
  SimpleOp(registry, "_grad_add")
      .set_elementwise(Add::kElementwise)
      .set_identity({}, {{0, 0}, {0, 1}})
      .describe("the sum of two gradients");
}

}  // namespace mxtrain::elemwise_binary

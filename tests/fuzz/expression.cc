// SPDX-License-Identifier: Apache-2.0
// Expressions in ${...}.
#include "app/config/expression.h"

#include "tests/fuzz/fuzz_target.h"

namespace mxtrain::fuzz {

std::vector<std::string> LargeInputs() {
  std::string sum = "1", texts = "'a'";
  for (int i = 0; i < 100'000; ++i) sum += "+1";
  for (int i = 0; i < 100'000; ++i) texts += "+'a'";
  return {sum, texts, std::string(200'000, '('), std::string(200'000, '!'),
          std::string(200'000, '1')};
}

}  // namespace mxtrain::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace mxtrain;
  using namespace mxtrain::fuzz;
  const std::string text(TextOf(data, size));
  config::Names names;
  names.lookup = [](std::string_view name) -> std::optional<config::Constant> {
    if (name == "width") return int64_t{64};
    if (name == "rate") return 0.5;
    if (name == "mode") return std::string("max");
    return std::nullopt;
  };
  names.known = [] { return std::vector<std::string>{"width", "rate", "mode"}; };
  try {
    config::Evaluate(text, names);
  } catch (const config::ExpressionError&) {
  }
  try {
    config::Expand(config::Value::Scalar(text), names);
  } catch (const config::ExpressionError&) {
  }
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/initializer/internal/initializers.h"

namespace mxtrain {
namespace {

struct Ending {
  const char* text;
  double value;
};
constexpr Ending kEndings[] = {
    {"_bias", 0},        {"_gamma", 1},     {"_beta", 0},       {"moving_mean", 0},
    {"running_mean", 0}, {"moving_var", 1}, {"running_var", 1}, {"moving_inv_var", 0},
    {"moving_avg", 0},   {"_min", 0},       {"_max", 1}};

// A spatial transformer starts as the identity: [1 0 0; 0 1 0].
void InitializeIdentityTransform(const std::string& name, NDArray* array) {
  if (array->shape().Size() != 6) {
    Throw(ErrorKind::kConfig,
          "'{}' of shape {}: the bias of a localisation net must have the 6 numbers of an affine "
          "transform",
          name, array->shape().ToString());
  }
  InitializeElements(name, array, [](int64_t i) { return i == 0 || i == 4 ? 1.0f : 0.0f; });
}

}  // namespace

void InitializeByName(const std::string& name, std::string_view init_attribute,
                      const Initializer& weights, uint64_t seed, NDArray* array) {
  if (!init_attribute.empty()) {
    try {
      return Initializer::FromAttribute(init_attribute)->Initialize(name, seed, array);
    } catch (const Error&) {
      RethrowWithPrefix(std::current_exception(), "parameter '" + name + "'");
    }
  }
  if (name.starts_with("upsampling")) return NewBilinear({})->Initialize(name, seed, array);
  if (name.starts_with("stn_loc") && name.ends_with("_weight")) return array->Fill(0);
  if (name.starts_with("stn_loc") && name.ends_with("_bias"))
    return InitializeIdentityTransform(name, array);
  if (name.ends_with("_weight")) return weights.Initialize(name, seed, array);
  for (const Ending& ending : kEndings) {
    if (name.ends_with(ending.text)) return array->Fill(ending.value);
  }
  if (name.ends_with("_label")) {
    Throw(ErrorKind::kConfig,
          "no data for the label '{}': the net has more losses than the data have labels (Softmax "
          "is an alias of "
          "SoftmaxOutput, which is a loss; SoftmaxActivation is not)",
          name);
  }
  std::string endings = "_weight";
  for (const Ending& ending : kEndings) endings += format(", {}", ending.text);
  Throw(ErrorKind::kConfig,
        "no initializer for parameter '{}': its name ends in none of {}; declare `init` on it, "
        "such as init: zero or init: [xavier, "
        "{{magnitude: 2}}]",
        name, endings);
}

}  // namespace mxtrain

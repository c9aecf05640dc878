// SPDX-License-Identifier: Apache-2.0
#include "app/tasks/recipe_text.h"

#include <algorithm>
#include <vector>

#include "mxtrain/base/format.h"

namespace mxtrain::tasks {
namespace {

constexpr int kColumn = 42;  // of comments

std::string Numbers(const std::vector<double>& numbers) {
  std::string text;
  for (const double number : numbers) text += format("{}{:.9g}", text.empty() ? "" : ", ", number);
  return "[" + text + "]";
}

}  // namespace

std::string TextLine(std::string text, const std::string& comment) {
  if (!comment.empty()) {
    text.resize(std::max<size_t>(text.size() + 1, kColumn), ' ');
    text += "# " + comment;
  }
  return text + "\n";
}

std::string NormalizeText(const ZooWeights& weights, bool from_weights) {
  if (!from_weights || !weights.family) return "normalize: imagenet";
  const config::WeightsFamily usual;
  const config::WeightsFamily& family = *weights.family;
  if (family.mean == usual.mean && family.std == usual.std) return "normalize: imagenet";
  return format("normalize: {{mean: {}, std: {}}}", Numbers(family.mean), Numbers(family.std));
}

}  // namespace mxtrain::tasks

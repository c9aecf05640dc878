// SPDX-License-Identifier: Apache-2.0
// The rotation of queries and keys: products with tables of cosines and sines for each place.
#include <cmath>

#include "mxtrain/base/error.h"
#include "mxtrain/onnx/internal/export_node.h"

namespace mxtrain::onnx {
namespace {

void RotaryEmbedding(ExportNode& node) {
  if (node.Get<bool>("use_position")) node.Refuse("it is given positions");
  const TShape& shape = node.in_shape(0);
  const int last = node.ndim() - 1;
  const int64_t depth = shape[last], tokens = shape[last - 1];
  const int64_t turned = node.Get<std::optional<int64_t>>("rotary_dim").value_or(depth),
                pairs = turned / 2;
  const auto base = node.Get<double>("base");
  std::vector<float> cosines, sines;
  for (int64_t token = 0; token < tokens; ++token) {
    for (int64_t pair = 0; pair < pairs; ++pair) {
      const double angle = static_cast<double>(token) *
                           std::pow(base, -static_cast<double>(pair) / static_cast<double>(pairs));
      cosines.push_back(static_cast<float>(std::cos(angle)));
      sines.push_back(static_cast<float>(std::sin(angle)));
    }
  }
  const std::string cosine = node.Floats({tokens, pairs}, cosines),
                    sine = node.Floats({tokens, pairs}, sines);
  const auto part = [&](int64_t begin, int64_t end, int64_t step) {
    return node.Add("Slice", {node.in(0), node.Ints({begin}), node.Ints({end}), node.Ints({last}),
                              node.Ints({step})});
  };
  const bool interleaved = node.Get<bool>("interleaved");
  const std::string first = interleaved ? part(0, turned, 2) : part(0, pairs, 1),
                    second = interleaved ? part(1, turned, 2) : part(pairs, turned, 1);
  const auto mixed = [&](const std::string& a, const std::string& b, const char* op) {
    return node.Add(op, {node.Add("Mul", {first, a}), node.Add("Mul", {second, b})});
  };
  const std::string real = mixed(cosine, sine, "Sub"), imaginary = mixed(sine, cosine, "Add");
  std::string result;
  if (interleaved) {
    TShape joined = shape;
    joined[last] = turned;
    std::vector<int64_t> apart(shape.begin(), shape.end());
    apart[static_cast<size_t>(last)] = pairs;
    apart.push_back(2);
    const std::string both = node.Add(
        "Concat", {node.Unsqueeze(real, {last + 1}), node.Unsqueeze(imaginary, {last + 1})},
        {{"axis", int64_t{last + 1}}});
    result = node.Reshape(both, TShape(apart), joined);
  } else {
    result = node.Add("Concat", {real, imaginary}, {{"axis", int64_t{last}}});
  }
  if (turned < depth)
    result = node.Add("Concat", {result, part(turned, depth, 1)}, {{"axis", int64_t{last}}});
  node.OutIs(result);
}

}  // namespace

std::vector<ExportEntry> RotationExports() {
  return {{"rotary_embedding", RotaryEmbedding}};
}

}  // namespace mxtrain::onnx

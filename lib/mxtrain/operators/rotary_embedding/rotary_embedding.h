// SPDX-License-Identifier: Apache-2.0
#pragma once
// rotary_embedding(data): turns pairs of elements of queries and keys by angles in proportion to a
// token's position, so that their products depend on the distance of the tokens (Su et al. 2021,
// "RoFormer", arXiv 2104.09864).
//
//   data      [batch, ..., tokens, depth]
//   position  [batch], with use_position: of the first token of each row; the others follow it.
//             Without, it is 0.
//
// Pair i of n = rotary_dim / 2 has the angle a = position base^(-i / n), and becomes
//   (x cos a - y sin a, x sin a + y cos a).
// Its elements are i and n + i, as in Llama and GPT-NeoX, or with `interleaved` 2 i and 2 i + 1, as
// in the paper. Elements from rotary_dim on stay. The gradient is turned back by the same angle;
// positions have none.
//
// Angles are computed in double, once for all heads.
#include <optional>
#include <string>
#include <vector>

#include "mxtrain/operator/property.h"

namespace mxtrain::rotary {

struct RotaryParam : Parameter<RotaryParam> {
  double base;
  std::optional<int64_t> rotary_dim;
  bool interleaved, use_position;
  static void Declare(Fields<RotaryParam>& f) {
    f.Add("base", &RotaryParam::base)
        .Range(1, 1e12)
        .Default(10000)
        .Help("of the angles: pair i of n turns by base^(-i / n) with each token");
    f.Add("rotary_dim", &RotaryParam::rotary_dim)
        .Range(2, int64_t{1} << 30)
        .Default(std::nullopt)
        .Help("elements that are turned, an even number; None: all");
    f.Add("interleaved", &RotaryParam::interleaved)
        .Default(false)
        .Help("pairs are neighbours; else an element of the first half and one of the second");
    f.Add("use_position", &RotaryParam::use_position)
        .Default(false)
        .Help("a second input, position: that of the first token of each row of the batch");
  }
};

// The extents of an array.
struct RotarySetup {
  int64_t batch = 0, heads = 1, tokens = 0, depth = 0;
  int64_t pairs = 0;
  double base = 1;
  bool interleaved = false, use_position = false;

  int64_t angles() const { return (use_position ? batch : 1) * tokens * pairs; }
};

class RotaryProperty final : public PropertyWithParam<RotaryParam> {
 public:
  enum Argument { kData, kPosition };

  std::string TypeString() const override { return "rotary_embedding"; }
  std::string Description() const override {
    return "turns pairs of elements by angles in proportion to a token's position";
  }
  MixedPrecision mixed_precision() const override { return {MixedPrecision::kFollows, 1}; }
  std::vector<std::string> ListArguments() const override;
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;
  bool InferType(std::vector<DType>* in, std::vector<DType>* out,
                 std::vector<DType>* aux) const override;
  std::vector<int> DeclareBackwardDependency(const std::vector<int>& out_grad,
                                             const std::vector<int>& in_data,
                                             const std::vector<int>& out_data) const override;
  bool HasGradient(int argument) const override { return argument == kData; }
  std::vector<InplacePair> ForwardInplaceOption() const override { return {{kData, 0}}; }
  std::vector<InplacePair> BackwardInplaceOption() const override { return {{0, kData}}; }

  // For data of a known shape.
  MXTRAIN_API RotarySetup Prepare(const TShape& data) const;
};

}  // namespace mxtrain::rotary

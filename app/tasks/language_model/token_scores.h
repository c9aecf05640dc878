// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where the probabilities of the token that comes next are in the output of a net.
#include <optional>

#include "mxtrain/base/shape.h"

namespace mxtrain::tasks {

struct TokenLayout {
  int64_t length = 0, tokens = 0;
  bool tokens_last = false;

  size_t size() const { return static_cast<size_t>(length * tokens); }  // numbers of an example
  size_t At(size_t place, size_t token) const {
    return tokens_last ? place * static_cast<size_t>(tokens) + token
                       : token * static_cast<size_t>(length) + place;
  }
};

// Of an output [N, tokens, length] (SoftmaxOutput with multi_output) or [N, length, tokens]
// (preserve_shape) for labels [N, length]. Nothing for other shapes, and if both would fit.
inline std::optional<TokenLayout> TokenLayoutOf(const TShape& output, const TShape& label) {
  if (!output.known() || !label.known() || output.ndim() != 3 || label.ndim() != 2 ||
      label[0] != output[0])
    return std::nullopt;
  const bool first = output[2] == label[1], last = output[1] == label[1];
  if (first == last) return std::nullopt;
  return TokenLayout{label[1], first ? output[1] : output[2], last};
}

}  // namespace mxtrain::tasks

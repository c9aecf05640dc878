// SPDX-License-Identifier: Apache-2.0
#pragma once
// The name of an array beside the labels of packed documents: [batch, length], of each token its
// number in its document, from 0, and -1 at padding. A net is bound to it by WithPackedTokens
// (train/packed_tokens.h).
#include "mxtrain/io/source.h"

namespace mxtrain {

inline constexpr const char* kTokenPosition = "token_position";

namespace io {

// Whether the examples of a source have one label, beside which may be this one.
inline bool HasOneLabel(const Source& source) {
  const std::vector<FieldSpec>& labels = source.label_fields();
  return labels.size() == 1 || (labels.size() == 2 && labels[1].name == kTokenPosition);
}

}  // namespace io

}  // namespace mxtrain

// SPDX-License-Identifier: Apache-2.0
#pragma once
// A language model on rows of several documents (io/token_position.h): the net as it is written,
// for one text, changed so that each document is computed as if it were alone. Causal attention
// sees the segments of the documents; constants with a value for each place, such as positions that
// are learnt, are read at the places of tokens in their documents; rotated queries and keys depend
// on distances alone, so they stay. Which layers keep tokens apart is decided as for running token
// by token (train/token_steps.h). The net of checkpoints and models is not changed.
#include <string>

#include "mxtrain/symbol/symbol.h"

namespace mxtrain {

// Throws kConfig, naming the layer, for a loss that does not ignore the label -1 (use_ignore,
// ignore_label).
MXTRAIN_API void RequireIgnoredLabels(const Symbol& net);

// `net` reads `input` [batch, length]; the result reads kTokenPosition [batch, length] too. Throws
// kConfig, naming the layer, if another layer than causal attention may mix tokens, and what
// RequireIgnoredLabels throws.
MXTRAIN_API Symbol WithPackedTokens(const OperatorRegistry& operators, const Symbol& net,
                                    const std::string& input, int64_t length);

}  // namespace mxtrain

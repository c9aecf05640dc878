// SPDX-License-Identifier: Apache-2.0
#pragma once
// The name of an array beside the labels of packed documents: [batch, length], of each token its
// number in its document, from 0, and -1 at padding. A net is bound to it by WithPackedTokens
// (train/packed_tokens.h).
namespace mxtrain {

inline constexpr const char* kTokenPosition = "token_position";

}  // namespace mxtrain

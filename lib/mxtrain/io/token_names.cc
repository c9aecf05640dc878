// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/internal/token_names.h"

#include "mxtrain/base/error.h"
#include "mxtrain/base/format.h"
#include "mxtrain/base/text.h"

namespace mxtrain::io {
namespace {

constexpr int64_t kMostExactTokens = 1 << 24;  // in float32

std::string TokenName(const text::Tokenizer& tokenizer, text::TokenId id) {
  std::string token;
  try {
    token = tokenizer.TokenOf(id);
  } catch (const Error&) {
    return std::to_string(id);
  }
  if (IsUtf8(token)) return token;
  std::string bytes;
  for (const char byte : token) bytes += format("<0x{:02X}>", static_cast<unsigned char>(byte));
  return bytes;
}

}  // namespace

std::vector<std::string> TokenNames(const text::Tokenizer& tokenizer) {
  if (tokenizer.vocabulary_size() > kMostExactTokens) {
    Throw(ErrorKind::kData, "a vocabulary of {} is too large: ids up to {} are exact in float32",
          tokenizer.vocabulary_size(), kMostExactTokens);
  }
  std::vector<std::string> names;
  for (int64_t id = 0; id < tokenizer.vocabulary_size(); ++id)
    names.push_back(TokenName(tokenizer, static_cast<text::TokenId>(id)));
  return names;
}

}  // namespace mxtrain::io

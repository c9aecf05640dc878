// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/base/error.h"
#include "mxtrain/text/internal/simple_tokenizers.h"

namespace mxtrain::text {
namespace {

constexpr TokenId kByteValues = 256;

class ByteTokenizer final : public Tokenizer {
 public:
  void Encode(std::string_view text, const EncodeOptions&, Ids* ids) const override {
    const auto* const bytes = reinterpret_cast<const unsigned char*>(text.data());
    ids->insert(ids->end(), bytes, bytes + text.size());
  }
  size_t LastCut(std::string_view text) const override { return text.size(); }
  std::string Decode(std::span<const TokenId> ids, bool) const override {
    std::string text;
    text.reserve(ids.size());
    for (const TokenId id : ids) text.push_back(ByteOf(id));
    return text;
  }
  int64_t vocabulary_size() const override { return kByteValues; }
  std::optional<TokenId> IdOf(std::string_view token) const override {
    if (token.size() != 1) return std::nullopt;
    return static_cast<unsigned char>(token[0]);
  }
  std::string TokenOf(TokenId id) const override { return std::string(1, ByteOf(id)); }
  std::vector<SpecialToken> special_tokens() const override { return {}; }
  std::optional<TokenId> end_of_text() const override { return std::nullopt; }
  std::string Describe() const override { return "bytes"; }
  std::string ToText() const override { return SimpleJson(kByteKind).dump(); }

 private:
  static char ByteOf(TokenId id) {
    if (id >= kByteValues)
      Throw(ErrorKind::kData, "no token has the id {}; bytes are 0 to 255", id);
    return static_cast<char>(id);
  }
};

}  // namespace

TokenizerPtr MakeByteTokenizer() {
  return std::make_shared<ByteTokenizer>();
}

}  // namespace mxtrain::text

// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "mxtrain/base/error.h"
#include "mxtrain/base/text.h"
#include "mxtrain/text/internal/id_map.h"
#include "mxtrain/text/internal/simple_tokenizers.h"
#include "mxtrain/text/internal/utf8.h"

namespace mxtrain::text {
namespace {

class CharacterTokenizer final : public Tokenizer {
 public:
  // `characters` rising; `unknown` may be empty.
  CharacterTokenizer(std::vector<uint32_t> characters, std::string unknown)
      : characters_(std::move(characters)),
        unknown_(std::move(unknown)),
        first_(unknown_.empty() ? 0 : 1) {
    for (size_t i = 0; i < characters_.size(); ++i) ids_.At(characters_[i]) = i + first_;
  }

  void Encode(std::string_view text, const EncodeOptions& options, Ids* ids) const override {
    std::string buffer;
    std::string_view rest = ValidText(text, &buffer);
    while (!rest.empty()) {
      if (options.parse_special && !unknown_.empty() && rest.starts_with(unknown_)) {
        ids->push_back(0);
        rest.remove_prefix(unknown_.size());
        continue;
      }
      const CodePoint c = DecodeCodePoint(rest);
      ids->push_back(IdOfCharacter(c.value));
      rest.remove_prefix(c.bytes);
    }
  }
  // Behind a newline: no invalid part goes on there.
  size_t LastCut(std::string_view text) const override { return text.rfind('\n') + 1; }
  std::string Decode(std::span<const TokenId> ids, bool skip_special) const override {
    std::string text;
    for (const TokenId id : ids) {
      if (id >= first_)
        AppendCodePoint(CharacterOf(id), &text);
      else if (!skip_special)
        text += unknown_;
    }
    return text;
  }
  int64_t vocabulary_size() const override {
    return static_cast<int64_t>(characters_.size() + first_);
  }
  std::optional<TokenId> IdOf(std::string_view token) const override {
    if (!unknown_.empty() && token == unknown_) return 0;
    if (token.empty() || DecodeCodePoint(token).bytes != token.size()) return std::nullopt;
    const uint64_t id = ids_.Find(DecodeCodePoint(token).value);
    if (id == IdMap::kNone) return std::nullopt;
    return static_cast<TokenId>(id);
  }
  std::string TokenOf(TokenId id) const override {
    return id < first_ ? unknown_ : TextOfCodePoint(CharacterOf(id));
  }
  std::vector<SpecialToken> special_tokens() const override {
    if (unknown_.empty()) return {};
    return {{unknown_, 0}};
  }
  std::optional<TokenId> end_of_text() const override { return std::nullopt; }
  std::string Describe() const override {
    return Counted(characters_.size(), "character") +
           (unknown_.empty() ? "" : format(" and '{}'", unknown_));
  }
  std::string ToText() const override {
    FileJson json = SimpleJson(kCharacterKind);
    std::string all;
    for (const uint32_t c : characters_) AppendCodePoint(c, &all);
    json["characters"] = all;
    json["unknown"] = unknown_;
    return json.dump();
  }

 private:
  TokenId IdOfCharacter(uint32_t c) const {
    const uint64_t id = ids_.Find(c);
    if (id != IdMap::kNone) return static_cast<TokenId>(id);
    if (unknown_.empty()) {
      Throw(
          ErrorKind::kData,
          "the character '{}' (U+{:04X}) is not in the vocabulary of {}; remove it, train on texts "
          "that have it, or use `tokenizer: bytes`, which has every text",
          TextOfCodePoint(c), c, Counted(characters_.size(), "character"));
    }
    return 0;
  }
  uint32_t CharacterOf(TokenId id) const {
    if (id - first_ >= characters_.size())
      Throw(ErrorKind::kData, "no token has the id {}; the vocabulary has {}", id,
            Counted(characters_.size() + first_, "token"));
    return characters_[id - first_];
  }

  const std::vector<uint32_t> characters_;
  const std::string unknown_;
  const TokenId first_;  // id of the first character
  IdMap ids_;
};

void RequireUnknownText(const std::string& unknown) {
  if (!IsUtf8(unknown))
    Throw(ErrorKind::kData, "the unknown token '{}' is not UTF-8", EscapedBytes(unknown));
}

}  // namespace

TokenizerPtr MakeCharacterTokenizer(Corpus corpus, const std::string& unknown) {
  RequireUnknownText(unknown);
  std::vector<bool> seen(kCodePoints);
  for (const std::string_view text : corpus) {
    std::string buffer;
    ForEachCodePoint(ValidText(text, &buffer),
                     [&](uint32_t c, std::string_view) { seen[c] = true; });
  }
  std::vector<uint32_t> characters;
  for (uint32_t c = 0; c < kCodePoints; ++c) {
    if (seen[c]) characters.push_back(c);
  }
  return std::make_shared<CharacterTokenizer>(std::move(characters), unknown);
}

TokenizerPtr ReadCharacterTokenizer(const JsonNode& root) {
  const JsonNode node = root.At("characters");
  std::vector<uint32_t> characters;
  ForEachCodePoint(node.Text(), [&](uint32_t c, std::string_view) {
    if (!characters.empty() && c <= characters.back())
      node.Fail(format("the characters do not rise at U+{:04X}", c));
    characters.push_back(c);
  });
  return std::make_shared<CharacterTokenizer>(std::move(characters), root.At("unknown").Text());
}

}  // namespace mxtrain::text

// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tokens of tokenizer.json that are cut out of text before it is split: special ones, and others
// that were added to a vocabulary.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "mxtrain/text/internal/byte_trie.h"
#include "mxtrain/text/internal/json_node.h"
#include "mxtrain/text/internal/normalizer.h"
#include "mxtrain/text/internal/regex.h"
#include "mxtrain/text/tokenizer.h"

namespace mxtrain::text {

struct AddedToken {
  std::string content;
  TokenId id = 0;
  bool single_word = false;  // not inside a word
  bool lstrip = false;       // takes the white space before it
  bool rstrip = false;       // and after it
  bool normalized = false;   // found in text that is normalized, in its own normalized form
  bool special = false;
};

// Of the value of "added_tokens".
std::vector<AddedToken> ReadAddedTokens(const JsonNode& node);

// Finds tokens in text: from left to right, at each place the longest. Immutable.
class AddedTokenFinder {
 public:
  AddedTokenFinder() = default;
  // The patterns are the tokens' contents, through `normalizer` if there is one.
  AddedTokenFinder(std::vector<AddedToken> tokens, const Normalizer* normalizer);

  // Whether no token can be found.
  bool Idle(bool parse_special) const { return parse_special ? trie_.empty() : !has_plain_; }

  // Calls on_text(text) and on_token(id) for the parts of valid text, in order. Without
  // `parse_special`, special tokens are text.
  template <typename OnText, typename OnToken>
  void Split(std::string_view text, bool parse_special, const OnText& on_text,
             const OnToken& on_token) const {
    size_t done = 0;
    for (size_t at = 0; at < text.size();) {
      const Found found = FindFrom(text, &at, done, parse_special);
      if (!found.token) break;
      if (done < found.begin) on_text(text.substr(done, found.begin - done));
      on_token(found.token->id);
      done = found.end;
    }
    if (done < text.size()) on_text(text.substr(done));
  }

 private:
  struct Found {
    const AddedToken* token = nullptr;
    size_t begin = 0, end = 0;
  };
  // The next token from *at on, with the white space that it takes, but none before `done`; moves
  // *at behind the token.
  Found FindFrom(std::string_view text, size_t* at, size_t done, bool parse_special) const;
  bool InsideWord(std::string_view text, size_t begin, size_t end) const;

  std::vector<AddedToken> tokens_;
  ByteTrie trie_;                                      // values are positions in tokens_
  std::vector<bool> begins_ = std::vector<bool>(256);  // bytes that a token begins with
  bool has_plain_ = false;                             // a token that is not special
};

}  // namespace mxtrain::text

// SPDX-License-Identifier: Apache-2.0
#pragma once
// A text that comes token by token, behind a prompt.
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mxtrain/text/tokenizer.h"

namespace mxtrain::inference {

// A token costs the same however long the text is: it is decoded beside the few tokens before it,
// on which its text may depend (blanks between words).
class TextStream {
 public:
  // `stops`: texts, not empty, the first of which ends this one. The tokenizer outlives it.
  TextStream(const text::Tokenizer& tokenizer, std::vector<std::string> stops, text::Ids prompt);

  const text::Ids& ids() const { return ids_; }  // of the prompt and what followed
  // Appends a token. False if a stop ends the text, which then is the text before it.
  bool Add(text::TokenId id);
  // What follows the prompt, and was not given yet, as far as it is sure: not what may become a
  // stop or lacks bytes of a character.
  std::string_view Next();
  // The rest, and the whole of what follows the prompt. No more tokens come, so what could have
  // become a stop is text; the beginning of a character that lacks its end is not.
  std::string_view Last();
  const std::string& text() const { return text_; }

 private:
  std::string_view UpTo(size_t end);
  size_t SureOf() const;

  const text::Tokenizer& tokenizer_;
  const std::vector<std::string> stops_;
  text::Ids ids_;
  std::string text_;
  size_t given_ = 0, longest_stop_ = 0;
};

}  // namespace mxtrain::inference

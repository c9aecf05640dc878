// SPDX-License-Identifier: Apache-2.0
#pragma once
// Continues texts with a language model, until each has an end.
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "app/inference/text_generator.h"
#include "app/inference/text_stream.h"
#include "app/inference/token_sampler.h"

namespace mxtrain::inference {

// Why a text ends: it has as many tokens as are wanted, its last token is the tokenizer's end of a
// text, a stop was written, or the caller asked for no more.
enum class TextEnd { kMaxTokens, kEndOfText, kStop, kInterrupted };
const char* NameOf(TextEnd end);  // max_tokens, end_of_text, stop, interrupted

struct GrowingText {
  std::string prompt;
  TextStream stream;
  int64_t tokens = 0;  // that follow the prompt
  TextEnd end = TextEnd::kInterrupted;
};

class TextWriter {
 public:
  // `max_tokens`: behind each prompt. The tokenizer outlives it.
  TextWriter(const text::Tokenizer& tokenizer, const SamplingOptions& sampling, int64_t max_tokens);

  // Adds tokens to the texts, at most as many as the generator has rows, a token to each in turn.
  // `first`: the number of the first of them, for the draws, which depend on the number of the text
  // and not on the others. Calls `goes_on` after each round and ends when it says false.
  void Write(TextGenerator* generator, std::span<GrowingText> texts, int64_t first,
             const std::function<bool()>& goes_on);

 private:
  // Whether the text goes on after a token of these probabilities.
  bool Add(std::span<float> probabilities, int64_t number, GrowingText* text);

  const std::optional<text::TokenId> end_of_text_;
  const std::vector<text::TokenId> unused_;  // ids that no token has
  const int64_t max_tokens_;
  TokenSampler sampler_;
};

}  // namespace mxtrain::inference

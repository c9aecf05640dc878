// SPDX-License-Identifier: Apache-2.0
#include "app/inference/text_writer.h"

#include "mxtrain/base/error.h"
#include "mxtrain/io/text_files.h"

namespace mxtrain::inference {
namespace {

// Where a vocabulary has gaps.
std::vector<text::TokenId> UnusedIds(const text::Tokenizer& tokenizer) {
  std::vector<text::TokenId> unused;
  for (int64_t id = 0; id < tokenizer.vocabulary_size(); ++id) {
    try {
      tokenizer.TokenOf(static_cast<text::TokenId>(id));
    } catch (const Error&) {
      unused.push_back(static_cast<text::TokenId>(id));
    }
  }
  return unused;
}

}  // namespace

const char* NameOf(TextEnd end) {
  switch (end) {
    case TextEnd::kMaxTokens:
      return "max_tokens";
    case TextEnd::kEndOfText:
      return "end_of_text";
    case TextEnd::kStop:
      return "stop";
    case TextEnd::kInterrupted:
      break;
  }
  return "interrupted";
}

TextWriter::TextWriter(const text::Tokenizer& tokenizer, const SamplingOptions& sampling,
                       int64_t max_tokens)
    : end_of_text_(io::SeparatorOf(tokenizer)),
      unused_(UnusedIds(tokenizer)),
      max_tokens_(max_tokens),
      sampler_(sampling) {}

bool TextWriter::Add(std::span<float> probabilities, int64_t number, GrowingText* text) {
  for (const text::TokenId id : unused_) probabilities[id] = 0;
  const auto next = static_cast<text::TokenId>(sampler_.Draw(probabilities, text->tokens, number));
  const auto ends = [text](TextEnd end) {
    text->end = end;
    return false;
  };
  if (next == end_of_text_) return ends(TextEnd::kEndOfText);
  ++text->tokens;
  if (!text->stream.Add(next)) return ends(TextEnd::kStop);
  return text->tokens < max_tokens_ || ends(TextEnd::kMaxTokens);
}

void TextWriter::Write(TextGenerator* generator, std::span<GrowingText> texts, int64_t first,
                       const std::function<bool()>& goes_on) {
  std::vector<std::span<const text::TokenId>> rows(static_cast<size_t>(generator->rows()));
  std::vector<bool> growing(texts.size(), true);
  for (bool any = true; any;) {
    for (size_t i = 0; i < texts.size(); ++i)
      rows[i] = growing[i] ? texts[i].stream.ids() : std::span<const text::TokenId>();
    const std::span<float> next = generator->After(rows);
    const size_t tokens = next.size() / rows.size();
    any = false;
    for (size_t i = 0; i < texts.size(); ++i) {
      if (!growing[i]) continue;
      growing[i] =
          Add(next.subspan(i * tokens, tokens), first + static_cast<int64_t>(i), &texts[i]);
      any = any || growing[i];
    }
    if (!goes_on()) return;
  }
}

}  // namespace mxtrain::inference

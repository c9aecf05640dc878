// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/text/text_encoder.h"

#include <algorithm>

#include "mxtrain/base/error.h"
#include "mxtrain/base/format.h"
#include "mxtrain/text/internal/json_node.h"
#include "mxtrain/text/internal/unicode_class.h"
#include "mxtrain/text/internal/utf8.h"

namespace mxtrain::text {
namespace {

constexpr const char* kEncoderKey = "mxtrain_text_encoder";
constexpr uint64_t kEncoderVersion = 1;
constexpr uint64_t kMostNgrams = 8, kMostBuckets = uint64_t{1} << 24;

bool EndsLines(const Tokenizer& tokenizer) {
  const std::optional<TokenId> end = tokenizer.end_of_text();
  return end && tokenizer.Decode({&*end, 1}) == "\n";
}

// The special tokens that a tokenizer puts behind a text. Throws kConfig if it puts none around it.
Ids EndingOf(const Tokenizer& tokenizer) {
  constexpr std::string_view kText = "a";
  const Ids bare = tokenizer.Encode(kText), whole = tokenizer.Encode(kText, {.add_special = true});
  if (whole.size() == bare.size()) {
    Throw(ErrorKind::kConfig, "special_tokens = 'True': {} puts none around a text",
          tokenizer.Describe());
  }
  const auto found = std::search(whole.begin(), whole.end(), bare.begin(), bare.end());
  MXTRAIN_ASSERT(found != whole.end());
  return {found + std::ssize(bare), whole.end()};
}

}  // namespace

uint64_t HashOfNgram(std::span<const TokenId> tokens) {
  constexpr uint64_t kBasis = 14695981039346656037U, kPrime = 1099511628211U;
  uint64_t hash = kBasis;
  for (const TokenId token : tokens) {
    for (int byte = 0; byte < 4; ++byte) {
      hash ^= token >> (8 * byte) & 255U;
      hash *= kPrime;
    }
  }
  return hash;
}

TextEncoder::TextEncoder(TokenizerPtr tokenizer, const EncoderOptions& options)
    : tokenizer_(std::move(tokenizer)), options_(options), ends_lines_(EndsLines(*tokenizer_)) {
  if (options_.ngrams > 1 && options_.buckets == 0) {
    Throw(ErrorKind::kConfig,
          "ngrams = '{}': n-grams need buckets, into which they are hashed: buckets: 200000",
          options_.ngrams);
  }
  if (options_.ngrams == 1 && options_.buckets > 0) {
    Throw(ErrorKind::kConfig,
          "buckets = '{}': they are for n-grams; ngrams: 2 adds those of two tokens",
          options_.buckets);
  }
  if (!options_.special_tokens) return;
  if (options_.ngrams > 1)
    Throw(ErrorKind::kConfig, "special_tokens = 'True' is not for ngrams = '{}'", options_.ngrams);
  ending_ = EndingOf(*tokenizer_);
}

TextEncoder TextEncoder::FromText(std::string_view text, const std::string& file_name) {
  const FileJson json = ParseTokenizerJson(text, file_name);
  const JsonNode root(json, file_name), version = root.At(kEncoderKey);
  if (version.Number(UINT32_MAX) != kEncoderVersion) {
    version.Fail(format("the version {} is unknown; this program reads version {}",
                        version.value().dump(), kEncoderVersion));
  }
  EncoderOptions options;
  options.lowercase = root.At("lowercase").Bool();
  options.split_punctuation = root.At("split_punctuation").Bool();
  options.ngrams = static_cast<int64_t>(root.At("ngrams").Number(kMostNgrams));
  options.buckets = static_cast<int64_t>(root.At("buckets").Number(kMostBuckets));
  if (const auto node = root.Find("special_tokens")) options.special_tokens = node->Bool();
  if (options.ngrams < 1 || (options.ngrams > 1) != (options.buckets > 0))
    root.At("ngrams").Fail(format("{} with {} buckets", options.ngrams, options.buckets));
  return {TokenizerFromText(root.At("tokenizer").Text(), file_name), options};
}

std::string TextEncoder::Prepared(std::string_view text, const EncoderOptions& options) {
  std::string buffer;
  if (!options.lowercase && !options.split_punctuation) return std::string(text);
  std::string prepared;
  prepared.reserve(text.size());
  ForEachCodePoint(ValidText(text, &buffer), [&](uint32_t c, std::string_view bytes) {
    const bool apart = options.split_punctuation && IsPunctuation(c);
    if (apart) prepared += ' ';
    if (options.lowercase) {
      AppendLower(c, &prepared);
    } else {
      prepared += bytes;
    }
    if (apart) prepared += ' ';
  });
  return prepared;
}

void TextEncoder::Encode(std::string_view text, Ids* ids) const {
  const size_t first = ids->size();
  std::string prepared = Prepared(text, options_);
  if (ends_lines_) {
    std::ranges::replace(prepared, '\n', ' ');
    tokenizer_->Encode(prepared, {}, ids);
    if (ids->size() > first && ids->back() == tokenizer_->end_of_text()) ids->pop_back();
  } else {
    tokenizer_->Encode(prepared, {.add_special = options_.special_tokens}, ids);
  }
  AppendNgrams(first, ids);
}

void TextEncoder::Cut(int64_t length, Ids* ids) const {
  if (std::ssize(*ids) <= length) return;
  ids->resize(static_cast<size_t>(length));
  const int64_t kept = std::min(std::ssize(ending_), length);
  std::copy_n(ending_.end() - kept, kept, ids->end() - kept);
}

void TextEncoder::AppendNgrams(size_t first, Ids* ids) const {
  const size_t tokens = ids->size() - first;
  const auto vocabulary = static_cast<uint64_t>(tokenizer_->vocabulary_size()),
             buckets = static_cast<uint64_t>(options_.buckets);
  for (size_t n = 2; n <= static_cast<size_t>(options_.ngrams); ++n) {
    for (size_t i = 0; i + n <= tokens; ++i) {
      const uint64_t hash = HashOfNgram(std::span(*ids).subspan(first + i, n));
      ids->push_back(static_cast<TokenId>(vocabulary + hash % buckets));
    }
  }
}

std::string TextEncoder::Describe() const {
  std::string text = tokenizer_->Describe();
  if (options_.ngrams > 1) {
    text +=
        format(", {}-grams in {} buckets",
               options_.ngrams == 2 ? "2" : format("2- to {}", options_.ngrams), options_.buckets);
  }
  return text;
}

std::string TextEncoder::ToText() const {
  FileJson json = {{kEncoderKey, kEncoderVersion},
                   {"lowercase", options_.lowercase},
                   {"split_punctuation", options_.split_punctuation},
                   {"ngrams", options_.ngrams},
                   {"buckets", options_.buckets},
                   {"tokenizer", tokenizer_->ToText()}};
  if (options_.special_tokens) json["special_tokens"] = true;
  return json.dump();
}

}  // namespace mxtrain::text

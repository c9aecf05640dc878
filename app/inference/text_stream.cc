// SPDX-License-Identifier: Apache-2.0
#include "app/inference/text_stream.h"

#include <algorithm>
#include <utility>

namespace mxtrain::inference {
namespace {

constexpr size_t kContext = 8;  // tokens

// Bytes at the end of a text that begin a character and lack the rest of it.
size_t UnfinishedBytes(std::string_view text) {
  constexpr size_t kLongest = 4;  // bytes of a character
  for (size_t back = 1; back <= std::min(kLongest, text.size()); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if ((byte & 0xC0) == 0x80) continue;
    const size_t wanted = byte < 0xC0 ? 1 : byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : 2;
    return wanted > back ? back : 0;
  }
  return 0;
}

}  // namespace

TextStream::TextStream(const text::Tokenizer& tokenizer, std::vector<std::string> stops,
                       text::Ids prompt)
    : tokenizer_(tokenizer), stops_(std::move(stops)), ids_(std::move(prompt)) {
  for (const std::string& stop : stops_) longest_stop_ = std::max(longest_stop_, stop.size());
}

bool TextStream::Add(text::TokenId id) {
  const size_t context = std::min(kContext, ids_.size());
  const std::string before = tokenizer_.Decode(std::span(ids_).last(context));
  ids_.push_back(id);
  const std::string with = tokenizer_.Decode(std::span(ids_).last(context + 1));
  const size_t searched = text_.size() - std::min(text_.size(), longest_stop_);
  text_ += with.substr(std::min(before.size(), with.size()));
  size_t end = std::string::npos;
  for (const std::string& stop : stops_) end = std::min(end, text_.find(stop, searched));
  if (end == std::string::npos) return true;
  text_.resize(end);
  return false;
}

size_t TextStream::SureOf() const {
  size_t sure = text_.size();
  for (const std::string& stop : stops_) {
    for (size_t part = std::min(stop.size(), text_.size()); part > 0; --part) {
      if (!text_.ends_with(std::string_view(stop).substr(0, part))) continue;
      sure = std::min(sure, text_.size() - part);
      break;
    }
  }
  return sure - UnfinishedBytes(std::string_view(text_).substr(0, sure));
}

std::string_view TextStream::UpTo(size_t end) {
  const size_t begin = std::min(given_, end);
  given_ = std::max(given_, end);
  return std::string_view(text_).substr(begin, end - begin);
}

std::string_view TextStream::Next() {
  return UpTo(SureOf());
}

std::string_view TextStream::Last() {
  text_.resize(text_.size() - UnfinishedBytes(text_));
  return UpTo(text_.size());
}

}  // namespace mxtrain::inference

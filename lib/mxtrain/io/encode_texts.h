// SPDX-License-Identifier: Apache-2.0
#pragma once
// Files of text, which may be larger than memory, to tokens, on all CPUs.
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mxtrain/base/mapped_file.h"
#include "mxtrain/text/tokenizer.h"

namespace mxtrain::io {

// The text of a file: a large one is mapped (mapped_file.h), others, and what is not a regular
// file, are read.
class MXTRAIN_API TextFile {
 public:
  // Throws kFileSystem with path and reason.
  explicit TextFile(const std::string& path);
  TextFile(const TextFile&) = delete;

  std::string_view text() const { return mapped_ ? mapped_->bytes() : read_; }

 private:
  std::string read_;
  std::optional<MappedFile> mapped_;
};

// The texts of files.
class MXTRAIN_API Texts {
 public:
  explicit Texts(std::span<const std::string> paths) {
    for (const std::string& path : paths) views_.push_back(files_.emplace_back(path).text());
  }
  text::Corpus corpus() const { return views_; }

 private:
  std::deque<TextFile> files_;
  std::vector<std::string_view> views_;
};

// The tokens of a part of a file.
struct EncodedPart {
  size_t file = 0;    // its number
  bool last = false;  // of the file
  int64_t bytes = 0;  // of text
  text::Ids ids;
};

// Calls put(part) for the parts of the files, in order. A file is taken apart where its tokenizer
// lets it be cut (Tokenizer::LastCut); only a few parts are in memory. Throws what reading throws,
// and what Encode throws, begun with the file's path.
MXTRAIN_API void EncodeTexts(const text::Tokenizer& tokenizer, std::span<const std::string> paths,
                             const std::function<void(EncodedPart&&)>& put);

}  // namespace mxtrain::io

// SPDX-License-Identifier: Apache-2.0
#pragma once
// Files of text, which may be larger than memory, to tokens, on all CPUs.
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mxtrain/base/mapped_file.h"
#include "mxtrain/io/text_files.h"
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

// All texts of files, in memory.
class MXTRAIN_API Texts {
 public:
  // Throws what reading the files throws.
  explicit Texts(const TextPaths& paths);
  text::Corpus corpus() const { return views_; }
  // Of a text of the corpus: its file, and the line of a row.
  const std::string& NameOf(size_t text) const { return names_[text]; }

 private:
  std::deque<TextFile> files_;
  std::deque<std::string> rows_;
  std::vector<std::string_view> views_;
  std::vector<std::string> names_;
};

// Between two parts of the texts.
struct TextPlace {
  size_t file = 0;
  uint64_t byte = 0;   // of the file's text
  int64_t line = 0;    // of JSON lines, from 1
  uint64_t row = 0;    // of a table
  bool ended = false;  // a text, which no part has told yet
};

// Tokens of texts, one behind another.
struct EncodedPart {
  int64_t bytes = 0;  // of files
  text::Ids ids;
  std::vector<size_t> ends;  // rising; a text ends behind so many of these ids
  TextPlace next;            // where the part behind it begins
};

// Calls put(part) for the tokens of the texts behind `from`, in order; between two texts stands
// SeparatorOf, which belongs to the first. Texts without characters in files of rows are skipped. A
// file is taken apart where its tokenizer lets it be cut (Tokenizer::LastCut), or between its lines
// of JSON; only a few parts are in memory. (Tables, and what is compressed, are read whole.) Throws
// what reading throws, what Encode throws, begun with the file's path, or FILE:LINE of a row, and
// kData where the files have no place `from`.
MXTRAIN_API void EncodeTexts(const text::Tokenizer& tokenizer, const TextPaths& paths,
                             const std::function<void(EncodedPart&&)>& put,
                             const TextPlace& from = {});

}  // namespace mxtrain::io

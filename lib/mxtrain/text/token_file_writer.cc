// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <utility>

#include "mxtrain/base/error.h"
#include "mxtrain/base/math.h"
#include "mxtrain/text/internal/token_layout.h"
#include "mxtrain/text/token_file.h"

namespace mxtrain::text {

TokenFileWriter::TokenFileWriter(std::string path, const Tokenizer& tokenizer)
    : file_(std::move(path)),
      vocabulary_size_(static_cast<uint64_t>(tokenizer.vocabulary_size())),
      width_(WidthOfTokens(vocabulary_size_)) {
  const std::string text = tokenizer.ToText();
  TokenHeader header{};
  std::memcpy(header.magic, kTokenMagic.data(), sizeof header.magic);
  header.version = kTokenVersion;
  header.width = static_cast<uint32_t>(width_);
  header.vocabulary_size = vocabulary_size_;
  header.text_bytes = text.size();
  header.text_sum = Checksum(text);
  header.block_bytes = kBlockBytes;
  header.checksum = SumOfRecord(header);
  std::string front = std::string(BytesOfRecord(header)) + text;
  front.resize(RoundUp(front.size(), kTokenAlignment));
  front_sum_ = Checksum(front);
  file_.Write(front);
}

TokenFileWriter::~TokenFileWriter() = default;

void TokenFileWriter::Add(std::span<const TokenId> ids) {
  for (const TokenId id : ids) {
    if (id >= vocabulary_size_)
      Throw(ErrorKind::kData, "{}: the id {} is outside the tokenizer's vocabulary of {}",
            file_.path(), id, vocabulary_size_);
    block_.append(reinterpret_cast<const char*>(&id), width_);  // its low bytes come first
    ++tokens_;
    if (block_.size() == kBlockBytes) WriteBlock();
  }
}

void TokenFileWriter::EndDocument() {
  ends_.push_back(tokens_);
}

void TokenFileWriter::WriteBlock() {
  sums_.push_back(Checksum(block_));
  file_.Write(block_);
  block_.clear();
}

void TokenFileWriter::Commit() {
  if (ends_.empty() ? tokens_ > 0 : ends_.back() != tokens_) EndDocument();
  if (!block_.empty()) WriteBlock();
  const uint64_t data = tokens_ * width_;
  file_.Write(std::string(RoundUp(data, sizeof(uint64_t)) - data, '\0'));
  TokenTrailer trailer{};
  std::memcpy(trailer.magic, kTrailerMagic.data(), sizeof trailer.magic);
  RunningChecksum index;
  for (const std::vector<uint64_t>* part : {&ends_, &sums_}) {
    const std::string_view bytes(reinterpret_cast<const char*>(part->data()),
                                 part->size() * sizeof(uint64_t));
    index.Add(bytes);
    file_.Write(bytes);
  }
  trailer.tokens = tokens_;
  trailer.documents = ends_.size();
  trailer.index_sum = index.value();
  trailer.front_sum = front_sum_;
  trailer.checksum = SumOfRecord(trailer);
  file_.Write(BytesOfRecord(trailer));
  file_.Commit();
}

}  // namespace mxtrain::text

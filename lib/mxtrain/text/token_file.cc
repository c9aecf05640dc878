// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/text/token_file.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "mxtrain/base/error.h"
#include "mxtrain/base/math.h"
#include "mxtrain/text/internal/token_layout.h"

namespace mxtrain::text {
namespace {

[[noreturn]] void FailTokens(const std::string& path, const std::string& what) {
  Throw(ErrorKind::kData, "{}: {}", path, what);
}

template <typename Record>
Record RecordAt(std::string_view bytes, size_t at) {
  Record record;
  std::memcpy(&record, bytes.data() + at, sizeof record);
  return record;
}

TokenHeader ReadHeader(std::string_view bytes, const std::string& path) {
  if (!bytes.starts_with(kTokenMagic))
    FailTokens(path, "it is not a token file: it does not begin with MXTOKENS");
  if (bytes.size() < sizeof(TokenHeader) + sizeof(TokenTrailer))
    FailTokens(path, format("it is truncated: it has {} bytes", bytes.size()));
  const auto header = RecordAt<TokenHeader>(bytes, 0);
  if (header.version != kTokenVersion)
    FailTokens(path, format("its version is {}; this program reads version {}", header.version,
                            kTokenVersion));
  if (header.checksum != SumOfRecord(header))
    FailTokens(path, "the header (bytes 0 to 63) is damaged: its checksum differs");
  const bool good = (header.width == 2 || header.width == 4) &&
                    header.width == WidthOfTokens(header.vocabulary_size) && header.zero == 0 &&
                    header.block_bytes >= kTokenAlignment &&
                    header.block_bytes % kTokenAlignment == 0 &&
                    header.block_bytes <= kMostBlockBytes;
  if (!good) FailTokens(path, "the header has numbers that no writer of this format writes");
  return header;
}

TokenTrailer ReadTrailer(std::string_view bytes, const std::string& path) {
  const size_t at = bytes.size() - sizeof(TokenTrailer);
  const auto trailer = RecordAt<TokenTrailer>(bytes, at);
  if (std::string_view(trailer.magic, sizeof trailer.magic) != kTrailerMagic ||
      trailer.checksum != SumOfRecord(trailer)) {
    FailTokens(path, format("it is truncated, or its trailer (bytes {} to {}) is damaged", at,
                            bytes.size() - 1));
  }
  return trailer;
}

bool AllZero(std::string_view bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](char c) { return c == '\0'; });
}

}  // namespace

TokenFile::TokenFile(const std::string& path) : file_(path) {
  const std::string_view bytes = file_.bytes();
  const TokenHeader header = ReadHeader(bytes, path);
  const TokenTrailer trailer = ReadTrailer(bytes, path);
  width_ = header.width;
  vocabulary_size_ = header.vocabulary_size;
  block_bytes_ = header.block_bytes;
  tokens_ = trailer.tokens;
  documents_ = trailer.documents;
  text_sum_ = header.text_sum;
  const uint64_t size = bytes.size() - sizeof(TokenTrailer);
  // Each number is compared with the size before it is computed with: none of them overflows.
  const auto sized = [&](bool fits) {
    if (!fits)
      FailTokens(path, format("its size, {} bytes, does not fit its header and trailer: {} tokens, "
                              "{} documents, {} bytes of a tokenizer",
                              bytes.size(), tokens_, documents_, header.text_bytes));
  };
  sized(header.text_bytes <= size && tokens_ <= size && documents_ <= size);
  const uint64_t begin = RoundUp(sizeof(TokenHeader) + header.text_bytes, kTokenAlignment),
                 data = tokens_ * width_, padded = RoundUp(data, sizeof(uint64_t)),
                 blocks = CeilDivide(data, block_bytes_),
                 index = (documents_ + blocks) * sizeof(uint64_t);
  sized(begin + padded + index == size);
  text_ = bytes.substr(sizeof(TokenHeader), header.text_bytes);
  data_ = bytes.substr(begin, data);
  index_ = bytes.substr(begin + padded, index);
  if (Checksum(text_) != text_sum_ || Checksum(bytes.substr(0, begin)) != trailer.front_sum)
    FailTokens(path, format("the tokenizer (bytes {} to {}) is damaged: its checksum differs",
                            sizeof(TokenHeader), begin - 1));
  if (!AllZero(bytes.substr(begin + data, padded - data)))
    FailTokens(path, format("the bytes {} to {} behind the tokens are damaged: they are not zero",
                            begin + data, begin + padded - 1));
  if (Checksum(index_) != trailer.index_sum)
    FailTokens(path, format("the index (bytes {} to {}) is damaged: its checksum differs",
                            begin + padded, size - 1));
  whole_ = std::make_unique<std::atomic<bool>[]>(blocks);
  uint64_t last = 0;
  for (uint64_t i = 0; i < documents_; ++i) {
    if (IndexAt(i) < last || IndexAt(i) > tokens_)
      FailTokens(path, format("document {} ends at token {}, outside the file or before the "
                              "document before it",
                              i, IndexAt(i)));
    last = IndexAt(i);
  }
  if (last != tokens_)
    FailTokens(path, format("its last document ends at token {} of {}", last, tokens_));
}

TokenizerPtr TokenFile::NewTokenizer() const {
  return TokenizerFromText(text_, path() + ": tokenizer");
}

uint64_t TokenFile::IndexAt(uint64_t entry) const {
  return RecordAt<uint64_t>(index_, entry * sizeof(uint64_t));
}

TokenId TokenFile::TokenAt(uint64_t index) const {
  if (width_ == sizeof(uint16_t)) return RecordAt<uint16_t>(data_, index * width_);
  return RecordAt<uint32_t>(data_, index * width_);
}

void TokenFile::Read(uint64_t begin, std::span<TokenId> ids) const {
  if (begin > tokens_ || ids.size() > tokens_ - begin)
    Throw(ErrorKind::kUsage, "{}: the tokens {} to {} are outside the file, which has {}", path(),
          begin, begin + ids.size(), tokens_);
  if (ids.empty()) return;
  const uint64_t last = (begin + ids.size() - 1) * width_ / block_bytes_;
  for (uint64_t block = begin * width_ / block_bytes_; block <= last; ++block) {
    if (whole_[block].load(std::memory_order_relaxed)) continue;
    const std::string damage = DamageOf(block);
    if (!damage.empty()) Throw(ErrorKind::kData, "{}", damage);
    whole_[block].store(true, std::memory_order_relaxed);
  }
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = TokenAt(begin + i);
}

uint64_t TokenFile::BeginOf(uint64_t document) const {
  if (document > documents_)
    Throw(ErrorKind::kUsage, "{}: there is no document {}; the file has {}", path(), document,
          documents_);
  return document == 0 ? 0 : IndexAt(document - 1);
}

std::string TokenFile::DamageOf(uint64_t block) const {
  const uint64_t at = block * block_bytes_;
  const std::string_view bytes = data_.substr(at, block_bytes_);
  const uint64_t first = at / width_, end = (at + bytes.size()) / width_,
                 place = static_cast<uint64_t>(bytes.data() - file_.bytes().data());
  const auto told = [&](const std::string& what) {
    return format("{}: the tokens {} to {} (bytes {} to {}) are {}", path(), first, end - 1, place,
                  place + bytes.size() - 1, what);
  };
  if (Checksum(bytes) != IndexAt(documents_ + block))
    return told("damaged: their checksum differs");
  for (uint64_t i = first; i < end; ++i) {
    if (TokenAt(i) >= vocabulary_size_)
      return told(format("not of this tokenizer: token {} is {}, its vocabulary has {}", i,
                         TokenAt(i), vocabulary_size_));
  }
  return "";
}

std::vector<std::string> TokenFile::Verify() const {
  std::vector<std::string> damages;
  for (uint64_t block = 0; block < CeilDivide(data_.size(), block_bytes_); ++block) {
    if (std::string damage = DamageOf(block); !damage.empty()) damages.push_back(std::move(damage));
  }
  return damages;
}

std::vector<std::string> VerifyTokenFile(const std::string& path) {
  try {
    return TokenFile(path).Verify();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kData) throw;
    return {error.what()};
  }
}

}  // namespace mxtrain::text

// SPDX-License-Identifier: Apache-2.0
#pragma once
// The records of a token file, as token_file.h describes them.
#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "mxtrain/base/file.h"

namespace mxtrain::text {

static_assert(std::endian::native == std::endian::little);

inline constexpr std::string_view kTokenMagic = "MXTOKENS", kTrailerMagic = "MXTOKEND";
inline constexpr uint32_t kTokenVersion = 1;
inline constexpr uint64_t kTokenAlignment = 64;  // of the tokens, and divides a block
inline constexpr uint64_t kBlockBytes = uint64_t{1} << 20, kMostBlockBytes = uint64_t{1} << 30;

struct TokenHeader {
  char magic[8];
  uint32_t version, width;
  uint64_t vocabulary_size, text_bytes, text_sum, block_bytes, zero, checksum;
};
static_assert(sizeof(TokenHeader) == 64);

struct TokenTrailer {
  char magic[8];
  uint64_t tokens, documents, index_sum, front_sum, checksum;
};
static_assert(sizeof(TokenTrailer) == 48);

template <typename Record>
std::string_view BytesOfRecord(const Record& record) {
  return {reinterpret_cast<const char*>(&record), sizeof record};
}

// Of all but the checksum, which comes last.
template <typename Record>
uint64_t SumOfRecord(const Record& record) {
  return Checksum(BytesOfRecord(record).substr(0, sizeof record - sizeof record.checksum));
}

inline uint32_t WidthOfTokens(uint64_t vocabulary_size) {
  return vocabulary_size <= 65'536 ? 2 : 4;
}

}  // namespace mxtrain::text

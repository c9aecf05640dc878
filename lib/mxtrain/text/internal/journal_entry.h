// SPDX-License-Identifier: Apache-2.0
#pragma once
// The entries of a journal, as partial_tokens.h describes them.
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mxtrain/base/file.h"

namespace mxtrain::text {

inline constexpr std::string_view kJournalMagic = "MXTOKENJ";

inline std::string_view BytesOfNumbers(std::span<const uint64_t> numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size_bytes()};
}

inline std::string JournalEntry(std::span<const std::string_view> fields) {
  std::string bytes;
  for (const std::string_view field : fields) {
    const uint64_t size = field.size();
    bytes += BytesOfNumbers({&size, 1});
    bytes += field;
  }
  const uint64_t front[] = {bytes.size(), Checksum(bytes)};
  return std::string(BytesOfNumbers(front)) + bytes;
}

// The fields of the entry at the beginning of `journal`, which loses it; none, and the journal
// stays, if it is incomplete or damaged.
inline std::vector<std::string_view> TakeJournalEntry(std::string_view* journal) {
  uint64_t front[2];
  if (journal->size() < sizeof front) return {};
  std::memcpy(front, journal->data(), sizeof front);
  std::string_view bytes = journal->substr(sizeof front);
  if (front[0] > bytes.size()) return {};
  bytes = bytes.substr(0, front[0]);
  if (Checksum(bytes) != front[1]) return {};
  std::vector<std::string_view> fields;
  for (uint64_t size; bytes.size() >= sizeof size; bytes.remove_prefix(size)) {
    std::memcpy(&size, bytes.data(), sizeof size);
    bytes.remove_prefix(sizeof size);
    if (size > bytes.size()) return {};
    fields.push_back(bytes.substr(0, size));
  }
  if (!bytes.empty()) return {};
  journal->remove_prefix(sizeof front + front[0]);
  return fields;
}

}  // namespace mxtrain::text

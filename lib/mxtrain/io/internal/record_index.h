// SPDX-License-Identifier: Apache-2.0
#pragma once
// The files beside one of records (record_file.h): the index and the checksums. Private to io.
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace mxtrain::io {

// "train.rec: record 17 at byte 4096"
std::string PlaceOfRecord(const std::string& path, int64_t number, uint64_t begin);

struct RecordSums {
  uint64_t bytes = 0;                  // of the file of records
  std::vector<uint64_t> begins, sums;  // of each record
  // Where record i ends: at the next one.
  uint64_t End(size_t i) const { return i + 1 < begins.size() ? begins[i + 1] : bytes; }
};

// Of the records in `path`; nothing if there are none. Throws kData if they are damaged.
std::optional<RecordSums> ReadRecordSums(const std::string& path);
std::string RecordSumsText(const RecordSums& sums);

// Throws kData unless the index of `path`, if there is one, has just the records that begin there.
void CheckRecordIndex(const std::string& path, std::span<const uint64_t> begins);
// Keys are the numbers of the records.
std::string RecordIndexText(std::span<const uint64_t> begins);

}  // namespace mxtrain::io

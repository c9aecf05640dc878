// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/internal/record_index.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>

#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/text.h"
#include "mxtrain/io/internal/text_columns.h"
#include "mxtrain/io/record_file.h"

namespace mxtrain::io {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostBesideBytes = size_t{4} << 30;
constexpr std::string_view kSumsBegin = "mxtrain-record-sums 1 ";

// Whether all of the text is a whole number.
bool ParseWhole(std::string_view text, int base, uint64_t* value) {
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), *value, base);
  return status == std::errc() && end == text.data() + text.size();
}

bool IsRegularFile(const std::string& path) {
  std::error_code none;
  return fs::is_regular_file(path, none);
}

// The fields of its first line.
struct RecordSumsHeader {
  uint64_t records = 0, bytes = 0, checksum = 0;
};

std::optional<RecordSumsHeader> ParseSumsHeader(std::string_view line) {
  if (!line.starts_with(kSumsBegin)) return std::nullopt;
  const std::vector<std::string_view> cells = SplitCells(line.substr(kSumsBegin.size()), ' ');
  if (cells.size() != 3) return std::nullopt;
  RecordSumsHeader header;
  const bool parsed = ParseWhole(cells[0], 10, &header.records) &&
                      ParseWhole(cells[1], 10, &header.bytes) &&
                      ParseWhole(cells[2], 16, &header.checksum);
  return parsed ? std::optional(header) : std::nullopt;
}

[[noreturn]] void DamagedSums(const std::string& file, const char* why) {
  Throw(ErrorKind::kData, "{}: {}; without the file, records are read unchecked", file, why);
}

}  // namespace

std::string BesideRecords(const std::string& path, const std::string& ending) {
  return fs::path(path).replace_extension(ending).string();
}

std::string SumsOfRecords(const std::string& path) {
  return path + ".sums";
}

std::string PlaceOfRecord(const std::string& path, int64_t number, uint64_t begin) {
  return format("{}: record {} at byte {}", path, number, begin);
}

std::optional<RecordSums> ReadRecordSums(const std::string& path) {
  const std::string file = SumsOfRecords(path);
  if (!IsRegularFile(file)) return std::nullopt;
  const std::string text = ReadFile(file, kMostBesideBytes);
  const size_t first = std::min(text.find('\n'), text.size());
  const auto header = ParseSumsHeader(std::string_view(text).substr(0, first));
  if (!header) DamagedSums(file, "it does not begin as a file of checksums of records");
  const std::string_view lines = std::string_view(text).substr(std::min(first + 1, text.size()));
  if (Checksum(lines) != header->checksum)
    DamagedSums(file, "it is damaged: its lines are not those written");
  RecordSums sums;
  sums.bytes = header->bytes;
  ForEachLine(lines, [&](std::string_view line, int64_t) {
    const std::vector<std::string_view> cells = SplitCells(line, ' ');
    uint64_t begin = 0, sum = 0;
    const bool parsed =
        cells.size() == 2 && ParseWhole(cells[0], 10, &begin) && ParseWhole(cells[1], 16, &sum);
    const bool follows = sums.begins.empty() ? begin == 0 : begin > sums.begins.back();
    if (!parsed || !follows || begin >= sums.bytes)
      DamagedSums(file, "a line is not an offset, larger than that before, and a checksum");
    sums.begins.push_back(begin);
    sums.sums.push_back(sum);
  });
  if (sums.begins.size() != header->records)
    DamagedSums(file, "its first line says another number of records");
  return sums;
}

void CheckRecordIndex(const std::string& path, std::span<const uint64_t> begins) {
  const std::string file = BesideRecords(path, ".idx");
  if (!IsRegularFile(file)) return;
  std::map<uint64_t, int64_t> line_of;
  ForEachLine(ReadFile(file, kMostBesideBytes), [&](std::string_view line, int64_t number) {
    const std::vector<std::string_view> cells = SplitCells(line, '\t');
    uint64_t offset = 0;
    if (cells.size() != 2 || !ParseWhole(cells[1], 10, &offset)) {
      Throw(ErrorKind::kData, "{}:{}: expected a key, a tab and an offset, got '{}'", file, number,
            Shortened(line));
    }
    const auto [known, added] = line_of.emplace(offset, number);
    if (!added) {
      Throw(ErrorKind::kData, "{}:{}: a second line for the record at byte {}, as in line {}", file,
            number, offset, known->second);
    }
    if (!std::ranges::binary_search(begins, offset))
      Throw(ErrorKind::kData, "{}:{}: no record of {} begins at byte {}", file, number, path,
            offset);
  });
  if (line_of.size() == begins.size()) return;
  size_t i = 0;
  while (line_of.contains(begins[i])) ++i;
  Throw(ErrorKind::kData,
        "{}: it has {}, but {} has {}: no line for {}; without the index, all are found", file,
        Counted(line_of.size(), "line"), path, Counted(begins.size(), "record"),
        PlaceOfRecord(path, static_cast<int64_t>(i), begins[i]));
}

std::string RecordIndexText(std::span<const uint64_t> begins) {
  std::string text;
  for (size_t i = 0; i < begins.size(); ++i) text += format("{}\t{}\n", i, begins[i]);
  return text;
}

std::string RecordSumsText(const RecordSums& sums) {
  std::string lines;
  for (size_t i = 0; i < sums.begins.size(); ++i)
    lines += format("{} {:016x}\n", sums.begins[i], sums.sums[i]);
  return format("{}{} {} {:016x}\n{}", kSumsBegin, sums.begins.size(), sums.bytes, Checksum(lines),
                lines);
}

}  // namespace mxtrain::io

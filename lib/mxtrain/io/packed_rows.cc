// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/internal/packed_rows.h"

#include <algorithm>
#include <set>

namespace mxtrain::io {

PackedRows::PackedRows(const std::vector<TextPiece>& pieces, int64_t row_length) {
  std::vector<TextPiece> parts;
  for (const TextPiece& piece : pieces) {
    for (int64_t at = 0; at < piece.length; at += row_length)
      parts.push_back({piece.first + at, std::min(row_length, piece.length - at)});
  }
  std::ranges::stable_sort(parts, std::greater<>(), &TextPiece::length);
  std::vector<std::vector<TextPiece>> rows;
  std::vector<std::vector<size_t>> with_room(static_cast<size_t>(row_length) + 1);
  std::set<int64_t> rooms;  // of which there are rows
  for (const TextPiece& part : parts) {
    const auto found = rooms.lower_bound(part.length);
    size_t row = rows.size();
    int64_t room = row_length;
    if (found == rooms.end()) {
      rows.emplace_back();
    } else {
      room = *found;
      std::vector<size_t>& same = with_room[static_cast<size_t>(room)];
      row = same.back();
      same.pop_back();
      if (same.empty()) rooms.erase(found);
    }
    rows[row].push_back(part);
    tokens_ += part.length;
    if (const int64_t left = room - part.length; left > 0) {
      with_room[static_cast<size_t>(left)].push_back(row);
      rooms.insert(left);
    }
  }
  for (const std::vector<TextPiece>& row : rows) {
    pieces_.insert(pieces_.end(), row.begin(), row.end());
    begins_.push_back(pieces_.size());
  }
}

PackedRows PackedRows::OneEach(std::vector<TextPiece> pieces) {
  PackedRows rows;
  for (const TextPiece& piece : pieces) {
    rows.tokens_ += piece.length;
    rows.begins_.push_back(rows.begins_.size());
  }
  rows.pieces_ = std::move(pieces);
  return rows;
}

void FillRow(std::span<const TextPiece> row, int64_t length,
             const std::function<void(int64_t first, std::span<text::TokenId> ids)>& read,
             const std::function<bool(int64_t place)>& learns, const RowFields& fields) {
  const auto places = static_cast<size_t>(length);
  fields.data->made.assign(places, 0);
  fields.label->made.assign(places, -1);
  if (fields.position) fields.position->made.assign(places, -1);
  size_t at = 0;
  text::Ids ids;
  for (const TextPiece& piece : row) {
    ids.resize(static_cast<size_t>(piece.length + 1));
    read(piece.first, ids);
    for (size_t i = 0; i + 1 < ids.size(); ++i, ++at) {
      fields.data->made[at] = static_cast<float>(ids[i]);
      if (!learns || learns(piece.first + static_cast<int64_t>(i) + 1))
        fields.label->made[at] = static_cast<float>(ids[i + 1]);
      if (fields.position) fields.position->made[at] = static_cast<float>(i);
    }
  }
  for (FieldValue* value : {fields.data, fields.label, fields.position}) {
    if (value) value->values = value->made;
  }
}

std::vector<TextPiece> FindDocuments(
    int64_t begin, int64_t end, int64_t all, std::span<const int64_t> ends, int64_t terminator,
    const std::function<void(int64_t first, std::span<text::TokenId> ids)>& read) {
  constexpr int64_t kTokensAtOnce = 1 << 16;
  std::vector<TextPiece> documents;
  text::Ids ids;
  bool follows = false;  // a terminator that may be read
  int64_t document = begin;
  const auto close = [&](int64_t behind, bool terminated, bool whole) {
    const int64_t tokens = behind - document - (terminated ? 1 : 0);
    if (whole && tokens > 0) {
      const int64_t first = follows ? document - 1 : document, length = behind - 1 - first;
      if (length > 0) documents.push_back({first, length});
    }
    document = behind;
    follows = terminated;
  };
  auto next_end = std::ranges::lower_bound(ends, begin);
  // What begins before the part is no whole document.
  bool whole = begin == 0 || (next_end != ends.end() && *next_end == begin);
  if (begin > 0 && terminator >= 0) {
    ids.resize(1);
    read(begin - 1, ids);
    follows = static_cast<int64_t>(ids[0]) == terminator;
    whole = whole || follows;
  }
  for (int64_t first = begin; first < end; first += kTokensAtOnce) {
    ids.resize(static_cast<size_t>(std::min(kTokensAtOnce, end - first)));
    if (terminator >= 0) read(first, ids);
    for (size_t i = 0; i < ids.size(); ++i) {
      const int64_t behind = first + static_cast<int64_t>(i) + 1;
      const bool terminated = terminator >= 0 && static_cast<int64_t>(ids[i]) == terminator;
      while (next_end != ends.end() && *next_end < behind) ++next_end;
      const bool ended = next_end != ends.end() && *next_end == behind;
      if (!terminated && !ended && behind != all) continue;
      close(behind, terminated, whole);
      whole = true;
    }
  }
  return documents;
}

}  // namespace mxtrain::io

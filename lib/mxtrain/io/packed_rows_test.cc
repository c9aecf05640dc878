// SPDX-License-Identifier: Apache-2.0
// Documents in rows, against documents that are found one by one.
#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "mxtrain/io/internal/packed_rows.h"

namespace mxtrain::io {
namespace {

std::vector<TextPiece> DocumentsOf(const text::Ids& ids, int64_t begin, int64_t end,
                                   const std::vector<int64_t>& ends, int64_t terminator) {
  return FindDocuments(begin, end, std::ssize(ids), ends, terminator,
                       [&](int64_t first, std::span<text::TokenId> to) {
                         std::copy_n(ids.begin() + first, to.size(), to.begin());
                       });
}

using Pieces = std::vector<TextPiece>;

}  // namespace

TEST_CASE("documents end where a text ends and behind the terminator") {
  // 0 terminates; [5, 6] is a text of its own without one.
  const text::Ids ids = {1, 2, 0, 3, 0, 0, 4, 4, 0, 5, 6, 7, 8, 9};
  CHECK(DocumentsOf(ids, 0, 14, {9, 11, 14}, 0) == Pieces{{0, 2}, {2, 2}, {5, 3}, {8, 2}, {11, 2}});
  CHECK(DocumentsOf(ids, 0, 14, {9, 11, 14}, -1) == Pieces{{0, 8}, {9, 1}, {11, 2}});
  // Of a part: whole documents alone.
  CHECK(DocumentsOf(ids, 1, 10, {9, 11, 14}, 0) == Pieces{{2, 2}, {5, 3}});
  CHECK(DocumentsOf(ids, 3, 9, {9, 11, 14}, 0) == Pieces{{2, 2}, {5, 3}});
  CHECK(DocumentsOf(ids, 11, 14, {9, 11, 14}, 0) == Pieces{{11, 2}});
  CHECK(DocumentsOf({0, 0, 0}, 0, 3, {3}, 0).empty());
}

TEST_CASE("documents of a long text") {
  text::Ids ids;
  Pieces wanted;
  for (int64_t n = 1; std::ssize(ids) < 200'000; n = n % 97 + 1) {
    const int64_t first = std::ssize(ids);
    ids.insert(ids.end(), static_cast<size_t>(n), 3);
    ids.push_back(0);
    wanted.push_back(first == 0 ? TextPiece{0, n} : TextPiece{first - 1, n + 1});
  }
  CHECK(DocumentsOf(ids, 0, std::ssize(ids), {std::ssize(ids)}, 0) == wanted);
}

TEST_CASE("rows hold every piece once, as full as they can be") {
  Pieces pieces;
  int64_t at = 0;
  for (int64_t i = 0; i < 300; ++i) {
    pieces.push_back({at, i * i % 23 + (i % 40 == 0 ? 30 : 1)});
    at += pieces.back().length + 1;
  }
  const int64_t row_length = 32;
  const PackedRows rows(pieces, row_length);
  std::vector<int> times(static_cast<size_t>(at), 0);
  int64_t tokens = 0;
  for (int64_t r = 0; r < rows.size(); ++r) {
    int64_t length = 0;
    for (const TextPiece& piece : rows.Row(r)) {
      length += piece.length;
      for (int64_t i = 0; i < piece.length; ++i) ++times[static_cast<size_t>(piece.first + i)];
    }
    CHECK(length <= row_length);
    tokens += length;
  }
  for (const TextPiece& piece : pieces) {
    for (int64_t i = 0; i < piece.length; ++i) {
      REQUIRE(times[static_cast<size_t>(piece.first + i)] == 1);
      times[static_cast<size_t>(piece.first + i)] = 0;
    }
  }
  CHECK(std::accumulate(times.begin(), times.end(), 0) == 0);
  CHECK(rows.tokens() == tokens);
  CHECK(rows.size() <= (tokens + row_length - 1) / row_length + 1);

  const PackedRows cut({{10, 70}}, row_length);
  REQUIRE(cut.size() == 3);
  CHECK(cut.Row(2)[0] == TextPiece{74, 6});
}

}  // namespace mxtrain::io

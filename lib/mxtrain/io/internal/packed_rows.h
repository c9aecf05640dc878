// SPDX-License-Identifier: Apache-2.0
#pragma once
// Documents of different lengths put into rows of one length, several behind each other. Private to
// io.
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "mxtrain/base/macros.h"
#include "mxtrain/io/source.h"
#include "mxtrain/text/tokenizer.h"

namespace mxtrain::io {

// Tokens [first, first + length) of a text, of which each is to predict the one after it.
struct TextPiece {
  int64_t first = 0, length = 0;
  friend bool operator==(const TextPiece&, const TextPiece&) = default;
};

// Cuts pieces that are longer than a row, each behind the one before, and puts the longest first
// into the fullest row that has room for it (best-fit decreasing: at most 11/9 of the fewest rows
// possible, and usually about as many). Immutable.
class MXTRAIN_API PackedRows {
 public:
  PackedRows() = default;
  PackedRows(const std::vector<TextPiece>& pieces, int64_t row_length);
  // Each piece, none of which is longer than a row, in a row of its own, in their order.
  static PackedRows OneEach(std::vector<TextPiece> pieces);

  int64_t size() const { return static_cast<int64_t>(begins_.size()) - 1; }
  std::span<const TextPiece> Row(int64_t row) const {
    const auto begin = begins_[static_cast<size_t>(row)],
               end = begins_[static_cast<size_t>(row) + 1];
    return std::span(pieces_).subspan(begin, end - begin);
  }
  // Of all places of the rows, those that pieces take.
  int64_t tokens() const { return tokens_; }

 private:
  std::vector<TextPiece> pieces_;  // row by row
  std::vector<size_t> begins_{0};  // of each row among them, and the end
  int64_t tokens_ = 0;
};

// The fields of a row of `length` places: the tokens of its documents, for each the one after it
// (-1 where `learns` says that the token at that place of the text is not to be learnt; null: all
// are), and its number in its document; at padding 0, -1 and -1. `read`: tokens from a place.
struct RowFields {
  FieldValue *data, *label, *position;  // position: null if it is not wanted
};
void FillRow(std::span<const TextPiece> row, int64_t length,
             const std::function<void(int64_t first, std::span<text::TokenId> ids)>& read,
             const std::function<bool(int64_t place)>& learns, const RowFields& fields);

// The documents of the tokens [begin, end). One ends at `ends`, rising places behind a token, and
// behind each `terminator` (-1: there is none). A document begins with the terminator of the one
// before, if there is one, so that its first token is learnt too. Those that begin before `begin`,
// end behind `end` or have no token but the terminator are skipped. `read`: tokens from a place.
MXTRAIN_API std::vector<TextPiece> FindDocuments(
    int64_t begin, int64_t end, int64_t all, std::span<const int64_t> ends, int64_t terminator,
    const std::function<void(int64_t first, std::span<text::TokenId> ids)>& read);

}  // namespace mxtrain::io

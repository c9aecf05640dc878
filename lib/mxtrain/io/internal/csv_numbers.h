// SPDX-License-Identifier: Apache-2.0
#pragma once
// The numbers of a table: what float32 takes from them, missing ones, and standardization. Private
// to io.
#include <limits>
#include <string_view>
#include <vector>

#include "mxtrain/base/standardization.h"
#include "mxtrain/io/internal/csv_fields.h"

namespace mxtrain::io {

inline constexpr float kMissing = std::numeric_limits<float>::quiet_NaN();

// Adds a number, kMissing or that of the trimmed cell, to a field, with its rest. `commas`:
// decimals are written with commas.
void AppendNumber(std::string_view cell, float value, CsvField* field, bool commas = false);

// Numbers are transformed, missing ones become the means, one per column, and if there are `stds`,
// all but those of columns with 0 are standardized: in double where float32 blurs them.
void Standardize(const Standardization& by, CsvField* field);

// Rests cost memory: only a field with a column that float32 blurs keeps them, to be measured and
// standardized. Returns the columns, counted in the field, that lose digits if they are used as
// they are.
std::vector<size_t> DropSmallRests(CsvField* field);

// Removes rows of `width` items each; `dropped`: in order.
template <typename T>
void RemoveRows(const std::vector<size_t>& dropped, size_t width, std::vector<T>* items) {
  if (items->empty()) return;
  size_t kept = 0;
  auto next = dropped.begin();
  for (size_t row = 0; row * width < items->size(); ++row) {
    if (next != dropped.end() && *next == row) {
      ++next;
      continue;
    }
    if (kept != row)
      std::move(items->begin() + static_cast<ptrdiff_t>(row * width),
                items->begin() + static_cast<ptrdiff_t>((row + 1) * width),
                items->begin() + static_cast<ptrdiff_t>(kept * width));
    ++kept;
  }
  items->resize(kept * width);
}

}  // namespace mxtrain::io

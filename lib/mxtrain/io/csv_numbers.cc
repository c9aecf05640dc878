// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/internal/csv_numbers.h"

#include <algorithm>
#include <cmath>

#include "mxtrain/io/internal/text_columns.h"

namespace mxtrain::io {
namespace {

// Rounding errors, in standard deviations or ranges of a column: from which numbers are
// standardized in double, and from which a column that is not standardized is told of.
constexpr double kBlurStandardized = 1.0 / (1 << 16), kBlurTold = 1.0 / (1 << 10);

// What rounding to float32 took from the number in a cell, itself rounded to float32: none of
// numbers with so few digits that float32 gives them back.
float RestOf(std::string_view cell, float value, bool commas) {
  constexpr auto kDigits = std::numeric_limits<float>::digits10;
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  double exact = 0;
  if (std::count_if(cell.begin(), cell.end(), is_digit) <= kDigits) return 0;
  if (!(commas ? ParseCommaNumber(cell, &exact) : ParseNumber(cell, &exact))) return 0;
  return static_cast<float>(exact - static_cast<double>(value));
}

// Whether numbers of this size that differ by `spread` cannot be told apart well in float32.
bool Blurs(double size, double spread, double tolerance) {
  return std::abs(size) * std::numeric_limits<float>::epsilon() > spread * tolerance;
}

}  // namespace

void AppendNumber(std::string_view cell, float value, CsvField* field, bool commas) {
  const float rest = std::isnan(value) ? 0 : RestOf(cell, value, commas);
  if (rest != 0) field->rests.resize(field->numbers.size());
  field->numbers.push_back(value);
  if (rest != 0 || !field->rests.empty()) field->rests.push_back(rest);
}

void Standardize(const Standardization& by, CsvField* field) {
  for (size_t i = 0; i < field->numbers.size(); ++i) {
    const size_t k = i % field->width;
    const bool standardized = !by.std.empty() && by.std[k] > 0;
    const bool missing = std::isnan(field->numbers[i]);
    auto value = static_cast<double>(field->numbers[i]);
    const bool transforms =
        !by.transforms.empty() && by.transforms[k].kind != ColumnTransform::kNone;
    if (standardized && !field->rests.empty() &&
        (transforms || Blurs(by.mean[k], by.std[k], kBlurStandardized)))
      value += static_cast<double>(field->rests[i]);
    value = missing ? by.mean[k] : transforms ? by.transforms[k].Apply(value) : value;
    field->numbers[i] = static_cast<float>(standardized ? (value - by.mean[k]) / by.std[k] : value);
  }
  if (!by.std.empty()) field->rests = {};
}

std::vector<size_t> DropSmallRests(CsvField* field) {
  std::vector<size_t> blurred;
  bool any = false;
  for (size_t k = 0; k < field->columns.size() && !field->rests.empty(); ++k) {
    double least = std::numeric_limits<double>::infinity(), most = -least;
    for (size_t i = k; i < field->numbers.size(); i += field->width) {
      if (std::isnan(field->numbers[i])) continue;
      const double value = double{field->numbers[i]} + double{field->rests[i]};
      least = std::min(least, value);
      most = std::max(most, value);
    }
    const double size = std::max(std::abs(least), std::abs(most));
    any = any || Blurs(size, most - least, kBlurStandardized);
    if (Blurs(size, most - least, kBlurTold)) blurred.push_back(k);
  }
  if (!any) field->rests = {};
  return blurred;
}

}  // namespace mxtrain::io

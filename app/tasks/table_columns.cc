// SPDX-License-Identifier: Apache-2.0
#include "app/tasks/table_columns.h"

#include "app/report/list_item.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/format.h"
#include "mxtrain/base/text.h"

namespace mxtrain::tasks {
namespace {

constexpr int64_t kMostClassesOfNumbers = 10, kMostCategories = 1000;

}  // namespace

std::string LayerNameOf(const std::string& column, std::set<std::string>* used) {
  std::string name;
  for (const char c : Lower(column)) {
    const bool good = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (good) name += c;
    if (!good && !name.empty() && name.back() != '_') name += '_';
  }
  while (!name.empty() && name.back() == '_') name.pop_back();
  if (name.empty() || (name[0] >= '0' && name[0] <= '9')) name = "column" + name;
  while (!used->insert(name).second) name += "_";
  return name;
}

bool HoldsClasses(const io::TableColumn& column) {
  if (column.holds_words()) return true;
  return column.whole && column.least == 0 && column.distinct <= kMostClassesOfNumbers &&
         column.most == static_cast<double>(column.distinct - 1);
}

std::string ClassesText(const io::TableColumn& column) {
  std::vector<std::string> counts;
  for (const auto& [cell, count] : column.few_cells)
    counts.push_back(format("{} ({})", report::ListItem(cell), count));
  return format("{} classes{}{}", column.distinct, counts.empty() ? "" : ": ", join(counts, ", "));
}

bool MixesDecimalCommas(const io::TableColumn& column) {
  return column.words > 0 && column.decimal_commas == column.words;
}

void RefuseNumberLike(const io::TableColumn& target, const std::string& file) {
  if (target.number_like.empty()) return;
  Throw(ErrorKind::kData,
        "{}: the column '{}', which is to be predicted, looks like numbers with {}", file,
        target.name, target.number_like);
}

std::string WhyNoInput(const io::TableColumn& column) {
  if (column.distinct == 0) return "empty";
  if (column.distinct == 1) return "the same in every row";
  if (MixesDecimalCommas(column))
    return format("decimal commas, such as '{}', beside columns with decimal points",
                  column.first_word);
  if (!column.number_like.empty()) return "looks like numbers with " + column.number_like;
  if (column.holds_words()) {
    if (column.distinct * 2 > column.words || column.distinct > kMostCategories)
      return format("{} different words", column.distinct);
    return "";
  }
  if (column.words > 0)
    return format("numbers and {} other {}, the first '{}'", column.words,
                  column.words == 1 ? "cell" : "cells", column.first_word);
  if (column.whole && column.rising && column.distinct == column.rows() && column.rows() > 2)
    return "counts the rows";
  return "";
}

}  // namespace mxtrain::tasks

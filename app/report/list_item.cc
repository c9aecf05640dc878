// SPDX-License-Identifier: Apache-2.0
#include "app/report/list_item.h"

#include "app/config/printable.h"
#include "mxtrain/base/format.h"

namespace mxtrain::report {

std::string ListItem(const std::string& name) {
  const std::string text = config::Printable(name);
  return text.find(',') == std::string::npos ? text : "'" + text + "'";
}

std::string ColumnsText(const std::vector<std::string>& columns) {
  std::vector<std::string> names;
  for (const std::string& column : columns) names.push_back(ListItem(column));
  return format("{} {}", columns.size() == 1 ? "column" : "columns", join(names, ", "));
}

std::string UnitsText(const Standardization& units) {
  std::string text =
      format("mean=({:.9g}) std=({:.9g})", join(units.mean, ", "), join(units.std, ", "));
  std::vector<std::string> transforms;
  for (const ColumnTransform& transform : units.transforms)
    transforms.emplace_back(transform.kind == ColumnTransform::kLog        ? "log"
                            : transform.kind == ColumnTransform::kQuantile ? "quantile"
                                                                           : "none");
  if (!transforms.empty()) text += format(" transform=({})", join(transforms, ", "));
  return text;
}

}  // namespace mxtrain::report

// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/class_counts.h"

#include <algorithm>
#include <cmath>

#include "mxtrain/base/error.h"
#include "mxtrain/io/example_weight.h"

namespace mxtrain::io {
namespace {

// Index of the field that holds class numbers.
size_t FindLabel(const Source& source, std::string_view label) {
  const std::vector<FieldSpec>& labels = source.label_fields();
  const auto found = HasOneLabel(source)
                         ? labels.begin()
                         : std::find_if(labels.begin(), labels.end(),
                                        [&](const FieldSpec& f) { return f.name == label; });
  if (found == labels.end() || found->kind != FieldKind::kValues || found->shape.Size() != 1 ||
      !source.class_names().empty())
    Throw(ErrorKind::kConfig, "the data have no classes to count");
  return static_cast<size_t>(found - labels.begin());
}

}  // namespace

std::vector<int64_t> CountClasses(const Source& source, std::string_view label, int64_t classes) {
  std::vector<int64_t> counts(static_cast<size_t>(classes));
  const bool named = source.size() > 0 && source.ClassOf(0).has_value();
  const size_t field = named ? 0 : FindLabel(source, label);
  Sample sample;
  for (int64_t i = 0; i < source.size(); ++i) {
    const float k = named ? static_cast<float>(source.ClassOf(i).value_or(-1))
                          : source.LabelOf(i, field, &sample)[0];
    if (!(k >= 0 && k < static_cast<float>(classes)) || k != std::floor(k)) {
      Throw(ErrorKind::kData, "{}: the label {} is not one of the {} classes of the net",
            source.Name(i), k, classes);
    }
    ++counts[static_cast<size_t>(k)];
  }
  return counts;
}

}  // namespace mxtrain::io

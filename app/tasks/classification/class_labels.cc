// SPDX-License-Identifier: Apache-2.0
#include "app/tasks/classification/class_labels.h"

#include <algorithm>

#include "mxtrain/base/format.h"

namespace mxtrain::tasks {
namespace {

// Examples of each class; nothing for any other label.
std::optional<std::vector<int64_t>> CountsOf(const io::Source& source, const std::string& label,
                                             int64_t classes) {
  const std::vector<io::FieldSpec>& fields = source.label_fields();
  const auto field = std::find_if(fields.begin(), fields.end(),
                                  [&](const io::FieldSpec& f) { return f.name == label; });
  if (field == fields.end() || field->kind != io::FieldKind::kValues || field->shape.Size() != 1)
    return std::nullopt;
  std::vector<int64_t> counts(static_cast<size_t>(classes));
  io::Sample sample;
  for (int64_t i = 0; i < source.size(); ++i) {
    const float k = source.LabelOf(i, static_cast<size_t>(field - fields.begin()), &sample)[0];
    if (k >= 0 && k < static_cast<float>(classes)) ++counts[static_cast<size_t>(k)];
  }
  return counts;
}

// `examples`: also those whose labels are no classes.
std::optional<std::string> OddCounts(const std::vector<int64_t>& counts, int64_t examples,
                                     const std::vector<std::string>& names) {
  const auto name = [&](size_t k) { return k < names.size() ? names[k] : std::to_string(k); };
  std::vector<std::string> empty;
  for (size_t k = 0; k < counts.size(); ++k) {
    if (counts[k] == 0) empty.push_back(format("'{}'", name(k)));
    if (counts[k] == examples) {
      return format("all {} are of one class, '{}', so that there is nothing to tell apart",
                    Counted(examples, "example"), name(k));
    }
  }
  if (empty.empty() || empty.size() == counts.size()) return std::nullopt;
  const bool counts_from_one = counts[0] == 0 && name(0) == "0";
  return format("no example of {} {}, of {}{}", empty.size() == 1 ? "class" : "the classes",
                FirstOf(empty, 8), counts.size(),
                counts_from_one
                    ? "; classes are numbered from 0: if the labels count from 1, subtract 1"
                    : "");
}

}  // namespace

std::optional<Finding> CompareClassCount(const Head& head,
                                         const std::vector<std::string>& classes) {
  const auto named = static_cast<int64_t>(classes.size());
  if (classes.empty() || head.shape.ndim() != 2 || head.width() == named) return std::nullopt;
  const std::string text = format("'{}' has {} classes, but the data has {} ({})", head.loss->name,
                                  head.width(), named, FirstOf(classes, 12));
  if (head.width() > named)
    return Finding{LogLevel::kWarning, text + "; the other outputs are unused", ""};
  return Finding{LogLevel::kError, text,
                 "set num_hidden: \"${classes}\" in the layer before it to follow the data"};
}

std::vector<std::string> OddClasses(const Head& head, const io::Source& training) {
  std::optional<std::string> odd;
  if (training.num_classes() > 0 && training.size() > 0 && training.ClassOf(0)) {
    std::vector<int64_t> counts(static_cast<size_t>(training.num_classes()));
    for (int64_t i = 0; i < training.size(); ++i)
      ++counts[static_cast<size_t>(*training.ClassOf(i))];
    odd = OddCounts(counts, training.size(), training.class_names());
  } else if (head.shape.ndim() == 2) {
    if (const auto counts = CountsOf(training, head.label, head.shape[1]))
      odd = OddCounts(*counts, training.size(), {});
  }
  return odd ? std::vector<std::string>{*odd} : std::vector<std::string>();
}

}  // namespace mxtrain::tasks

// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/internal/image_files.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <unordered_set>

#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/text.h"
#include "mxtrain/io/example_weight.h"
#include "mxtrain/io/internal/composition.h"
#include "mxtrain/io/internal/text_columns.h"

namespace mxtrain::io {
namespace {

constexpr int64_t kMostClasses = 1'000'000;
// A number that implies more classes than either is not a class number.
constexpr int64_t kFewClasses = 10'000, kClassesPerLabel = 16;
// 0 or 1 per example and class: more than the floor only if there are enough labels.
constexpr size_t kFewSetElements = size_t{1} << 24, kSetElementsPerLabel = 256;
// On average; with fewer, and more classes than kFewClasses, words are not class names.
constexpr size_t kLeastLabelsPerClass = 2;
constexpr size_t kMostImageBytes = size_t{256} << 20;

class ImageFiles final : public Source {
 public:
  explicit ImageFiles(ImageTable table) : table_(std::move(table)) {
    warnings_ = std::move(table_.warnings);
    losses_ = std::move(table_.losses);
    if (table_.label_width == 0) return;
    const TShape scalar(std::span<const int64_t>{});
    label_fields_ = {
        {"softmax_label", FieldKind::kValues,
         table_.label_width == 1 && !table_.label_sets ? scalar : TShape{table_.label_width}}};
    if (!table_.weights.empty())
      label_fields_.push_back({kExampleWeight, FieldKind::kValues, scalar});
  }

  int64_t size() const override { return static_cast<int64_t>(table_.paths.size()); }
  const std::vector<FieldSpec>& data_fields() const override { return data_fields_; }
  const std::vector<FieldSpec>& label_fields() const override { return label_fields_; }
  void Read(int64_t index, Sample* sample) const override {
    sample->data.resize(1);
    sample->labels.resize(label_fields_.size());
    for (size_t i = 0; i < label_fields_.size(); ++i)
      sample->labels[i].values = i == 0 ? Labels(index) : Weight(index);
    sample->data[0].encoded = ReadImageFile(table_.paths[static_cast<size_t>(index)]);
  }
  std::span<const float> LabelOf(int64_t index, size_t position, Sample*) const override {
    return position == 0 ? Labels(index) : Weight(index);
  }
  std::string Name(int64_t index) const override { return FileOf(index); }
  std::string FileOf(int64_t index) const override {
    return table_.paths[static_cast<size_t>(index)];
  }
  std::optional<int> ClassOf(int64_t index) const override {
    if (table_.classes.empty() || table_.label_sets) return std::nullopt;
    return static_cast<int>(Labels(index)[0]);
  }
  const std::vector<std::string>& class_names() const override { return table_.classes; }

 private:
  std::span<const float> Labels(int64_t index) const {
    const auto width = static_cast<size_t>(table_.label_width);
    return std::span(table_.labels).subspan(static_cast<size_t>(index) * width, width);
  }

  std::span<const float> Weight(int64_t index) const {
    return {&table_.weights[static_cast<size_t>(index)], 1};
  }

  ImageTable table_;
  std::vector<FieldSpec> data_fields_ = {{"data", FieldKind::kImage, TShape()}}, label_fields_;
};

std::optional<int64_t> ClassNumber(const std::string& word) {
  int64_t number = 0;
  const auto [end, status] = std::from_chars(word.data(), word.data() + word.size(), number);
  return status == std::errc() && end == word.data() + word.size() ? std::optional(number)
                                                                   : std::nullopt;
}

// Class numbers are named "0", "1", ... unless `given` names them.
ClassLabels FromNumbers(const std::vector<int64_t>& numbers, const std::vector<std::string>& given,
                        const std::function<std::string(size_t)>& place) {
  ClassLabels result{{}, given};
  const int64_t bound = given.empty() ? kMostClasses : static_cast<int64_t>(given.size());
  int64_t most = -1;
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] < 0) {
      Throw(ErrorKind::kData,
            "{}: the label {} is no class: classes are numbered from 0 (write 0 and 1 for -1 and "
            "1), or have names",
            place(i), numbers[i]);
    }
    if (numbers[i] >= bound) {
      Throw(ErrorKind::kData, "{}: the label {} is outside the {} classes (0 .. {})", place(i),
            numbers[i], bound, bound - 1);
    }
    most = std::max(most, numbers[i]);
    result.labels.push_back(static_cast<float>(numbers[i]));
  }
  if (given.empty() &&
      most >= std::max(kFewClasses, kClassesPerLabel * static_cast<int64_t>(numbers.size()))) {
    const auto first =
        static_cast<size_t>(std::find(numbers.begin(), numbers.end(), most) - numbers.begin());
    Throw(ErrorKind::kData,
          "{}: the label {} makes {} classes for {} labels; is it a class number?", place(first),
          most, most + 1, numbers.size());
  }
  for (int64_t k = 0; given.empty() && k <= most; ++k) result.classes.push_back(std::to_string(k));
  return result;
}

}  // namespace

std::string ReadImageFile(const std::string& path) {
  return ReadFile(path, kMostImageBytes);
}

std::unique_ptr<Source> NewImageFiles(ImageTable table) {
  return std::make_unique<ImageFiles>(std::move(table));
}

ClassLabels NumberClasses(const std::vector<std::string>& words,
                          const std::vector<std::string>& given,
                          const std::function<std::string(size_t)>& place) {
  std::vector<int64_t> numbers;
  const std::unordered_set<std::string_view> names(given.begin(), given.end());
  for (const std::string& word : words) {
    const std::optional<int64_t> number = names.contains(word) ? std::nullopt : ClassNumber(word);
    if (!number) break;
    numbers.push_back(*number);
  }
  if (numbers.size() == words.size()) return FromNumbers(numbers, given, place);

  ClassLabels result{{}, given};
  if (given.empty()) {
    result.classes = words;
    std::sort(result.classes.begin(), result.classes.end());
    result.classes.erase(std::unique(result.classes.begin(), result.classes.end()),
                         result.classes.end());
    const size_t count = result.classes.size();
    if (count > static_cast<size_t>(kFewClasses) && count > words.size() / kLeastLabelsPerClass) {
      Throw(ErrorKind::kData,
            "{}: the label '{}' and the others make {} classes for {} labels; are these class "
            "names? If they are, list them as classes",
            place(0), Shortened(words[0]), count, words.size());
    }
  }
  std::map<std::string, float> number_of;
  for (size_t i = 0; i < result.classes.size(); ++i)
    number_of[result.classes[i]] = static_cast<float>(i);
  for (size_t i = 0; i < words.size(); ++i) {
    const auto found = number_of.find(words[i]);
    if (found == number_of.end()) {
      Throw(ErrorKind::kData, "{}: the label '{}' is not one of the {} classes ({}){}", place(i),
            Shortened(words[i]), given.size(), Shortened(FirstOf(given, 20), 500),
            WhyNotAmong(words[i], given));
    }
    result.labels.push_back(found->second);
  }
  return result;
}

ClassLabels NumberClassSets(const std::vector<std::string>& words, const std::string& delim,
                            const std::vector<std::string>& given,
                            const std::function<std::string(size_t)>& place) {
  std::vector<std::string> members;  // of all sets
  std::vector<size_t> rows;          // of each member
  for (size_t row = 0; row < words.size(); ++row) {
    for (size_t begin = 0; begin <= words[row].size();) {
      const size_t end = std::min(words[row].find(delim, begin), words[row].size());
      const std::string_view member =
          Trim(std::string_view(words[row]).substr(begin, end - begin), kBlanks);
      if (!member.empty()) {
        members.emplace_back(member);
        rows.push_back(row);
      }
      begin = end + delim.size();
    }
  }
  const ClassLabels numbered =
      NumberClasses(members, given, [&](size_t i) { return place(rows[i]); });
  if (numbered.classes.empty())
    Throw(ErrorKind::kData, "{}: no label names a class, here or below", place(0));
  const size_t elements = words.size() * numbered.classes.size();
  if (elements > kFewSetElements && elements / kSetElementsPerLabel > members.size()) {
    Throw(ErrorKind::kData,
          "{}: {} classes for {} examples with {} labels in all; are these classes?", place(0),
          numbered.classes.size(), words.size(), members.size());
  }
  ClassLabels sets{std::vector<float>(words.size() * numbered.classes.size()), numbered.classes};
  for (size_t i = 0; i < rows.size(); ++i)
    sets.labels[rows[i] * sets.classes.size() + static_cast<size_t>(numbered.labels[i])] = 1;
  return sets;
}

}  // namespace mxtrain::io

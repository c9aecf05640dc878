// SPDX-License-Identifier: Apache-2.0
#include "app/tasks/output_report.h"

#include <algorithm>

#include "app/report/output.h"
#include "app/tasks/prediction.h"
#include "mxtrain/base/format.h"

namespace mxtrain::tasks {

using report::Printable;
using report::QuoteCsv;

namespace {

// ",1.5,nan"
std::string Cells(std::span<const float> values) {
  std::string cells;
  for (const float value : values) cells += "," + TextOf(value);
  return cells;
}

}  // namespace

void OutputReport::Add(const Examples& examples, const std::vector<NDArray>& outputs) {
  const auto compared = Compare(head(), examples, outputs);
  if (!compared || compared->label_shape.Size() != compared->outputs_shape.Size()) return;
  const auto width =
      static_cast<size_t>(compared->outputs_shape.Size() / compared->outputs_shape[0]);
  const bool first = empty();
  outputs_ = width;
  if (first && lines_.file) WriteHeader();
  for (size_t i = 0; i < examples.count(); ++i) {
    const std::span<const float> truth(compared->label.data() + i * width, width),
        guess(compared->outputs.data() + i * width, width);
    for (size_t k = 0; k < width; ++k) AddNumber(k, truth[k], guess[k]);
    if (lines_.file) WriteExample(examples[i].name(), truth, guess);
  }
}

std::string OutputReport::Name(size_t k) const {
  return names_.size() == outputs_ ? names_[k]
         : outputs_ == 1           ? "value"
                                   : format("value_{}", k + 1);
}

void OutputReport::WriteHeader() const {
  if (lines_.format != report::EachFormat::kCsv) return;
  std::string truth, guess;
  for (size_t k = 0; k < outputs_; ++k) {
    truth += "," + QuoteCsv("true_" + Name(k));
    guess += "," + QuoteCsv("predicted_" + Name(k));
  }
  lines_.file->Write("file" + truth + guess + "\n");
}

void OutputReport::WriteExample(const std::string& example, std::span<const float> truth,
                                std::span<const float> guess) const {
  if (lines_.format == report::EachFormat::kCsv)
    return lines_.file->Write(QuoteCsv(example) + Cells(truth) + Cells(guess) + "\n");
  Json line = {{"file", example}, {"true", Json::object()}, {"predicted", Json::object()}};
  for (size_t k = 0; k < truth.size(); ++k) {
    line["true"][Name(k)] = truth[k];
    line["predicted"][Name(k)] = guess[k];
  }
  lines_.file->Write(report::JsonText(line) + "\n");
}

std::string OutputReport::Text(int /*worst*/, bool /*several*/) const {
  size_t width = 6;
  for (size_t k = 0; k < outputs_; ++k) width = std::max(width, Printable(Name(k)).size());
  std::string text = format("\n{:<{}}", head().name, width);
  for (const auto& [name, value] : Measures(0)) text += format("  {:>9}", name);
  text += "\n";
  for (size_t k = 0; k < outputs_; ++k) {
    text += format("{:<{}}", Printable(Name(k)), width);
    for (const auto& [name, value] : Measures(k)) text += format("  {:>9.4f}", UnsignedNan(value));
    text += "\n";
  }
  return text;
}

std::string OutputReport::CsvHeader() const {
  std::string header = "output";
  for (const auto& [name, value] : Measures(0)) header += format(",{}", name);
  return header;
}

std::string OutputReport::CsvLines(bool with_head) const {
  std::string lines;
  for (size_t k = 0; k < outputs_; ++k) {
    if (with_head) lines += QuoteCsv(report::ListedName(head().name)) + ",";
    lines += QuoteCsv(report::ListedName(Name(k)));
    for (const auto& [name, value] : Measures(k)) lines += format(",{}", UnsignedNan(value));
    lines += "\n";
  }
  return lines;
}

void OutputReport::AddTo(Json* result, int /*worst*/, bool /*several*/) const {
  Json json = Json::object();
  for (size_t k = 0; k < outputs_; ++k) {
    for (const auto& [name, value] : Measures(k)) json[Name(k)][name] = value;
  }
  (*result)["values"].push_back(std::move(json));
}

}  // namespace mxtrain::tasks

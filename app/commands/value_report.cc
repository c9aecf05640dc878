// SPDX-License-Identifier: Apache-2.0
#include "app/commands/value_report.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <span>
#include <string>

#include "app/commands/finite_check.h"
#include "app/report/output.h"
#include "mxtrain/base/format.h"

namespace mxtrain::commands {

using report::Printable;
using report::QuoteCsv;

namespace {

// ",1.5,nan"
std::string Cells(std::span<const float> values) {
  std::string cells;
  for (const float value : values) cells += format(",{}", static_cast<float>(UnsignedNan(value)));
  return cells;
}

}  // namespace

void ValueReport::Output::Add(double y, double prediction) {
  const double error = prediction - y;
  const bool there = y >= 0.5, found = prediction >= 0.5;
  count += 1;
  absolute += std::abs(error);
  squared += error * error;
  truth += y;
  truth_squared += y * y;
  hits += there && found;
  false_alarms += !there && found;
  misses += there && !found;
}

double ValueReport::Output::R2() const {
  const double variance = truth_squared - truth * truth / count;
  return variance > 0 ? 1 - squared / variance : 0;
}

void ValueReport::Add(const DataBatch& batch, const std::vector<NDArray>& outputs,
                      const DataIter& iter) {
  const NDArray& predictions = outputs[static_cast<size_t>(head_.output)];
  const std::vector<DataDesc> labels = iter.provide_label();
  const auto found = std::find_if(labels.begin(), labels.end(), [this](const DataDesc& desc) {
    return desc.name == head_.label;
  });
  if (found == labels.end()) return;
  const NDArray& label = batch.label[static_cast<size_t>(found - labels.begin())];
  if (label.shape().Size() != predictions.shape().Size()) return;
  const auto width = static_cast<size_t>(predictions.shape().Size() / predictions.shape()[0]);
  const bool first = outputs_.empty();
  outputs_.resize(width);
  if (first && each_) WriteHead();
  std::vector<float> y = label.ToVector(), p = predictions.ToVector();
  if (found->units) {
    found->units->Restore(&y);
    found->units->Restore(&p);
  }
  for (size_t i = 0; i < static_cast<size_t>(batch.count); ++i) {
    const std::span<const float> truth(y.data() + i * width, width),
        guess(p.data() + i * width, width);
    for (size_t k = 0; k < width; ++k) outputs_[k].Add(truth[k], guess[k]);
    if (each_) WriteExample(iter.ExampleName(batch.index[i]), truth, guess);
  }
}

std::string ValueReport::Name(size_t k) const {
  return names_.size() == outputs_.size() ? names_[k]
         : outputs_.size() == 1           ? "value"
                                          : format("value_{}", k + 1);
}

void ValueReport::WriteExample(const std::string& example, std::span<const float> truth,
                               std::span<const float> guess) const {
  if (each_format_ == report::EachFormat::kCsv)
    return each_->Write(format("{}{}{}\n", QuoteCsv(example), Cells(truth), Cells(guess)));
  Json line = {{"file", example}, {"true", Json::object()}, {"predicted", Json::object()}};
  for (size_t k = 0; k < truth.size(); ++k) {
    line["true"][Name(k)] = truth[k];
    line["predicted"][Name(k)] = guess[k];
  }
  each_->Write(report::JsonText(line) + "\n");
}

void ValueReport::WriteHead() const {
  if (each_format_ != report::EachFormat::kCsv) return;
  std::string truth, guess;
  for (size_t k = 0; k < outputs_.size(); ++k) {
    truth += "," + QuoteCsv("true_" + Name(k));
    guess += "," + QuoteCsv("predicted_" + Name(k));
  }
  each_->Write("file" + truth + guess + "\n");
}

std::vector<std::pair<const char*, double>> ValueReport::Measures(const Output& o) const {
  if (!classes())
    return {
        {"mae", o.absolute / o.count}, {"rmse", std::sqrt(o.squared / o.count)}, {"r2", o.R2()}};
  const auto part = [](int64_t of, int64_t all) {
    return all > 0 ? static_cast<double>(of) / static_cast<double>(all) : 0;
  };
  return {{"precision", part(o.hits, o.hits + o.false_alarms)},
          {"recall", part(o.hits, o.hits + o.misses)},
          {"f1", part(2 * o.hits, 2 * o.hits + o.false_alarms + o.misses)}};
}

void ValueReport::Print() const {
  size_t width = 6;
  for (size_t k = 0; k < outputs_.size(); ++k) width = std::max(width, Printable(Name(k)).size());
  std::cout << format("\n{:<{}}", head_.name, width);
  for (const auto& [name, value] : Measures(outputs_[0])) std::cout << format("  {:>9}", name);
  std::cout << "\n";
  for (size_t k = 0; k < outputs_.size(); ++k) {
    std::cout << format("{:<{}}", Printable(Name(k)), width);
    for (const auto& [name, value] : Measures(outputs_[k]))
      std::cout << format("  {:>9.4f}", UnsignedNan(value));
    std::cout << "\n";
  }
}

Json ValueReport::ToJson() const {
  Json json = Json::object();
  for (size_t k = 0; k < outputs_.size(); ++k) {
    for (const auto& [name, value] : Measures(outputs_[k])) json[Name(k)][name] = value;
  }
  return json;
}

std::vector<std::string> NamesOfValues(const LossReport::Head& head,
                                       const std::vector<std::string>& classes,
                                       const session::PipelineSpec& run) {
  const bool of_classes = head.kind == LossReport::Head::Kind::kLogistic && !classes.empty();
  return of_classes ? classes : run.ColumnsOf(head.label);
}

std::vector<ValueReport> ValueReportsOf(const Symbol& symbol,
                                        const std::vector<std::string>& classes,
                                        const session::PipelineSpec& run) {
  std::vector<ValueReport> reports;
  const LossReport losses(symbol);
  for (const LossReport::Head& head : losses.heads()) {
    if (!head.label.empty() && head.kind != LossReport::Head::Kind::kSoftmax)
      reports.emplace_back(head, NamesOfValues(head, classes, run));
  }
  return reports;
}

}  // namespace mxtrain::commands

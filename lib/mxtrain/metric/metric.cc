// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/metric/metric.h"

#include <cstdlib>

#include "mxtrain/base/error.h"
#include "mxtrain/base/suggest.h"
#include "mxtrain/metric/internal/metrics.h"
#include "mxtrain/ndarray/as_float32.h"

namespace mxtrain {
namespace {

struct Entry {
  const char* name;
  std::vector<const char*> aliases;  // of MXNet
  std::unique_ptr<Metric> (*make)(const Kwargs&);
  std::vector<FieldInfo> (*describe)();
};

const std::vector<Entry>& Entries() {
  static const std::vector<Entry> entries = {
      {"accuracy", {"acc"}, NewAccuracy, DescribeAccuracy},
      {"top_k", {"top_k_accuracy", "top_k_acc"}, NewTopK, DescribeTopK},
      {"cross_entropy", {"ce", "cross-entropy"}, NewCrossEntropy, DescribeCrossEntropy},
      {"perplexity", {}, NewPerplexity, DescribeCrossEntropy},
      {"f1", {}, NewF1, DescribeF1},
      {"multilabel_accuracy", {}, NewMultilabelAccuracy, DescribeMultilabelAccuracy},
      {"multilabel_f1", {}, NewMultilabelF1, DescribeMultilabelF1},
      {"auc", {}, NewAuc, NoParam::Describe},
      {"mse", {}, NewMse, NoParam::Describe},
      {"rmse", {}, NewRmse, NoParam::Describe},
      {"mae", {}, NewMae, NoParam::Describe},
      {"r2", {}, NewR2, NoParam::Describe}};
  return entries;
}

const Entry& Find(std::string_view name) {
  for (const Entry& entry : Entries()) {
    if (name == entry.name) return entry;
    for (const char* alias : entry.aliases) {
      if (name == alias) return entry;
    }
  }
  const std::vector<std::string> names = Metric::Names();
  const std::string nearest = DidYouMean(name, names);
  Throw(ErrorKind::kConfig, "there is no metric '{}'{}", name,
        nearest.empty() ? format("; use {}", join(names, ", ")) : nearest);
}

}  // namespace

std::unique_ptr<Metric> Metric::Create(std::string_view name, const Kwargs& kwargs) {
  return Find(name).make(kwargs);
}
std::vector<std::string> Metric::Names() {
  std::vector<std::string> names;
  for (const Entry& entry : Entries()) names.emplace_back(entry.name);
  return names;
}
std::vector<FieldInfo> Metric::Describe(std::string_view name) {
  return Find(name).describe();
}

void Metric::Update(const TBlob& label, const TBlob& pred, int64_t count) {
  for (const TBlob* blob : {&label, &pred}) RequireHostFloat32(*blob, "metric", name_);
  if (label.shape.ndim() < 1 || pred.shape.ndim() < 1 || label.shape[0] != pred.shape[0]) {
    Throw(ErrorKind::kConfig, "metric {}: labels {} and output {} have different batch sizes",
          name_, label.shape.ToString(), pred.shape.ToString());
  }
  if (count < 0 || count > pred.shape[0])
    Throw(ErrorKind::kBug, "metric {}: {} rows of a batch of {}", name_, count, pred.shape[0]);
  Add(label, pred, count);
}

std::string Metric::SaveState() const {
  std::string text = name_;
  for (double sum : Sums()) text += format(" {:a}", sum);
  return text;
}

void Metric::RestoreState(const std::string& text) {
  TakeState(text, &Metric::SetSums);
}

void Metric::Merge(const std::string& state) {
  TakeState(state, &Metric::AddSums);
}

void Metric::TakeState(const std::string& text,
                       bool (Metric::*take)(const std::vector<double>& sums)) {
  const auto refuse = [&] {
    Throw(ErrorKind::kData, "'{}' is not a saved state of metric {}", text.substr(0, 80), name_);
  };
  if (text != name_ && !text.starts_with(name_ + " ")) refuse();
  std::vector<double> sums;
  for (const char* at = text.c_str() + name_.size(); *at != '\0';) {
    char* end = nullptr;
    sums.push_back(std::strtod(at, &end));
    if (end == at) refuse();
    at = end;
  }
  if (!(this->*take)(sums)) refuse();
}

}  // namespace mxtrain

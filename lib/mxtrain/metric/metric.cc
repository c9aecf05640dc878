// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/metric/metric.h"

#include <algorithm>
#include <cstdlib>

#include "mxtrain/base/error.h"
#include "mxtrain/base/suggest.h"
#include "mxtrain/metric/internal/metrics.h"
#include "mxtrain/metric/metric_table.h"
#include "mxtrain/ndarray/as_float32.h"

namespace mxtrain {
namespace {

std::vector<MetricKind>& Kinds() {
  static std::vector<MetricKind> kinds = {
      {"accuracy", {"acc"}, NewAccuracy, DescribeAccuracy},
      {"top_k", {"top_k_accuracy", "top_k_acc"}, NewTopK, DescribeTopK},
      {"cross_entropy", {"ce", "cross-entropy"}, NewCrossEntropy, DescribeCrossEntropy},
      {"perplexity", {}, NewPerplexity, DescribeCrossEntropy},
      {"f1", {}, NewF1, DescribeF1},
      {"mean_iou", {"miou"}, NewMeanIou, DescribeMeanIou},
      {"mean_ap", {"map"}, NewMeanAp, DescribeMeanAp},
      {"cer", {"character_error_rate"}, NewCer, DescribeCer},
      {"wer", {"word_error_rate"}, NewWer, DescribeWer},
      {"multilabel_accuracy", {}, NewMultilabelAccuracy, DescribeMultilabelAccuracy},
      {"multilabel_f1", {}, NewMultilabelF1, DescribeMultilabelF1},
      {"auc", {}, NewAuc, NoParam::Describe},
      {"mse", {}, NewMse, NoParam::Describe},
      {"rmse", {}, NewRmse, NoParam::Describe},
      {"mae", {}, NewMae, NoParam::Describe},
      {"psnr", {}, NewPsnr, NoParam::Describe},
      {"r2", {}, NewR2, NoParam::Describe}};
  return kinds;
}

// Null if there is none.
const MetricKind* FindKind(std::string_view name) {
  for (const MetricKind& kind : Kinds()) {
    if (name == kind.name || std::ranges::find(kind.aliases, name) != kind.aliases.end())
      return &kind;
  }
  return nullptr;
}

const MetricKind& Find(std::string_view name) {
  if (const MetricKind* const kind = FindKind(name)) return *kind;
  const std::vector<std::string> names = Metric::Names();
  const std::string nearest = DidYouMean(name, names);
  Throw(ErrorKind::kConfig, "there is no metric '{}'{}", name,
        nearest.empty() ? format("; use {}", join(names, ", ")) : nearest);
}

}  // namespace

void RegisterMetric(MetricKind kind) {
  if (FindKind(kind.name))
    Throw(ErrorKind::kConfig, "there are two metrics of the name '{}'", kind.name);
  Kinds().push_back(std::move(kind));
}

std::unique_ptr<Metric> Metric::Create(std::string_view name, const Kwargs& kwargs) {
  return Find(name).make(kwargs);
}
std::vector<std::string> Metric::Names() {
  std::vector<std::string> names;
  for (const MetricKind& kind : Kinds()) names.push_back(kind.name);
  return names;
}
std::vector<FieldInfo> Metric::Describe(std::string_view name) {
  return Find(name).describe();
}

void Metric::CheckArrays(const TBlob& label, const TBlob& pred, int64_t count) const {
  for (const TBlob* blob : {&label, &pred}) RequireHostFloat32(*blob, "metric", name_);
  if (label.shape.ndim() < 1 || pred.shape.ndim() < 1 || label.shape[0] != pred.shape[0]) {
    Throw(ErrorKind::kConfig, "metric {}: labels {} and output {} have different batch sizes",
          name_, label.shape.ToString(), pred.shape.ToString());
  }
  if (count < 0 || count > pred.shape[0])
    Throw(ErrorKind::kBug, "metric {}: {} rows of a batch of {}", name_, count, pred.shape[0]);
}

void Metric::TakeWeights(const TBlob* weights, int64_t rows) {
  weights_ = nullptr;
  if (!weights) return;
  RequireHostFloat32(*weights, "metric", name_);
  if (!takes_weights())
    Throw(ErrorKind::kConfig, "metric {} counts every example once: examples cannot have weights",
          name_);
  const int64_t count = weights->Size();
  if (count == 0 || rows % count != 0) {
    Throw(ErrorKind::kConfig, "metric {}: {} cannot weigh an output of {} rows", name_,
          Counted(count, "weight"), rows);
  }
  weights_ = weights->dptr<float>();
  rows_of_weight_ = rows / count;
}

void Metric::Update(const TBlob& label, const TBlob& pred, int64_t count, const TBlob* weights) {
  CheckArrays(label, pred, count);
  TakeWeights(weights, pred.shape[0]);
  Add(label, pred, count);
}

void Metric::UpdateFromLosses(const TBlob& label, const TBlob& losses, int64_t count,
                              const TBlob* weights) {
  CheckArrays(label, losses, count);
  TakeWeights(weights, losses.shape[0]);
  if (label.shape != losses.shape) {
    Throw(ErrorKind::kConfig, "metric {}: labels {} do not fit losses {}", name_,
          label.shape.ToString(), losses.shape.ToString());
  }
  AddLosses(label, losses, count);
}

void Metric::AddLosses(const TBlob&, const TBlob&, int64_t) {
  Throw(ErrorKind::kBug, "metric {} does not follow from losses", name_);
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

// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/train/internal/best_epochs.h"

#include <cmath>

namespace mxtrain {

BestEpochs::BestEpochs(const std::vector<std::string>& metrics, const MetricSet& measured) {
  for (const std::string& metric : metrics) {
    best_.push_back({metric, std::nullopt, 0});
    higher_is_better_.push_back(metric != "loss" && measured.HigherIsBetter(metric));
  }
}

std::vector<std::string> BestEpochs::Update(int64_t epoch, const NamedValues& values) {
  std::vector<std::string> names;
  for (size_t i = 0; i < best_.size(); ++i) {
    BestValue& best = best_[i];
    const std::optional<double> value = FindValue(values, best.metric);
    if (!value || !std::isfinite(*value)) continue;
    if (best.value && (higher_is_better_[i] ? *value <= *best.value : *value >= *best.value))
      continue;
    best.value = value;
    best.epoch = epoch;
    names.push_back(i == 0 ? "best" : "best-" + best.metric);
  }
  return names;
}

void BestEpochs::Restore(const std::vector<BestValue>& saved) {
  for (BestValue& best : best_) {
    for (const BestValue& old : saved) {
      if (old.metric == best.metric) best = old;
    }
  }
}

std::optional<double> FindValue(const NamedValues& values, const std::string& name) {
  for (const auto& [key, value] : values) {
    if (key == name) return value;
  }
  return std::nullopt;
}

}  // namespace mxtrain

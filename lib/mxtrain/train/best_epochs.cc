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

namespace {

bool IsBetter(double value, const std::optional<double>& loss, const BestValue& best,
              bool higher_is_better) {
  if (!best.value) return true;
  if (value != *best.value) return higher_is_better == (value > *best.value);
  return loss && best.loss && *loss < *best.loss;
}

}  // namespace

std::vector<std::string> BestEpochs::Update(int64_t epoch, const NamedValues& values) {
  std::vector<std::string> names;
  if (IsNotFinite(FindValue(values, "loss"))) return names;
  const std::optional<double> loss = TieBreakingLoss(values);
  for (size_t i = 0; i < best_.size(); ++i) {
    BestValue& best = best_[i];
    const std::optional<double> value = FindValue(values, best.metric);
    if (!value || IsNotFinite(value)) continue;
    if (!IsBetter(*value, loss, best, higher_is_better_[i])) continue;
    best.value = value;
    best.epoch = epoch;
    best.loss = loss;
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

std::optional<double> TieBreakingLoss(const NamedValues& values) {
  const std::optional<double> loss = FindValue(values, "loss");
  if (!loss) return std::nullopt;
  const auto rounded = static_cast<float>(*loss);  // infinite where that is too large for it
  return std::isfinite(rounded) ? std::optional<double>(rounded) : std::nullopt;
}

bool IsNotFinite(const std::optional<double>& value) {
  return value && !std::isfinite(*value);
}

std::optional<double> FindValue(const NamedValues& values, const std::string& name) {
  for (const auto& [key, value] : values) {
    if (key == name) return value;
  }
  return std::nullopt;
}

}  // namespace mxtrain

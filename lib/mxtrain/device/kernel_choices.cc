// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/device/kernel_choices.h"

#include <algorithm>
#include <chrono>

namespace mxtrain {
namespace {

// Relative to the best time so far: a smaller gain is within measurement noise.
constexpr double kWorthwhile = 0.95;

}  // namespace

KernelChoices::Measuring::Measuring(KernelChoices* choices) : choices_(choices) {
  if (!choices_) return;
  const MutexLock lock(choices_->mutex_);
  ++choices_->allowing_;
}

KernelChoices::Measuring::~Measuring() {
  if (!choices_) return;
  const MutexLock lock(choices_->mutex_);
  --choices_->allowing_;
}

size_t KernelChoices::Choose(const std::string& key, std::span<const std::string> candidates,
                             const Stopwatch& seconds_of) {
  const MutexLock measuring(measuring_);
  if (const std::optional<std::string> kept = Find(key)) {
    const auto found = std::find(candidates.begin(), candidates.end(), *kept);
    if (found != candidates.end()) return static_cast<size_t>(found - candidates.begin());
    if (*kept == kNotMeasured) return 0;
  }
  if (!seconds_of || candidates.size() < 2) return 0;
  {
    const MutexLock lock(mutex_);
    if (allowing_ == 0) return 0;
  }
  const auto begin = std::chrono::steady_clock::now();
  size_t fastest = 0;
  std::optional<double> least;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const std::optional<double> seconds = seconds_of(i);
    if (!seconds || (least && *seconds >= kWorthwhile * *least)) continue;
    least = seconds;
    fastest = i;
  }
  Keep({{key, least ? candidates[fastest] : kNotMeasured}});
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  const MutexLock lock(mutex_);
  measuring_seconds_ += taken.count();
  return fastest;
}

KernelChoices::Table KernelChoices::kept() const {
  const MutexLock lock(mutex_);
  return kept_;
}

double KernelChoices::measuring_seconds() const {
  const MutexLock lock(mutex_);
  return measuring_seconds_;
}

void KernelChoices::Keep(const Table& table) {
  const MutexLock lock(mutex_);
  for (const auto& [key, choice] : table) kept_[key] = choice;
}

std::optional<std::string> KernelChoices::Find(const std::string& key) const {
  const MutexLock lock(mutex_);
  const auto found = kept_.find(key);
  return found == kept_.end() ? std::nullopt : std::optional(found->second);
}

KernelChoices* ChoicesOf(Backend& backend) {
  auto* choosing = dynamic_cast<ChoosingBackend*>(&backend);
  return choosing ? &choosing->choices() : nullptr;
}

std::optional<size_t> ChooseUsable(KernelChoices* choices, const std::string& key,
                                   std::span<const std::string> candidates,
                                   const KernelChoices::Stopwatch& seconds_of,
                                   const std::function<bool(size_t)>& usable) {
  const size_t chosen = choices ? choices->Choose(key, candidates, seconds_of) : 0;
  if (usable(chosen)) return chosen;
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (i != chosen && usable(i)) return i;
  }
  return std::nullopt;
}

}  // namespace mxtrain

// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/train/watch.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "mxtrain/base/error.h"
#include "mxtrain/base/glob.h"
#include "mxtrain/engine/engine.h"
#include "mxtrain/executor/passes.h"
#include "mxtrain/ndarray/runtime.h"
#include "mxtrain/operator/kernel.h"
#include "mxtrain/train/internal/step_watch.h"

namespace mxtrain {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

template <typename T>
std::vector<double> Compute(const T* values, int64_t size) {
  double sum = 0, squares = 0, absolutes = 0, deviations = 0;
  double low = std::numeric_limits<double>::infinity(), high = -low;
  int64_t finite = 0, zeros = 0;
  const auto each_finite = [&](auto&& use) {
    for (int64_t i = 0; i < size; ++i) {
      const auto v = static_cast<double>(values[i]);
      if (std::isfinite(v)) use(v);
    }
  };
  each_finite([&](double v) {
    ++finite;
    zeros += v == 0;
    sum += v, squares += v * v, absolutes += std::abs(v);
    low = std::min(low, v), high = std::max(high, v);
  });
  const auto nonfinite = static_cast<double>(size - finite);
  if (finite == 0)
    return {kNone, kNone, kNone, kNone, kNone, kNone, kNone, kNone, kNone, nonfinite};
  const auto n = static_cast<double>(finite);
  const double mean = sum / n;
  each_finite([&](double v) { deviations += (v - mean) * (v - mean); });
  return {std::sqrt(squares / n),
          std::sqrt(squares),
          mean,
          std::sqrt(deviations / n),
          low,
          high,
          absolutes / n,
          std::max(std::abs(low), std::abs(high)),
          static_cast<double>(zeros) / n,
          nonfinite};
}

// Of the outputs and gradients of layers that the executor's monitor may show. It also shows what
// the passes have added, such as sums of gradients.
std::vector<std::string> ShownBy(const Executor& executor) {
  std::vector<std::string> names;
  for (const executor::ExecNode& node : executor.graph().nodes) {
    const bool forward = node.kind == Node::Kind::kForward && !node.backward_pass;
    if (!forward && node.kind != Node::Kind::kBackward) continue;
    const std::vector<std::string> own =
        forward ? node.op->ListOutputs() : node.op->ListArguments();
    for (size_t i = 0; i < own.size() && i < node.req.size(); ++i) {
      if (node.req[i] != OpReqType::kNullOp) names.push_back(format("{}_{}", node.name, own[i]));
    }
  }
  return names;
}

}  // namespace

const std::vector<std::string>& StatisticNames() {
  static const std::vector<std::string> kNames = {
      "rms", "norm", "mean", "std", "min", "max", "abs_mean", "abs_max", "zeros", "nonfinite"};
  return kNames;
}

std::vector<double> StatisticsOf(const TBlob& value) {
  std::vector<double> statistics;
  SwitchType(value.type, "statistics", [&]<typename T>(TypeTag<T>) {
    statistics = Compute(value.dptr<T>(), value.shape.Size());
  });
  return statistics;
}

StepWatch::StepWatch(const WatchOptions& options, Executor& executor,
                     const std::map<std::string, NDArray>& args,
                     const std::map<std::string, NDArray>& auxs)
    : options_(options), executor_(executor) {
  auto names = std::make_shared<std::set<std::string>>();
  for (const std::string& name : ShownBy(executor)) {
    if (GlobMatches(options.pattern, name)) names->insert(name);
  }
  names_ = std::move(names);
  if (options.every < 1)
    Throw(ErrorKind::kUsage, "arrays are watched each n-th step, not each {}", options.every);
  for (const auto* arrays : {&args, &auxs}) {
    for (const auto& [name, array] : *arrays) {
      if (GlobMatches(options.pattern, name)) states_[name] = array;
    }
  }
}

void StepWatch::RequireMatch() const {
  if (!states_.empty() || !names_->empty()) return;
  std::vector<std::string> names = ShownBy(executor_);
  for (const auto* arrays : {&executor_.args(), &executor_.auxs()}) {
    for (const auto& [name, array] : *arrays) names.push_back(name);
  }
  mxtrain::RequireMatch(options_.pattern, names,
                        "output, gradient, parameter or auxiliary state of the net");
}

void StepWatch::BeginBatch(int64_t step) {
  if (!IsDue(step) || names_->empty()) return;
  executor_.SetMonitor(
      [step, names = names_, show = options_.show](const std::string& name, const TBlob& value) {
        if (names->contains(name)) show(step, name, value);
      });
}

// The batch that was pushed keeps the monitor.
void StepWatch::EndBatch() {
  executor_.SetMonitor({});
}

// The next updates wait for these copies, the training thread does not.
void StepWatch::EndStep(int64_t step) {
  if (!IsDue(step)) return;
  shown_ = step;
  for (const auto& [name, array] : states_) {
    const NDArray copy = array.Copy(Context::cpu()).ToPlain();
    const engine::VarHandle reads[] = {copy.var()};
    engine::PushOptions options;
    options.name = "watch";
    array.runtime().engine().PushSync([step, name = name, copy, show = options_.show](
                                          RunContext) { show(step, name, copy.data()); },
                                      reads, {}, options);
  }
}

}  // namespace mxtrain

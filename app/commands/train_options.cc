// SPDX-License-Identifier: Apache-2.0
#include "app/commands/train_options.h"

#include <algorithm>
#include <utility>

#include "app/commands/compute_modes.h"
#include "mxtrain/base/error.h"

namespace mxtrain::commands {
namespace {

SavePolicy SavePolicyOf(const config::SaveConfig& save) {
  using Unit = config::Interval::Unit;
  SavePolicy policy{0, 0, 0, save.keep};
  if (save.every.unit == Unit::kEpochs) policy.every_epochs = save.every.count;
  if (save.every.unit == Unit::kSteps) policy.every_steps = save.every.count;
  if (save.every.unit == Unit::kSeconds)
    policy.every_seconds = static_cast<double>(save.every.count);
  return policy;
}

}  // namespace

std::vector<MetricSpec> MetricsOf(const config::TrainConfig& train) {
  std::vector<MetricSpec> specs;
  for (const config::Named& m : train.metrics.value_or(std::vector<config::Named>())) {
    MetricSpec spec{m.name, {}, "", ""};
    for (const auto& [key, value] : m.params) {
      if (key == "output") {
        spec.output = value;
      } else if (key == "label") {
        spec.label = value;
      } else {
        spec.params.emplace_back(key, value);
      }
    }
    specs.push_back(std::move(spec));
  }
  return specs;
}

LrPatterns LrPatternsOf(const config::TrainConfig& train) {
  LrPatterns patterns = train.lr_mult;
  for (const std::string& pattern : train.freeze) patterns.emplace_back(pattern, 0);
  return patterns;
}

std::vector<Context> WorkersOf(const config::TrainConfig& train,
                               const std::vector<Context>& devices) {
  const int shares = std::max(train.kvstore.workers, 1);
  if (devices.size() == 1) return std::vector<Context>(static_cast<size_t>(shares), devices[0]);
  if (shares > 1) {
    Throw(ErrorKind::kConfig,
          "train.kvstore.workers={} splits a batch on one device, but --device splits it over {}; "
          "remove one of them",
          shares, devices.size());
  }
  return devices;
}

BindOptions BindOptionsOf(const config::TrainConfig& train, const std::vector<Context>& devices,
                          bool deterministic) {
  BindOptions o;
  o.workers = WorkersOf(train, devices);
  o.modes = ModesOf(train.math, train.amp, deterministic);
  o.grad_accum = train.grad_accum;
  o.lr_mult = LrPatternsOf(train);
  o.memory_budget = {train.memory_budget.bytes, train.memory_budget.percent / 100};
  return o;
}

TrainOptions TrainOptionsOf(const config::TrainConfig& train, const Symbol& net,
                            const std::vector<Context>& devices, bool deterministic) {
  TrainOptions o;
  static_cast<BindOptions&>(o) = BindOptionsOf(train, devices, deterministic);
  o.symbol = net;
  o.epochs = train.epochs;
  o.max_steps = train.max_steps;
  o.optimizer = {train.optimizer.name, train.optimizer.params};
  if (train.clip.value)
    o.optimizer.params.emplace_back("clip_gradient", params::Print(*train.clip.value));
  o.clip_norm = train.clip.norm;
  o.lr_schedule = {train.lr_schedule.name, train.lr_schedule.params};
  o.initializer = {train.initializer.name, train.initializer.params};
  for (const auto& [pattern, init] : train.initializers)
    o.initializers.push_back({pattern, {init.name, init.params}});
  o.metrics = MetricsOf(train);
  o.best_metrics = train.best.metric;
  o.early_stop = {train.early_stop.patience, train.early_stop.min_delta, train.early_stop.target};
  o.time_limit_seconds = static_cast<double>(train.time_limit.seconds);
  o.report_steps = train.report_every;
  o.average_decay = train.ema.decay;
  o.measure_kernels = train.measure_kernels;
  o.kvstore =
      train.kvstore.type == "auto" ? (devices.size() > 1 ? "device" : "local") : train.kvstore.type;
  o.save = SavePolicyOf(train.save);
  return o;
}

KeptStates StatesOf(const config::TrainConfig& train) {
  const config::Named& optimizer = train.optimizer;
  return {Optimizer::Create(optimizer.name, optimizer.params)->NumStates(),
          train.ema.decay.has_value()};
}

}  // namespace mxtrain::commands

// SPDX-License-Identifier: Apache-2.0
#include "app/session/train_options.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "app/session/compute_modes.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/glob.h"

namespace mxtrain::session {
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

LoraOptions LoraOf(const config::TrainConfig& train) {
  const config::LoraConfig& lora = train.lora;
  return {lora.layers, lora.rank, lora.alpha, lora.dropout};
}

bool FixesStatistics(const config::TrainConfig& train) {
  return train.freeze.global_stats || !train.lora.layers.empty();
}

std::vector<std::string> FrozenOf(const config::TrainConfig& train, const config::Net& net) {
  const config::FreezeConfig& freeze = train.freeze;
  const auto is_of = [](const std::vector<std::string>& patterns, const std::string& name) {
    return std::any_of(patterns.begin(), patterns.end(),
                       [&](const std::string& pattern) { return GlobMatches(pattern, name); });
  };
  std::vector<std::string> frozen;
  if (!train.lora.layers.empty()) {
    std::set<std::string> factors;
    for (const LoraFactors& names : net.lora) factors.insert({names.a, names.b});
    for (const std::string& name : config::ParametersOf(net)) {
      if (!factors.contains(name) && !is_of(train.lora.whole, name)) frozen.push_back(name);
    }
    return frozen;
  }
  if (freeze.layers.empty() && freeze.except.empty()) return {};
  for (const std::string& name : config::ParametersOf(net)) {
    if ((freeze.layers.empty() || is_of(freeze.layers, name)) && !is_of(freeze.except, name))
      frozen.push_back(name);
  }
  return frozen;
}

std::vector<LayerGroup> LayerGroupsOf(const config::Net& net) {
  std::set<std::string> inputs, labels;
  for (const config::NetInput& input : net.inputs) inputs.insert(input.name);
  for (const config::NetInput& label : net.labels) labels.insert(label.name);
  return LayerGroups(net.symbol, inputs, labels);
}

LrPatterns LrPatternsOf(const config::TrainConfig& train, const config::Net& net) {
  LrPatterns patterns = train.lr_mult;
  if (train.lr_decay < 1) {
    const std::vector<LayerGroup> groups = LayerGroupsOf(net);
    const std::map<std::string, Attrs> attrs = net.symbol.ListAttrs();
    for (size_t i = 0; i < groups.size(); ++i) {
      const double factor = std::pow(train.lr_decay, static_cast<double>(groups.size() - 1 - i));
      for (const std::string& name : groups[i].parameters) {
        const auto own = attrs.find(name);
        const Attrs& given = own == attrs.end() ? Attrs() : own->second;
        patterns.emplace_back(name, factor * FindMultipliers(name, given, train.lr_mult).lr);
      }
    }
  }
  if (train.freeze.epochs == 0) {
    for (const std::string& name : FrozenOf(train, net)) patterns.emplace_back(name, 0);
  }
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

BindOptions BindOptionsOf(const config::TrainConfig& train, const config::Net& net,
                          const std::vector<Context>& devices, bool deterministic) {
  BindOptions o;
  o.workers = WorkersOf(train, devices);
  o.modes = ModesOf(train.math, train.amp, deterministic);
  o.grad_accum = train.grad_accum;
  o.sync_batch_norm = train.kvstore.sync_batch_norm && o.workers.size() > 1;
  o.lr_mult = LrPatternsOf(train, net);
  o.memory_budget = {train.memory_budget.bytes, train.memory_budget.percent / 100};
  return o;
}

TrainOptions TrainOptionsOf(const config::TrainConfig& train, const config::Net& net,
                            const std::vector<Context>& devices, bool deterministic) {
  TrainOptions o;
  static_cast<BindOptions&>(o) = BindOptionsOf(train, net, devices, deterministic);
  o.symbol = net.symbol;
  o.without_factors = net.without_factors;
  o.freeze = {FrozenOf(train, net), train.freeze.epochs, FixesStatistics(train),
              train.freeze.warmup};
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
  if (train.kvstore.wire == "bfloat16") o.dist.wire = DistOptions::Wire::kBfloat16;
  if (train.kvstore.compression.type == "2bit") o.dist.wire = DistOptions::Wire::kTwoBit;
  o.dist.threshold = static_cast<float>(train.kvstore.compression.threshold);
  o.dist.shard_states = train.kvstore.shard_states;
  o.dist.staleness = train.kvstore.staleness;
  o.save = SavePolicyOf(train.save);
  return o;
}

KeptStates StatesOf(const config::TrainConfig& train) {
  const config::Named& optimizer = train.optimizer;
  return {Optimizer::Create(optimizer.name, optimizer.params)->NumStates(),
          train.ema.decay.has_value()};
}

}  // namespace mxtrain::session

// SPDX-License-Identifier: Apache-2.0
#include "app/commands/learning_rates.h"

#include <algorithm>
#include <map>

#include "mxtrain/base/format.h"

namespace mxtrain::commands {
namespace {

bool LearnAlike(const RateGroup& a, const RateGroup& b) {
  return a.multiplier == b.multiplier && a.frozen_first == b.frozen_first;
}

std::string RateOf(const RateGroup& group, const config::FreezeConfig& freeze) {
  if (group.multiplier == 0) return "frozen";
  const std::string rate = format("{:.4g}", group.multiplier);
  if (!group.frozen_first) return rate;
  const std::string epochs = Counted(freeze.epochs, "epoch");
  if (freeze.warmup == 0) return format("{} after {}", rate, epochs);
  return format("0 to {} in the first {:.3g} % after {}", rate, freeze.warmup * 100, epochs);
}

}  // namespace

std::vector<RateGroup> RateGroupsOf(const session::Session& session) {
  const config::TrainConfig& train = session.config().train;
  const config::Net& net = session.net();
  const LrPatterns patterns = session::LrPatternsOf(train, net);
  const std::vector<std::string> frozen = session::FrozenOf(train, net);
  const std::map<std::string, Attrs> attrs = net.symbol.ListAttrs();
  std::vector<RateGroup> groups;
  std::string first;  // layers of the last one
  for (const LayerGroup& layers : session::LayerGroupsOf(net)) {
    for (const std::string& name : layers.parameters) {
      const auto own = attrs.find(name);
      RateGroup one{layers.name, 1, false, 1};
      one.multiplier =
          FindMultipliers(name, own == attrs.end() ? Attrs() : own->second, patterns).lr;
      one.frozen_first = train.freeze.epochs > 0 && one.multiplier != 0 &&
                         std::find(frozen.begin(), frozen.end(), name) != frozen.end();
      if (groups.empty() || !LearnAlike(groups.back(), one)) {
        first = layers.name;
        groups.push_back(one);
        continue;
      }
      ++groups.back().parameters;
      if (layers.name != first) groups.back().layers = format("{} to {}", first, layers.name);
    }
  }
  return groups;
}

std::vector<std::string> RateLines(const session::Session& session) {
  const std::vector<RateGroup> groups = RateGroupsOf(session);
  if (groups.size() < 2) return {};
  size_t width = 0;
  std::vector<std::string> rates;
  for (const RateGroup& group : groups) {
    rates.push_back(RateOf(group, session.config().train.freeze));
    width = std::max(width, rates.back().size());
  }
  std::vector<std::string> lines;
  for (size_t i = 0; i < groups.size(); ++i)
    lines.push_back(format("{:<{}}  {} ({})", rates[i], width, groups[i].layers,
                           Counted(groups[i].parameters, "array")));
  return lines;
}

void TellRates(const session::Session& session, console::Console& console) {
  constexpr size_t kMostLines = 20, kFewGroups = 3;
  const double decay = session.config().train.lr_decay;
  const size_t groups = decay < 1 ? session::LayerGroupsOf(session.net()).size() : kFewGroups;
  if (groups < kFewGroups) {
    console.Message(LogLevel::kWarning,
                    format("train.lr_decay has little effect: the net has {}, and one ends "
                           "only where one array leads to all that follows; set rates by name "
                           "patterns with train.lr_mult",
                           Counted(groups, "layer group")));
  }
  const int64_t frozen = session.config().train.freeze.epochs;
  if (frozen > 0 && frozen >= session.Epochs()) {
    console.Message(LogLevel::kWarning,
                    format("train.freeze.epochs is {}, and the run has {}: the frozen parameters "
                           "never learn; lower it, or remove it if that is meant",
                           frozen, Counted(session.Epochs(), "epoch")));
  }
  const std::vector<std::string> lines = RateLines(session);
  if (lines.empty()) return;
  console.Message(LogLevel::kInfo, "learning rates, as multiples of the schedule's:");
  for (size_t i = 0; i < std::min(lines.size(), kMostLines); ++i)
    console.Message(LogLevel::kInfo, "  " + lines[i]);
  if (lines.size() > kMostLines) {
    console.Message(LogLevel::kInfo,
                    format("  and {} more lines: mxtrain plan", lines.size() - kMostLines));
  }
}

}  // namespace mxtrain::commands

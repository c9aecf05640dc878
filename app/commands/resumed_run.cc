// SPDX-License-Identifier: Apache-2.0
#include "app/commands/resumed_run.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <vector>

#include "app/config/differences.h"
#include "app/config/document.h"
#include "app/report/output.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/text.h"
#include "mxtrain/io/fingerprint.h"

namespace mxtrain::commands {
namespace {

using config::Difference;

std::vector<Difference> DifferencesOf(const session::Session& session,
                                      const std::string& config_before) {
  return config::Compare(config::FlattenText("the run's configuration", config_before),
                         config::Flatten(session.loaded().resolved));
}

std::string ArraysThatDiffer(Trainer& trainer, const Checkpoint& checkpoint) {
  std::vector<std::string> texts;
  std::map<std::string, NDArray> now = trainer.Arrays();
  std::map<std::string, NDArray> before = checkpoint.args;
  before.insert(checkpoint.auxs.begin(), checkpoint.auxs.end());
  for (const auto& [name, array] : before) {
    const auto found = now.find(name);
    if (found == now.end()) {
      texts.push_back(name + " is only in the run");
    } else if (!(found->second.shape() == array.shape())) {
      texts.push_back(format("{} has the shape {} in the run, now {}", name,
                             array.shape().ToString(), found->second.shape().ToString()));
    }
  }
  // What LoRA does not train is not in its checkpoints.
  for (const auto& [name, gradient] : trainer.executor().grads()) {
    if (!before.contains(name)) texts.push_back(name + " is not in the run");
  }
  return texts.empty() ? "" : FirstOf(texts, 2);
}

bool IsGiven(session::Session& session, const std::string& path) {
  // Given as a whole, too: train.optimizer=adam.
  for (const config::KeyOrigin& origin : session.loaded().origins) {
    const bool covers = path == origin.path || path.starts_with(origin.path + ".");
    if (covers && session.diagnostics().sources().IsCommandLine(origin.place)) return true;
  }
  return false;
}

bool IsRecipe(const std::string& path) {
  return path == "train.optimizer.name" || path.starts_with("train.freeze") ||
         path.starts_with("train.lora");
}

bool IsData(const std::string& path) {
  return path.starts_with("data.train.") && !path.starts_with("data.train.transforms") &&
         path != "data.train.shuffle";
}

std::string Now(const Difference& one) {
  return one.right.empty() ? "the default" : one.right;
}
std::string Before(const Difference& one) {
  return one.left.empty() ? "not set" : one.left;
}

[[noreturn]] void Refuse(const std::string& run, const std::vector<std::string>& others,
                         const std::vector<std::string>& facts, const std::string& as_meant = "") {
  Throw(ErrorKind::kConfig,
        "{} is a run of another {}: {}; to begin a run of this configuration, give it a name of "
        "its own (--name NAME){}",
        run, join(others, ", "), join(facts, ", "), as_meant);
}

}  // namespace

void RequireSameNet(Trainer& trainer, const Checkpoint& checkpoint, const std::string& run) {
  const std::string arrays = ArraysThatDiffer(trainer, checkpoint);
  if (!arrays.empty()) Refuse(run, {"net"}, {arrays});
}

void RequireSameRun(session::Session& session, Trainer& trainer, const Checkpoint& checkpoint,
                    const std::string& run) {
  std::vector<std::string> others, facts;
  std::string given;  // what differs, as the command line says it
  bool all_given = true;
  const auto add = [&](const std::string& other, const std::string& fact) {
    if (!others.empty() && others.back() == other) return;
    others.push_back(other);
    facts.push_back(fact);
  };
  if (const std::string arrays = ArraysThatDiffer(trainer, checkpoint); !arrays.empty())
    add("net", arrays);
  const std::vector<Difference> all = DifferencesOf(session, checkpoint.model.config);
  const auto look = [&](const std::string& other, bool (*is_one)(const std::string&)) {
    for (const Difference& one : all) {
      if (!is_one(one.name) || IsGiven(session, one.name)) continue;
      add(other, format("{} is {} in the run, now {}", one.name, Before(one), Now(one)));
      if (one.right.empty())
        all_given = false;
      else
        given += " " + report::QuoteShell(format("{}={}", one.name, one.right));
    }
  };
  look("recipe", IsRecipe);
  const std::string& data = checkpoint.model.train_data;
  if (!data.empty() && !io::MayBeSameData(data, io::Fingerprint(*session.OpenSource(false))))
    look("data", IsData);
  if (others.empty()) return;
  if (others.front() == "net") return Refuse(run, others, facts);
  Refuse(run, others, facts,
         all_given ? "; to continue it with what differs, add" + given
                   : "; to continue it with what differs, set that on the command line, which is "
                     "taken as meant");
}

void TellDifferences(const session::Session& session, const std::string& config_before,
                     int64_t epochs_before, console::Console& console) {
  constexpr int64_t kMostOfOne = 4;
  std::map<std::string, int64_t> counts;  // by what holds them: net, blocks, data.train.transforms
  const auto warn = [&console](const std::string& text) {
    console.Message(LogLevel::kWarning, "the run continues with a different " + text);
  };
  for (const Difference& one : DifferencesOf(session, config_before)) {
    const std::string holder =
        one.name.starts_with("train.") ? one.name : one.name.substr(0, one.name.find('.'));
    if (++counts[holder] > kMostOfOne) continue;
    if (one.name == "train.epochs" && epochs_before > 0) {
      warn(format("train.epochs: {} in all, before {}",
                  epochs_before + std::atoll(one.right.c_str()),
                  epochs_before + std::atoll(one.left.c_str())));
    } else {
      warn(format("{}: {}, before {}", one.name, one.right.empty() ? "default" : one.right,
                  Before(one)));
    }
  }
  for (const auto& [holder, count] : counts) {
    if (count > kMostOfOne) warn(format("{}: {} more settings", holder, count - kMostOfOne));
  }
}

}  // namespace mxtrain::commands

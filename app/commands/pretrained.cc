// SPDX-License-Identifier: Apache-2.0
#include "app/commands/pretrained.h"

#include <filesystem>

#include "app/config/document.h"
#include "app/config/net_onnx.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"

namespace mxtrain::commands {
namespace {

constexpr const char* kRuleForm =
    "a rule is [PATTERN, REPLACEMENT], or [PATTERN, null] to drop matching names";

std::vector<NameMap::Rule> ReadRules(const std::string& path) {
  auto sources = std::make_shared<config::SourceMap>();
  config::Diagnostics diagnostics(sources);
  const config::Value root = config::ParseYaml(
      sources->AddFile(path, ReadFile(path), std::filesystem::path(path).parent_path()),
      &diagnostics);
  std::vector<NameMap::Rule> rules;
  if (!root.is_list())
    diagnostics.Error(root.place, format("a name map must be a list, got {}", root.Describe()),
                      kRuleForm);
  for (const config::Value& item : root.list) {
    const bool good = item.is_list() && item.list.size() == 2 && item.list[0].is_scalar() &&
                      (item.list[1].is_scalar() || item.list[1].is_null());
    if (!good) {
      diagnostics.Error(item.place, format("{} is not a rule", item.Describe()), kRuleForm);
      continue;
    }
    rules.push_back({item.list[0].text,
                     item.list[1].is_null() ? std::nullopt : std::optional(item.list[1].text)});
  }
  diagnostics.ThrowIfErrors();
  return rules;
}

NameMap ReadMap(const std::string& path) {
  if (path.empty()) return NameMap();
  const std::vector<NameMap::Rule> rules = ReadRules(path);
  try {
    return NameMap(rules);
  } catch (const Error&) {
    RethrowWithPrefix(std::current_exception(), path);
  }
}

// Without training, the arrays that are not taken would be saved with their random values.
void RequireWhole(const WeightsAccount& account, Session& session) {
  if (account.reset.empty()) return;
  session.diagnostics().Error(
      session.loaded().PlaceOf("train.epochs"),
      format("train.epochs = 0 saves the model of train.weights unchanged, but not all of the net "
             "is in it: {}",
             account.Text()),
      "train at least one epoch, or map names in the file to names of the net with "
      "train.weights.map");
  session.diagnostics().ThrowIfErrors();
}

// train.weights, else the file of net.onnx.
config::WeightsConfig InitialWeights(const config::Config& config) {
  return config.train.weights.file.empty() ? config::WeightsConfig{config.net.onnx, ""}
                                           : config.train.weights;
}

std::map<std::string, NDArray> ReadArrays(Session& session, const config::WeightsConfig& weights) {
  if (!session.config().train.weights.file.empty())
    return LoadWeights(session.runtime(), weights.file, ReadMap(weights.map));
  return onnx::ArraysOf(config::ImportOnnx(session.config().net, session.runtime().operators()),
                        session.runtime());
}

}  // namespace

void TakePretrained(Session& session, Trainer* trainer, report::Console& console) {
  const config::WeightsConfig weights = InitialWeights(session.config());
  if (weights.file.empty()) return;
  const std::map<std::string, NDArray> arrays = ReadArrays(session, weights);
  const WeightsAccount account = trainer->Begin(arrays);
  if (account.taken.empty()) {
    Throw(ErrorKind::kConfig,
          "no array of {} fits the net: {}; use train.weights.map to map names in the file to "
          "names of the net",
          weights.file, account.Text());
  }
  if (session.config().train.epochs == 0) RequireWhole(account, session);
  console.Message(LogLevel::kInfo, format("weights of {}: {}", weights.file, account.Text()));
}

}  // namespace mxtrain::commands

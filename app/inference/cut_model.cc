// SPDX-License-Identifier: Apache-2.0
#include "app/inference/cut_model.h"

#include <algorithm>

#include "mxtrain/base/error.h"
#include "mxtrain/base/json.h"
#include "mxtrain/base/suggest.h"
#include "mxtrain/train/evaluation.h"

namespace mxtrain::inference {
namespace {

// The first label that the output depends on; "" if none.
std::string LabelReadBy(const Symbol& output, const ModelInfo& info) {
  const std::set<std::string> read = VariablesRead(output);
  const auto found =
      std::find_if(info.labels.begin(), info.labels.end(),
                   [&read](const InputInfo& label) { return read.contains(label.name); });
  return found == info.labels.end() ? "" : found->name;
}

// With a new variable in place of each label that the net computes.
Symbol WithFreeLabels(const Symbol& net, const OperatorRegistry& operators) {
  const Graph& graph = net.graph();
  std::set<std::string> names;
  for (const Node& node : graph.nodes) names.insert(node.name);
  Json json = Json::parse(net.ToJson());  // a file's nodes need not be in order
  for (size_t id = 0; id < graph.nodes.size(); ++id) {
    const Node& node = graph.nodes[id];
    if (!HasLabel(node) || graph.nodes[static_cast<size_t>(node.inputs[1].node)].is_variable())
      continue;
    std::string name = node.name + "_label";
    while (!names.insert(name).second) name += "_";
    json["nodes"][id]["inputs"][1] = {json["nodes"].size(), 0, 0};
    json["nodes"].push_back({{"op", "null"}, {"name", name}, {"inputs", Json::array()}});
  }
  const bool computed = json["nodes"].size() > graph.nodes.size();
  return computed ? Symbol::FromJson(operators, json.dump()) : net;
}

bool IsValueOfLoss(const Symbol& output) {
  const LossReport losses(output);
  return !losses.heads().empty() && losses.heads()[0].label.empty();
}

}  // namespace

Symbol LayerOf(const Symbol& net, const std::string& layer) {
  const Symbol internals = net.GetInternals();
  const std::vector<std::string> known = internals.ListOutputs();
  for (const std::string& name : {layer, layer + "_output"}) {
    if (std::find(known.begin(), known.end(), name) != known.end()) return internals[name];
  }
  std::vector<std::string> layers;
  for (const std::string& name : known) {
    if (name.ends_with("_output")) layers.push_back(HeadName(name));
  }
  const std::string guess = DidYouMean(layer, layers);
  Throw(ErrorKind::kUsage, "the model has no layer '{}'{}", layer,
        guess.empty() ? format("; it has {}", join(layers, ", ")) : guess);
}

void RemoveLabels(const OperatorRegistry& operators, Model* model, const Logger& log) {
  model->symbol = WithFreeLabels(model->symbol, operators);
  const std::vector<std::string> names = model->symbol.ListOutputs();
  std::vector<Symbol> kept;
  std::vector<std::string> removed, reported;  // OUTPUT depends on LABEL
  for (size_t i = 0; i < names.size(); ++i) {
    const Symbol output = model->symbol[static_cast<int>(i)];
    const std::string label = LabelReadBy(output, model->info);
    if (label.empty()) {
      kept.push_back(output);
      continue;
    }
    removed.push_back(format("'{}' depends on the label '{}'", HeadName(names[i]), label));
    if (!IsValueOfLoss(output)) reported.push_back(removed.back());
  }
  if (kept.empty()) {
    Throw(ErrorKind::kUsage,
          "{}: {}, and predictions are made without labels; write the output of a layer that needs "
          "none with --output-layer NAME --output FILE.npy",
          model->file, join(removed, ", "));
  }
  if (!reported.empty()) log.Write(LogLevel::kInfo, format("skipped: {}", join(reported, ", ")));
  if (!removed.empty()) model->symbol = Symbol::Group(kept);
  const std::vector<std::string> arguments = model->symbol.ListArguments();
  std::erase_if(model->info.inputs, [&arguments](const InputInfo& input) {
    return std::find(arguments.begin(), arguments.end(), input.name) == arguments.end();
  });
  if (model->info.inputs.empty())
    Throw(ErrorKind::kUsage, "{}: '{}' depends on no input", model->file,
          HeadName(model->symbol.ListOutputs()[0]));
}

}  // namespace mxtrain::inference

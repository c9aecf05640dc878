// SPDX-License-Identifier: Apache-2.0
#include "app/config/net_checks.h"

#include <algorithm>
#include <set>

namespace mxtrain::config {
namespace {

// Arguments that become parameters of the layer if not given. All other inputs of an operator must
// be named.
bool MayBeMade(const OperatorProperty& op, int argument, const std::string& name) {
  static const std::set<std::string, std::less<>> kParameters = {
      "weight", "bias", "gamma", "beta", "parameters", "state", "state_cell"};
  const size_t underscore = name.rfind('_');
  const std::string last = underscore == std::string::npos ? name : name.substr(underscore + 1);
  return kParameters.contains(name) || kParameters.contains(last) || IsLabel(op, argument, name);
}

}  // namespace

bool IsLabel(const OperatorProperty& op, int argument, const std::string& name) {
  return !op.HasGradient(argument) && (name == "label" || name.ends_with("_label"));
}

bool IsLoss(const OperatorProperty& op) {
  const std::vector<std::string> arguments = op.ListArguments();
  return !op.NeedsHeadGradient() && arguments.size() > 1 && IsLabel(op, 1, arguments[1]);
}

bool CheckInputs(const Layer& layer, const OperatorProperty& op, size_t count,
                 const std::map<std::string, Symbol>& named, Diagnostics* diagnostics) {
  const std::vector<std::string> arguments = op.ListArguments();
  const Place place =
      layer.inputs.empty() || !layer.inputs[0].named ? layer.place : layer.inputs[0].named->place;
  if (count > arguments.size()) {
    diagnostics->Error(place,
                       format("{} takes {} ({}), but {} are given", layer.written,
                              Counted(arguments.size(), "input"), join(arguments, ", "), count),
                       "", layer.notes);
    return false;
  }
  for (size_t k = 0; k < arguments.size(); ++k) {
    if (k < count && named.contains(arguments[k])) {
      diagnostics->Error(place,
                         format("{}: '{}' is given twice, by `inputs` and by its name",
                                layer.written, arguments[k]),
                         "keep one of the two", layer.notes);
      return false;
    }
    if (k < count || named.contains(arguments[k]) ||
        MayBeMade(op, static_cast<int>(k), arguments[k]))
      continue;
    diagnostics->Error(
        place,
        format("{} needs {} inputs ({}), but {} given", layer.written, arguments.size(),
               join(arguments, ", "), count == 1 ? "1 is" : format("{} are", count)),
        format("specify '{}' with inputs: [...] or {}: NAME", arguments[k], arguments[k]),
        layer.notes);
    return false;
  }
  return true;
}

void ReportStrangers(const Layer& layer, const std::vector<FieldInfo>& fields,
                     Diagnostics* diagnostics) {
  static const std::set<std::string, std::less<>> kCommon = {"data", "weight", "bias", "gamma",
                                                             "beta", "label",  "lhs",  "rhs"};
  for (size_t k = 0; k < layer.named.size(); ++k) {
    const std::string& key = layer.named[k].first;
    if (!kCommon.contains(key))
      ReportUnknownParam(layer, key, layer.named_keys[k], fields, {}, diagnostics);
  }
}

void WarnOfOverlap(const Layer& layer, const Kwargs& kwargs, Diagnostics* diagnostics) {
  if (layer.op != "Pooling") return;
  const auto value = [&kwargs](std::string_view key) -> std::string {
    const auto found = std::find_if(kwargs.begin(), kwargs.end(),
                                    [key](const auto& item) { return item.first == key; });
    return found == kwargs.end() ? "" : found->second;
  };
  const std::string kernel = value("kernel"), global = value("global_pool");
  const bool one = kernel.find_first_not_of("1(), ") == std::string::npos;
  if (one || !value("stride").empty() || global == "true" || global == "True" || global == "1")
    return;
  diagnostics->Warning(
      layer.place,
      format("'{}' has a window of {} and no stride, so the stride is 1", layer.name, kernel),
      format("write stride: {}, the default of Keras and PyTorch, or stride: 1", kernel),
      layer.notes);
}

void WarnOfTwoSoftmaxes(const Layer& layer, const Symbol& input, Diagnostics* diagnostics) {
  if (layer.op != "SoftmaxOutput") return;
  const Graph& graph = input.graph();
  const Node& before = graph.nodes[static_cast<size_t>(graph.heads[0].node)];
  if (!before.op) return;
  const std::string type = before.op->TypeString();
  if (type != "softmax" && type != "SoftmaxActivation") return;
  diagnostics->Warning(layer.place,
                       format("SoftmaxOutput '{}' applies softmax itself; its input '{}' is a "
                              "softmax already",
                              layer.name, before.name),
                       format("remove the layer '{}'", before.name), layer.notes);
}

}  // namespace mxtrain::config

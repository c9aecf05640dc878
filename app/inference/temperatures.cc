// SPDX-License-Identifier: Apache-2.0
#include "app/inference/temperatures.h"

#include <filesystem>
#include <vector>

#include "app/report/output.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/params.h"
#include "mxtrain/base/read_json.h"
#include "mxtrain/train/loss_report.h"

namespace mxtrain::inference {
namespace {

std::string FileOf(const std::string& checkpoint) {
  return checkpoint + ".temperature.json";
}

// Of the checkpoint's bytes, so that another state of a file of this name is not mistaken for it.
std::string StateOf(const std::string& checkpoint) {
  return format("{:016x}", Checksum(ReadFile(checkpoint)));
}

std::string OutputName(const Graph& graph, const NodeEntry& entry) {
  const Node& node = graph.nodes[static_cast<size_t>(entry.node)];
  return node.op ? node.name + "_" + node.op->ListOutputs()[static_cast<size_t>(entry.index)]
                 : node.name;
}

Symbol WithTemperature(const OperatorRegistry& operators, const Symbol& net, int output,
                       double temperature) {
  const Graph& graph = net.graph();
  const Node& node =
      graph.nodes[static_cast<size_t>(graph.heads[static_cast<size_t>(output)].node)];
  const Symbol internals = net.GetInternals();
  std::vector<Symbol> inputs;
  for (const NodeEntry& input : node.inputs) inputs.push_back(internals[OutputName(graph, input)]);
  const Symbol logits[] = {inputs[0]};
  inputs[0] = Symbol::Create(operators, "_div_scalar", node.name + "_temperature",
                             {{"scalar", params::Print(temperature)}}, logits);
  std::vector<Symbol> outputs;
  for (int i = 0; i < net.NumOutputs(); ++i) outputs.push_back(net[i]);
  outputs[static_cast<size_t>(output)] =
      Symbol::Create(operators, node.op->TypeString(), node.name, node.op->GetParams(), inputs, {},
                     node.attrs, node.where);
  return Symbol::Group(outputs);
}

}  // namespace

HeadCalibration ReadCalibration(const std::string& checkpoint, const Logger& log) {
  constexpr size_t kMostBytes = size_t{1} << 20;
  HeadCalibration calibration;
  const std::string file = FileOf(checkpoint);
  std::error_code none;
  if (checkpoint.empty() || !std::filesystem::exists(file, none)) return calibration;
  try {
    const Json json = ReadJsonOf<Json>(file, ReadFile(file, kMostBytes));
    if (json.at("checkpoint") != StateOf(checkpoint)) {
      log.Write(
          LogLevel::kWarning,
          format("{} is of another state of {}, and is not used; `mxtrain eval {} --calibrate` "
                 "fits it again",
                 file, checkpoint, report::QuoteShell(checkpoint)));
      return calibration;
    }
    for (const auto& [head, temperature] : json.at("temperatures").items()) {
      const double value = temperature;
      if (!(value > 0))
        Throw(ErrorKind::kData, "{} is damaged: the temperature is not positive", file);
      calibration.temperatures[head] = value;
    }
    if (!json.contains("thresholds")) return calibration;
    for (const auto& [head, thresholds] : json.at("thresholds").items())
      calibration.thresholds[head] = thresholds.get<std::vector<double>>();
  } catch (const nlohmann::json::exception& e) {
    Throw(ErrorKind::kData, "{} is damaged: {}", file, e.what());
  }
  return calibration;
}

std::string WriteCalibration(const std::string& checkpoint, const HeadCalibration& calibration) {
  std::string file = FileOf(checkpoint);
  WriteFileAtomically(file, report::JsonText({{"checkpoint", StateOf(checkpoint)},
                                              {"temperatures", calibration.temperatures},
                                              {"thresholds", calibration.thresholds}},
                                             2) +
                                "\n");
  return file;
}

Symbol WithTemperatures(const OperatorRegistry& operators, const Symbol& net,
                        const Temperatures& temperatures) {
  Symbol scaled = net;
  const LossReport losses(net);
  for (const LossReport::Head& head : losses.heads()) {
    const auto own = temperatures.find(head.name);
    if (own != temperatures.end() && head.kind == LossReport::Head::Kind::kSoftmax)
      scaled = WithTemperature(operators, scaled, head.output, own->second);
  }
  return scaled;
}

}  // namespace mxtrain::inference

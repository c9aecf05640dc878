// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/train/feature_cut.h"

#include <algorithm>
#include <span>

#include "mxtrain/base/error.h"
#include "mxtrain/device/cpu/available_memory.h"
#include "mxtrain/operator/param_of.h"
#include "mxtrain/train/internal/rebuilding.h"

namespace mxtrain {
namespace {

bool IsFrozen(const Node& variable, const LrPatterns& lr_mult) {
  return FindMultipliers(variable.name, variable.attrs, lr_mult).lr == 0;
}

bool IsTrue(const std::string& parameter) {
  return parameter == params::Print(true);
}

bool IsBatchNorm(const Node& node) {
  return node.op && node.op->TypeString() == "BatchNorm";
}

bool UsesStatisticsOfBatch(const Node& node) {
  return IsBatchNorm(node) && !IsTrue(ParamOf(*node.op, "use_global_stats"));
}

bool DrawsRandomNumbers(const Node& node, const std::vector<TShape>& in) {
  if (const std::string rate = ParamOf(*node.op, "p"); node.op->TypeString() == "Dropout") {
    double p = 1;
    params::Parse(rate, &p);
    if (p == 0) return false;
  }
  const std::vector<ResourceRequest> requests = node.op->ForwardResource(in);
  return std::any_of(requests.begin(), requests.end(), [](const ResourceRequest& request) {
    return request.type == ResourceRequest::kRandom;
  });
}

// What is known of the outputs of each node.
struct Facts {
  std::vector<bool> is_fixed;  // the same in every step, of the same batch
  std::vector<bool> of_data;   // depends on the examples
};

class Cutter {
 public:
  Cutter(const Graph& graph, const std::map<std::string, TShape>& shapes,
         const std::set<std::string>& inputs, const std::set<std::string>& labels,
         const LrPatterns& lr_mult)
      : graph_(graph), specs_(InferSpecs(graph, shapes, {}, /*allow_partial=*/true)) {
    for (const Node& node : graph.nodes) Add(node, inputs, labels, lr_mult);
  }

  // What layers that change read from those that do not, and which inputs they read.
  struct Read {
    std::vector<NodeEntry> entries, inputs;
  };
  Read Entries() const {
    Read read;
    const Node* first = nullptr;  // of the layers that read an input
    const auto add = [](const NodeEntry& entry, std::vector<NodeEntry>* to) {
      if (std::find(to->begin(), to->end(), entry) == to->end()) to->push_back(entry);
    };
    for (const NodeEntry& head : graph_.heads) {
      if (IsFeature(head)) {
        Throw(ErrorKind::kConfig, "features: the output {} depends on nothing that learns",
              DescribeNode(NodeOf(head)));
      }
    }
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      if (facts_.is_fixed[i] || node.is_variable()) continue;
      for (const NodeEntry& input : node.inputs) {
        if (!IsFeature(input)) continue;
        if (!NodeOf(input).is_variable()) {
          add(input, &read.entries);
          continue;
        }
        if (IsImage(input)) ThrowTooEarly(node, NodeOf(input));
        if (read.inputs.empty()) first = &node;
        add(input, &read.inputs);
      }
    }
    if (read.entries.empty() && first) ThrowTooEarly(*first, NodeOf(read.inputs[0]));
    return read;
  }

  TShape ShapeOfExample(const NodeEntry& input) const {
    const TShape& batch =
        specs_.shapes[static_cast<size_t>(input.node)][static_cast<size_t>(input.index)];
    return TShape(std::span(batch.begin() + 1, static_cast<size_t>(batch.ndim() - 1)));
  }

  void RequireFloat32(const NodeEntry& entry) const {
    const DType type =
        specs_.types[static_cast<size_t>(entry.node)][static_cast<size_t>(entry.index)];
    if (type == DType::kFloat32) return;
    Throw(
        ErrorKind::kConfig,
        "features: the output of {} is {}, and only float32 can be kept; freeze as far as a layer "
        "of float32",
        DescribeNode(NodeOf(entry)), NameOf(type));
  }
  const Node& NodeOf(const NodeEntry& entry) const {
    return graph_.nodes[static_cast<size_t>(entry.node)];
  }
  // The first layer that depends on nothing that learns and draws random numbers; "" for none.
  const std::string& random() const { return random_; }

 private:
  void Add(const Node& node, const std::set<std::string>& inputs,
           const std::set<std::string>& labels, const LrPatterns& lr_mult) {
    bool is_fixed = true, of_data = false;
    if (node.kind == Node::Kind::kVariable) {
      of_data = inputs.contains(node.name);
      is_fixed = of_data || (!labels.contains(node.name) && IsFrozen(node, lr_mult));
    }
    std::vector<TShape> in;
    for (const NodeEntry& input : node.inputs) {
      const auto i = static_cast<size_t>(input.node);
      is_fixed = is_fixed && facts_.is_fixed[i];
      of_data = of_data || facts_.of_data[i];
      if (static_cast<int>(in.size()) < node.num_args)
        in.push_back(specs_.shapes[i][static_cast<size_t>(input.index)]);
    }
    if (node.op && is_fixed && of_data && UsesStatisticsOfBatch(node)) {
      Throw(ErrorKind::kConfig,
            "features: {} is frozen, but in training it normalizes by the mean and variance of "
            "each batch, so its output for an image changes from step to step; fix its statistics "
            "(train.freeze.global_stats: true)",
            DescribeNode(node));
    }
    if (node.op && is_fixed && of_data && DrawsRandomNumbers(node, in)) {
      is_fixed = false;
      if (random_.empty()) random_ = DescribeNode(node);
    }
    facts_.is_fixed.push_back(is_fixed);
    facts_.of_data.push_back(of_data);
  }

  // Images are large, may be bytes that the device normalizes, and are not kept.
  bool IsImage(const NodeEntry& input) const {
    constexpr int kAxes = 4;
    return specs_.shapes[static_cast<size_t>(input.node)][0].ndim() == kAxes;
  }
  bool IsFeature(const NodeEntry& entry) const {
    const auto i = static_cast<size_t>(entry.node);
    return facts_.is_fixed[i] && facts_.of_data[i];
  }

  [[noreturn]] static void ThrowTooEarly(const Node& reader, const Node& input) {
    Throw(ErrorKind::kConfig,
          "features: nothing can be computed once: {} reads the input '{}', and it learns or draws "
          "random numbers; freeze the first layers (train.freeze)",
          DescribeNode(reader), input.name);
  }

  const Graph& graph_;
  const InferredSpecs specs_;
  Facts facts_;
  std::string random_;
};

}  // namespace

Symbol WithFixedStatistics(const OperatorRegistry& operators, const Symbol& net,
                           const LrPatterns& lr_mult) {
  const Graph& graph = net.graph();
  const auto build = [&](const Node& node, std::span<const Symbol> inputs) {
    Kwargs kwargs = node.op->GetParams();
    if (!UsesStatisticsOfBatch(node)) return Rebuilding::Create(operators, node, kwargs, inputs);
    const auto is_frozen = [&](size_t input) {
      const Node& variable = graph.nodes[static_cast<size_t>(node.inputs[input].node)];
      return variable.is_variable() && IsFrozen(variable, lr_mult);
    };
    constexpr size_t kGamma = 1, kBeta = 2;
    const bool has_gamma = !IsTrue(ParamOf(*node.op, "fix_gamma"));
    const bool learns = !is_frozen(kBeta) || (has_gamma && !is_frozen(kGamma));
    for (auto& [name, value] : kwargs) {
      if (name == "use_global_stats" && !learns) value = params::Print(true);
    }
    return Rebuilding::Create(operators, node, kwargs, inputs);
  };
  return Rebuilding(graph, {}, build).Of(graph.heads);
}

int64_t FeatureCut::Numbers() const {
  int64_t numbers = 0;
  for (const TShape& shape : shapes) numbers += shape.Size();
  for (const TShape& shape : input_shapes) numbers += shape.Size();
  return numbers;
}

void CheckFeatureOptions(const BindOptions& options) {
  const char* what = options.workers.size() > 1         ? "several workers"
                     : options.modes.amp                ? "mixed precision"
                     : !options.modes.group2ctx.empty() ? "layers on several devices"
                                                        : nullptr;
  if (what) Throw(ErrorKind::kConfig, "features cannot be computed once with {}", what);
}

void CheckFeatureBytes(const FeatureCut& cut, int64_t bytes, int64_t limit) {
  const int64_t most = limit > 0 ? limit : AvailableMemory() / 2;
  if (bytes <= most) return;
  Throw(ErrorKind::kMemory,
        "features: the outputs of '{}' are {} numbers for each example, {} for all of them, and {} "
        "is {}; freeze later layers too, or allow more memory (data.cache_bytes)",
        cut.last, cut.Numbers(), FormatBytes(bytes),
        limit > 0 ? "the limit" : "half of the free memory", FormatBytes(most));
}

std::vector<TShape> FeatureShapes(const Symbol& trunk,
                                  const std::map<std::string, TShape>& shapes) {
  std::map<std::string, TShape> known;
  int64_t batch = -1;
  for (const std::string& name : trunk.ListArguments()) {
    const auto given = shapes.find(name);
    if (given == shapes.end()) continue;
    known.insert(*given);
    batch = given->second[0];
  }
  const std::vector<TShape> found = trunk.InferShape(known).outputs;
  const std::vector<std::string> names = trunk.ListOutputs();
  std::vector<TShape> features;
  for (size_t i = 0; i < found.size(); ++i) {
    const TShape& shape = found[i];
    if (!shape.has_rank() || shape.ndim() == 0)
      Throw(ErrorKind::kConfig, "features: the shape of {} is not known", names[i]);
    if (shape[0] != batch) {
      Throw(ErrorKind::kConfig,
            "features: {} has the shape {} for a batch of {}, so it cannot be divided among the "
            "examples",
            names[i], shape.ToString(), batch);
    }
    features.emplace_back(std::span(shape.begin() + 1, static_cast<size_t>(shape.ndim() - 1)));
  }
  return features;
}

FeatureCut CutAtFeatures(const OperatorRegistry& operators, const Symbol& net,
                         const std::map<std::string, TShape>& shapes,
                         const std::set<std::string>& inputs, const std::set<std::string>& labels,
                         const LrPatterns& lr_mult) {
  const Graph& graph = net.graph();
  const Cutter cutter(graph, shapes, inputs, labels, lr_mult);
  const auto [entries, direct] = cutter.Entries();
  if (entries.empty())
    Throw(ErrorKind::kConfig, "features: no layer that learns reads the input of the net");
  FeatureCut cut;
  for (const NodeEntry& input : direct) {
    cut.inputs.push_back(cutter.NodeOf(input).name);
    cut.input_shapes.push_back(cutter.ShapeOfExample(input));
  }
  std::map<NodeEntry, Symbol> given;
  for (const NodeEntry& entry : entries) {
    const Node& node = cutter.NodeOf(entry);
    const std::string number = entry.index > 0 ? std::to_string(entry.index) : "";
    cut.names.push_back(node.name + "_features" + number);
    cutter.RequireFloat32(entry);
    given[entry] = Symbol::Variable(cut.names.back());
  }
  const auto same = [&](const Node& node, std::span<const Symbol> of_inputs) {
    return Rebuilding::Create(operators, node, node.op->GetParams(), of_inputs);
  };
  cut.trunk = Rebuilding(graph, {}, same).Of(entries);
  cut.shapes = FeatureShapes(cut.trunk, shapes);
  cut.head = Rebuilding(graph, given, same).Of(graph.heads);
  for (const Node& node : cut.trunk.graph().nodes) {
    if (!node.op) continue;
    ++cut.layers;
    cut.last = node.name;
  }
  for (const Node& node : cut.head.graph().nodes) {
    const bool is_parameter = node.kind == Node::Kind::kVariable && !labels.contains(node.name) &&
                              !inputs.contains(node.name) &&
                              std::count(cut.names.begin(), cut.names.end(), node.name) == 0;
    if (is_parameter && IsFrozen(node, lr_mult)) cut.held_up_by = cutter.random();
  }
  return cut;
}

}  // namespace mxtrain

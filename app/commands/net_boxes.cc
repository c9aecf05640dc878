// SPDX-License-Identifier: Apache-2.0
#include "app/commands/net_boxes.h"

#include <algorithm>
#include <map>

#include "mxtrain/base/format.h"
#include "mxtrain/base/params.h"

namespace mxtrain::commands {
namespace {

// The parameters of an operator, by name.
class Params {
 public:
  explicit Params(const OperatorProperty& op) {
    for (auto& [key, value] : op.GetParams()) values_[key] = value;
  }
  std::string Text(const std::string& key) const {
    return values_.contains(key) ? values_.at(key) : "";
  }
  bool IsTrue(const std::string& key) const { return Text(key) == "True"; }
  // "3×3"; "" if there is none, or every number is `usual`.
  std::string Shape(const std::string& key, int64_t usual = -1) const {
    TShape shape;
    const std::string text = Text(key);
    if (text.empty() || text == "None") return "";
    params::Parse(text, &shape);
    if (shape.ndim() == 0 ||
        std::all_of(shape.begin(), shape.end(), [usual](int64_t d) { return d == usual; }))
      return "";
    return format("{}", join(std::vector<int64_t>(shape.begin(), shape.end()), "×"));
  }

 private:
  std::map<std::string, std::string> values_;
};

// "stride 2" rather than "stride 2×2".
std::string Strides(const Params& p) {
  const std::string stride = p.Shape("stride", 1);
  if (stride.empty()) return "";
  const size_t cross = stride.find("×");
  const bool same = cross != std::string::npos &&
                    stride.substr(0, cross) + "×" + stride.substr(0, cross) == stride;
  return ", stride " + (same ? stride.substr(0, cross) : stride);
}

std::string Convolution(const Params& p, const char* word) {
  const std::string groups = p.Text("num_group");
  const std::string grouped = groups.empty() || groups == "1"  ? ""
                              : groups == p.Text("num_filter") ? ", depthwise"
                                                               : format(", {} groups", groups);
  return format("{} {}, {}{}{}", word, p.Shape("kernel"), p.Text("num_filter"), grouped,
                Strides(p));
}

// A short description of an operator.
std::string Words(const OperatorProperty& op, NetBox::Family* family) {
  using Family = NetBox::Family;
  const std::string type = op.TypeString();
  const Params p(op);
  *family = Family::kOther;
  if (type == "Convolution" || type == "Deconvolution") {
    *family = Family::kConvolution;
    return Convolution(p, type == "Convolution" ? "conv" : "deconv");
  }
  if (type == "FullyConnected") {
    *family = Family::kMatrix;
    return format("fully connected, {}", p.Text("num_hidden"));
  }
  if (type == "Pooling") {
    *family = Family::kPooling;
    return p.IsTrue("global_pool")
               ? format("global {} pooling", p.Text("pool_type"))
               : format("{} pooling {}{}", p.Text("pool_type"), p.Shape("kernel"), Strides(p));
  }
  if (type == "Activation") return p.Text("act_type");
  if (type == "LeakyReLU") return p.Text("act_type") + " relu";
  if (type == "BatchNorm") return "batch norm";
  if (type == "Dropout") return format("dropout {}", p.Text("p"));
  if (type == "elemwise_add" || type == "ElementWiseSum" || type == "_plus") return "sum";
  return type;
}

std::string ExampleShape(const TShape& shape) {
  if (shape.ndim() < 2) return "scalar";
  return format("{}", join(std::vector<int64_t>(shape.begin() + 1, shape.end()), "×"));
}

class Maker {
 public:
  Maker(const Graph& graph, const InferredSpecs& specs, const std::set<std::string>& inputs,
        const std::set<std::string>& labels)
      : graph_(graph),
        specs_(specs),
        inputs_(inputs),
        labels_(labels),
        box_of_(graph.nodes.size(), -1),
        counted_(graph.nodes.size()) {
    readers_.resize(graph.nodes.size());
    for (const Node& node : graph.nodes) {
      for (const NodeEntry& e : node.inputs) ++readers_[static_cast<size_t>(e.node)];
    }
    for (const NodeEntry& e : graph.heads) heads_.insert(e.node);
  }

  std::vector<NetBox> Make() {
    for (size_t id = 0; id < graph_.nodes.size(); ++id) {
      const Node& node = graph_.nodes[id];
      if (!node.is_variable()) {
        AddOperator(static_cast<int>(id));
      } else if (inputs_.contains(node.name)) {
        box_of_[id] = static_cast<int>(boxes_.size());
        boxes_.push_back({NetBox::Family::kInput,
                          "input",
                          node.name,
                          ExampleShape(specs_.shapes[id][0]),
                          0,
                          {}});
      }
    }
    return std::move(boxes_);
  }

 private:
  // The nodes whose arrays it reads, without parameters and labels.
  std::vector<int> Sources(const Node& node) const {
    std::vector<int> sources;
    for (const NodeEntry& e : node.inputs) {
      if (box_of_[static_cast<size_t>(e.node)] >= 0) sources.push_back(e.node);
    }
    return sources;
  }

  int64_t CountParameters(const Node& node) {
    int64_t sum = 0;
    for (int i = 0; i < node.num_args; ++i) {
      const auto from = static_cast<size_t>(node.inputs[static_cast<size_t>(i)].node);
      const Node& source = graph_.nodes[from];
      const bool parameter = source.kind == Node::Kind::kVariable &&
                             !inputs_.contains(source.name) && !labels_.contains(source.name);
      if (!parameter || counted_[from]) continue;
      counted_[from] = true;  // a shared weight counts once
      sum += specs_.shapes[from][0].Size();
    }
    return sum;
  }

  // Whether a node only post-processes the array of another, which nothing else reads. A head has
  // its own box.
  bool Finishes(int id, const std::vector<int>& sources) const {
    if (sources.size() != 1 || heads_.contains(id)) return false;
    const auto from = static_cast<size_t>(sources[0]);
    const Node& source = graph_.nodes[from];
    return !source.is_variable() && readers_[from] == 1 &&
           specs_.shapes[static_cast<size_t>(id)][0] == specs_.shapes[from][0] &&
           graph_.nodes[static_cast<size_t>(id)].op->TypeString() != "Convolution";
  }

  void AddOperator(int id) {
    const Node& node = graph_.nodes[static_cast<size_t>(id)];
    const std::vector<int> sources = Sources(node);
    NetBox::Family family;
    const std::string words = Words(*node.op, &family);
    if (family == NetBox::Family::kOther && Finishes(id, sources)) {
      const int box = box_of_[static_cast<size_t>(sources[0])];
      box_of_[static_cast<size_t>(id)] = box;
      boxes_[static_cast<size_t>(box)].what += ", " + words;
      boxes_[static_cast<size_t>(box)].parameters += CountParameters(node);
      return;
    }
    if (sources.size() > 1) family = NetBox::Family::kJoin;
    if (heads_.contains(id)) family = NetBox::Family::kHead;
    NetBox box{family,
               words,
               node.name,
               ExampleShape(specs_.shapes[static_cast<size_t>(id)][0]),
               CountParameters(node),
               {}};
    for (int source : sources) {
      const int from = box_of_[static_cast<size_t>(source)];
      if (std::find(box.inputs.begin(), box.inputs.end(), from) == box.inputs.end())
        box.inputs.push_back(from);
    }
    box_of_[static_cast<size_t>(id)] = static_cast<int>(boxes_.size());
    boxes_.push_back(std::move(box));
  }

  const Graph& graph_;
  const InferredSpecs& specs_;
  const std::set<std::string>&inputs_, &labels_;
  std::vector<int> box_of_;  // by node; -1: none
  std::vector<bool> counted_;
  std::vector<int> readers_;
  std::set<int> heads_;
  std::vector<NetBox> boxes_;
};

}  // namespace

std::vector<NetBox> MakeNetBoxes(const Graph& graph, const InferredSpecs& specs,
                                 const std::set<std::string>& inputs,
                                 const std::set<std::string>& labels) {
  return Maker(graph, specs, inputs, labels).Make();
}

}  // namespace mxtrain::commands

// SPDX-License-Identifier: Apache-2.0
#pragma once
// Recognizing a published net, whatever its layers are called: a walk from the output to the input
// that throws Differs at the first layer that is another one there.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "mxtrain/base/error.h"
#include "mxtrain/base/format.h"
#include "mxtrain/operator/param_of.h"
#include "mxtrain/symbol/symbol.h"

namespace mxtrain::inference {

// Why the net is another.
struct Differs {
  std::string why;
};

class FormMatcher {
 protected:
  // `input`: of the net, and its shape with a batch.
  FormMatcher(const Symbol& net, const std::string& input, const TShape& shape)
      : graph_(net.graph()), specs_(InferSpecs(graph_, {{input, shape}}, {}, false)) {}

  // Of the two inputs of a sum: what is added, and to what.
  struct Sum {
    NodeEntry branch, shortcut;
  };

  const Node& At(const NodeEntry& entry) const {
    return graph_.nodes[static_cast<size_t>(entry.node)];
  }
  const TShape& Shape(const NodeEntry& entry) const {
    return specs_.shapes[static_cast<size_t>(entry.node)][static_cast<size_t>(entry.index)];
  }
  static bool Is(const Node& node, const char* type) {
    return node.op && node.op->TypeString() == type;
  }
  // Behind dropout, whose rate goes to *p.
  NodeEntry Skip(NodeEntry entry, double* p = nullptr) const {
    while (Is(At(entry), "Dropout") || Is(At(entry), "DropPath")) {
      if (p) params::Parse(ParamOf(*At(entry).op, "p"), p);
      entry = At(entry).inputs[0];
    }
    return entry;
  }
  const Node& Expect(NodeEntry entry, const char* type, const std::string& what) const {
    const Node& node = At(Skip(entry));
    if (Is(node, type)) return node;
    throw Differs{format("{} is {}, not {}", what, DescribeNode(node), type)};
  }
  static void Require(const Node& node, const char* key, const std::string& wanted) {
    const std::string value = ParamOf(*node.op, key);
    if (value != wanted)
      throw Differs{format("{} has {} = {}, not {}", DescribeNode(node), key, value, wanted)};
  }
  void RequireShape(const NodeEntry& entry, const TShape& wanted) const {
    if (Shape(entry) == wanted) return;
    throw Differs{format("{} gives {}, not {}", DescribeNode(At(entry)), Shape(entry).ToString(),
                         wanted.ToString())};
  }
  static void RequireDense(const Node& node, bool bias) {
    Require(node, "flatten", params::Print(false));
    Require(node, "no_bias", params::Print(!bias));
  }
  const std::string& Weight(const Node& node, size_t input) const {
    const Node& weight = At(node.inputs[input]);
    if (!weight.is_variable())
      throw Differs{format("a parameter of {} is computed", DescribeNode(node))};
    return weight.name;
  }
  template <typename T>
  static T Number(const Node& node, const char* key) {
    T value{};
    params::Parse(ParamOf(*node.op, key), &value);
    return value;
  }
  // Stores a number that all layers of a kind must have alike.
  template <typename T>
  static void Same(const Node& node, const char* key, std::optional<T>* of_all) {
    const T value = Number<T>(node, key);
    if (*of_all && **of_all != value)
      throw Differs{format("{} has another {} than later layers", DescribeNode(node), key)};
    *of_all = value;
  }

  // A sum with a product, which is the branch.
  std::optional<Sum> SumOf(const NodeEntry& entry) const {
    const Node& node = At(Skip(entry));
    if (!Is(node, "elemwise_add") && !Is(node, "broadcast_add")) return std::nullopt;
    for (size_t i = 0; i < 2; ++i) {
      if (Is(At(Skip(node.inputs[i])), "FullyConnected"))
        return Sum{node.inputs[i], node.inputs[1 - i]};
    }
    return std::nullopt;
  }

  // A transformer's block: the ends of its mlp and of its attention, each a sum (or its norm) with
  // what came before.
  struct BlockEnds {
    NodeEntry mlp, attention;
  };
  // The blocks from the first to the last, which ends in *top; afterwards *top is what the first
  // one reads. `sum_of`: of such an end.
  template <typename SumOfEnd>
  std::vector<BlockEnds> BlocksBelow(NodeEntry* top, const SumOfEnd& sum_of) const {
    std::vector<BlockEnds> blocks;
    while (const std::optional<Sum> mlp = sum_of(*top)) {
      const std::optional<Sum> attention = sum_of(mlp->shortcut);
      if (!attention)
        throw Differs{DescribeNode(At(*top)) + " does not follow the sum of an attention"};
      blocks.push_back({*top, mlp->shortcut});
      *top = attention->shortcut;
    }
    if (blocks.empty()) throw Differs{DescribeNode(At(*top)) + " ends no block"};
    std::ranges::reverse(blocks);
    return blocks;
  }

  // The attention whose heads a projection reads side by side.
  const Node& HeadsJoinedIn(NodeEntry entry, bool causal, const char* mask) const {
    const Node& joined = Expect(entry, "Reshape", "what a projection reads");
    const Node& places = Expect(joined.inputs[0], "transpose", "what is joined");
    Require(places, "axes", params::Print(TShape{0, 2, 1, 3}));
    const Node& heads =
        Expect(places.inputs[0], "scaled_dot_product_attention", "what is transposed");
    Require(heads, "is_causal", params::Print(causal));
    Require(heads, "mask", mask);
    Require(heads, "scale", "None");
    return heads;
  }
  // What is split into the heads of a query, a key or a value of `length` tokens.
  NodeEntry SplitIntoHeads(NodeEntry entry, int64_t length) const {
    const Node& by_head = Expect(entry, "transpose", "what an attention reads");
    Require(by_head, "axes", params::Print(TShape{0, 2, 1, 3}));
    const TShape& shape = Shape(entry);
    RequireShape(by_head.inputs[0], {1, length, shape[1], shape[3]});
    const Node& by_place = Expect(by_head.inputs[0], "Reshape", "what is transposed");
    RequireShape(by_place.inputs[0], {1, length, shape[1] * shape[3]});
    return by_place.inputs[0];
  }

  // What a softmax over tokens reads.
  NodeEntry Scores() const {
    if (graph_.heads.size() != 1) throw Differs{"the net has several outputs"};
    const Node& softmax = Expect(graph_.heads[0], "SoftmaxOutput", "the output");
    const NodeEntry entry = softmax.inputs[0];
    if (ParamOf(*softmax.op, "preserve_shape") == params::Print(true)) return entry;
    Require(softmax, "multi_output", params::Print(true));
    const Node& transposed = Expect(entry, "transpose", "what the softmax reads");
    Require(transposed, "axes", params::Print(TShape{0, 2, 1}));
    return transposed.inputs[0];
  }

  const Graph& graph_;
  const InferredSpecs specs_;
};

}  // namespace mxtrain::inference

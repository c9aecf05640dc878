// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/train/internal/token_axes.h"

#include <algorithm>
#include <set>

#include "mxtrain/base/error.h"
#include "mxtrain/base/format.h"
#include "mxtrain/operator/param_of.h"

namespace mxtrain::token_steps {
namespace {

// Why a layer is not taken; caught below.
struct Mixes {
  std::string why;
};

template <typename T>
T Number(const OperatorProperty& op, const char* key) {
  T value{};
  params::Parse(ParamOf(op, key), &value);
  return value;
}
bool IsTrue(const OperatorProperty& op, const char* key) {
  return ParamOf(op, key) == params::Print(true);
}
int AxisOf(const OperatorProperty& op, const char* key, int ndim) {
  const int axis = Number<int>(op, key);
  return axis < 0 ? axis + ndim : axis;
}

using Names = std::set<std::string, std::less<>>;
constexpr const char* kApart = "its inputs have the tokens, or the batch, along different axes";
const Names kIdentities = {"Dropout", "DropPath", "BlockGrad", "Cast"};
const Names kReshapes = {"Reshape", "expand_dims", "Flatten", "squeeze"};
const Names kAlongAxis = {"LayerNorm", "softmax", "log_softmax", "slice_axis"};
const Names kRepeats = {"broadcast_to", "broadcast_axis", "broadcast_like"};

class Follower {
 public:
  // *at: the node that is looked at, for a refusal.
  Follower(const Graph& graph, const std::string& input, int64_t window, const Node** at)
      : input_(input) {
    out_.graph = graph;
    // A batch of another length than the window and 1, so that axes cannot be confused.
    const TShape tokens{window + 1, window};
    out_.window = window;
    out_.specs = InferSpecs(out_.graph, {{input, tokens}}, {}, /*allow_partial=*/false);
    for (const Node& node : graph.nodes) {
      *at = &node;
      Add(node);
    }
  }

  TokenGraph Take() { return std::move(out_); }

 private:
  void Add(const Node& node) {
    const size_t outputs = out_.specs.shapes[out_.axes.size()].size();
    out_.places.emplace_back(node.inputs.size(), -1);
    out_.steps.push_back(Step::kSame);
    std::vector<TokenAxes> axes(outputs);
    if (node.is_variable()) {
      if (node.name == input_) axes[0] = {0, 1};
    } else if (IsConstant(node)) {
      RequireNoDraws(node);
    } else {
      std::fill(axes.begin(), axes.end(), Of(node));
    }
    out_.axes.push_back(std::move(axes));
  }

  bool IsConstant(const Node& node) const {
    return std::ranges::all_of(
        node.inputs, [this](const NodeEntry& entry) { return out_.AxesOf(entry).constant(); });
  }
  static void RequireNoDraws(const Node& node) {
    if (kIdentities.contains(node.op->TypeString())) return;
    for (const ResourceRequest& request : node.op->ForwardResource({})) {
      if (request.type == ResourceRequest::kRandom) throw Mixes{"it draws random numbers"};
    }
  }

  const TokenAxes& In(const Node& node, size_t i) const { return out_.AxesOf(node.inputs[i]); }
  const TShape& ShapeIn(const Node& node, size_t i) const { return out_.ShapeOf(node.inputs[i]); }
  const TShape& ShapeOut() const { return out_.specs.shapes[out_.axes.size()][0]; }

  // Inputs from `first` on are parameters.
  void RequireConstants(const Node& node, size_t first) const {
    for (size_t i = first; i < node.inputs.size(); ++i) {
      if (!In(node, i).constant()) throw Mixes{"a parameter of it depends on the tokens"};
    }
  }
  static void RequireOther(const TokenAxes& axes, int axis) {
    if (axis == axes.tokens) throw Mixes{"it works along the axis of the tokens"};
    if (axis == axes.batch) throw Mixes{"it works along the axis of the batch"};
  }

  // The axes of every output.
  TokenAxes Of(const Node& node) {
    const OperatorProperty& op = *node.op;
    const std::string type = op.TypeString();
    if (type == "scaled_dot_product_attention") return Attention(node);
    if (type == "rotary_embedding") return Rotation(node);
    const bool broadcasts = type.starts_with("broadcast_") && !kRepeats.contains(type);
    if (op.elementwise() != Elementwise::kNo || broadcasts) return Joined(node);
    if (type == "Embedding" || type == "take") return Gather(node, type);
    if (type == "Concat") return Concatenated(node);
    RequireConstants(node, 1);
    TokenAxes axes = In(node, 0);
    const int ndim = ShapeIn(node, 0).ndim();
    if (kIdentities.contains(type)) {
      if (ParamOf(op, "mode") == "always") throw Mixes{"it drops elements"};
      return axes;
    }
    if (kReshapes.contains(type)) {
      out_.steps.back() = Step::kReshape;
      return {Moved(axes.batch, ShapeIn(node, 0)), Moved(axes.tokens, ShapeIn(node, 0))};
    }
    if (kAlongAxis.contains(type)) {
      RequireOther(axes, AxisOf(op, "axis", ndim));
      return axes;
    }
    if (type == "RMSNorm") {
      RequireOther(axes, ndim - 1);
      return axes;
    }
    if (type == "FullyConnected") {
      if (IsTrue(op, "flatten") && ndim != 2) throw Mixes{"flatten makes one row of all tokens"};
      RequireOther(axes, ndim - 1);
      return axes;
    }
    if (type == "linear_cross_entropy") {
      RequireOther(axes, ndim - 1);
      return axes;  // without the last
    }
    if (type == "SoftmaxOutput") {
      const bool last = IsTrue(op, "preserve_shape"), second = IsTrue(op, "multi_output");
      if (!last && !second) throw Mixes{"it is one softmax over all tokens"};
      RequireOther(axes, second ? 1 : ndim - 1);
      return axes;
    }
    if (type == "transpose") return Transposed(op, axes, ndim);
    if (type == "SwapAxis") {
      const int a = AxisOf(op, "dim1", ndim), b = AxisOf(op, "dim2", ndim);
      const auto swap = [=](int axis) { return axis == a ? b : axis == b ? a : axis; };
      return {swap(axes.batch), swap(axes.tokens)};
    }
    if (type == "SliceChannel") {
      const int axis = AxisOf(op, "axis", ndim);
      RequireOther(axes, axis);
      if (!IsTrue(op, "squeeze_axis")) return axes;
      return {axes.batch - (axes.batch > axis), axes.tokens - (axes.tokens > axis)};
    }
    throw Mixes{"it is not known to keep tokens apart"};
  }

  static TokenAxes Transposed(const OperatorProperty& op, const TokenAxes& axes, int ndim) {
    std::vector<int64_t> order = [&] {
      TShape given;
      params::Parse(ParamOf(op, "axes"), &given);
      return given.has_rank() ? std::vector<int64_t>(given.begin(), given.end())
                              : std::vector<int64_t>();
    }();
    for (int i = ndim; order.size() < static_cast<size_t>(ndim);) order.push_back(--i);
    const auto place = [&order, ndim](int axis) {
      const auto found = std::ranges::find_if(
          order, [=](int64_t from) { return (from < 0 ? from + ndim : from) == axis; });
      return static_cast<int>(found - order.begin());
    };
    return {place(axes.batch), place(axes.tokens)};
  }

  // The axis of the output with as many elements before it, and of the same length.
  int Moved(int axis, const TShape& in) const {
    const TShape& out = ShapeOut();
    for (int i = 0; i < out.ndim(); ++i) {
      if (out[i] == in[axis] && out.Product(0, i) == in.Product(0, axis)) return i;
    }
    throw Mixes{"it makes another axis of the tokens, or of the batch"};
  }

  TokenAxes Gather(const Node& node, const std::string& type) const {
    const size_t indices = type == "take" ? 1 : 0, table = 1 - indices;
    if (!In(node, table).constant()) throw Mixes{"it selects by a token's value among tokens"};
    if (type == "take" && AxisOf(*node.op, "axis", ShapeIn(node, table).ndim()) != 0)
      throw Mixes{"it takes along another axis than the first"};
    return In(node, indices);
  }

  TokenAxes Concatenated(const Node& node) const {
    const TokenAxes axes = In(node, 0);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (In(node, i).constant()) throw Mixes{"it joins tokens with a constant"};
      if (In(node, i) != axes) throw Mixes{kApart};
    }
    RequireOther(axes, AxisOf(*node.op, "dim", ShapeOut().ndim()));
    return axes;
  }

  // Of element-wise functions, with axes of length 1 that are repeated.
  TokenAxes Joined(const Node& node) {
    const TShape& out = ShapeOut();
    TokenAxes axes;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (In(node, i).constant()) continue;
      if (!axes.constant() && In(node, i) != axes) throw Mixes{kApart};
      axes = In(node, i);
    }
    if (out[axes.batch] != out_.window + 1 || out[axes.tokens] != out_.window)
      throw Mixes{"it repeats tokens, or the batch"};
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (In(node, i).constant()) Align(node, i, axes);
    }
    return axes;
  }

  // A constant beside an array of tokens: the same for all, or with a value for each place.
  void Align(const Node& node, size_t input, const TokenAxes& axes) {
    const TShape& shape = ShapeIn(node, input);
    if (shape.ndim() <= axes.tokens || shape.ndim() <= axes.batch)
      throw Mixes{"its inputs have another number of axes"};
    if (shape[axes.batch] != 1) throw Mixes{"a parameter of it has a value for each example"};
    if (shape[axes.tokens] == 1) return;
    if (axes.batch > axes.tokens || shape.Product(0, axes.tokens) != 1)
      throw Mixes{"a parameter of it depends on places, behind other axes"};
    out_.places.back()[input] = axes.tokens;
  }

  TokenAxes Attention(const Node& node) {
    if (!IsTrue(*node.op, "is_causal")) throw Mixes{"it is not causal: tokens see later ones"};
    if (ParamOf(*node.op, "mask") != "none") throw Mixes{"it has a mask"};
    const int ndim = ShapeIn(node, 0).ndim();
    const TokenAxes wanted{0, ndim - 2};
    for (size_t i = 0; i < 3; ++i) {
      if (In(node, i) != wanted)
        throw Mixes{"its tokens are not those of the net, [batch, ..., tokens, depth]"};
    }
    out_.steps.back() = Step::kAttention;
    return wanted;
  }

  TokenAxes Rotation(const Node& node) {
    if (IsTrue(*node.op, "use_position")) throw Mixes{"it is given positions"};
    const TokenAxes wanted{0, ShapeIn(node, 0).ndim() - 2};
    if (In(node, 0) != wanted)
      throw Mixes{"its tokens are not those of the net, [batch, ..., tokens, depth]"};
    out_.steps.back() = Step::kRotation;
    return wanted;
  }

  const std::string input_;
  TokenGraph out_;
};

}  // namespace

Expected<TokenGraph, Refusal> FollowTokens(const Graph& graph, const std::string& input,
                                           int64_t window) {
  if (window < 2) return Refusal{"the net reads one token"};
  const Node* at = nullptr;
  try {
    return Follower(graph, input, window, &at).Take();
  } catch (const Mixes& mixes) {
    return Refusal{format("{}: {}", DescribeNode(*at), mixes.why)};
  } catch (const Error& error) {  // shapes that a batch of another size contradicts
    return Refusal{error.what()};
  }
}

}  // namespace mxtrain::token_steps

// SPDX-License-Identifier: Apache-2.0
// AddGradient: the backward pass as nodes. Walks the forward nodes in reverse; several gradients of
// one entry are summed by ElementWiseSum.
#include <algorithm>

#include "mxtrain/base/error.h"
#include "mxtrain/executor/passes.h"

namespace mxtrain::executor {
namespace {

class GradientMaker {
 public:
  GradientMaker(ExecGraph graph, const BindRequest& request, const OperatorRegistry& registry)
      : graph_(std::move(graph)),
        request_(request),
        registry_(registry),
        wanted_(WantedGradients(graph_, request)),
        terms_(graph_.nodes.size()) {
    for (size_t id = 0; id < graph_.nodes.size(); ++id)
      terms_[id].resize(graph_.nodes[id].specs.size());
  }

  ExecGraph Run() {
    graph_.gradients.resize(graph_.arguments.size());
    if (!request_.needs_backward()) return std::move(graph_);
    const int forward_nodes = static_cast<int>(graph_.nodes.size());
    graph_.first_backward = forward_nodes;
    AddHeadGradients();
    for (int id = forward_nodes; id-- > 0;) {
      if (std::find(wanted_[id].begin(), wanted_[id].end(), true) != wanted_[id].end())
        Differentiate(id);
    }
    for (size_t k = 0; k < graph_.arguments.size(); ++k) {
      const int id = graph_.arguments[k];
      const auto req = request_.grad_req.find(graph_.nodes[id].name);
      if (req == request_.grad_req.end() || req->second == GradReq::kNull) continue;
      NodeEntry gradient = Sum({id, 0});
      if (!gradient) gradient = Zeros({id, 0});
      graph_.gradients[k] = gradient;
    }
    return std::move(graph_);
  }

 private:
  int Add(ExecNode node) {
    node.backward_pass = true;
    graph_.nodes.push_back(std::move(node));
    return static_cast<int>(graph_.nodes.size()) - 1;
  }

  // A variable for each head whose operator reads a head gradient.
  void AddHeadGradients() {
    graph_.head_grads.resize(graph_.heads.size());
    for (size_t i = 0; i < graph_.heads.size(); ++i) {
      const NodeEntry head = graph_.heads[i];
      const ExecNode& node = graph_.nodes[head.node];
      const bool reads = node.kind == Node::Kind::kForward ? node.op->NeedsHeadGradient() : true;
      if (!reads || std::find(wanted_[head.node].begin(), wanted_[head.node].end(), true) ==
                        wanted_[head.node].end())
        continue;
      ExecNode variable;
      variable.kind = Node::Kind::kVariable;
      variable.name = format("{}_head_grad{}", node.name, i);
      variable.PlaceBeside(node);
      variable.specs = {graph_.spec(head)};
      variable.req = {OpReqType::kNullOp};
      variable.adds_to.resize(1);
      const NodeEntry entry{Add(std::move(variable)), 0};
      graph_.head_grads[i] = entry;
      terms_[head.node][head.index].push_back(entry);
    }
  }

  // The gradient of an entry from its terms; empty if there are none. Terms are in order of
  // computation.
  NodeEntry Sum(NodeEntry of) {
    const std::vector<NodeEntry>& terms = terms_[of.node][of.index];
    if (terms.size() < 2) return terms.empty() ? NodeEntry{} : terms[0];
    ExecNode node;
    node.kind = Node::Kind::kForward;
    node.name =
        graph_.nodes[of.node].name + (of.index ? format("_{}_grad_sum", of.index) : "_grad_sum");
    node.where = graph_.nodes[of.node].where;
    node.PlaceBeside(graph_.nodes[of.node]);
    node.op = registry_.Create("ElementWiseSum", {{"num_args", std::to_string(terms.size())}});
    node.inputs = terms;
    node.num_args = static_cast<int>(terms.size());
    node.specs = {graph_.spec(of)};
    node.req = {OpReqType::kWriteTo};
    node.adds_to.resize(1);
    const NodeEntry sum{Add(std::move(node)), 0};
    terms_[of.node][of.index] = {sum};
    return sum;
  }

  NodeEntry Zeros(NodeEntry like) {
    ExecNode node;
    node.kind = Node::Kind::kZeros;
    node.name = graph_.nodes[like.node].name + "_zero_grad";
    node.PlaceBeside(graph_.nodes[like.node]);
    node.specs = {graph_.spec(like)};
    node.req = {OpReqType::kWriteTo};
    node.adds_to.resize(1);
    return {Add(std::move(node)), 0};
  }

  void Differentiate(int id) {
    if (graph_.nodes[id].kind == Node::Kind::kReorder) return DifferentiateReorder(id);
    const int outputs = graph_.nodes[id].op->NumOutputs();
    const bool needs_head = graph_.nodes[id].op->NeedsHeadGradient();
    std::vector<NodeEntry> out_grad(outputs);
    for (int i = 0; i < outputs && needs_head; ++i) out_grad[i] = Sum({id, i});
    for (int i = 0; i < outputs && needs_head; ++i) {
      if (!out_grad[i] && i < graph_.nodes[id].op->NumVisibleOutputs())
        out_grad[i] = Zeros({id, i});
    }

    const ExecNode& forward = graph_.nodes[id];
    ExecNode node;
    node.kind = Node::Kind::kBackward;
    node.name = forward.name + "_backward";
    node.where = forward.where;
    node.op = forward.op;
    node.PlaceBeside(forward);
    node.forward = id;
    node.origins = forward.origins;
    node.num_args = forward.num_args;
    node.inputs = std::move(out_grad);
    node.inputs.insert(node.inputs.end(), forward.inputs.begin(),
                       forward.inputs.begin() + forward.num_args);
    for (int i = 0; i < outputs; ++i) node.inputs.push_back({id, i});
    node.inputs.insert(node.inputs.end(), forward.inputs.begin() + forward.num_args,
                       forward.inputs.end());
    for (int i = 0; i < forward.num_args; ++i) {
      node.specs.push_back(GradientSpec(forward, i));
      node.req.push_back(wanted_[id][i] ? OpReqType::kWriteTo : OpReqType::kNullOp);
    }
    node.adds_to.resize(node.specs.size());
    const std::vector<NodeEntry> targets(forward.inputs.begin(),
                                         forward.inputs.begin() + forward.num_args);
    const int now = Add(std::move(node));
    for (int i = 0; i < static_cast<int>(targets.size()); ++i) {
      if (wanted_[id][i]) AddTerm(targets[i], {now, i});
    }
  }

  TensorSpec GradientSpec(const ExecNode& forward, int argument) const {
    const TensorSpec& array = graph_.spec(forward.inputs[argument]);
    if (!forward.plan || forward.plan->grad_layout.empty())
      return array;  // no plan when only bytes are counted
    const std::optional<TypedLayout>& own = forward.plan->grad_layout[argument];
    return own ? TensorSpec{array.shape, own->type, own->layout} : array;
  }

  // `gradient` is a term of the gradient of `target`. If `target` is a conversion of an array with
  // the type of `gradient`, the term goes directly to that array.
  void AddTerm(NodeEntry target, NodeEntry gradient) {
    const TensorSpec spec = graph_.spec(gradient);
    const ExecNode& node = graph_.nodes[target.node];
    if (spec != graph_.spec(target) && node.kind == Node::Kind::kReorder &&
        spec.type == graph_.spec(node.inputs[0]).type) {
      target = node.inputs[0];
    }
    if (spec != graph_.spec(target))
      gradient = Changed(gradient, graph_.spec(target), graph_.nodes[target.node]);
    terms_[target.node][target.index].push_back(gradient);
  }

  // The gradient of a conversion is the inverse conversion. None is needed if all readers gave
  // their gradients in the original layout and type.
  void DifferentiateReorder(int id) {
    const NodeEntry gradient = Sum({id, 0});
    if (!gradient) return;
    const NodeEntry target = graph_.nodes[id].inputs[0];
    terms_[target.node][target.index].push_back(
        Changed(gradient, graph_.spec(target), graph_.nodes[id]));
  }

  NodeEntry Changed(NodeEntry gradient, TensorSpec spec, const ExecNode& of) {
    ExecNode node;
    node.kind = Node::Kind::kReorder;
    node.name = of.name + "_backward";
    node.where = of.where;
    node.PlaceBeside(of);
    node.inputs = {gradient};
    node.specs = {spec};
    node.req = {OpReqType::kWriteTo};
    node.adds_to.resize(1);
    return {Add(std::move(node)), 0};
  }

  ExecGraph graph_;
  const BindRequest& request_;
  const OperatorRegistry& registry_;
  const std::vector<std::vector<bool>> wanted_;
  std::vector<std::vector<std::vector<NodeEntry>>> terms_;  // [node][output]: terms of its gradient
};

}  // namespace

ExecGraph AddGradient(ExecGraph graph, const BindRequest& request,
                      const OperatorRegistry& registry) {
  return GradientMaker(std::move(graph), request, registry).Run();
}

}  // namespace mxtrain::executor

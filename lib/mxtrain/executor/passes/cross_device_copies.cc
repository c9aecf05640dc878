// SPDX-License-Identifier: Apache-2.0
// CopyAcrossDevices: _CrossDeviceCopy nodes. Comes after the gradient, as in MXNet: a copy needs no
// gradient of its own, since the edges of the backward pass get copies like the others.
#include <algorithm>
#include <map>
#include <utility>

#include "mxtrain/base/error.h"
#include "mxtrain/executor/internal/rewriter.h"
#include "mxtrain/executor/passes.h"

namespace mxtrain::executor {
namespace {

class CopyInserter {
 public:
  CopyInserter(const ExecGraph& graph, const BindRequest& request)
      : graph_(graph), request_(request), rewriter_(graph) {}

  ExecGraph Run() {
    for (int id = 0; id < static_cast<int>(graph_.nodes.size()); ++id) {
      const ExecNode& node = graph_.nodes[id];
      std::vector<NodeEntry> inputs;
      for (const NodeEntry& e : node.inputs) inputs.push_back(On(node, e, node.backward_pass));
      for (const NodeEntry& e : node.adds_to)
        MXTRAIN_ASSERT(!e || graph_.nodes[e.node].ctx == node.ctx);
      rewriter_.graph().nodes[rewriter_.Keep(id)].inputs = std::move(inputs);
    }
    for (size_t k = 0; k < graph_.arguments.size(); ++k) {
      const NodeEntry gradient = graph_.gradients[k];
      const ExecNode& variable = graph_.nodes[graph_.arguments[k]];
      if (gradient) rewriter_.Redirect(gradient, On(variable, gradient, true));
    }
    return rewriter_.Finish();
  }

 private:
  // The entry of the old graph, in the new one, on the device of `reader`.
  NodeEntry On(const ExecNode& reader, NodeEntry old, bool backward_pass) {
    const NodeEntry now = rewriter_.Map(old);
    if (!old || graph_.nodes[old.node].ctx == reader.ctx) return now;
    const auto [known, fresh] = copies_.try_emplace({now, reader.ctx});
    if (!fresh) return known->second;
    const ExecNode& source = rewriter_.graph().nodes[now.node];
    ExecNode copy;
    copy.kind = Node::Kind::kCopy;
    copy.name = format("{}_to_{}", source.name, reader.ctx.ToString());
    if (now.index > 0) copy.name += format("_{}", now.index);
    copy.where = source.where;
    copy.PlaceBeside(reader);
    copy.inputs = {now};
    copy.specs = {rewriter_.spec(now)};
    copy.req = {OpReqType::kWriteTo};
    copy.adds_to.resize(1);
    copy.backward_pass = backward_pass;
    copy.precomputed = source.precomputed || IsConstant(source);
    return known->second = {rewriter_.Add(std::move(copy)), 0};
  }

  // A parameter of an executor that does not train: what it is read by may be precomputed.
  bool IsConstant(const ExecNode& node) const {
    return node.is_variable() && !request_.is_train && !request_.needs_backward() &&
           !request_.inputs.contains(node.name);
  }

  const ExecGraph& graph_;
  const BindRequest& request_;
  Rewriter rewriter_;
  std::map<std::pair<NodeEntry, Context>, NodeEntry> copies_;
};

}  // namespace

ExecGraph CopyAcrossDevices(ExecGraph graph, const BindRequest& request) {
  const Context first = graph.nodes.empty() ? request.ctx : graph.nodes[0].ctx;
  const bool one_device = std::all_of(graph.nodes.begin(), graph.nodes.end(),
                                      [&](const ExecNode& node) { return node.ctx == first; });
  return one_device ? std::move(graph) : CopyInserter(graph, request).Run();
}

}  // namespace mxtrain::executor

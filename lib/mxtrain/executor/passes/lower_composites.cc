// SPDX-License-Identifier: Apache-2.0
// LowerComposites: replaces composite operators (operator/composite.h) by their graphs, unless a
// kernel takes them.
#include <algorithm>

#include "mxtrain/base/error.h"
#include "mxtrain/base/text.h"
#include "mxtrain/executor/internal/rewriter.h"
#include "mxtrain/executor/passes.h"
#include "mxtrain/ndarray/runtime.h"
#include "mxtrain/operator/composite.h"

namespace mxtrain::executor {
namespace {

class Lowerer {
 public:
  Lowerer(const ExecGraph& graph, const BindRequest& request, Runtime& runtime)
      : graph_(graph),
        request_(request),
        runtime_(runtime),
        wanted_(WantedGradients(graph, request)),
        rewriter_(graph) {}

  ExecGraph Run() {
    for (int id = 0; id < static_cast<int>(graph_.nodes.size()); ++id) {
      const ExecNode& node = graph_.nodes[id];
      std::optional<Lowering> steps;
      if (node.op) {
        steps.emplace(ArgumentShapes(graph_, node), node.op->NumOutputs());
        if (!node.op->Lower(&*steps)) steps.reset();
      }
      const bool differentiated =
          std::find(wanted_[id].begin(), wanted_[id].end(), true) != wanted_[id].end();
      if (!steps || HasKernel(graph_, node, differentiated) ||
          HasNarrowKernel(node, differentiated)) {
        rewriter_.Keep(id);
        continue;
      }
      std::vector<NodeEntry> in;
      for (int i = 0; i < node.num_args; ++i) in.push_back(rewriter_.Map(node.inputs[i]));
      int counter = 0;
      const std::vector<NodeEntry> out =
          Expansion{node, differentiated, &counter, *this}.Expand(*steps, in, node.name);
      for (size_t i = 0; i < out.size(); ++i) rewriter_.Redirect({id, static_cast<int>(i)}, out[i]);
    }
    return rewriter_.Finish();
  }

 private:
  // The nodes of one composite of the user.
  struct Expansion {
    const ExecNode& composite;
    const bool differentiated;
    int* counter;  // of its nodes, so that all names differ
    Lowerer& lowerer;

    // The outputs of `graph`, applied to entries of the new graph. The step that gives its first
    // output bears `name`.
    std::vector<NodeEntry> Expand(const Lowering& graph, const std::vector<NodeEntry>& in,
                                  const std::string& name) const;
    std::vector<NodeEntry> AddStep(const Lowering::Step& step, const std::vector<NodeEntry>& inputs,
                                   const std::string& name) const;
    std::string NameOf(const Lowering::Step& step) const {
      return format("{}_{}{}", composite.name, mxtrain::Lower(step.op), (*counter)++);
    }
  };

  bool HasKernel(const ExecGraph& graph, const ExecNode& node, bool differentiated) const {
    if (request_.reference_kernels) return false;
    const std::vector<std::optional<Layout>> layouts(static_cast<size_t>(node.num_args));
    std::vector<OpReqType> grad_req;
    for (int i = 0; differentiated && i < node.num_args; ++i)
      grad_req.push_back(node.op->HasGradient(i) ? OpReqType::kWriteTo : OpReqType::kNullOp);
    const auto kernels = runtime_.operators().Kernels(node.op->TypeString(), node.ctx.type);
    return std::any_of(kernels.begin(), kernels.end(), [&](const KernelEntry* entry) {
      return PlanNode(graph, node, request_, runtime_, layouts, grad_req, entry->name.c_str())
          .has_value();
    });
  }

  // Whether a kernel takes a node of `graph_` with the arguments that it will have in mixed
  // precision.
  bool HasNarrowKernel(const ExecNode& node, bool differentiated) const {
    const MixedPrecision rule = node.op->mixed_precision();
    if (!request_.amp || rule.use != MixedPrecision::kGains) return false;
    ExecGraph alone;
    ExecNode narrow = node;
    for (int i = 0; i < static_cast<int>(node.inputs.size()); ++i) {
      ExecNode argument;
      argument.kind = Node::Kind::kVariable;
      argument.specs = {graph_.spec(node.inputs[i])};
      DType& type = argument.specs[0].type;
      if (rule.arguments < 0 ? i < node.num_args : i < rule.arguments) {
        if (type != DType::kFloat32) return false;
        type = *request_.amp;
      }
      alone.nodes.push_back(std::move(argument));
      narrow.inputs[i] = {i, 0};
    }
    SetOutputTypes(alone, &narrow);
    return HasKernel(alone, narrow, differentiated);
  }

  const ExecGraph& graph_;
  const BindRequest& request_;
  Runtime& runtime_;
  const std::vector<std::vector<bool>> wanted_;
  Rewriter rewriter_;
};

std::vector<NodeEntry> Lowerer::Expansion::Expand(const Lowering& graph,
                                                  const std::vector<NodeEntry>& in,
                                                  const std::string& name) const {
  std::vector<std::vector<NodeEntry>> of_step;
  const auto entry_of = [&](Lowering::Value value) {
    return value.step < 0
               ? in[static_cast<size_t>(value.output)]
               : of_step[static_cast<size_t>(value.step)][static_cast<size_t>(value.output)];
  };
  for (const Lowering::Step& step : graph.steps()) {
    std::vector<NodeEntry> inputs;
    for (const Lowering::Value value : step.in) inputs.push_back(entry_of(value));
    const bool gives_result = graph.outputs()[0].step == static_cast<int>(of_step.size());
    of_step.push_back(AddStep(step, inputs, gives_result ? name : NameOf(step)));
  }
  std::vector<NodeEntry> out;
  for (const Lowering::Value value : graph.outputs()) {
    const Lowering::Step copy{"_copy", {}, {}};
    // An output of the net may not be a variable.
    out.push_back(value.step < 0 ? AddStep(copy, {entry_of(value)}, NameOf(copy))[0]
                                 : entry_of(value));
  }
  return out;
}

std::vector<NodeEntry> Lowerer::Expansion::AddStep(const Lowering::Step& step,
                                                   const std::vector<NodeEntry>& inputs,
                                                   const std::string& name) const {
  Rewriter& rewriter = lowerer.rewriter_;
  std::vector<TShape> shapes, aux_shapes;
  std::vector<DType> types, aux_types;
  for (const NodeEntry& e : inputs) {
    shapes.push_back(rewriter.spec(e).shape);
    types.push_back(rewriter.spec(e).type);
  }
  ExecNode node;
  node.kind = Node::Kind::kForward;
  node.op = lowerer.runtime_.operators().Create(step.op, step.kwargs);
  const size_t outputs = static_cast<size_t>(node.op->NumOutputs());
  std::vector<TShape> out_shapes(outputs);
  std::vector<DType> out_types(outputs, DType::kUnknown);
  MXTRAIN_ASSERT(node.op->InferShape(&shapes, &out_shapes, &aux_shapes));
  if (!node.op->InferType(&types, &out_types, &aux_types)) {
    Throw(ErrorKind::kConfig, "{} '{}': the types of its part {} do not follow from its arguments",
          composite.op->TypeString(), composite.name, step.op);
  }
  node.name = name;
  node.where = composite.where;
  node.attrs = composite.attrs;
  node.PlaceBeside(composite);
  node.origins = {composite.name};
  node.inputs = inputs;
  node.num_args = static_cast<int>(inputs.size());
  for (size_t i = 0; i < outputs; ++i)
    node.specs.push_back({out_shapes[i], out_types[i], Layout()});
  node.req.assign(outputs, OpReqType::kWriteTo);
  node.adds_to.resize(outputs);
  Lowering inner(shapes, node.op->NumOutputs());
  if (node.op->Lower(&inner) && !lowerer.HasKernel(rewriter.graph(), node, differentiated))
    return Expand(inner, inputs, name);
  const int id = rewriter.Add(std::move(node));
  std::vector<NodeEntry> entries;
  for (size_t i = 0; i < outputs; ++i) entries.push_back({id, static_cast<int>(i)});
  return entries;
}

}  // namespace

ExecGraph LowerComposites(ExecGraph graph, const BindRequest& request, Runtime& runtime) {
  return Lowerer(graph, request, runtime).Run();
}

}  // namespace mxtrain::executor

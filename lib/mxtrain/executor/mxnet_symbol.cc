// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/executor/mxnet_symbol.h"

#include <set>

namespace mxtrain::mxnet {
namespace {

// Arguments that a reader computes a gradient of.
std::set<std::string> WithGradient(const Graph& graph) {
  std::set<std::string> names;
  for (const Node& node : graph.nodes) {
    for (int i = 0; i < node.num_args; ++i) {
      const Node& input =
          graph.nodes[static_cast<size_t>(node.inputs[static_cast<size_t>(i)].node)];
      if (input.kind == Node::Kind::kVariable && node.op->HasGradient(i)) names.insert(input.name);
    }
  }
  return names;
}

}  // namespace

Executor::Executor(Runtime& runtime, const mxtrain::Symbol& symbol, Context ctx,
                   const std::map<std::string, TShape>& shapes, executor::GradReq grad_req)
    : runtime_(&runtime), symbol_(symbol) {
  request_.ctx = ctx;
  request_.shapes = shapes;
  const Graph& graph = symbol.graph();
  const InferredSpecs specs = InferSpecs(graph, shapes, {}, /*allow_partial=*/false);
  const auto array = [&](int id) {
    const auto at = static_cast<size_t>(id);
    return NDArray::Zeros(runtime, specs.shapes[at][0], specs.types[at][0], ctx);
  };
  const std::set<std::string> with_gradient = WithGradient(graph);
  for (const int id : graph.Arguments()) {
    const std::string& name = graph.nodes[static_cast<size_t>(id)].name;
    args_.emplace(name, array(id));
    if (grad_req == executor::GradReq::kNull || !with_gradient.contains(name)) continue;
    grads_.emplace(name, array(id));
    request_.grad_req[name] = grad_req;
  }
  for (const int id : graph.Auxiliaries())
    aux_.emplace(graph.nodes[static_cast<size_t>(id)].name, array(id));
}

mxtrain::Executor& Executor::Of(bool is_train) {
  std::unique_ptr<mxtrain::Executor>& bound = is_train ? training_ : evaluation_;
  if (!bound) {
    executor::BindRequest request = request_;
    request.is_train = is_train;
    if (!is_train) request.grad_req.clear();
    bound = mxtrain::Executor::Bind(*runtime_, symbol_, request, args_,
                                    is_train ? grads_ : std::map<std::string, NDArray>(), aux_);
  }
  return *bound;
}

void Executor::forward(bool is_train) {
  Of(is_train).Forward({});
  trained_last_ = is_train;
}

void Executor::backward(const std::vector<NDArray>& out_grads) {
  if (!trained_last_) {
    Throw(ErrorKind::kUsage, "backward without a forward(is_train = true) before it");
  }
  trained_last_ = false;
  training_->Backward(out_grads);
}

const std::vector<NDArray>& Executor::outputs() const {
  const auto& bound = trained_last_ || !evaluation_ ? training_ : evaluation_;
  if (!bound) Throw(ErrorKind::kUsage, "the outputs of an executor before its first forward");
  return bound->outputs();
}

}  // namespace mxtrain::mxnet

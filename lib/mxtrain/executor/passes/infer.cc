// SPDX-License-Identifier: Apache-2.0
// Infer: shapes and types of every entry from those of the inputs. Also checks the requirements of
// binding.
#include <set>

#include "mxtrain/base/error.h"
#include "mxtrain/base/suggest.h"
#include "mxtrain/executor/passes.h"

namespace mxtrain::executor {
namespace {

template <typename Names>
void CheckNames(const ExecGraph& graph, const Names& given, const char* what) {
  std::set<std::string> known;
  for (int id : graph.arguments) known.insert(graph.nodes[id].name);
  for (const auto& name : given) {
    if (known.contains(name)) continue;
    const std::vector<std::string> names(known.begin(), known.end());
    Throw(ErrorKind::kConfig, "{} '{}' is not an argument of this net{}", what, name,
          DidYouMean(name, names));
  }
}

}  // namespace

ExecGraph Infer(const Graph& graph, const BindRequest& request) {
  ExecGraph result;
  result.heads = graph.heads;
  result.arguments = graph.Arguments();
  result.auxiliaries = graph.Auxiliaries();
  std::vector<std::string> with_gradient;
  result.nodes.reserve(graph.nodes.size());
  for (const Node& node : graph.nodes) {
    ExecNode& copy = result.nodes.emplace_back(node);
    copy.ctx = request.ctx;
  }
  for (const auto& [name, req] : request.grad_req) with_gradient.push_back(name);
  CheckNames(result, request.inputs, "input");
  CheckNames(result, with_gradient, "gradient");

  const InferredSpecs found =
      InferSpecs(graph, request.shapes, request.types, /*allow_partial=*/false);
  for (size_t id = 0; id < graph.nodes.size(); ++id) {
    ExecNode& node = result.nodes[id];
    for (size_t i = 0; i < found.shapes[id].size(); ++i)
      node.specs.push_back({found.shapes[id][i], found.types[id][i], Layout()});
    node.req.assign(node.specs.size(),
                    node.is_variable() ? OpReqType::kNullOp : OpReqType::kWriteTo);
    node.adds_to.resize(node.specs.size());
  }
  return result;
}

}  // namespace mxtrain::executor

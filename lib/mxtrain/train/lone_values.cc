// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/train/internal/lone_values.h"

#include <string>
#include <vector>

#include "mxtrain/base/error.h"
#include "mxtrain/operator/param_of.h"
#include "mxtrain/symbol/graph.h"
#include "mxtrain/train/bind_request.h"

namespace mxtrain {
namespace {

constexpr size_t kMostLayers = 3;

bool TakesStatisticsOfBatch(const Node& node) {
  return node.op && node.op->TypeString() == "BatchNorm" &&
         ParamOf(*node.op, "use_global_stats") != params::Print(true);
}

// 0: the shape is not known.
int64_t ValuesPerChannel(const Node& node, const TShape& data) {
  if (!data.known() || data.ndim() == 0 || data.Size() == 0) return 0;
  int64_t axis = 1;
  params::Parse(ParamOf(*node.op, "axis"), &axis);
  if (axis < 0) axis += data.ndim();
  return axis < data.ndim() ? data.Size() / data[static_cast<int>(axis)] : data.Size();
}

}  // namespace

void RequireSeveralValues(const TrainOptions& options, const Symbol& net,
                          std::span<const DataDesc> arrays) {
  const Executor::BindRequest request = TrainingRequest(options, net, arrays);
  const int64_t ranks = options.group ? options.group->size() : 1,
                parts = static_cast<int64_t>(options.workers.size()) * ranks;
  if (options.sync_batch_norm && parts > 1) return;  // each part has one value at least
  const Graph& graph = net.graph();
  const InferredSpecs specs =
      InferSpecs(graph, request.shapes, request.types, /*allow_partial=*/true);
  std::vector<std::string> layers;
  for (const Node& node : graph.nodes) {
    if (!TakesStatisticsOfBatch(node)) continue;
    const NodeEntry from = node.inputs[0];
    const TShape& data =
        specs.shapes[static_cast<size_t>(from.node)][static_cast<size_t>(from.index)];
    if (ValuesPerChannel(node, data) == 1)
      layers.push_back(format("{} of {}", executor::Describe(node), data.ToString()));
  }
  if (layers.empty()) return;
  const std::string part = parts > 1                ? "each worker's part of a batch"
                           : options.grad_accum > 1 ? "each of the batches that grad_accum sums"
                                                    : "a batch";
  Throw(ErrorKind::kConfig,
        "{}: batch normalization over one value per channel gives beta for every input, so what "
        "is before it learns nothing; give {} two examples or more{}, or set use_global_stats: "
        "true",
        FirstOf(layers, kMostLayers), part,
        parts > 1 ? ", or set train.kvstore.sync_batch_norm: true" : "");
}

}  // namespace mxtrain

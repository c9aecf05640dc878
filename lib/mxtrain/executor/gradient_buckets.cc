// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/executor/gradient_buckets.h"

#include <algorithm>

namespace mxtrain::executor {

std::vector<GradientBucket> GradientBuckets(const ExecGraph& graph, int64_t bytes) {
  std::vector<size_t> order;  // of the arguments that have a gradient
  for (size_t i = 0; i < graph.gradients.size(); ++i) {
    if (graph.gradients[i]) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return graph.gradients[a].node < graph.gradients[b].node;
  });
  std::vector<GradientBucket> buckets;
  for (const size_t i : order) {
    const NodeEntry gradient = graph.gradients[i];
    // What one node completes stays together.
    if (buckets.empty() || (buckets.back().bytes >= bytes && buckets.back().last < gradient.node))
      buckets.emplace_back();
    GradientBucket& bucket = buckets.back();
    bucket.arguments.push_back(graph.nodes[graph.arguments[i]].name);
    bucket.bytes += graph.spec(gradient).Bytes();
    bucket.last = gradient.node;
  }
  return buckets;
}

}  // namespace mxtrain::executor

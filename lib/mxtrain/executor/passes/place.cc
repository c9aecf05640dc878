// SPDX-License-Identifier: Apache-2.0
// Place: the device of each node, from its ctx_group attribute. Copies between devices are not
// supported: a second device is rejected.
#include "mxtrain/base/error.h"
#include "mxtrain/executor/passes.h"

namespace mxtrain::executor {

ExecGraph Place(ExecGraph graph, const BindRequest& request) {
  for (ExecNode& node : graph.nodes) {
    auto group = node.attrs.find("ctx_group");
    if (group == node.attrs.end()) group = node.attrs.find("__ctx_group__");
    if (group == node.attrs.end()) continue;
    const auto device = request.group2ctx.find(group->second);
    if (device != request.group2ctx.end()) node.ctx = device->second;
    if (node.ctx != request.ctx) {
      Throw(ErrorKind::kConfig,
            "{} is placed on {} by its group '{}', but the net runs on {}: one device per net is "
            "supported; remove the group from group2ctx",
            Describe(node), node.ctx.ToString(), group->second, request.ctx.ToString());
    }
  }
  return graph;
}

}  // namespace mxtrain::executor

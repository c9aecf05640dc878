// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/train/net_inputs.h"

#include <algorithm>

namespace mxtrain {

Symbol OnBatchesOf(const DataIter& iter, const OperatorRegistry& operators, const Symbol& net) {
  const std::vector<std::string> arguments = net.ListArguments();
  std::map<std::string, Symbol> replaced;
  for (const DataDesc& desc : iter.provide_data()) {
    if (!desc.pixels || std::find(arguments.begin(), arguments.end(), desc.name) == arguments.end())
      continue;
    const Symbol pixels[] = {Symbol::Variable(desc.name)};
    const Kwargs kwargs = {{"mean", params::Print(desc.pixels->mean)},
                           {"std", params::Print(desc.pixels->std)}};
    replaced[desc.name] =
        Symbol::Create(operators, "image_normalize", desc.name + "_normalize", kwargs, pixels);
  }
  return replaced.empty() ? net : net.Compose(replaced);
}

std::vector<DataDesc> ArraysOf(const DataIter& iter) {
  std::vector<DataDesc> arrays = iter.provide_data();
  for (DataDesc& desc : iter.provide_label()) arrays.push_back(std::move(desc));
  return arrays;
}

Executor::BindRequest EvaluationRequest(const Symbol& net, std::span<const DataDesc> arrays,
                                        Context ctx, const ComputeModes& modes) {
  Executor::BindRequest request;
  request.ctx = ctx;
  request.is_train = false;
  request.namesake = 0;  // a run draws the same, whatever was bound before it
  request.math = modes.math;
  request.amp = modes.amp;
  request.deterministic = modes.deterministic;
  request.fuse = modes.fuse;
  request.group2ctx = modes.group2ctx;
  const std::vector<std::string> arguments = net.ListArguments();
  for (const DataDesc& desc : arrays) {
    if (std::find(arguments.begin(), arguments.end(), desc.name) == arguments.end()) continue;
    request.inputs.insert(desc.name);
    if (desc.shape.has_rank()) request.shapes[desc.name] = desc.array_shape();
    request.types[desc.name] = desc.array_type();
  }
  return request;
}

}  // namespace mxtrain

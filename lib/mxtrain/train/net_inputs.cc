// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/train/net_inputs.h"

#include <algorithm>

#include "mxtrain/base/error.h"
#include "mxtrain/io/token_position.h"
#include "mxtrain/train/packed_tokens.h"

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
  const Symbol on_batches = replaced.empty() ? net : net.Compose(replaced);
  const auto is_position = [](const DataDesc& desc) { return desc.name == kTokenPosition; };
  if (std::ranges::none_of(iter.provide_label(), is_position)) return on_batches;
  const DataDesc tokens = iter.provide_data()[0];
  return WithPackedTokens(operators, on_batches, tokens.name, tokens.shape[1]);
}

std::vector<DataDesc> ArraysOf(const DataIter& iter) {
  std::vector<DataDesc> arrays = iter.provide_data();
  for (DataDesc& desc : iter.provide_label()) arrays.push_back(std::move(desc));
  return arrays;
}

std::map<std::string, TShape> BatchSizes::ShapesOf(size_t size, const Executor& executor,
                                                   int64_t parts) const {
  const std::vector<std::string>& inputs = executor.input_names();
  std::map<std::string, TShape> shapes;
  for (const auto* descs : {&sizes_[size].data, &sizes_[size].label}) {
    for (const DataDesc& desc : *descs) {
      if (std::ranges::find(inputs, desc.name) == inputs.end() || !desc.shape.has_rank()) continue;
      TShape shape = desc.array_shape();
      shape[0] /= parts;
      shapes[desc.name] = shape;
    }
  }
  return shapes;
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

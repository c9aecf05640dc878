// SPDX-License-Identifier: Apache-2.0
#include "app/commands/synthetic_iter.h"

#include <algorithm>

#include "mxtrain/base/format.h"
#include "mxtrain/base/philox.h"

namespace mxtrain::commands {
namespace {

// Labels need not be declared: their shapes follow from the losses.
std::vector<DataDesc> Describe(const std::vector<config::NetInput>& inputs, const config::Net& net,
                               int64_t batch) {
  const auto shapes = net.symbol.InferShape(config::PlannedShapes(net, batch));
  const auto arguments = net.symbol.ListArguments();
  std::vector<DataDesc> descs;
  for (const config::NetInput& input : inputs) {
    const auto at = std::find(arguments.begin(), arguments.end(), input.name) - arguments.begin();
    descs.push_back({input.name, shapes.arguments[static_cast<size_t>(at)], input.dtype});
  }
  return descs;
}

NDArray RandomNumbers(Runtime& runtime, const DataDesc& desc, Context ctx) {
  std::vector<float> values(static_cast<size_t>(desc.shape.Size()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = UniformAt(1, 2, 3, i);
  return NDArray::FromVector(runtime, desc.shape, values, ctx);
}

NDArray RandomPixels(Runtime& runtime, const DataDesc& desc, Context ctx) {
  std::vector<uint8_t> pixels(static_cast<size_t>(desc.shape.Size()));
  for (size_t i = 0; i < pixels.size(); ++i)
    pixels[i] = static_cast<uint8_t>(PhiloxAt(1, 2, 3, i) >> 24);
  NDArray array(runtime, desc.array_shape(), desc.array_type(), ctx, {}, "synthetic pixels");
  array.CopyFromHost(pixels.data(), static_cast<int64_t>(pixels.size()));
  return array;
}

}  // namespace

SyntheticIter::SyntheticIter(Runtime& runtime, Context ctx, std::vector<DataDesc> data,
                             std::vector<DataDesc> label)
    : data_(std::move(data)), label_(std::move(label)) {
  for (const DataDesc& desc : data_)
    one_.data.push_back(desc.pixels ? RandomPixels(runtime, desc, ctx)
                                    : RandomNumbers(runtime, desc, ctx));
  for (const DataDesc& desc : label_) {
    one_.label.push_back(NDArray::FromVector(
        runtime, desc.shape, std::vector<float>(static_cast<size_t>(desc.shape.Size()))));
  }
  one_.count = data_.at(0).shape[0];
  one_.index.assign(static_cast<size_t>(one_.count), 0);
}

SyntheticIter::SyntheticIter(Runtime& runtime, Context ctx, const config::Net& net, int64_t batch)
    : SyntheticIter(runtime, ctx, Describe(net.inputs, net, batch),
                    Describe(net.labels, net, batch)) {}

std::string SyntheticIter::ExampleName(int64_t index) const {
  return format("synthetic[{}]", index);
}

bool SyntheticIter::Next(DataBatch* batch) {
  *batch = one_;
  batch->batch = next_++;
  return true;
}

}  // namespace mxtrain::commands

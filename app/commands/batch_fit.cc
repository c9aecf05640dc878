// SPDX-License-Identifier: Apache-2.0
#include "app/commands/batch_fit.h"

#include "mxtrain/device/cpu/available_memory.h"
#include "mxtrain/executor/memory_plan.h"

namespace mxtrain::commands {
namespace {

constexpr int64_t kBatchesAhead = 4;  // of the pipeline: three prefetched, one in use

}  // namespace

ExternalBytes BytesOutsideArena(const executor::ExecGraph& graph,
                                const executor::BindRequest& request, const KeptStates& states) {
  ExternalBytes bytes;
  for (const int id : graph.arguments) {
    const executor::ExecNode& node = graph.nodes[static_cast<size_t>(id)];
    if (request.inputs.contains(node.name)) {
      bytes.inputs += node.specs[0].Bytes();
    } else {
      bytes.parameters += node.specs[0].Bytes();
      bytes.optimizer += states.of_optimizer * node.specs[0].Bytes();
    }
  }
  for (const int id : graph.auxiliaries)
    bytes.auxiliaries += graph.nodes[static_cast<size_t>(id)].specs[0].Bytes();
  if (states.averages) bytes.averages = bytes.parameters + bytes.auxiliaries;
  for (const NodeEntry& e : graph.gradients) bytes.gradients += e ? graph.spec(e).Bytes() : 0;
  for (const NodeEntry& e : graph.heads) bytes.outputs += graph.spec(e).Bytes();
  return bytes;
}

int64_t TrainingBytes(Runtime& runtime, const Symbol& symbol, executor::BindRequest request,
                      const KeptStates& states) {
  request.memory_budget = {};
  const executor::ExecGraph graph = executor::RunPasses(symbol.graph(), request, runtime);
  return BytesOutsideArena(graph, request, states).Sum() +
         executor::PlanMemory(graph, request, executor::Strategy::kFull).arena_bytes;
}

int64_t InferenceBytes(Runtime& runtime, const Symbol& symbol, const std::vector<InputInfo>& inputs,
                       int64_t batch, Context device, const ComputeModes& modes) {
  std::vector<DataDesc> arrays;
  for (const InputInfo& input : inputs) {
    std::vector<int64_t> shape = {batch};
    shape.insert(shape.end(), input.shape.begin(), input.shape.end());
    arrays.push_back({input.name, TShape(shape), input.type});
  }
  const executor::BindRequest request = EvaluationRequest(symbol, arrays, device, modes);
  const executor::ExecGraph graph = executor::RunPasses(symbol.graph(), request, runtime);
  int64_t bytes = executor::PlanMemory(graph, request, executor::Strategy::kFull).arena_bytes;
  for (const int id : graph.arguments) {
    const executor::ExecNode& node = graph.nodes[static_cast<size_t>(id)];
    bytes += node.specs[0].Bytes() * (request.inputs.contains(node.name) ? kBatchesAhead : 1);
  }
  for (const int id : graph.auxiliaries)
    bytes += graph.nodes[static_cast<size_t>(id)].specs[0].Bytes();
  for (const NodeEntry& head : graph.heads) bytes += graph.spec(head).Bytes();
  return bytes;
}

int64_t FreeBytes(Runtime& runtime, Context device) {
  return device.type == DeviceType::kGPU ? runtime.backend(device).Describe(device.id).free_bytes
                                         : AvailableMemory();
}

int64_t PowerOfTwoWithin(int64_t memory, int64_t most,
                         const std::function<int64_t(int64_t batch)>& bytes_of) {
  int64_t batch = 1;
  while (2 * batch <= most) batch *= 2;
  while (batch > 1 && bytes_of(batch) > memory) batch /= 2;
  return batch;
}

}  // namespace mxtrain::commands

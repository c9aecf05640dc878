// SPDX-License-Identifier: Apache-2.0
#include "app/session/batch_fit.h"

#include "mxtrain/device/cpu/available_memory.h"
#include "mxtrain/executor/memory_plan.h"

namespace mxtrain::session {
namespace {

constexpr int64_t kBatchesAhead = 4;  // of the pipeline: three prefetched, one in use
// What is on a GPU beside arrays: kernels, which libraries load when they are first run, cuBLAS's
// workspace, captured graphs, and arrays for measuring kernels.
constexpr int64_t kGpuReserve = int64_t{1} << 30;

Context MemoryOf(Context device) {
  return device.type == DeviceType::kGPU ? device : Context::cpu();
}

void AddArenas(const executor::ExecGraph& graph, const executor::BindRequest& request,
               MemoryBytes* bytes) {
  const executor::MemoryPlan plan = executor::PlanMemory(graph, request, executor::Strategy::kFull);
  for (const executor::ArenaPlan& arena : plan.arenas) (*bytes)[MemoryOf(arena.ctx)] += arena.bytes;
}

}  // namespace

std::map<Context, ExternalBytes> BytesOutsideArenas(const executor::ExecGraph& graph,
                                                    const executor::BindRequest& request,
                                                    const KeptStates& states) {
  std::map<Context, ExternalBytes> devices;
  const auto node_of = [&](int id) -> const executor::ExecNode& {
    return graph.nodes[static_cast<size_t>(id)];
  };
  for (const int id : graph.arguments) {
    const executor::ExecNode& node = node_of(id);
    ExternalBytes& bytes = devices[node.ctx];
    if (request.inputs.contains(node.name)) {
      bytes.inputs += node.specs[0].Bytes();
    } else {
      bytes.parameters += node.specs[0].Bytes();
    }
  }
  for (const int id : graph.auxiliaries)
    devices[node_of(id).ctx].auxiliaries += node_of(id).specs[0].Bytes();
  for (const NodeEntry& e : graph.gradients) {
    if (!e) continue;
    ExternalBytes& bytes = devices[node_of(e.node).ctx];
    bytes.gradients += graph.spec(e).Bytes();
    bytes.optimizer += states.of_optimizer * graph.spec(e).Bytes();  // of what learns
  }
  for (const NodeEntry& e : graph.heads)
    devices[node_of(e.node).ctx].outputs += graph.spec(e).Bytes();
  for (auto& [device, bytes] : devices) {
    if (states.averages) bytes.averages = bytes.gradients + bytes.auxiliaries;
  }
  return devices;
}

ExternalBytes BytesOutsideArena(const executor::ExecGraph& graph,
                                const executor::BindRequest& request, const KeptStates& states) {
  ExternalBytes all;
  for (const auto& [device, bytes] : BytesOutsideArenas(graph, request, states)) {
    all.parameters += bytes.parameters;
    all.auxiliaries += bytes.auxiliaries;
    all.gradients += bytes.gradients;
    all.optimizer += bytes.optimizer;
    all.averages += bytes.averages;
    all.inputs += bytes.inputs;
    all.outputs += bytes.outputs;
  }
  return all;
}

int64_t TotalOf(const MemoryBytes& bytes) {
  int64_t total = 0;
  for (const auto& [device, taken] : bytes) total += taken;
  return total;
}

std::string ToString(const MemoryBytes& bytes) {
  std::vector<std::string> parts;
  for (const auto& [device, taken] : bytes)
    parts.push_back(bytes.size() == 1 ? FormatBytes(taken)
                                      : format("{} on {}", FormatBytes(taken), device.ToString()));
  return format("{}", join(parts, ", "));
}

MemoryBytes TrainingBytes(Runtime& runtime, const Symbol& symbol, executor::BindRequest request,
                          const KeptStates& states) {
  request.memory_budget = {};
  const executor::ExecGraph graph = executor::RunPasses(symbol.graph(), request, runtime);
  MemoryBytes bytes;
  for (const auto& [device, outside] : BytesOutsideArenas(graph, request, states))
    bytes[MemoryOf(device)] += outside.Sum();
  AddArenas(graph, request, &bytes);
  return bytes;
}

MemoryBytes InferenceBytes(Runtime& runtime, const Symbol& symbol,
                           const std::vector<InputInfo>& inputs, int64_t batch, Context device,
                           const ComputeModes& modes) {
  std::vector<DataDesc> arrays;
  for (const InputInfo& input : inputs) {
    std::vector<int64_t> shape = {batch};
    shape.insert(shape.end(), input.shape.begin(), input.shape.end());
    arrays.push_back({input.name, TShape(shape), input.type});
  }
  const executor::BindRequest request = EvaluationRequest(symbol, arrays, device, modes);
  const executor::ExecGraph graph = executor::RunPasses(symbol.graph(), request, runtime);
  MemoryBytes bytes;
  for (auto [at, outside] : BytesOutsideArenas(graph, request, {})) {
    outside.inputs *= kBatchesAhead;
    bytes[MemoryOf(at)] += outside.Sum();
  }
  AddArenas(graph, request, &bytes);
  return bytes;
}

int64_t FreeBytes(Runtime& runtime, Context device) {
  if (device.type != DeviceType::kGPU) return AvailableMemory();
  const int64_t free = runtime.backend(device).Describe(device.id).free_bytes;
  return std::max<int64_t>(free - kGpuReserve, 0);
}

BatchFit PowerOfTwoWithin(const std::function<int64_t(Context)>& memory_of, int64_t most,
                          const std::function<MemoryBytes(int64_t batch)>& bytes_of) {
  MemoryBytes memory;  // measured once
  const auto exceeded = [&](int64_t batch) {
    std::optional<Context> by_most;
    int64_t most_bytes = 0;
    for (const auto& [device, taken] : bytes_of(batch)) {
      if (!memory.contains(device)) memory[device] = memory_of(device);
      if (taken - memory[device] <= most_bytes) continue;
      by_most = device;
      most_bytes = taken - memory[device];
    }
    return by_most;
  };
  BatchFit fit;
  while (2 * fit.batch <= most) fit.batch *= 2;
  for (; fit.batch > 1; fit.batch /= 2) {
    const std::optional<Context> limit = exceeded(fit.batch);
    if (!limit) break;
    fit.limit = limit;
  }
  return fit;
}

}  // namespace mxtrain::session

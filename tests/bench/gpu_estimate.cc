// SPDX-License-Identifier: Apache-2.0
// What a training step of a net has to move and to compute on a GPU, kernel by kernel, from the
// very graph that the executor would run there. Needs no GPU: the graph comes from fake GPUs whose
// kernels have the layouts and ranks of the CUDA backend. Prints tables in Markdown.
//
//   gpu_estimate [CONFIG [BATCH]]      default: configs/imagenet/resnet50.yaml 256
//
// Bytes: every array that a kernel reads or writes, once for each pass that it makes over the
// array. A kernel's time is that of its bytes or of its operations, whichever is longer.
#define DOCTEST_CONFIG_IMPLEMENT  // what is used of tests/support needs it
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <map>
#include <set>

#include "app/config/load.h"
#include "app/config/net.h"
#include "mxtrain/base/error.h"
#include "mxtrain/executor/memory_plan.h"
#include "mxtrain/executor/passes.h"
#include "tests/support/build_paths.h"
#include "tests/support/fake_gpu.h"
#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

// An H100: memory as large copies reach it, matrix units at about two thirds of their peak.
constexpr double kBytesPerSecond = 3.0e12, kFlopsPerSecond = 600e12;

struct Cost {
  int kernels = 0;
  double bytes = 0, flops = 0, seconds = 0;

  void Add(double kernel_bytes, double kernel_flops) {
    ++kernels;
    bytes += kernel_bytes;
    flops += kernel_flops;
    seconds += std::max(kernel_bytes / kBytesPerSecond, kernel_flops / kFlopsPerSecond);
  }
};
using Table = std::map<std::string, Cost>;

class Estimate {
 public:
  Estimate(const Symbol& net, const executor::BindRequest& request, Runtime& runtime)
      : graph_(executor::RunPasses(net.graph(), request, runtime)),
        plan_(executor::PlanMemory(graph_, request, executor::Strategy::kFull)) {
    for (int id = 0; id < static_cast<int>(graph_.nodes.size()); ++id) {
      if (plan_.runs[static_cast<size_t>(id)]) AddNode(graph_.nodes[static_cast<size_t>(id)]);
    }
    for (const NodeEntry& gradient : graph_.gradients) {
      if (gradient) parameters_ += static_cast<double>(graph_.spec(gradient).shape.Size());
    }
    // Of a parameter: weight and momentum are read and written, the gradient is read.
    table_["updates"].Add(parameters_ * 5 * sizeof(float), 0);
  }

  const Table& table() const { return table_; }
  int64_t arena_bytes() const { return plan_.arena_bytes; }

 private:
  double Bytes(NodeEntry e) const { return e ? static_cast<double>(graph_.spec(e).Bytes()) : 0; }
  static double Outputs(const executor::ExecNode& node) {
    double bytes = 0;
    for (size_t i = 0; i < node.specs.size(); ++i) {
      const bool wanted = i >= node.req.size() || node.req[i] != OpReqType::kNullOp;
      if (wanted) bytes += static_cast<double>(node.specs[i].Bytes());
    }
    return bytes;
  }

  void AddNode(const executor::ExecNode& node) {
    double inputs = 0;
    for (const NodeEntry& e : node.inputs) inputs += Bytes(e);
    using Kind = Node::Kind;
    if (node.kind == Kind::kReorder) return table_["reorders"].Add(inputs + Outputs(node), 0);
    if (node.kind != Kind::kForward && node.kind != Kind::kBackward)
      return table_["zeros"].Add(inputs + Outputs(node), 0);
    const bool backward = node.kind == Kind::kBackward;
    const executor::ExecNode& forward =
        backward ? graph_.nodes[static_cast<size_t>(node.forward)] : node;
    const std::string name = node.op->TypeString() + (backward ? ", backward" : "");
    if (name.starts_with("Convolution") || name.starts_with("FullyConnected"))
      return AddProduct(name, node, forward, backward);
    // The statistics first, then the elements: two passes over what is read.
    const bool twice = node.op->TypeString().find("BatchNorm") != std::string::npos;
    table_[name].Add((twice ? 2 : 1) * inputs + Outputs(node), 0);
  }

  void AddProduct(const std::string& name, const executor::ExecNode& node,
                  const executor::ExecNode& forward, bool backward) {
    std::vector<TShape> in, out{forward.specs[0].shape};
    for (int i = 0; i < forward.num_args; ++i)
      in.push_back(graph_.spec(forward.inputs[static_cast<size_t>(i)]).shape);
    const double flops = 2 * forward.op->ForwardFlops(in, out);
    const double head = static_cast<double>(forward.specs[0].Bytes()),
                 data = Bytes(forward.inputs[0]), weight = Bytes(forward.inputs[1]);
    if (!backward) return table_[name].Add(data + weight + head, flops);
    if (node.req[0] != OpReqType::kNullOp)
      table_[name + ", of data"].Add(head + weight + data, flops);
    if (node.req[1] != OpReqType::kNullOp)
      table_[name + ", of weights"].Add(head + weight + data, flops);
  }

  const executor::ExecGraph graph_;
  const executor::MemoryPlan plan_;
  double parameters_ = 0;
  Table table_;
};

std::string CellsOf(const Cost& c) {
  return format("{} | {:.2f} | {:.0f} | {:.2f}", c.kernels, c.bytes / 1e9, c.flops / 1e9,
                1e3 * c.seconds);
}

void Print(const Table& before, const Table& after, int64_t batch) {
  std::cout << "| kernels | number, unfused | GB | GFLOP | ms | number, fused | GB | GFLOP | ms |\n"
               "|---|---|---|---|---|---|---|---|---|\n";
  std::set<std::string> names;
  Cost all[2];
  for (const Table* table : {&before, &after}) {
    for (const auto& [name, c] : *table) {
      names.insert(name);
      Cost& sum = all[table == &after];
      sum.kernels += c.kernels;
      sum.bytes += c.bytes;
      sum.flops += c.flops;
      sum.seconds += c.seconds;
    }
  }
  const auto cells = [](const Table& table, const std::string& name) {
    const auto found = table.find(name);
    return found == table.end() ? "| | |" : CellsOf(found->second);
  };
  for (const std::string& name : names)
    std::cout << format("| {} | {} | {} |\n", name, cells(before, name), cells(after, name));
  std::cout << format("| all | {} | {} |\n", CellsOf(all[0]), CellsOf(all[1]));
  std::cout << format("| images/s | | | | {:.0f} | | | | {:.0f} |\n",
                      static_cast<double>(batch) / all[0].seconds,
                      static_cast<double>(batch) / all[1].seconds);
}

// The net as a GPU gets it: batches of 8-bit pixels.
int Run(const std::string& file, int64_t batch) {
  config::Diagnostics diagnostics(std::make_shared<config::SourceMap>());
  config::LoadRequest load;
  load.files = {file};
  const config::LoadedConfig loaded = config::LoadConfig(load, &diagnostics);
  const config::Net net = config::BuildNet(
      loaded.config, TestRegistry(), [](std::string_view) { return std::optional<int64_t>(); },
      &diagnostics);
  diagnostics.ThrowIfErrors();
  const std::string input = net.inputs.at(0).name;
  const Symbol pixels[] = {Symbol::Variable(input)};
  const Symbol symbol = net.symbol.Compose(
      {{input, Symbol::Create(TestRegistry(), "image_normalize", "normalize", {}, pixels)}});
  executor::BindRequest request;
  request.ctx = Context::gpu();
  request.amp = DType::kBfloat16;
  request.shapes = config::BatchShapes(net, batch);
  TShape& images = request.shapes.at(input);
  images = {images[0], images[2], images[3], images[1]};
  request.types[input] = DType::kUint8;
  const Symbol::Shapes shapes = symbol.InferShape(request.shapes);
  const std::vector<std::string> arguments = symbol.ListArguments();
  for (size_t i = 0; i < arguments.size(); ++i) {
    const bool label = std::any_of(net.labels.begin(), net.labels.end(),
                                   [&](const auto& l) { return l.name == arguments[i]; });
    if (label || arguments[i] == input) {
      request.inputs.insert(arguments[i]);
      request.shapes[arguments[i]] = shapes.arguments[i];
    } else {
      request.grad_req[arguments[i]] = executor::GradReq::kWrite;
    }
  }
  const auto runtime = NewChannelsLastRuntime();
  request.fuse = false;
  const Estimate before(symbol, request, *runtime);
  request.fuse = true;
  const Estimate after(symbol, request, *runtime);
  Print(before.table(), after.table(), batch);
  std::cout << format(
      "\nMemory shared by activations and workspaces, without cuDNN's: {} unfused, {} fused.\n",
      FormatBytes(before.arena_bytes()), FormatBytes(after.arena_bytes()));
  return 0;
}

}  // namespace
}  // namespace mxtrain::test

int main(int argc, char** argv) {
  using namespace mxtrain;
  try {
    return test::Run(
        argc > 1 ? argv[1] : (test::SourceDir() / "configs/imagenet/resnet50.yaml").string(),
        argc > 2 ? std::atoll(argv[2]) : 256);
  } catch (const Error& error) {
    std::cerr << error.what() << "\n";
    return static_cast<int>(error.kind());
  }
}

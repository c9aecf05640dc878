// SPDX-License-Identifier: Apache-2.0
// Operators without a kernel on a GPU: the CPU computes them between copies, with its own bits.
#include "mxtrain/operator/host_kernel.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>

#include "mxtrain/operator/simple_op.h"
#include "tests/support/counted_square.h"
#include "tests/support/error_message.h"
#include "tests/support/fake_gpu.h"
#include "tests/support/fake_stream.h"
#include "tests/support/gpus.h"
#include "tests/support/imperative_calls.h"
#include "tests/support/training_run.h"

namespace mxtrain::test {
namespace {

std::set<std::string> AllOperators() {
  const std::vector<std::string> names = BuiltinOperators()->Names();
  return {names.begin(), names.end()};
}

// A fake GPU with kernels for every operator but CountedSquare, and those of `without`.
std::unique_ptr<Runtime> NewSquareRuntime(RuntimeOptions options = {},
                                          const std::set<std::string>& without = {}) {
  return NewFakeGpuRuntimeWithout(without, std::move(options), AddCountedSquare);
}

executor::BindRequest HostKernelRequest(Context ctx, const SmallNet& net, executor::GradReq req) {
  executor::BindRequest request = RequestFor(net, net.losses);
  request.ctx = ctx;
  for (auto& [name, asked] : request.grad_req) asked = req;
  return request;
}

Result ResultOfSteps(Runtime& runtime, const SmallNet& net, const executor::BindRequest& request) {
  const auto executor = BindWithValues(runtime, net.losses, request);
  for (int step = 0; step < 6; ++step)
    executor->Step(
        MakeInputs(runtime, net, executor->input_names(), DType::kFloat32, std::to_string(step)));
  return ResultOf(*executor);
}

TEST_CASE("nets train on a GPU without any kernel, with the bits of the CPU's reference kernels") {
  const std::set<std::string> all = AllOperators();
  for (const char* engine : {"naive", "threaded"}) {
    RuntimeOptions options;
    options.engine = engine;
    const auto runtime = NewFakeGpuRuntimeWithout(all, options);
    std::vector<SmallNet> nets = SmallNets(runtime->operators());
    nets.push_back(DropoutNet(runtime->operators()));
    for (const SmallNet& net : nets) {
      CAPTURE(net.name);
      const bool naive = options.engine == "naive";
      executor::BindRequest on_gpu =
          HostKernelRequest(kGpu, net, naive ? executor::GradReq::kWrite : executor::GradReq::kAdd);
      on_gpu.reference_kernels = true;
      executor::BindRequest on_cpu = on_gpu;
      on_cpu.ctx = Context::cpu();
      CHECK(ResultOfSteps(*runtime, net, on_gpu) == ResultOfSteps(*runtime, net, on_cpu));
    }
  }
}

TEST_CASE("scratch, saved bytes, auxiliary states and sums of gradients are the CPU's") {
  for (const char* engine : {"naive", "threaded"}) {
    RuntimeOptions options;
    options.engine = engine;
    const auto runtime = NewSquareRuntime(options);
    const SmallNet net = SquareNet(runtime->operators());
    for (const auto req : {executor::GradReq::kWrite, executor::GradReq::kAdd}) {
      for (const bool is_train : {true, false}) {
        executor::BindRequest on_gpu = HostKernelRequest(kGpu, net, req);
        on_gpu.is_train = is_train;
        executor::BindRequest on_cpu = on_gpu;
        on_cpu.ctx = Context::cpu();
        CHECK(ResultOfSteps(*runtime, net, on_gpu) == ResultOfSteps(*runtime, net, on_cpu));
      }
    }
  }
}

TEST_CASE("what runs between two host kernels is captured") {
  const auto runtime = NewSquareRuntime();
  const SmallNet net = SquareNet(runtime->operators());
  const auto executor =
      BindWithValues(*runtime, net.losses, HostKernelRequest(kGpu, net, executor::GradReq::kWrite));
  int pieces = 0, host_kernels = 0;
  bool in_piece = false;
  for (size_t id = 0; id < executor->graph().nodes.size(); ++id) {
    const executor::ExecNode& node = executor->graph().nodes[id];
    if (!executor->memory_plan().runs[id]) continue;
    const bool on_host = node.plan && RunsOnHost(*node.plan);
    CHECK(on_host == (node.op && node.op->TypeString() == "CountedSquare"));
    host_kernels += on_host;
    pieces += !on_host && !in_piece;
    in_piece = !on_host;
  }
  CHECK(host_kernels == 4);
  CHECK(pieces >= 4);
  const int before = FakeStream::replays();
  for (int step = 0; step < 6; ++step)
    executor->Step(MakeInputs(*runtime, net, executor->input_names()));
  runtime->engine().WaitForAll();
  // Inputs alternate between two sets of arrays: each runs once first.
  CHECK(FakeStream::replays() - before == 4 * pieces);
}

NDArray CountedSquareOf(const NDArray& x, const NDArray& count) {
  return Invoke("CountedSquare", {&x, 1}, {}, {&count, 1})[0];
}

TEST_CASE("a step allocates no host memory") {
  const auto runtime = NewSquareRuntime();
  const SmallNet net = SquareNet(runtime->operators());
  const auto executor =
      BindWithValues(*runtime, net.losses, HostKernelRequest(kGpu, net, executor::GradReq::kWrite));
  const std::vector<NDArray> inputs = MakeInputs(*runtime, net, executor->input_names());
  const NDArray x = Floats(*runtime, {1, 2, 3}, kGpu), count = Floats(*runtime, {0}, kGpu);
  // Of a storage without a cache, so that it asks the device for every block.
  const auto allocations = [&](const std::function<void()>& run) {
    const auto so_far = [&] {
      runtime->engine().WaitForAll();
      int64_t sum = 0;
      for (const Context host : {Context::cpu(), Context::cpu_pinned()}) {
        runtime->storage().ReleaseCache(host);
        sum += runtime->storage().GetStats(host).allocations;
      }
      return sum;
    };
    const int64_t before = so_far();
    run();
    return so_far() - before;
  };
  // Inputs alternate between two sets of arrays.
  for (int step = 0; step < 2; ++step) executor->Step(inputs);
  for (int step = 0; step < 3; ++step) CHECK(allocations([&] { executor->Step(inputs); }) == 0);
  // A call on arrays does, which shows that they are counted.
  CHECK(allocations([&] { CountedSquareOf(x, count).WaitToRead(); }) > 0);
}

TEST_CASE("a device has no space for host kernels") {
  const auto runtime = NewSquareRuntime();
  const SmallNet net = SquareNet(runtime->operators());
  const auto executor = Executor::SimpleBind(
      *runtime, net.losses, HostKernelRequest(kGpu, net, executor::GradReq::kWrite));
  int passes = 0;
  for (size_t id = 0; id < executor->graph().nodes.size(); ++id) {
    const executor::ExecNode& node = executor->graph().nodes[id];
    if (!node.op || node.op->TypeString() != "CountedSquare") continue;
    ++passes;
    CHECK(executor->memory_plan().workspace_of[id] == -1);
    CHECK(executor->memory_plan().temp_space_of[id] == std::vector<int>{-1, -1});
  }
  CHECK(passes == 4);

  const NDArray x = Floats(*runtime, {1, 2, 3}, kGpu), count = Floats(*runtime, {0}, kGpu);
  CHECK(CountedSquareOf(x, count).ToVector() == std::vector<float>{1, 4, 9});
  CHECK(runtime->resources().GetStats(kGpu).taken == 0);
  CHECK(runtime->resources().GetStats(Context::cpu()).taken == 1);  // the one of unknown size
}

TEST_CASE("calls on arrays keep no pinned memory") {
  const auto runtime = NewSquareRuntime();
  const auto pinned = [&] {
    runtime->engine().WaitForAll();
    return runtime->storage().GetStats(Context::cpu_pinned());
  };
  for (const size_t n : {4, 400}) {
    const NDArray x = Floats(*runtime, std::vector<float>(n, 3), kGpu),
                  count = Floats(*runtime, {0}, kGpu);
    for (int call = 0; call < 2; ++call) CountedSquareOf(x, count).WaitToRead();
    CHECK(pinned().in_use == 0);
  }
  CHECK(pinned().peak > 0);
}

// The host kernel is plain where the CPU's are in blocks, so the bits differ.
TEST_CASE("with the best kernels around it, and in mixed precision") {
  const auto runtime = NewFakeGpuRuntimeWithout(
      {"Activation", "BatchNorm", "Convolution", "_ConvolutionActivation", "Pooling"});
  for (const SmallNet& net : SmallNets(runtime->operators())) {
    CAPTURE(net.name);
    for (const bool narrow : {false, true}) {
      executor::BindRequest on_gpu = HostKernelRequest(kGpu, net, executor::GradReq::kWrite);
      const executor::BindRequest on_cpu =
          HostKernelRequest(Context::cpu(), net, executor::GradReq::kWrite);
      if (narrow) on_gpu.amp = DType::kBfloat16;
      const Result got = ResultOfSteps(*runtime, net, on_gpu),
                   expected = ResultOfSteps(*runtime, net, on_cpu);
      const double tolerance = narrow ? 0.2 : 1e-4;
      for (const auto& [name, values] : expected) {
        CAPTURE(name);
        for (size_t i = 0; i < values.size(); ++i)
          CHECK(got.at(name)[i] == doctest::Approx(values[i]).epsilon(tolerance).scale(1));
      }
    }
  }
}

// Kernels of a GPU for FullyConnected, the reference of the CPU, and Activation, the same but for
// float32 only. For planning: they cannot run.
void AddSingleKernels(OperatorRegistry* registry) {
  const auto reference = [&](const char* op) {
    return registry->Kernels(op, DeviceType::kCPU).back()->plan;
  };
  registry->AddKernel(
      {"FullyConnected", DeviceType::kGPU, "single", kRefRank, reference("FullyConnected")});
  registry->AddKernel({"Activation", DeviceType::kGPU, "wide", kRefRank,
                       [wide = reference("Activation")](
                           const OperatorProperty& property, const PlanRequest& request,
                           Backend& backend) -> Expected<Plan, Refusal> {
                         if (request.in[0].type != DType::kFloat32) return Refusal{"float32 only"};
                         return wide(property, request, backend);
                       }});
}

TEST_CASE("mixed precision does not move an operator to the host") {
  for (const bool strict : {false, true}) {
    RuntimeOptions options;
    options.strict_device = strict;
    const auto runtime =
        NewFakeGpuRuntimeWithout({"FullyConnected", "Activation"}, options, AddSingleKernels);
    const SmallNet net = SmallNets(runtime->operators())[0];
    REQUIRE(net.name == "mlp");
    executor::BindRequest request = HostKernelRequest(kGpu, net, executor::GradReq::kWrite);
    request.amp = DType::kBfloat16;
    request.fuse = false;
    int narrow = 0, wide = 0;
    for (const executor::ExecNode& node :
         executor::RunPasses(net.losses.graph(), request, *runtime).nodes) {
      if (node.kind != Node::Kind::kForward) continue;
      CHECK(!RunsOnHost(*node.plan));
      narrow += node.op->TypeString() == "FullyConnected" && node.specs[0].type == DType::kBfloat16;
      wide += node.op->TypeString() == "Activation" && node.specs[0].type == DType::kFloat32;
    }
    CHECK(narrow > 0);
    CHECK(wide > 0);
  }
}

TEST_CASE("whole runs, with optimizers whose updates have no kernel") {
  const TempDir data;
  WriteTable(data);
  const std::set<std::string> without = {"SoftmaxOutput", "sgd_update", "sgd_mom_update",
                                         "multi_sum_sq"};
  RunSpec spec;
  spec.symbol = NoisyNet();
  spec.make_runtime = [&](const RunSpec& s) {
    RuntimeOptions options;
    options.engine = s.engine;
    options.seed = s.seed;
    return NewFakeGpuRuntimeWithout(without, options);
  };
  spec.epochs = 1;
  spec.clip_norm = 0.5;
  for (const char* engine : {"naive", "threaded"}) {
    spec.engine = engine;
    RunSpec on_gpu = spec;
    on_gpu.ctx = kGpu;
    CHECK(RunWhole(data, on_gpu).bits == RunWhole(data, spec).bits);
  }
}

TEST_CASE("calls on arrays: requests, in place, auxiliary states") {
  const auto runtime = NewFakeGpuRuntimeWithout(AllOperators(), {}, AddCountedSquare);
  std::vector<std::vector<float>> results[2];
  for (const bool on_gpu : {false, true}) {
    const Context ctx = on_gpu ? kGpu : Context::cpu();
    std::vector<std::vector<float>>& values = results[on_gpu];
    const NDArray x = Floats(*runtime, {1, -2, 3}, ctx), count = Floats(*runtime, {7}, ctx),
                  out = Floats(*runtime, {10, 20, 30}, ctx);
    values.push_back(Invoke("CountedSquare", {&x, 1}, {}, {&count, 1})[0].ToVector());
    InvokeInto("CountedSquare", {&x, 1}, {&out, 1}, OpReqType::kAddTo, {}, {&count, 1});
    values.push_back(out.ToVector());
    InvokeInto("CountedSquare", {&x, 1}, {&x, 1}, OpReqType::kWriteTo, {}, {&count, 1});
    values.push_back(x.ToVector());
    const NDArray weight = Floats(*runtime, {1, 2, 3}, ctx),
                  momentum = Floats(*runtime, {0, 1, 0}, ctx),
                  scalars = Floats(*runtime, {0.5, 0, 1, 1}, ctx), in[] = {weight, out, scalars};
    InvokeInto("sgd_mom_update", in, {&weight, 1}, OpReqType::kWriteTo, {{"momentum", "0.5"}},
               {&momentum, 1});
    values.push_back(weight.ToVector());
    values.push_back(momentum.ToVector());
  }
  CHECK(results[0][0] == std::vector<float>{8, 11, 16});
  CHECK(results[0][1] == std::vector<float>{18, 31, 46});
  CHECK(results[0][2] == results[0][0]);
  CHECK(results[0][4] != std::vector<float>{0, 1, 0});
  CHECK(results[1] == results[0]);
}

struct LoggedRuntime {
  std::vector<std::string> lines;
  std::unique_ptr<Runtime> runtime;

  explicit LoggedRuntime(RuntimeOptions options = {}, const std::set<std::string>& without = {}) {
    options.log = std::make_shared<mxtrain::Log>();
    options.log->AddSink([this](const LogMessage& message) {
      if (message.level == LogLevel::kWarning)
        lines.push_back(format("{}: {}", message.module, message.text));
    });
    runtime = NewSquareRuntime(std::move(options), without);
  }
};

TEST_CASE("the log names the operator once") {
  LoggedRuntime logged;
  const SmallNet net = SquareNet(logged.runtime->operators());
  const executor::BindRequest request = HostKernelRequest(kGpu, net, executor::GradReq::kWrite);
  const auto executor = Executor::SimpleBind(*logged.runtime, net.losses, request);
  const auto other = Executor::SimpleBind(*logged.runtime, net.losses, request, executor.get());
  CHECK(logged.lines ==
        std::vector<std::string>{"executor: operator CountedSquare (layer 'square') has no kernel "
                                 "on gpu(0); it runs on the CPU, with copies"});
}

TEST_CASE("the log does not name an operator that is an alias") {
  LoggedRuntime logged({}, {"Flatten"});
  const OperatorRegistry& registry = logged.runtime->operators();
  const auto layer = [&](const char* op, const char* name, const Symbol& input,
                         const Kwargs& kwargs = {}) {
    return Symbol::Create(registry, op, name, kwargs, {&input, 1});
  };
  const Symbol fc = layer("FullyConnected", "fc", Symbol::Variable("data"), {{"num_hidden", "3"}});
  const Symbol flat = layer("Flatten", "flat", fc);
  const Symbol loss = layer("SoftmaxOutput", "softmax", flat);
  const SmallNet net{"flat", loss, flat, {{"data", {4, 6}}}, {{"softmax_label", {4}}}, 3};
  const auto executor = Executor::SimpleBind(
      *logged.runtime, net.losses, HostKernelRequest(kGpu, net, executor::GradReq::kWrite));
  const auto& nodes = executor->graph().nodes;
  CHECK(std::any_of(nodes.begin(), nodes.end(),
                    [](const auto& node) { return node.plan && RunsOnHost(*node.plan); }));
  CHECK(logged.lines.empty());
}

TEST_CASE("the log of a call on arrays, and of a net on the CPU") {
  LoggedRuntime logged;
  const SmallNet net = SquareNet(logged.runtime->operators());
  Executor::SimpleBind(*logged.runtime, net.losses,
                       HostKernelRequest(Context::cpu(), net, executor::GradReq::kWrite));
  CHECK(logged.lines.empty());
  const NDArray x = Floats(*logged.runtime, {1}, kGpu), count = Floats(*logged.runtime, {0}, kGpu);
  for (int i = 0; i < 2; ++i) Invoke("CountedSquare", {&x, 1}, {}, {&count, 1})[0].WaitToRead();
  CHECK(logged.lines ==
        std::vector<std::string>{"ndarray: operator CountedSquare has no kernel on gpu(0); it runs "
                                 "on the CPU, with copies"});
}

TEST_CASE("a strict runtime refuses, naming operator and layer") {
  RuntimeOptions options;
  options.strict_device = true;
  LoggedRuntime logged(options);
  const SmallNet net = SquareNet(logged.runtime->operators());
  const auto bind = [&](Context ctx) {
    Executor::SimpleBind(*logged.runtime, net.losses,
                         HostKernelRequest(ctx, net, executor::GradReq::kWrite));
  };
  CHECK(MessageOf([&] { bind(kGpu); }) ==
        "CountedSquare 'square': CountedSquare has no kernel for gpu(0) in this build; run it on "
        "another device");
  CHECK_NOTHROW(bind(Context::cpu()));
  const NDArray x = Floats(*logged.runtime, {1}, kGpu), count = Floats(*logged.runtime, {0}, kGpu);
  CHECK(MessageOf([&] {
          Invoke("CountedSquare", {&x, 1}, {}, {&count, 1});
        }) == "CountedSquare has no kernel for gpu(0) in this build; run it on another device");
  CHECK(logged.lines.empty());
}

TEST_CASE("what the CPU refuses too is an error with both reasons") {
  const auto runtime = NewSquareRuntime();
  const NDArray x(*runtime, {2}, DType::kFloat64, kGpu),
      count(*runtime, {1}, DType::kFloat64, kGpu);
  CHECK(
      MessageOf([&] {
        Invoke("CountedSquare", {&x, 1}, {}, {&count, 1});
      }) ==
      "CountedSquare: no kernel on gpu(0) takes inputs (float64 [2]): host: none on the CPU: ref: "
      "float32 only");
}

}  // namespace
}  // namespace mxtrain::test

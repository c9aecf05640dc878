// SPDX-License-Identifier: Apache-2.0
// Arrays and executors on a device that is asynchronous and whose memory the host cannot
// touch: the bits are the CPU's.
#include <doctest/doctest.h>

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "mxtrain/base/error.h"
#include "mxtrain/base/json.h"
#include "mxtrain/device/memory_lender.h"
#include "mxtrain/executor/captures.h"
#include "mxtrain/executor/gradient_buckets.h"
#include "mxtrain/kvstore/kvstore.h"
#include "mxtrain/ndarray/device_times.h"
#include "mxtrain/operator/arithmetic.h"
#include "mxtrain/operator/imperative.h"
#include "mxtrain/operator/plans.h"
#include "tests/support/fake_gpu.h"
#include "tests/support/fake_stream.h"
#include "tests/support/gpus.h"
#include "tests/support/training_run.h"

namespace mxtrain::test {
namespace {

TEST_CASE("arrays move between host, pinned memory and two GPUs") {
  for (const char* engine : {"naive", "threaded"}) {
    const auto runtime = NewFakeGpuRuntime(engine);
    const std::vector<float> numbers = {1, -2, 3.5, 4, 5, -6};
    const NDArray host = NDArray::FromVector(*runtime, {2, 3}, numbers), first = host.Copy(kGpu);
    CHECK(first.ToVector() == numbers);
    CHECK(first.Copy(Context::gpu(1))
              .Copy(Context::cpu_pinned())
              .Copy(kGpu)
              .Copy(Context::cpu())
              .ToVector() == numbers);
    CHECK(first.ToHost().ToVector() == numbers);
    NDArray filled = first.Copy(kGpu);
    filled.Fill(2);
    CHECK((first + filled).ToVector() == std::vector<float>{3, 0, 5.5, 6, 7, -4});
    CHECK((first * first).ToVector() == (host * host).ToVector());
    filled.Fill(0);
    CHECK(filled.ToVector() == std::vector<float>(6));
  }
}

TEST_CASE("copies on a GPU between parts that overlap: through a third array, never directly") {
  for (const char* engine : {"naive", "threaded"}) {
    const auto runtime = NewFakeGpuRuntime(engine);
    const NDArray numbers = NDArray::FromVector(*runtime, {6}, {0, 1, 2, 3, 4, 5}).Copy(kGpu);
    numbers.Slice(2, 6).CopyFrom(numbers.Slice(0, 4));
    CHECK(numbers.ToVector() == std::vector<float>{0, 1, 0, 1, 2, 3});
    numbers.Slice(0, 5).CopyFrom(numbers.Slice(1, 6));
    CHECK(numbers.ToVector() == std::vector<float>{1, 0, 1, 2, 3, 3});
    Backend& backend = runtime->backend(kGpu);
    char* data = numbers.data().dptr<char>();
    for (const auto& [from, to] : {std::pair(0, 4), std::pair(4, 0), std::pair(4, 4)}) {
      CHECK_THROWS_WITH(backend.CopyBytes({}, kGpu, data + from, kGpu, data + to, 8),
                        "a GPU copy has overlapping ranges");
    }
    backend.CopyBytes({}, kGpu, data, kGpu, data + 8, 8);
    CHECK(numbers.ToVector() == std::vector<float>{1, 0, 1, 0, 3, 3});
  }
}

TEST_CASE("a backend borrows from the storage, which gives up cached blocks for it") {
  constexpr int64_t kMemory = 1 << 20;
  const auto runtime = NewSmallGpuRuntime(kMemory);
  {
    NDArray array(*runtime, {kMemory * 3 / 4}, DType::kUint8, kGpu);
    array.Fill(0);  // takes the memory
  }
  runtime->engine().WaitForAll();
  CHECK(runtime->storage().GetStats(kGpu).cached >= kMemory * 3 / 4);
  const std::shared_ptr<const MemoryLender> lender = LenderOf(runtime->backend(kGpu));
  {
    const Loan loan(lender, kGpu, kMemory / 2, "workspace");
    CHECK(loan.get());
    CHECK(runtime->storage().GetStats(kGpu).cached == 0);
    CHECK(runtime->storage().GetStats(kGpu).in_use >= kMemory / 2);
    CHECK_THROWS_WITH_AS(Loan(lender, kGpu, kMemory * 3 / 4, "cuBLAS's workspace"),
                         doctest::Contains("('cuBLAS's workspace')"), Error);
  }
  CHECK(runtime->storage().GetStats(kGpu).in_use == 0);
}

std::map<std::string, std::vector<double>> MonitoredSteps(Runtime& runtime, const SmallNet& net,
                                                          Context ctx) {
  executor::BindRequest request = RequestFor(net, net.losses);
  request.ctx = ctx;
  const auto executor = BindWithValues(runtime, net.losses, request);
  std::map<std::string, std::vector<double>> result;
  for (int step = 0; step < 7; ++step) {
    if (step == 5) {  // after some captured steps
      executor->SetMonitor(
          [&](const std::string& name, const TBlob& value) {
            result["monitored " + name].push_back(static_cast<double>(
                value.type == DType::kFloat32 && value.Size() > 0 ? *value.dptr<float>() : 0));
          },
          1);
    }
    executor->Step(
        MakeInputs(runtime, net, executor->input_names(), DType::kFloat32, std::to_string(step)));
  }
  for (size_t i = 0; i < executor->outputs().size(); ++i)
    result[format("output {}", i)] = GetValues(executor->outputs()[i]);
  for (const auto& [name, array] : executor->grads())
    result["gradient of " + name] = GetValues(array);
  for (const auto& [name, array] : executor->auxs()) result[name] = GetValues(array);
  return result;
}

TEST_CASE("steps of small nets, monitored too") {
  for (const char* engine : {"naive", "threaded"}) {
    const auto runtime = NewFakeGpuRuntime(engine);
    std::vector<SmallNet> nets = SmallNets(runtime->operators());
    nets.push_back(DropoutNet(runtime->operators()));
    for (const SmallNet& net : nets) {
      CAPTURE(net.name);
      auto gpu = MonitoredSteps(*runtime, net, kGpu),
           cpu = MonitoredSteps(*runtime, net, Context::cpu());
      // The CPU fuses chains of element-wise operators, a GPU does not.
      const auto of_gpu = gpu, of_cpu = cpu;
      const auto erase_others = [](auto* mine, const auto& theirs) {
        std::erase_if(*mine, [&](const auto& item) {
          return item.first.starts_with("monitored ") && !theirs.contains(item.first);
        });
      };
      erase_others(&gpu, of_cpu);
      erase_others(&cpu, of_gpu);
      CHECK(2 * gpu.size() > of_gpu.size());
      CHECK(gpu == cpu);
    }
  }
}

TEST_CASE(
    "inputs may be on any device; parameters, gradients and a shared arena are on the net's "
    "device") {
  const auto runtime = NewFakeGpuRuntime();
  const SmallNet net = SmallNets(runtime->operators())[0];
  for (const Context ctx : {Context::cpu(), kGpu, Context::gpu(1)}) {
    CAPTURE(ctx.ToString());
    executor::BindRequest request = RequestFor(net, net.losses);
    request.ctx = ctx;
    const auto executor = BindWithValues(*runtime, net.losses, request);
    const std::vector<NDArray> inputs = MakeInputs(*runtime, net, executor->input_names());
    executor->Step(inputs);
    const std::vector<double> expected = GetValues(executor->outputs()[0]);
    for (const Context other : {Context::cpu(), Context::cpu_pinned(), kGpu, Context::gpu(1)}) {
      CAPTURE(other.ToString());
      std::vector<NDArray> there;
      for (const NDArray& input : inputs) there.push_back(input.Copy(other));
      executor->Step(there);
      CHECK(GetValues(executor->outputs()[0]) == expected);
      if (other.type == DeviceType::kCPUPinned || other == ctx) continue;
      for (const auto& given : {&Executor::args, &Executor::grads}) {
        std::map<std::string, NDArray> args = executor->args(), grads = executor->grads();
        std::map<std::string, NDArray>& moved = given == &Executor::args ? args : grads;
        moved["fc2_bias"] = moved.at("fc2_bias").Copy(other);
        CHECK_THROWS_WITH(
            Executor::Bind(*runtime, net.losses, request, args, grads, executor->auxs()),
            format("array 'fc2_bias' is on {}, but the net is bound to {}; copy it there first",
                   other.ToString(), ctx.ToString())
                .c_str());
      }
      executor::BindRequest elsewhere = request;
      elsewhere.ctx = other;
      CHECK_THROWS_WITH(Executor::SimpleBind(*runtime, net.losses, elsewhere, executor.get()),
                        doctest::Contains("is bound to"));
      const Symbol alone = Symbol::Create(runtime->operators(), "MakeLoss", "loss", {},
                                          std::vector{Symbol::Variable("data")});
      elsewhere.grad_req.clear();
      elsewhere.inputs = {"data"};
      CHECK_THROWS_WITH(Executor::SimpleBind(*runtime, alone, elsewhere, executor.get()),
                        doctest::Contains("cannot share an arena"));
    }
  }
}

std::shared_ptr<mxtrain::Log> LogOfWarnings(std::vector<std::string>* warnings) {
  auto log = std::make_shared<mxtrain::Log>();
  log->AddSink([warnings](const LogMessage& message) {
    if (message.level == LogLevel::kWarning) warnings->emplace_back(message.text);
  });
  return log;
}

TEST_CASE("a pass whose arrays have not moved is captured, and then replayed as one graph") {
  std::vector<std::string> warnings;
  const std::shared_ptr<mxtrain::Log> log = LogOfWarnings(&warnings);
  using Mode = FakeStream::Captures;
  std::vector<double> values;
  const auto replays_of = [&](const SmallNet& net, bool capture_passes, Mode mode) {
    const bool refuses = mode != Mode::kWork;
    warnings.clear();
    RuntimeOptions options;
    options.log = log;
    const auto runtime = NewFakeGpuRuntimeWithout({}, options);
    executor::BindRequest request = RequestFor(net, net.losses);
    request.ctx = kGpu;
    request.capture_passes = capture_passes;
    const auto executor = BindWithValues(*runtime, net.losses, request);
    FakeStream::SetCaptures(mode);
    const int before = FakeStream::replays();
    for (int step = 0; step < 6; ++step)
      executor->Step(MakeInputs(*runtime, net, executor->input_names(), DType::kFloat32,
                                std::to_string(step)));
    runtime->engine().WaitForAll();
    FakeStream::SetCaptures(Mode::kWork);
    values = GetValues(executor->outputs()[0]);
    const executor::Captures& counts = executor::CapturesOf(*runtime);
    CHECK(counts.replays == FakeStream::replays() - before);
    CHECK(counts.failures == refuses);
    CHECK(counts.replays + counts.uncaptured == (capture_passes ? 6 : 0));
    CHECK(warnings.size() == (refuses ? 1 : 0));
    return FakeStream::replays() - before;
  };
  const auto runtime = NewFakeGpuRuntime();
  const SmallNet net = SmallNets(runtime->operators())[0],
                 dropout = DropoutNet(runtime->operators());
  // Inputs alternate between two sets of arrays: each runs once first.
  CHECK(replays_of(net, true, Mode::kWork) == 4);
  const std::vector<double> captured = values;
  CHECK(replays_of(net, false, Mode::kWork) == 0);
  CHECK(values == captured);
  for (const auto& [mode, why] : {std::pair(Mode::kNull, "the device made no graph of them"),
                                  std::pair(Mode::kBeginThrows, "BeginCapture failed"),
                                  std::pair(Mode::kEndThrows, "EndCapture failed")}) {
    CAPTURE(why);
    CHECK(replays_of(net, true, mode) == 0);
    CHECK(values == captured);
    CHECK(warnings[0].find(format("kernels of a step on gpu(0) could not be captured as one graph: "
                                  "{}; they are launched one by one",
                                  why)) != std::string::npos);
  }
  CHECK(replays_of(dropout, true, Mode::kWork) == 4);
}

TEST_CASE("a pass with buckets is captured in parts, which end where a bucket is complete") {
  const auto registry = BuiltinOperators();
  for (const SmallNet& net : {SmallNets(*registry)[0], DropoutNet(*registry)}) {
    CAPTURE(net.name);
    std::map<int64_t, std::vector<std::vector<double>>> values;
    for (const int64_t bytes : {int64_t{0}, int64_t{1}, int64_t{200}, int64_t{1} << 30}) {
      CAPTURE(bytes);
      const auto runtime = NewFakeGpuRuntime();
      executor::BindRequest request = RequestFor(net, net.losses);
      request.ctx = kGpu;
      request.bucket_bytes = bytes;
      const auto executor = BindWithValues(*runtime, net.losses, request);
      for (int step = 0; step < 6; ++step) {
        executor->Step(MakeInputs(*runtime, net, executor->input_names(), DType::kFloat32,
                                  std::to_string(step)));
        values[bytes].push_back(GetValues(executor->outputs()[0]));
        for (const auto& [name, array] : executor->grads())
          values[bytes].push_back(GetValues(array));
      }
      CHECK(values[bytes] == values[0]);
      // Nothing follows the first layer's gradients. Each of two sets of inputs runs once first.
      const std::vector<executor::GradientBucket> buckets =
          executor::GradientBuckets(executor->graph(), bytes);
      const auto parts = bytes > 0 ? std::ssize(buckets) : 1;
      CHECK((bytes == 1 ? parts > 1 : true));
      const executor::Captures& counts = executor::CapturesOf(*runtime);
      CHECK(counts.replays == 4 * parts);
      CHECK(counts.uncaptured == 2 * parts);
    }
  }
}

// Its backward kernel runs until `sums` says that the gradients behind it were summed.
class WaitsForSums final : public Operator {
 public:
  struct Shared {
    std::mutex mutex;
    std::condition_variable changed;
    int sums = 0, passes = 0, in_time = 0;  // guarded by mutex
  };
  WaitsForSums(std::shared_ptr<Shared> shared, int devices)
      : shared_(std::move(shared)), devices_(devices) {}
  void Forward(const ForwardArgs&) override {}
  void Backward(const BackwardArgs& args) override {
    Do(args.ctx.run_ctx, [shared = shared_, devices = devices_] {
      std::unique_lock lock(shared->mutex);
      const int step = shared->passes++ / devices;
      shared->in_time += shared->changed.wait_for(lock, std::chrono::seconds(20),
                                                  [&] { return shared->sums > 2 * step; });
    });
  }

 private:
  const std::shared_ptr<Shared> shared_;
  const int devices_;
};

// Tells when the sums are done.
class TellsSums final : public Communicator {
 public:
  TellsSums(std::shared_ptr<WaitsForSums::Shared> shared, std::span<const Context> devices)
      : shared_(std::move(shared)), real_(NewFakeCommunicator(devices)) {}
  void AllReduce(RunContext ctx, std::span<const ArrayOnEach> arrays) override {
    real_->AllReduce(ctx, arrays);
    Do(ctx, [shared = shared_] {
      const std::lock_guard lock(shared->mutex);
      ++shared->sums;
      shared->changed.notify_all();
    });
  }

 private:
  const std::shared_ptr<WaitsForSums::Shared> shared_;
  const std::unique_ptr<Communicator> real_;
};

TEST_CASE("the sum of a bucket is done while the captured rest of the pass still runs") {
  const std::vector<Context> gpus{Context::gpu(0), Context::gpu(1)};
  const auto shared = std::make_shared<WaitsForSums::Shared>();
  const auto runtime =
      NewFakeGpuRuntimeWithout({"Activation"}, {}, [&](OperatorRegistry* registry) {
        registry->AddKernel({"Activation", DeviceType::kGPU, "waits", kRefRank,
                             [&](const OperatorProperty& property, const PlanRequest& request,
                                 Backend&) -> Expected<Plan, Refusal> {
                               Plan plan = PlainPlan(property, request);
                               plan.make = [&] {
                                 return std::make_unique<WaitsForSums>(shared, 2);
                               };
                               return plan;
                             }});
      });
  const auto layer = [&](const char* op, const char* name, const Symbol& in, const Kwargs& kwargs) {
    return Symbol::Create(runtime->operators(), op, name, kwargs, std::vector{in});
  };
  Symbol x = layer("FullyConnected", "fc1", Symbol::Variable("data"), {{"num_hidden", "3"}});
  x = layer("Activation", "act", x, {{"act_type", "relu"}});
  x = layer("MakeLoss", "loss", layer("FullyConnected", "fc2", x, {{"num_hidden", "2"}}), {});
  executor::BindRequest request;
  request.shapes = {{"data", {2, 4}}};
  request.inputs = {"data"};
  request.bucket_bytes = 1;
  const std::vector<std::string> parameters{"fc1_weight", "fc1_bias", "fc2_weight", "fc2_bias"};
  for (const std::string& name : parameters) request.grad_req[name] = executor::GradReq::kWrite;
  std::vector<std::unique_ptr<Executor>> executors;
  std::vector<std::vector<NDArray>> inputs;
  for (const Context gpu : gpus) {
    request.ctx = gpu;
    executors.push_back(Executor::SimpleBind(*runtime, x, request));
    for (const auto& [name, array] : executors.back()->args()) NDArray(array).Fill(0.25);
    inputs.push_back({NDArray(*runtime, {2, 4}, DType::kFloat32, gpu)});
    inputs.back()[0].Fill(0.5);
  }
  const auto store =
      KVStore::Create(*runtime, "device", gpus, [&](std::span<const Context> devices) {
        return std::make_unique<TellsSums>(shared, devices);
      });
  std::vector<std::vector<int>> buckets;
  for (const auto& bucket : executor::GradientBuckets(executors[0]->graph(), 1)) {
    buckets.emplace_back();
    for (const std::string& name : bucket.arguments)
      buckets.back().push_back(static_cast<int>(
          std::find(parameters.begin(), parameters.end(), name) - parameters.begin()));
  }
  CHECK(buckets == std::vector<std::vector<int>>{{2, 3}, {0, 1}});
  std::vector<std::vector<NDArray>> grads;
  for (size_t key = 0; key < parameters.size(); ++key) {
    grads.push_back({executors[0]->grad(parameters[key]), executors[1]->grad(parameters[key])});
    store->Init(static_cast<int>(key), grads.back(), /*share=*/false);
  }
  store->SetBuckets(buckets);
  constexpr int kSteps = 5;
  for (int step = 0; step < kSteps; ++step) {
    for (size_t d = 0; d < gpus.size(); ++d) executors[d]->Step(inputs[d]);
    for (int key = 3; key >= 0; --key)
      store->Sum(key, grads[static_cast<size_t>(key)], executor::kStepPriority - 1);
  }
  runtime->engine().WaitForAll();
  CHECK(shared->passes == 2 * kSteps);
  CHECK(shared->in_time == shared->passes);
  CHECK(shared->sums == 2 * kSteps);
  // Two parts of each step on each GPU; the first step launches kernel by kernel.
  CHECK(executor::CapturesOf(*runtime).replays == 2 * 2 * (kSteps - 1));
}

// Fails in its second call, as a kernel would that allocates while a stream captures.
class FailsOnce final : public Operator {
 public:
  explicit FailsOnce(std::shared_ptr<int> calls) : calls_(std::move(calls)) {}
  void Forward(const ForwardArgs&) override {
    if (++*calls_ == 2) Throw(ErrorKind::kDevice, "cudaMalloc failed: not while capturing");
  }
  void Backward(const BackwardArgs&) override {}

 private:
  const std::shared_ptr<int> calls_;
};

TEST_CASE("a pass that cannot be captured runs without, and the log says why, once") {
  const auto calls = std::make_shared<int>(0);
  std::vector<std::string> warnings;
  RuntimeOptions options;
  options.log = LogOfWarnings(&warnings);
  const auto runtime =
      NewFakeGpuRuntimeWithout({"Activation"}, options, [&](OperatorRegistry* registry) {
        registry->AddKernel({"Activation", DeviceType::kGPU, "fails", kRefRank,
                             [calls](const OperatorProperty& property, const PlanRequest& request,
                                     Backend&) -> Expected<Plan, Refusal> {
                               Plan plan = PlainPlan(property, request);
                               plan.make = [calls] { return std::make_unique<FailsOnce>(calls); };
                               return plan;
                             }});
      });
  const Symbol fc = Symbol::Create(runtime->operators(), "FullyConnected", "fc",
                                   {{"num_hidden", "3"}}, std::vector{Symbol::Variable("data")});
  const Symbol act = Symbol::Create(runtime->operators(), "Activation", "act",
                                    {{"act_type", "relu"}}, std::vector{fc});
  executor::BindRequest request;
  request.shapes = {{"data", {2, 4}}};
  request.inputs = {"data"};
  request.ctx = kGpu;
  const auto executor = Executor::SimpleBind(*runtime, act, request);
  const std::vector<NDArray> inputs{NDArray(*runtime, {2, 4}, DType::kFloat32, kGpu)};
  for (int run = 0; run < 4; ++run) executor->Forward(inputs);
  runtime->engine().WaitForAll();
  CHECK(*calls == 5);  // the second run captures, then issues
  CHECK(executor::CapturesOf(*runtime).uncaptured == 4);
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].find("act: cudaMalloc failed: not while capturing; they are launched") !=
        std::string::npos);
}

TEST_CASE("device time by operator, of kernels that are launched one by one meanwhile") {
  const auto runtime = NewFakeGpuRuntime();
  const auto layer = [&](const char* op, const char* name, const Symbol& in,
                         const Kwargs& kwargs = {}) {
    return Symbol::Create(runtime->operators(), op, name, kwargs, std::vector{in});
  };
  const Symbol loss =
      layer("MakeLoss", "loss",
            layer("Activation", "act",
                  layer("FullyConnected", "fc", Symbol::Variable("data"), {{"num_hidden", "3"}}),
                  {{"act_type", "tanh"}}));
  executor::BindRequest request;
  request.shapes = {{"data", {2, 4}}};
  request.inputs = {"data"};
  request.grad_req = {{"fc_weight", executor::GradReq::kWrite},
                      {"fc_bias", executor::GradReq::kWrite}};
  request.ctx = kGpu;
  const auto executor = Executor::SimpleBind(*runtime, loss, request);
  for (const auto& [name, array] : executor->args()) NDArray(array).Fill(0.25);
  NDArray data(*runtime, {2, 4}, DType::kFloat32, kGpu);
  data.Fill(0.5);
  const executor::Captures& counts = executor::CapturesOf(*runtime);
  const auto step = [&](int times) {
    for (int i = 0; i < times; ++i) executor->Step(std::vector{data});
    runtime->engine().WaitForAll();
    return counts.replays.load();
  };
  CHECK(step(3) == 2);
  const std::vector<float> gradient = executor->grads().at("fc_weight").ToVector();

  DeviceTimes& times = DeviceTimesOf(*runtime);
  times.Start();
  constexpr int kSteps = 5;
  CHECK(step(kSteps) == 2);
  Invoke("tanh", {&data, 1});
  const std::map<std::string, double> seconds = times.Stop();
  const auto elements = [&](const char* name) { return seconds.at(name) / kFakeSecondsPerElement; };
  // Outputs [2, 3] and their gradients, weights [3, 4], a bias [3]; an array [2, 4].
  CHECK(elements("fc") == doctest::Approx(kSteps * 6));
  CHECK(elements("fc_backward") == doctest::Approx(kSteps * (12 + 3)));
  CHECK(elements("act") == doctest::Approx(kSteps * 6));
  CHECK(elements("act_backward") == doctest::Approx(kSteps * 6));
  CHECK(elements("tanh") == doctest::Approx(8));
  CHECK(executor->grads().at("fc_weight").ToVector() == gradient);

  CHECK(step(4) == 6);  // as before
  times.Start();
  const NDArray host(*runtime, {8}, DType::kFloat32, Context::cpu());
  Invoke("tanh", {&host, 1});  // the CPU has no clock
  CHECK(times.Stop().empty());
}

// Three operators that draw, in evaluation too.
SmallNet DrawingNet(const OperatorRegistry& registry) {
  const auto layer = [&](const char* op, const char* name, const std::vector<Symbol>& in,
                         const Kwargs& kwargs = {}) {
    return Symbol::Create(registry, op, name, kwargs, in);
  };
  Symbol x = layer("FullyConnected", "fc1", {Symbol::Variable("data")}, {{"num_hidden", "8"}});
  x = layer("LeakyReLU", "rrelu", {x}, {{"act_type", "rrelu"}})[0];
  x = layer("Dropout", "drop", {x}, {{"p", "0.4"}, {"mode", "always"}});
  const Symbol noise = layer("_random_uniform", "noise", {}, {{"low", "0.5"}, {"shape", "(6, 8)"}});
  x = layer("elemwise_mul", "noisy", {x, noise});
  x = layer("FullyConnected", "fc2", {x}, {{"num_hidden", "4"}});
  return {"drawing",
          layer("SoftmaxOutput", "softmax", {x}),
          x,
          {{"data", {6, 5}}},
          {{"softmax_label", {6}}},
          4};
}

constexpr int kDrawingSteps = 9;

struct DrawingRun {
  const char* engine = "threaded";
  bool capture_passes = true;
  bool apart = false;      // Forward and Backward, not Step
  bool evaluates = false;  // after each step, on the same arena
  uint64_t first = 0;      // steps that are skipped, as after a resume
};
struct Drawn {
  // Of each step; read when all are pushed, so the host is ahead of the device.
  std::vector<std::vector<std::vector<float>>> steps, evaluations;
  uint64_t draws = 0;
  int replays = 0;
};

// Steps with the same inputs and parameters: what differs is drawn.
Drawn RunDrawing(const SmallNet& net, Context ctx, const DrawingRun& how) {
  const auto runtime = NewFakeGpuRuntime(how.engine);
  executor::BindRequest request = RequestFor(net, net.losses);
  request.ctx = ctx;
  request.capture_passes = how.capture_passes;
  const auto training = BindWithValues(*runtime, net.losses, request);
  request.is_train = false;
  request.grad_req.clear();
  const auto evaluation = Executor::SimpleBind(*runtime, net.losses, request, training.get());
  const std::vector<NDArray> inputs = MakeInputs(*runtime, net, training->input_names());
  training->set_random_step(how.first);
  const int before = FakeStream::replays();
  std::vector<std::vector<NDArray>> steps, evaluations;
  for (uint64_t step = how.first; step < kDrawingSteps; ++step) {
    if (how.apart) {
      training->Forward(inputs);
      training->Backward();
    } else {
      training->Step(inputs);
    }
    steps.push_back({training->outputs()[0].Copy(Context::cpu())});
    for (const auto& [name, array] : training->grads())
      steps.back().push_back(array.Copy(Context::cpu()));
    if (!how.evaluates) continue;
    evaluation->Forward(inputs);
    evaluations.push_back({evaluation->outputs()[0].Copy(Context::cpu())});
  }
  const auto read = [](const std::vector<std::vector<NDArray>>& arrays) {
    std::vector<std::vector<std::vector<float>>> values;
    for (const std::vector<NDArray>& of_step : arrays) {
      values.emplace_back();
      for (const NDArray& array : of_step) values.back().push_back(array.ToVector());
    }
    return values;
  };
  Drawn drawn{read(steps), read(evaluations), 0, 0};
  runtime->engine().WaitForAll();
  drawn.draws = runtime->resources().GetStats(ctx).random_runs;
  drawn.replays = FakeStream::replays() - before;
  return drawn;
}

TEST_CASE("captured passes draw new numbers at each replay: those of the CPU and of no capture") {
  const auto registry = BuiltinOperators();
  for (const SmallNet& net : {DropoutNet(*registry), DrawingNet(*registry)}) {
    CAPTURE(net.name);
    const Drawn on_cpu = RunDrawing(net, Context::cpu(), {.evaluates = true});
    CHECK(on_cpu.replays == 0);
    REQUIRE(on_cpu.steps.size() == kDrawingSteps);
    for (size_t i = 0; i < on_cpu.steps.size(); ++i) {
      for (size_t j = 0; j < i; ++j) CHECK(on_cpu.steps[i][0] != on_cpu.steps[j][0]);
    }
    const uint64_t draws = RunDrawing(net, Context::cpu(), {}).draws;
    for (const char* engine : {"naive", "threaded"}) {
      CAPTURE(engine);
      const Drawn captured = RunDrawing(net, kGpu, {.engine = engine});
      CHECK(captured.steps == on_cpu.steps);
      CHECK(captured.draws == draws);
      // Each of the two sets of inputs runs once first.
      CHECK(captured.replays == kDrawingSteps - 2);
      const Drawn uncaptured = RunDrawing(net, kGpu, {.engine = engine, .capture_passes = false});
      CHECK(uncaptured.steps == on_cpu.steps);
      CHECK(uncaptured.replays == 0);
      // A backward pass repeats the draws of its forward pass.
      const Drawn apart = RunDrawing(net, kGpu, {.engine = engine, .apart = true});
      CHECK(apart.steps == on_cpu.steps);
      CHECK(apart.replays == 2 * (kDrawingSteps - 2));
      const Drawn evaluating = RunDrawing(net, kGpu, {.engine = engine, .evaluates = true});
      CHECK(evaluating.steps == on_cpu.steps);
      CHECK(evaluating.evaluations == on_cpu.evaluations);
      CHECK(evaluating.draws == on_cpu.draws);
      CHECK(evaluating.replays > captured.replays);
      const Drawn resumed = RunDrawing(net, kGpu, {.engine = engine, .first = 3});
      CHECK(resumed.steps == decltype(resumed.steps)(on_cpu.steps.begin() + 3, on_cpu.steps.end()));
    }
  }
}

TEST_CASE("calls on arrays draw the CPU's numbers, also where the host draws for the GPU") {
  const auto draw = [](Runtime& runtime, Context ctx) {
    std::vector<NDArray> arrays;
    for (int i = 0; i < 20; ++i) {
      arrays.emplace_back(runtime, TShape{50}, DType::kFloat32, ctx);
      InvokeInto(i % 2 == 0 ? "_random_uniform" : "_random_normal", {}, {&arrays.back(), 1});
    }
    std::vector<std::vector<float>> numbers;
    for (const NDArray& array : arrays) numbers.push_back(array.ToVector());
    return numbers;
  };
  RuntimeOptions options;
  options.seed = 3;
  for (const char* engine : {"naive", "threaded"}) {
    const auto expected = draw(*NewFakeGpuRuntime(engine), Context::cpu());
    CHECK(expected[0] != expected[2]);
    CHECK(draw(*NewFakeGpuRuntime(engine), kGpu) == expected);
    options.engine = engine;
    const auto host = NewFakeGpuRuntimeWithout({"_random_uniform", "_random_normal"}, options);
    CHECK(draw(*host, kGpu) == expected);
  }
}

}  // namespace
}  // namespace mxtrain::test

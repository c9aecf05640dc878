// SPDX-License-Identifier: Apache-2.0
// Executors destroyed where a wait is impossible: by functions of the engine, while their runs are
// pending. Under AddressSanitizer every use of what is gone is an error.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <thread>

#include "mxtrain/base/error.h"
#include "mxtrain/executor/executor.h"
#include "tests/support/operator_case.h"
#include "tests/support/small_nets.h"

namespace mxtrain::test {
namespace {

using executor::BindRequest;

// Counts the operators that exist.
class Counted final : public Operator {
 public:
  Counted(std::unique_ptr<Operator> op, std::atomic<int>& alive)
      : op_(std::move(op)), alive_(alive) {
    ++alive_;
  }
  ~Counted() override { --alive_; }
  void Forward(const ForwardArgs& args) override { op_->Forward(args); }

 private:
  const std::unique_ptr<Operator> op_;
  std::atomic<int>& alive_;
};

// A net of one layer, relu(data), whose operators are counted.
struct Net {
  explicit Net(const std::string& engine) {
    registry->AddKernel({"Activation", DeviceType::kCPU, "counted", 1,
                         [this](const OperatorProperty& property, const PlanRequest& request,
                                Backend& backend) -> Expected<Plan, Refusal> {
                           Plan plan = property.CreatePlan(*builtin, request, backend);
                           plan.make = [this, make = plan.make] {
                             return std::make_unique<Counted>(make(), alive);
                           };
                           return plan;
                         }});
    RuntimeOptions options;
    options.engine = engine;
    options.threads = 1;
    runtime = std::make_unique<Runtime>(options, registry);
    data = NDArray(*runtime, {4});
    SetValues(data, {-1, 2, -3, 4});
  }

  std::unique_ptr<Executor> Bind() {
    BindRequest request;
    request.is_train = false;
    request.inputs = {"data"};
    request.shapes = {{"data", {4}}};
    const Symbol relu = Symbol::Create(*registry, "Activation", "relu", {{"act_type", "relu"}},
                                       std::vector<Symbol>{Symbol::Variable("data")});
    return Executor::SimpleBind(*runtime, relu, request);
  }
  void Run(Executor& executor) { executor.Forward(std::vector<NDArray>{data}); }

  std::atomic<int> alive = 0;
  const std::shared_ptr<OperatorRegistry> builtin = BuiltinOperators(),
                                          registry = BuiltinOperators();
  std::unique_ptr<Runtime> runtime;
  NDArray data;
};

const std::vector<double> kExpected{0, 2, 0, 4};

TEST_CASE("an executor destroyed by a function of the engine lives until its runs have ended") {
  Net net("threaded");
  auto executor = net.Bind();
  const NDArray output = executor->outputs()[0];
  // The runs wait for `data`.
  std::promise<void> open, dropped;
  const engine::VarHandle writes[] = {net.data.var()};
  net.runtime->engine().PushSync([&](RunContext) { open.get_future().wait(); }, {}, writes,
                                 {.property = engine::FnProperty::kIO});
  for (int i = 0; i < 3; ++i) net.Run(*executor);
  REQUIRE(net.alive > 0);
  net.runtime->engine().PushSync(
      [&](RunContext) {
        executor.reset();
        dropped.set_value();
      },
      {}, {}, {});
  dropped.get_future().wait();
  CHECK(net.alive > 0);
  open.set_value();
  CHECK(GetValues(output) == kExpected);
  net.runtime->engine().WaitForAll();
  CHECK(net.alive == 0);
}

TEST_CASE("an executor that a function or an asynchronous function owns is destroyed with it") {
  for (const char* type : {"naive", "threaded"}) {
    for (const bool fails : {false, true}) {
      CAPTURE(type);
      CAPTURE(fails);
      Net net(type);
      std::shared_ptr<Executor> executor = net.Bind(), other = net.Bind();
      const std::vector<NDArray> outputs{executor->outputs()[0], other->outputs()[0]};
      net.Run(*executor);
      net.Run(*other);
      std::thread outside;
      net.runtime->engine().PushSync([executor = std::move(executor)](RunContext) {}, {}, {}, {});
      net.runtime->engine().PushAsync(
          [&outside, fails, other = std::move(other)](RunContext, engine::Callback callback) {
            outside = std::thread([fails, callback = std::move(callback)]() mutable {
              callback(fails ? std::make_exception_ptr(Error(ErrorKind::kData, "late")) : nullptr);
            });
          },
          {}, {}, {.name = "async"});
      for (const NDArray& output : outputs) CHECK(GetValues(output) == kExpected);
      if (fails) {
        CHECK_THROWS_WITH(net.runtime->engine().WaitForAll(), "async: late");
      } else {
        net.runtime->engine().WaitForAll();
      }
      net.runtime->engine().WaitForAll();  // what a function leaves to the engine
      CHECK(net.alive == 0);
      outside.join();
    }
  }
}

TEST_CASE("a Monitor may destroy its executor; a run that failed is no obstacle") {
  for (const bool fails : {false, true}) {
    CAPTURE(fails);
    Net net("threaded");
    auto executor = net.Bind();
    const NDArray output = executor->outputs()[0];
    std::promise<void> pushed;
    executor->SetMonitor([&](const std::string&, const TBlob&) {
      pushed.get_future().wait();
      executor.reset();
      CHECK(net.alive > 0);  // the run still needs them
      if (fails) Throw(ErrorKind::kData, "broken");
    });
    net.Run(*executor);
    pushed.set_value();
    if (fails) {
      CHECK_THROWS_WITH(output.WaitToRead(), doctest::Contains("broken"));
    } else {
      CHECK(GetValues(output) == kExpected);
    }
    net.runtime->engine().WaitForAll();
    net.runtime->engine().WaitForAll();
    CHECK(net.alive == 0);
    CHECK_FALSE(executor);
  }
}

TEST_CASE("outside of functions the destructor waits and throws no error") {
  for (const char* type : {"naive", "threaded"}) {
    CAPTURE(type);
    Net net(type);
    auto executor = net.Bind();
    std::atomic<int> seen = 0;
    executor->SetMonitor([&](const std::string&, const TBlob&) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      ++seen;
      Throw(ErrorKind::kData, "broken");
    });
    net.Run(*executor);
    executor.reset();
    CHECK(seen == 1);
    CHECK(net.alive == 0);
    CHECK_THROWS_WITH(net.runtime->engine().WaitForAll(), doctest::Contains("broken"));
  }
}

// The arena of the failed run is replaced; neither binding nor the runs that follow meet its error.
TEST_CASE(
    "an executor that needs a larger arena is bound after an error, and while runs are pending") {
  for (const char* type : {"naive", "threaded"}) {
    for (const bool thrown : {true, false}) {
      CAPTURE(type);
      CAPTURE(thrown);
      const auto runtime = NewRuntime(type, 1);
      const SmallNet net = SmallNets(TestRegistry())[0];
      const BindRequest request = RequestFor(net, net.losses);
      const auto executor = BindWithValues(*runtime, net.losses, request);
      const auto inputs = MakeInputs(*runtime, net, executor->input_names());
      executor->Step(inputs);
      const auto expected = GetValues(executor->outputs()[0]);
      executor->SetMonitor(
          [](const std::string&, const TBlob&) { Throw(ErrorKind::kData, "broken"); });
      executor->Step(inputs);
      executor->SetMonitor({});
      if (thrown)
        CHECK_THROWS_WITH(executor->outputs()[0].WaitToRead(), doctest::Contains("broken"));
      std::map<std::string, TShape> larger;
      for (const auto* shapes : {&net.data, &net.labels}) {
        for (const auto& [name, shape] : *shapes) {
          larger[name] = shape;
          larger[name][0] = shape[0] * 64;
        }
      }
      std::unique_ptr<Executor> reshaped;
      CHECK_NOTHROW(reshaped = executor->Reshape(larger));
      if (!thrown) CHECK_THROWS_AS(runtime->engine().WaitForAll(), Error);
      // Both on the new arena.
      std::vector<NDArray> more;
      for (const NDArray& input : inputs) {
        TShape shape = input.shape();
        shape[0] *= 64;
        more.push_back(NDArray::Zeros(*runtime, shape, input.dtype()));
      }
      for (int i = 0; i < 3; ++i) {
        reshaped->Step(more);
        executor->Step(inputs);
      }
      CHECK(GetValues(executor->outputs()[0]) == expected);
      CHECK_NOTHROW(reshaped->outputs()[0].WaitToRead());
      CHECK_NOTHROW(runtime->engine().WaitForAll());
    }
  }
}

}  // namespace
}  // namespace mxtrain::test

// SPDX-License-Identifier: Apache-2.0
// Batch norm over all workers and ranks: a divided batch gives what the whole one gives.
#include <doctest/doctest.h>

#include <mutex>
#include <numeric>

#include "mxtrain/device/cpu/onednn/bfloat16.h"
#include "mxtrain/kvstore/collectives.h"
#include "tests/support/fake_gpu.h"
#include "tests/support/layers.h"
#include "tests/support/thread_ranks.h"
#include "tests/support/training_run.h"

namespace mxtrain::test {
namespace {

constexpr int64_t kWhole = 12;  // divisible by 2, 3 and 4

// A residual block whose batch norms are fused with a ReLU, with a sum and a ReLU, with a Swish,
// and with nothing.
Symbol ResidualNet() {
  const auto conv = [](const std::string& name, const Symbol& in) {
    return Layer(
        "Convolution", name, {in},
        {{"num_filter", "8"}, {"kernel", "(3, 3)"}, {"pad", "(1, 1)"}, {"no_bias", "True"}});
  };
  const auto norm = [](const std::string& name, const Symbol& in, const char* fix_gamma = "False") {
    return Layer("BatchNorm", name, {in}, {{"fix_gamma", fix_gamma}});
  };
  const auto relu = [](const std::string& name, const Symbol& in) {
    return Layer("Activation", name, {in}, {{"act_type", "relu"}});
  };
  const Symbol stem = relu("relu0", norm("bn0", conv("conv0", Symbol::Variable("data"))));
  const Symbol branch = norm("bn2", conv("conv2", relu("relu1", norm("bn1", conv("conv1", stem)))));
  const Symbol sum = relu("relu2", Layer("elemwise_add", "sum", {branch, stem}));
  const Symbol pooled =
      Layer("Pooling", "pool", {norm("bn3", conv("conv3", sum), "True")},
            {{"global_pool", "True"}, {"pool_type", "avg"}, {"kernel", "(1, 1)"}});
  const Symbol scores = Layer("FullyConnected", "fc", {pooled}, {{"num_hidden", "3"}});
  return Layer("SoftmaxOutput", "softmax", {scores});
}

// Many layers, most of whose outputs can be computed again.
Symbol DeepNet() {
  Symbol top = Symbol::Variable("data");
  for (int i = 0; i < 8; ++i) {
    top = Layer("Convolution", format("conv{}", i), {top},
                {{"num_filter", "8"}, {"kernel", "(3, 3)"}, {"pad", "(1, 1)"}});
    top = Layer("BatchNorm", format("bn{}", i), {top}, {{"fix_gamma", "False"}});
    top = Layer("Activation", format("relu{}", i), {top}, {{"act_type", "relu"}});
  }
  top = Layer("FullyConnected", "fc", {top}, {{"num_hidden", "3"}});
  return Layer("SoftmaxOutput", "softmax", {top});
}

RunSpec Spec() {
  RunSpec spec;
  spec.symbol = ResidualNet();
  spec.batch = kWhole;
  spec.sync_batch_norm = true;
  return spec;
}

// Rank 0's outcome, and each rank's auxiliary states.
struct RanksOutcome {
  Outcome first;
  std::vector<Bits> states;
};
RanksOutcome RunOnRanks(int size, const TempDir& data, const RunSpec& spec) {
  const TempDir folder;
  RanksOutcome outcome;
  outcome.states.resize(static_cast<size_t>(size));
  std::mutex mutex;
  RunRanks(size, [&](const std::shared_ptr<ProcessGroup>& group) {
    RunSpec own = spec;
    own.group = group;
    own.folder = folder.path("checkpoints");
    Process process(data, own);
    Log log;
    CHECK(process.trainer->Run(log).end == RunEnd::kComplete);
    group->Barrier();  // the last save is complete
    const std::lock_guard lock(mutex);
    Bits& states = outcome.states[static_cast<size_t>(group->rank())];
    for (const auto& [name, array] : process.trainer->executor().auxs())
      states[name] = array.ToVector();
    if (group->first()) outcome.first = OutcomeOf(process, own, log);
  });
  return outcome;
}

// By one process that knows nothing of parts.
Outcome Undivided(const TempDir& data, RunSpec spec) {
  spec.sync_batch_norm = false;
  return RunWhole(data, spec);
}

void CheckLosses(const Outcome& a, const Outcome& b, double tolerance) {
  REQUIRE(a.epochs.size() == b.epochs.size());
  for (size_t e = 0; e < a.epochs.size(); ++e) {
    for (const auto& [of_a, of_b] : {std::pair{&a.epochs[e].train, &b.epochs[e].train},
                                     std::pair{&a.epochs[e].val, &b.epochs[e].val}}) {
      REQUIRE(of_a->size() == of_b->size());
      for (size_t k = 0; k < of_a->size(); ++k)
        CHECK((*of_a)[k].second == doctest::Approx((*of_b)[k].second).epsilon(tolerance));
    }
  }
}

TEST_CASE("ranks with synchronised batch norm give the losses and weights of one process" *
          doctest::test_suite("long")) {
  const TempDir data;
  WriteTable(data);
  RunSpec spec = Spec();
  const Outcome one = Undivided(data, spec);
  for (int size : {2, 3, 4}) {
    CAPTURE(size);
    const RanksOutcome ranks = RunOnRanks(size, data, spec);
    CHECK(LargestDifference(ranks.first.bits, one.bits) < 1e-5);
    CheckLosses(ranks.first, one, 1e-5);
    // Nothing is averaged afterwards: each rank computed the same statistics.
    for (const Bits& states : ranks.states) CHECK(LargestDifference(states, ranks.states[0]) == 0);
  }
  // Without, the statistics are others: the comparison means something.
  spec.sync_batch_norm = false;
  CHECK(LargestDifference(RunOnRanks(2, data, spec).first.bits, one.bits) > 1e-3);
}

TEST_CASE("workers with synchronised batch norm give the bits of as many ranks" *
          doctest::test_suite("long")) {
  const TempDir data;
  WriteTable(data);
  for (int size : {2, 4}) {
    for (const char* engine : {"threaded", "naive"}) {
      CAPTURE(size);
      CAPTURE(engine);
      RunSpec spec = Spec();
      const RanksOutcome ranks = RunOnRanks(size, data, spec);
      spec.workers = size;
      spec.engine = engine;
      const Outcome workers = RunWhole(data, spec);
      CHECK(LargestDifference(ranks.first.bits, workers.bits) == 0);
    }
  }
}

TEST_CASE("ranks of several workers synchronise batch norm over all of them" *
          doctest::test_suite("long")) {
  const TempDir data;
  WriteTable(data);
  RunSpec spec = Spec();
  const Outcome one = Undivided(data, spec);
  spec.workers = 2;
  const RanksOutcome ranks = RunOnRanks(2, data, spec);
  CHECK(LargestDifference(ranks.first.bits, one.bits) < 1e-5);
}

TEST_CASE("layers that are computed again in backward use the sums of the first time" *
          doctest::test_suite("long")) {
  const TempDir data;
  WriteTable(data);
  RunSpec spec = Spec();
  spec.symbol = DeepNet();
  spec.workers = 2;
  const Outcome plain = RunWhole(data, spec);
  spec.memory_budget.share = 0.75;
  const Outcome again = RunWhole(data, spec);
  const Process process(data, spec);
  const auto& nodes = process.trainer->executor().graph().nodes;
  CHECK(std::any_of(nodes.begin(), nodes.end(), [](const executor::ExecNode& node) {
    return node.kind == Node::Kind::kForward && node.forward >= 0 &&
           node.op->TypeString().find("BatchNorm") != std::string::npos;
  }));
  CHECK(LargestDifference(plain.bits, again.bits) == 0);
}

TEST_CASE("accumulated gradients and bfloat16 synchronise too") {
  const TempDir data;
  WriteTable(data);
  for (int variant = 0; variant < 2; ++variant) {
    CAPTURE(variant);
    if (variant == 1 && !WhyNoBfloat16().empty()) continue;
    RunSpec spec = Spec();
    if (variant == 0) spec.grad_accum = 3;
    if (variant == 1) spec.amp = DType::kBfloat16;
    const double tolerance = variant == 1 ? 0.05 : 1e-5;
    const Outcome one = Undivided(data, spec);
    spec.workers = 3;
    CHECK(LargestDifference(RunWhole(data, spec).bits, one.bits) < tolerance);
  }
}

// An executor on a part of a batch of [2, 3, 2] elements; the loss is a weighted sum of what batch
// norm gives, with arrays of float64.
struct Part {
  std::unique_ptr<Executor> executor;
  std::shared_ptr<ProcessGroup> group;

  Part(Runtime& runtime, const std::string& name, Context ctx = Context::cpu()) {
    const Symbol norm =
        Layer("BatchNorm", "bn", {Symbol::Variable("data")}, {{"fix_gamma", "False"}});
    const Symbol bent = Layer("Activation", "act", {norm}, {{"act_type", "tanh"}});
    const Symbol loss =
        Layer("MakeLoss", "loss", {Layer("elemwise_mul", "weighted", {bent, Weights()})});
    executor::BindRequest request;
    request.ctx = ctx;
    request.divided_batch = true;
    for (const char* array : {"data", "weights"}) {
      request.shapes[array] = {2, 3, 2};
      request.types[array] = DType::kFloat64;
    }
    for (const char* array : {"data", "bn_gamma", "bn_beta"})
      request.grad_req[array] = executor::GradReq::kWrite;
    executor = Executor::SimpleBind(runtime, loss, request);
    SetParameters(*executor);
    for (const char* array : {"data", "weights"})
      SetValues(executor->arg(array), ValuesFor(name + array, 12));
  }
  static Symbol Weights() { return Symbol::Variable("weights"); }

  void Step() {
    executor->BeginStep({});
    for (const NDArray& array : executor->step_sums()) {
      SumOverParts(group, {array});
      executor->ContinueStep();
    }
  }
};

double SumOf(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

TEST_CASE("gradients through two ranks are the central differences of the loss of both") {
  RunRanks(2, [&](const std::shared_ptr<ProcessGroup>& group) {
    const auto runtime = NewRuntime("threaded", 1);
    Part part(*runtime, format("rank {} ", group->rank()));
    CHECK(part.executor->step_sums().size() == 2);
    part.group = group;
    const auto all = [&](double value) {
      group->Run({.data = &value, .n = 1, .type = DType::kFloat64});
      return value;
    };
    const auto loss = [&] {
      part.Step();
      return all(SumOf(GetValues(part.executor->outputs()[0])));
    };
    loss();
    std::map<std::string, std::vector<double>> gradients;
    for (const auto& [name, grad] : part.executor->grads()) gradients[name] = GetValues(grad);
    // The arrays of rank `owner`, or of both.
    const auto check = [&](const std::string& name, std::optional<int> owner) {
      const bool mine = !owner || *owner == group->rank();
      const std::vector<double> start = GetValues(part.executor->arg(name));
      for (size_t i = 0; i < start.size(); ++i) {
        constexpr double kDelta = 1e-5;
        double side[2];
        for (int s = 0; s < 2; ++s) {
          std::vector<double> moved = start;
          if (mine) moved[i] += s ? kDelta : -kDelta;
          SetValues(part.executor->arg(name), moved);
          side[s] = loss();
        }
        SetValues(part.executor->arg(name), start);
        const double gradient = all(mine ? gradients[name][i] : 0);
        CHECK(gradient == doctest::Approx((side[1] - side[0]) / (2 * kDelta)).epsilon(1e-6));
      }
    };
    check("data", 0);
    check("data", 1);
    check("bn_gamma", std::nullopt);
    check("bn_beta", std::nullopt);
  });
}

TEST_CASE("a GPU is refused, with the name of the layer") {
  const auto runtime = NewFakeGpuRuntime();
  CHECK_THROWS_WITH_AS(Part(*runtime, "", Context::gpu(0)), doctest::Contains("layer 'bn'"), Error);
}

TEST_CASE("an error of one worker reaches the others, which do not wait for its sums") {
  const auto runtime = NewRuntime("threaded", 1);
  Part failing(*runtime, "a"), other(*runtime, "b");
  failing.executor->SetMonitor(
      [](const std::string&, const TBlob&) { Throw(ErrorKind::kData, "the first worker failed"); });
  failing.executor->BeginStep({});
  other.executor->BeginStep({});
  for (size_t i = 0; i < failing.executor->step_sums().size(); ++i) {
    SumOverParts(nullptr, {failing.executor->step_sums()[i], other.executor->step_sums()[i]});
    failing.executor->ContinueStep();
    other.executor->ContinueStep();
  }
  CHECK_THROWS_WITH_AS(other.executor->grad("data").WaitToRead(),
                       doctest::Contains("the first worker failed"), Error);
}

TEST_CASE("ranks that would exchange other sums are refused, all of them") {
  const TempDir data;
  WriteTable(data);
  std::vector<std::string> errors(2);
  const auto run = [&](const std::shared_ptr<ProcessGroup>& group) {
    RunSpec spec = Spec();
    spec.group = group;
    if (group->first()) spec.symbol = NoisyNet();
    try {
      Process process(data, spec);
    } catch (const Error& e) {
      errors[static_cast<size_t>(group->rank())] = e.what();
    }
  };
  CHECK_THROWS_AS(RunRanks(2, run), Error);  // the groups have failed
  for (const std::string& error : errors)
    CHECK(error.find("rank 1 computes the layers with batch norm in another order") !=
          std::string::npos);
}

}  // namespace
}  // namespace mxtrain::test

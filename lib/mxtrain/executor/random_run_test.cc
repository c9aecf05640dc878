// SPDX-License-Identifier: Apache-2.0
// Random programs on executors that share parameters and an arena, with failures between and inside
// their runs. Each program runs on two sides at once, one of which never fails. Values read on the
// other are an error of the program, or bit-identical to the first. After every failure was thrown
// and the affected arrays were overwritten, nothing fails any more. So an error is never lost and
// never stays forever. Executors are also destroyed by functions of the engine, with runs pending.
// The naive and the threaded engine must agree on everything, including messages.
#include <doctest/doctest.h>

#include <cstring>
#include <random>

#include "mxtrain/base/error.h"
#include "tests/support/operator_case.h"
#include "tests/support/random_nets.h"

namespace mxtrain::test {
namespace {

using executor::BindRequest;
using executor::GradReq;

constexpr const char* kFailure = "broken on purpose";

bool SameElements(const std::vector<double>& a, const std::vector<double>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0);
}

// The state of one side.
struct Side {
  struct Bound {
    std::unique_ptr<Executor> executor;
    std::vector<std::vector<NDArray>> inputs;  // sets of them
  };
  std::unique_ptr<Runtime> runtime;
  std::vector<Bound> bound;  // training, evaluation, and those reshaped from these
};

struct Named {
  std::string name;
  NDArray array;
  bool made;  // by runs: a failure may leave it invalid
};

class Program {
 public:
  Program(unsigned seed, const std::string& engine)
      : random_(seed),
        net_(RandomNet(TestRegistry(), seed, false)),
        real_{NewRuntime(engine, 2), {}},
        shadow_{NewRuntime("naive", 2), {}} {}

  // What was seen, in order.
  std::vector<std::string> Run() {
    Begin();
    if (real_.bound.empty()) return {};
    for (int actions = 30; actions > 0; --actions) Act();
    End();
    return std::move(seen_);
  }

 private:
  int Below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  template <typename F>
  void OnBoth(F&& f) {
    f(real_);
    f(shadow_);
  }

  void Begin() {
    BindRequest request = RequestFor(net_, net_.losses);
    for (auto& [name, req] : request.grad_req) req = Below(2) ? GradReq::kAdd : GradReq::kWrite;
    if (request.grad_req.empty()) return;
    BindRequest evaluation = request;
    evaluation.is_train = false;
    evaluation.grad_req.clear();
    OnBoth([&](Side& side) {
      auto training = BindWithValues(*side.runtime, net_.losses, request);
      auto other = Executor::SimpleBind(*side.runtime, net_.losses, evaluation, training.get());
      Add(&side, std::move(training), net_);
      Add(&side, std::move(other), net_);
      for (size_t e = 0; e < 2; ++e) RunOnce(side, e, 0, false);
    });
  }

  void Add(Side* side, std::unique_ptr<Executor> executor, const SmallNet& net) {
    Side::Bound& bound = side->bound.emplace_back();
    for (const char* salt : {"", "other"})
      bound.inputs.push_back(
          MakeInputs(*side->runtime, net, executor->input_names(), DType::kFloat32, salt));
    bound.executor = std::move(executor);
  }

  static void RunOnce(Side& side, size_t e, size_t set, bool in_two) {
    Side::Bound& bound = side.bound[e];
    if (bound.executor->grads().empty()) return bound.executor->Forward(bound.inputs[set]);
    if (!in_two) return bound.executor->Step(bound.inputs[set]);
    bound.executor->Forward(bound.inputs[set]);
    bound.executor->Backward();
  }

  void Act() {
    switch (Below(11)) {
      case 0:
      case 1:
      case 2:
      case 3:
        return RunSome(false);
      case 4:
        return RunSome(true);
      case 5:
        return Break();
      case 6:
        return Reshape();
      case 7:
        return BeginSums();
      case 8:
        return WaitForAll();
      case 9:
        return Drop();
      default:
        Look(static_cast<size_t>(Below(static_cast<int>(ArraysOf(real_).size()))));
    }
  }

  // `fails`: in the middle, at a random node.
  void RunSome(bool fails) {
    const auto e = static_cast<size_t>(Below(static_cast<int>(real_.bound.size()))),
               set = static_cast<size_t>(Below(2));
    const bool in_two = Below(2) == 0;
    Executor& executor = *real_.bound[e].executor;
    const auto& nodes = executor.graph().nodes;
    const std::string node = nodes[static_cast<size_t>(Below(static_cast<int>(nodes.size())))].name;
    if (fails) {
      executor.SetMonitor([node](const std::string& output, const TBlob&) {
        if (output.starts_with(node)) Throw(ErrorKind::kData, "{} in {}", kFailure, node);
      });
    }
    OnBoth([&](Side& side) { RunOnce(side, e, set, in_two); });
    if (fails) executor.SetMonitor({});
  }

  // A function that should write an array fails; it writes nothing.
  void Break() {
    const std::vector<Named> arrays = ArraysOf(real_);
    const Named& named = arrays[static_cast<size_t>(Below(static_cast<int>(arrays.size())))];
    const engine::VarHandle writes[] = {named.array.var()};
    real_.runtime->engine().PushSync([](RunContext) { Throw(ErrorKind::kData, "{}", kFailure); },
                                     {}, writes, {.name = "writer"});
  }

  void Reshape() {
    const auto from = static_cast<size_t>(Below(2));
    const int64_t batch = 1 + Below(5);
    if (real_.bound.size() > 5) return;
    SmallNet net = net_;
    std::map<std::string, TShape> shapes;
    for (auto* group : {&net.data, &net.labels}) {
      for (auto& [name, shape] : *group) {
        shape[0] = batch;
        shapes[name] = shape;
      }
    }
    // Earlier failures do not concern it.
    OnBoth([&](Side& side) { Add(&side, side.bound[from].executor->Reshape(shapes), net); });
    OnBoth([&](Side& side) { RunOnce(side, side.bound.size() - 1, 0, false); });
  }

  // Destroys a reshaped executor, whose runs may be pending, in a function of the engine.
  void Drop() {
    if (real_.bound.size() <= 2) return;
    const auto e = static_cast<size_t>(2 + Below(static_cast<int>(real_.bound.size()) - 2));
    OnBoth([e](Side& side) {
      side.runtime->engine().PushSync(
          [executor = std::move(side.bound[e].executor)](RunContext) mutable { executor.reset(); },
          {}, {}, {.property = engine::FnProperty::kIO, .name = "drop"});
      side.bound.erase(side.bound.begin() + static_cast<std::ptrdiff_t>(e));
    });
  }

  void BeginSums() {
    OnBoth([](Side& side) {
      for (const auto& [name, grad] : side.bound[0].executor->grads()) NDArray(grad).Fill(0);
    });
  }

  void WaitForAll() {
    seen_.push_back("all: " + MessageOf([&] { real_.runtime->engine().WaitForAll(); }));
    if (seen_.back() != "all: ") CHECK(seen_.back().find(kFailure) != std::string::npos);
  }

  static std::string MessageOf(const std::function<void()>& f) {
    try {
      f();
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  }

  static std::vector<Named> ArraysOf(const Side& side) {
    std::vector<Named> arrays;
    for (size_t e = 0; e < side.bound.size(); ++e) {
      const Side::Bound& bound = side.bound[e];
      for (const auto& set : bound.inputs) {
        for (size_t i = 0; i < set.size(); ++i)
          arrays.push_back({format("input {} of {}", i, e), set[i], false});
      }
      for (size_t i = 0; i < bound.executor->outputs().size(); ++i)
        arrays.push_back({format("output {} of {}", i, e), bound.executor->outputs()[i], true});
    }
    const Executor& training = *side.bound[0].executor;
    for (const auto& [name, array] : training.args()) arrays.push_back({name, array, false});
    for (const auto& [name, array] : training.grads())
      arrays.push_back({"gradient of " + name, array, true});
    for (const auto& [name, array] : training.auxs()) arrays.push_back({name, array, true});
    return arrays;
  }

  // Reads array i. One that carries an error is overwritten if it may be invalid.
  bool Look(size_t i) {
    const Named real = ArraysOf(real_)[i], shadow = ArraysOf(shadow_)[i];
    CAPTURE(real.name);
    const std::vector<double> expected = GetValues(shadow.array);
    std::vector<double> values;
    const std::string message = MessageOf([&] { values = GetValues(real.array); });
    seen_.push_back(real.name + ": " + message);
    if (message.empty()) {
      const bool same = SameElements(values, expected);
      CHECK(same);
      return true;
    }
    CHECK(message.find(kFailure) != std::string::npos);
    if (real.made) SetValues(real.array, expected);
    return false;
  }

  // All failures were thrown and the affected arrays overwritten: from now on nothing fails.
  void End() {
    WaitForAll();
    for (size_t i = 0; i < ArraysOf(real_).size(); ++i) Look(i);
    for (size_t e = 0; e < real_.bound.size(); ++e) {
      OnBoth([&](Side& side) { RunOnce(side, e, 1, false); });
      for (size_t i = 0; i < ArraysOf(real_).size(); ++i) {
        const bool well = Look(i);
        CHECK(well);
      }
    }
  }

  std::mt19937 random_;
  const SmallNet net_;
  Side real_, shadow_;
  std::vector<std::string> seen_;
};

TEST_CASE(
    "whatever fails in random programs of executors, what is read is right or an error, the same "
    "in both engines") {
  unsigned errors = 0;
  const unsigned programs = NumRandomNets(100);
  for (unsigned seed = 0; seed < programs; ++seed) {
    CAPTURE(seed);
    const std::vector<std::string> naive = Program(seed, "naive").Run(),
                                   threaded = Program(seed, "threaded").Run();
    CHECK(naive == threaded);
    for (const std::string& line : naive) errors += line.find(kFailure) != std::string::npos;
  }
  CHECK(errors > 2 * programs);
}

}  // namespace
}  // namespace mxtrain::test

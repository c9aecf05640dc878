// SPDX-License-Identifier: Apache-2.0
// Several CPU workers: independent operators run side by side, with the bits of one worker.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "mxtrain/base/error.h"
#include "mxtrain/operator/plans.h"
#include "tests/support/operator_case.h"
#include "tests/support/random_nets.h"

namespace mxtrain::test {
namespace {

using executor::BindRequest;
using executor::GradReq;

constexpr auto kMoment = std::chrono::milliseconds(30);

// What a test does inside the operators.
struct Hooks {
  std::function<void()> forward = [] {}, backward = [] {};
};

// The identity; its gradient reads nothing of the forward pass, and as a loss nothing at all.
class ProbeProperty final : public OperatorProperty {
 public:
  explicit ProbeProperty(bool loss) : loss_(loss) {}
  std::string TypeString() const override { return loss_ ? "ProbeLoss" : "Probe"; }
  void Init(const Kwargs& kwargs) override { NoParam().Init(kwargs, TypeString()); }
  Kwargs GetParams() const override { return {}; }
  std::vector<FieldInfo> DescribeParams() const override { return {}; }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>*) const override {
    return InferSameShape(*this, in, out);
  }
  std::vector<int> DeclareBackwardDependency(const std::vector<int>& out_grad,
                                             const std::vector<int>&,
                                             const std::vector<int>&) const override {
    return loss_ ? std::vector<int>{} : out_grad;
  }

 private:
  const bool loss_;
};

class Probe final : public Operator {
 public:
  explicit Probe(const Hooks& hooks) : hooks_(hooks) {}
  void Forward(const ForwardArgs& args) override {
    hooks_.forward();
    Put(args.in_data[0].dptr<float>(), args.req[0], args.out_data[0]);
  }
  void Backward(const BackwardArgs& args) override {
    hooks_.backward();
    Put(args.out_grad[0].dptr<float>(), args.req[0], args.in_grad[0]);
  }

 private:
  // Without values: ones.
  static void Put(const float* values, OpReqType req, const TBlob& to) {
    for (int64_t i = 0; i < to.Size() && req != OpReqType::kNullOp; ++i) {
      float& element = to.dptr<float>()[i];
      element = (req == OpReqType::kAddTo ? element : 0.0f) + (values ? values[i] : 1);
    }
  }
  const Hooks& hooks_;
};

// Two workers of one thread each, and the operators.
struct ProbedRuntime {
  explicit ProbedRuntime(const Hooks& hooks) : registry(BuiltinOperators()) {
    for (const bool loss : {false, true}) {
      const std::string name = loss ? "ProbeLoss" : "Probe";
      registry->AddProperty(name, {}, [loss] { return std::make_unique<ProbeProperty>(loss); });
      registry->AddKernel({name, DeviceType::kCPU, "ref", kRefRank,
                           [&hooks](const OperatorProperty& property, const PlanRequest& request,
                                    Backend&) -> Expected<Plan, Refusal> {
                             Plan plan = PlainPlan(property, request);
                             plan.make = [&hooks] { return std::make_unique<Probe>(hooks); };
                             return plan;
                           }});
    }
    RuntimeOptions options;
    options.threads = 2;
    options.cpu_workers = 2;
    runtime = std::make_unique<Runtime>(options, registry);
  }
  Symbol Layer(const std::string& op, const std::string& name,
               const std::vector<Symbol>& inputs) const {
    return Symbol::Create(*registry, op, name, {}, inputs);
  }
  Symbol Tower(const std::string& input, int height) const {
    Symbol x = Symbol::Variable(input);
    for (int i = 0; i < height; ++i) x = Layer("Probe", format("{}{}", input, i), {x});
    return x;
  }
  std::vector<NDArray> Inputs(const Executor& executor) const {
    std::vector<NDArray> inputs;
    for (size_t i = 0; i < executor.input_names().size(); ++i) {
      inputs.emplace_back(*runtime, TShape{4});
      inputs.back().Fill(1 + static_cast<double>(i));
    }
    return inputs;
  }

  std::shared_ptr<OperatorRegistry> registry;
  std::unique_ptr<Runtime> runtime;
};

BindRequest TowersRequest(const std::set<std::string>& inputs, GradReq grad_req) {
  BindRequest request;
  request.fuse = false;
  request.inputs = inputs;
  for (const std::string& name : inputs) {
    request.shapes[name] = TShape{4};
    request.grad_req[name] = grad_req;
  }
  return request;
}

// Returns when two threads are inside; throws after a time that no schedule explains.
class Meeting {
 public:
  void Arrive() {
    std::unique_lock lock(mutex_);
    const int meeting = meetings_;
    if (++waiting_ == 2) {
      waiting_ = 0;
      ++meetings_;
      met_.notify_all();
    } else if (!met_.wait_for(lock, std::chrono::seconds(20),
                              [&] { return meetings_ != meeting; })) {
      waiting_ = 0;
      Throw(ErrorKind::kBug, "nothing runs beside this operator");
    }
  }
  int meetings() const { return meetings_; }

 private:
  std::mutex mutex_;
  std::condition_variable met_;
  int waiting_ = 0, meetings_ = 0;
};

TEST_CASE("two towers run side by side, forward and backward") {
  Meeting meeting;
  const Hooks hooks{[&] { meeting.Arrive(); }, [&] { meeting.Arrive(); }};
  const ProbedRuntime with(hooks);
  constexpr int kHeight = 5;  // planned for one worker, the towers would share their bytes
  const Symbol sum =
      with.Layer("elemwise_add", "sum", {with.Tower("x", kHeight), with.Tower("y", kHeight)});
  const auto executor = Executor::SimpleBind(*with.runtime, with.Layer("MakeLoss", "loss", {sum}),
                                             TowersRequest({"x", "y"}, GradReq::kWrite));
  executor->Step(with.Inputs(*executor));
  CHECK(GetValues(executor->outputs()[0]) == std::vector<double>(4, 3));
  CHECK(GetValues(executor->grad("y")) == std::vector<double>(4, 1));
  CHECK(meeting.meetings() == 2 * kHeight);
}

TEST_CASE("an Operator is not called forward and backward at once") {
  std::atomic<bool> backward = false, inside_forward = false;
  const Hooks hooks{[&] {
                      std::this_thread::sleep_for(kMoment);
                      inside_forward = backward.load();
                    },
                    [&] { backward = true; }};
  const ProbedRuntime with(hooks);
  const auto executor =
      Executor::SimpleBind(*with.runtime, with.Layer("ProbeLoss", "loss", {Symbol::Variable("x")}),
                           TowersRequest({"x"}, GradReq::kWrite));
  executor->Step(with.Inputs(*executor));
  with.runtime->engine().WaitForAll();  // the gradient may be there before the output
  CHECK(GetValues(executor->grad("x")) == std::vector<double>(4, 1));
  CHECK(backward);
  CHECK_FALSE(inside_forward);
}

// The next step of the small executor would point the arrays of the one in flight at its own.
TEST_CASE("an arena grows when the steps in flight on it are over") {
  const Hooks hooks{[] { std::this_thread::sleep_for(kMoment); }};
  const ProbedRuntime with(hooks);
  const Symbol x = Symbol::Variable("x");
  const Symbol slow = with.Layer("Probe", "slow", {x});
  const auto small =
      Executor::SimpleBind(*with.runtime, with.Layer("elemwise_add", "sum", {slow, x}),
                           TowersRequest({"x"}, GradReq::kNull));
  const std::vector<NDArray> one = with.Inputs(*small);
  std::vector<NDArray> two = {one[0].Copy(Context::cpu())};
  two[0].Fill(2);
  small->Forward(one);
  const NDArray first = small->outputs()[0].Copy(Context::cpu());
  const auto large = small->Reshape({{"x", TShape{1000}}});
  REQUIRE(large->arena_bytes() > small->arena_bytes());
  small->Forward(two);
  CHECK(GetValues(first) == std::vector<double>(4, 2));
  CHECK(GetValues(small->outputs()[0]) == std::vector<double>(4, 4));
}

TEST_CASE("gradients that are added to one array are added one after the other") {
  std::atomic<int> inside = 0, most = 0;
  const Hooks hooks{[] {},
                    [&] {
                      if (const int now = ++inside; now > most) most = now;
                      std::this_thread::sleep_for(kMoment);
                      --inside;
                    }};
  const ProbedRuntime with(hooks);
  const Symbol losses[] = {with.Layer("ProbeLoss", "loss_x", {Symbol::Variable("x")}),
                           with.Layer("ProbeLoss", "loss_y", {Symbol::Variable("y")})};
  const NDArray sum(*with.runtime, TShape{4});
  NDArray(sum).Fill(5);
  const auto executor =
      Executor::Bind(*with.runtime, Symbol::Group(losses), TowersRequest({"x", "y"}, GradReq::kAdd),
                     {}, {{"x", sum}, {"y", sum}}, {});
  executor->Step(with.Inputs(*executor));
  CHECK(GetValues(sum) == std::vector<double>(4, 7));
  CHECK(most == 1);
}

TEST_CASE("the order of such additions is that of the plan, on several workers and devices") {
  // Of the first three sums, the one whose small term is added last is 3, the others are 0.
  const std::map<std::string, std::vector<double>> terms = {
      {"x", {1e8, 1e8, 3, 1}}, {"y", {-1e8, 3, 1e8, 1}}, {"z", {3, -1e8, -1e8, 1}}};
  std::atomic<int> turn = 0;
  // If all could run at once, the first would add last.
  const Hooks hooks{[] {}, [&] { std::this_thread::sleep_for((2 - turn++ % 3) * kMoment); }};
  const ProbedRuntime with(hooks);
  std::vector<Symbol> heads;
  std::vector<NDArray> head_grads;
  for (const auto& [name, values] : terms) {
    heads.push_back(with.Tower(name, 1));
    SetValues(head_grads.emplace_back(*with.runtime, TShape{4}), values);
  }
  const Symbol net =
      Grouped(*with.registry, Symbol::Group(heads), [](int i) { return i == 1 ? "b" : "a"; });
  using Groups = std::map<std::string, Context>;
  for (const Groups& groups : {Groups(), Groups{{"b", Context::cpu(1)}}}) {
    CAPTURE(groups.size());
    const NDArray sum(*with.runtime, TShape{4});
    NDArray(sum).Fill(0);
    BindRequest request = TowersRequest({"x", "y", "z"}, GradReq::kAdd);
    request.group2ctx = groups;
    const auto executor =
        Executor::Bind(*with.runtime, net, request, {}, {{"x", sum}, {"y", sum}, {"z", sum}}, {});
    const executor::ExecGraph& graph = executor->graph();
    std::map<int, std::string> in_order;  // by the node that adds its term
    for (size_t k = 0; k < graph.arguments.size(); ++k)
      in_order[graph.gradients[k].node] = graph.nodes[graph.arguments[k]].name;
    REQUIRE(in_order.size() == terms.size());
    std::vector<float> expected(4);
    for (const auto& [node, name] : in_order) {
      for (size_t i = 0; i < 4; ++i) expected[i] += static_cast<float>(terms.at(name)[i]);
    }
    executor->Forward(with.Inputs(*executor));
    executor->Backward(head_grads);
    CHECK(GetValues(sum) == std::vector<double>(expected.begin(), expected.end()));
  }
}

// All results of some steps and passes, with the given workers, each of `team` threads.
std::vector<Result> ResultsOf(const SmallNet& net, int workers, int team) {
  const auto runtime = NewRuntime("threaded", workers * team, 3, workers);
  std::vector<Result> results;
  const auto training = BindWithValues(*runtime, net.losses, RequestFor(net, net.losses));
  BindRequest request = RequestFor(net, net.losses);
  request.is_train = false;
  request.grad_req.clear();
  const auto evaluation = Executor::SimpleBind(*runtime, net.losses, request, training.get());
  for (int step = 0; step < 3; ++step) {
    const auto inputs =
        MakeInputs(*runtime, net, training->input_names(), DType::kFloat32, std::to_string(step));
    training->Step(inputs);
    evaluation->Forward(inputs);
    results.push_back(ResultOf(*training));
    results.push_back(ResultOf(*evaluation));
    training->Forward(inputs);
    training->Backward();
    results.push_back(ResultOf(*training));
  }
  return results;
}

TEST_CASE("any number of workers gives the bits of one with the same team") {
  std::vector<SmallNet> nets = SmallNets(TestRegistry());
  nets.push_back(DropoutNet(TestRegistry()));
  for (unsigned seed = 0; seed < NumRandomNets(10); ++seed)
    nets.push_back(RandomNet(TestRegistry(), seed, false));
  for (const SmallNet& net : nets) {
    CAPTURE(net.name);
    if (RequestFor(net, net.losses).grad_req.empty()) continue;  // a net without parameters
    const auto expected = ResultsOf(net, 1, 1);
    for (int workers : {2, 5}) {
      const bool equal = ResultsOf(net, workers, 1) == expected;
      CHECK(equal);
    }
  }
  for (const SmallNet& net : SmallNets(TestRegistry())) {
    CAPTURE(net.name);
    const bool equal = ResultsOf(net, 2, 2) == ResultsOf(net, 1, 2);
    CHECK(equal);
  }
}

}  // namespace
}  // namespace mxtrain::test

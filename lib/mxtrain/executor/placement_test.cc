// SPDX-License-Identifier: Apache-2.0
// Nets on several devices: groups of layers on cpu(0) and cpu(1) give the bits of one device, and
// compute at once.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <random>

#include "mxtrain/base/file.h"
#include "mxtrain/base/json.h"
#include "mxtrain/operator/kernel.h"
#include "mxtrain/operator/plans.h"
#include "tests/support/error_message.h"
#include "tests/support/layers.h"
#include "tests/support/operator_case.h"
#include "tests/support/random_nets.h"
#include "tests/support/temp_dir.h"

namespace mxtrain::test {
namespace {

using executor::BindRequest;
using executor::ExecGraph;
using executor::ExecNode;
using executor::GradReq;
using executor::MemoryPlan;
using Groups = std::map<std::string, Context>;

const Groups kOnTwo = {{"a", Context::cpu(0)}, {"b", Context::cpu(1)}};

int NumOperators(const Symbol& symbol) {
  int count = 0;
  for (const Node& node : symbol.graph().nodes) count += !node.is_variable();
  return count;
}

// The first half of the operators in `a`, the rest in `b`.
Symbol InHalves(const Symbol& symbol) {
  const int half = NumOperators(symbol) / 2;
  return Grouped(TestRegistry(), symbol, [half](int i) { return i < half ? "a" : "b"; });
}
// An LSTM over three steps with shared weights, from plain operators, as MXNet's examples unroll
// it.
SmallNet Lstm() {
  constexpr int kHidden = 4;
  const auto weights = [](const std::string& name) {
    return std::map<std::string, Symbol>{{"weight", Symbol::Variable(name + "_weight")},
                                         {"bias", Symbol::Variable(name + "_bias")}};
  };
  const auto i2h = weights("i2h"), h2h = weights("h2h");
  const auto bend = [](const std::string& name, const Symbol& x, const char* type) {
    return Layer("Activation", name, {x}, {{"act_type", type}});
  };
  const Kwargs gates{{"num_hidden", std::to_string(4 * kHidden)}};
  SmallNet net{"lstm", {}, {}, {}, {{"softmax_label", {5}}}, 3};
  Symbol c, h;
  for (int t = 0; t < 3; ++t) {
    const std::string at = format("t{}_", t);
    net.data[at + "data"] = {5, 6};
    Symbol sum = Layer("FullyConnected", at + "i2h", {Symbol::Variable(at + "data")}, gates, i2h);
    if (t > 0) {
      sum = Layer("elemwise_add", at + "sum",
                  {sum, Layer("FullyConnected", at + "h2h", {h}, gates, h2h)});
    }
    const Symbol parts = Layer("SliceChannel", at + "slice", {sum}, {{"num_outputs", "4"}});
    const Symbol in = bend(at + "in", parts[0], "sigmoid"),
                 next = bend(at + "next", parts[1], "tanh"),
                 forget = bend(at + "forget", parts[2], "sigmoid"),
                 out = bend(at + "out", parts[3], "sigmoid");
    const Symbol fresh = Layer("elemwise_mul", at + "fresh", {in, next});
    c = t == 0 ? Layer("elemwise_add", at + "c", {fresh, Layer("square", at + "unused", {forget})})
               : Layer("elemwise_add", at + "c",
                       {Layer("elemwise_mul", at + "kept", {forget, c}), fresh});
    h = Layer("elemwise_mul", at + "h", {out, bend(at + "bent", c, "tanh")});
  }
  net.features = Layer("FullyConnected", "fc", {h}, {{"num_hidden", "3"}});
  net.losses = Layer("SoftmaxOutput", "softmax", {net.features});
  return net;
}

std::vector<SmallNet> Nets() {
  std::vector<SmallNet> nets = SmallNets(TestRegistry());
  nets.push_back(DropoutNet(TestRegistry()));
  nets.push_back(Lstm());
  return nets;
}

// Three steps of gradient descent, and an evaluation on the same parameters after each.
std::vector<Result> ThreeSteps(const std::string& engine, const SmallNet& net, const Symbol& symbol,
                               const Groups& groups, GradReq gradients = GradReq::kWrite) {
  const auto runtime = NewRuntime(engine, 1);
  BindRequest request = RequestFor(net, symbol);
  request.group2ctx = groups;
  for (auto& [name, req] : request.grad_req) req = gradients;
  const auto training = BindWithValues(*runtime, symbol, request);
  request.is_train = false;
  request.grad_req.clear();
  const auto evaluation = Executor::SimpleBind(*runtime, symbol, request, training.get());
  std::vector<Result> results;
  for (int step = 0; step < 3; ++step) {
    const auto inputs = MakeInputs(*runtime, net, training->input_names(), DType::kFloat32,
                                   format("step {}", step));
    if (step == 1) {
      training->Forward(inputs);
      training->Backward();
    } else {
      training->Step(inputs);
    }
    results.push_back(ResultOf(*training));
    for (const auto& [name, grad] : training->grads()) {
      std::vector<double> values = GetValues(training->arg(name)), slope = GetValues(grad);
      for (size_t i = 0; i < values.size(); ++i) values[i] -= 0.1 * slope[i];
      NDArray plain(*runtime, grad.shape());
      SetValues(plain, values);
      NDArray(training->arg(name)).CopyFrom(plain);
    }
    evaluation->Forward(inputs);
    results.push_back(ResultOf(*evaluation));
  }
  return results;
}

// NaN too.
bool SameBits(const Result& a, const Result& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](auto& x, auto& y) {
           return x.first == y.first && x.second.size() == y.second.size() &&
                  std::equal(x.second.begin(), x.second.end(), y.second.begin(),
                             [](double u, double v) {
                               return std::bit_cast<uint64_t>(u) == std::bit_cast<uint64_t>(v);
                             });
         });
}

TEST_CASE("groups on two devices give the bits of one") {
  for (const SmallNet& net : Nets()) {
    CAPTURE(net.name);
    for (const Symbol& symbol : {InHalves(net.losses), InTurns(TestRegistry(), net.losses)}) {
      const auto expected = ThreeSteps("threaded", net, symbol, {});
      CHECK(ThreeSteps("threaded", net, symbol, kOnTwo) == expected);
      CHECK(ThreeSteps("naive", net, symbol, kOnTwo) == expected);
      CHECK(ThreeSteps("threaded", net, symbol, {{"a", Context::cpu(2)}}) == expected);
    }
    const Symbol symbol = InTurns(TestRegistry(), net.losses);
    CHECK(ThreeSteps("threaded", net, symbol, kOnTwo, GradReq::kAdd) ==
          ThreeSteps("threaded", net, symbol, {}, GradReq::kAdd));
  }
}

TEST_CASE("random groups of random nets give the bits of one device") {
  for (unsigned seed = 0; seed < NumRandomNets(40); ++seed) {
    CAPTURE(seed);
    const SmallNet net = RandomNet(TestRegistry(), seed, false);
    std::mt19937 random(seed);
    const Symbol symbol = Grouped(TestRegistry(), net.losses, [&](int i) {
      const auto pick = i == 0 ? 1 : random() % 3;
      return pick == 0 ? "" : pick == 1 ? "b" : "a";
    });
    const auto gradients = seed % 2 ? GradReq::kAdd : GradReq::kWrite;
    const auto runtime = NewRuntime("threaded", 1);
    std::vector<Result> results;
    for (const Groups& groups : {Groups(), Groups{{"b", Context::cpu(1)}}}) {
      BindRequest request = RequestFor(net, symbol);
      request.group2ctx = groups;
      for (auto& [name, req] : request.grad_req) req = gradients;
      const auto executor = BindWithValues(*runtime, symbol, request);
      for (const char* salt : {"", "other"}) {
        const auto inputs =
            MakeInputs(*runtime, net, executor->input_names(), DType::kFloat32, salt);
        request.grad_req.empty() ? executor->Forward(inputs) : executor->Step(inputs);
      }
      results.push_back(ResultOf(*executor));
    }
    CHECK(SameBits(results[0], results[1]));
  }
}

TEST_CASE("head gradients, and inputs given twice, reach the device that reads them") {
  const auto runtime = NewRuntime("threaded", 1);
  const SmallNet net = SmallNets(TestRegistry())[3];
  REQUIRE(net.name == "shared");
  const Symbol symbol = InTurns(TestRegistry(), net.features);
  std::vector<Result> results;
  for (const Groups& groups : {Groups(), kOnTwo}) {
    BindRequest request = RequestFor(net, symbol);
    request.group2ctx = groups;
    const auto executor = BindWithValues(*runtime, symbol, request);
    NDArray data(*runtime, {5, 4}), head(*runtime, executor->outputs()[0].shape());
    SetValues(data, ValuesFor("data", 20));
    SetValues(head, ValuesFor("head", head.shape().Size()));
    executor->Forward(std::vector{data, data});
    executor->Backward(std::vector{head});
    results.push_back(ResultOf(*executor));
  }
  CHECK(results[0] == results[1]);
}

// The invariants of a placed graph; returns the number of copies.
int CheckCopies(const ExecGraph& graph) {
  std::set<std::pair<NodeEntry, Context>> copied;
  int copies = 0;
  for (const ExecNode& node : graph.nodes) {
    CAPTURE(node.name);
    for (const NodeEntry& e : node.inputs) {
      if (!e) continue;
      const bool here = graph.nodes[e.node].ctx == node.ctx;
      CHECK(here == (node.kind != Node::Kind::kCopy));
      if (node.kind == Node::Kind::kCopy) CHECK(copied.insert({e, node.ctx}).second);
    }
    for (const NodeEntry& e : node.adds_to) CHECK((!e || graph.nodes[e.node].ctx == node.ctx));
    if (node.forward >= 0) CHECK(graph.nodes[node.forward].ctx == node.ctx);
    copies += node.kind == Node::Kind::kCopy;
  }
  for (size_t k = 0; k < graph.arguments.size(); ++k) {
    const NodeEntry gradient = graph.gradients[k];
    if (gradient) CHECK(graph.nodes[gradient.node].ctx == graph.nodes[graph.arguments[k]].ctx);
  }
  return copies;
}

TEST_CASE("only what crosses devices is copied, once for each device that reads it") {
  const auto runtime = NewRuntime("naive", 1);
  for (const SmallNet& net : Nets()) {
    for (const Symbol& symbol : {InHalves(net.losses), InTurns(TestRegistry(), net.losses)}) {
      BindRequest request = RequestFor(net, symbol);
      CHECK(CheckCopies(executor::RunPasses(symbol.graph(), request, *runtime)) == 0);
      request.group2ctx = kOnTwo;
      CHECK(CheckCopies(executor::RunPasses(symbol.graph(), request, *runtime)) > 0);
    }
  }
  // An activation forward, and its gradient back.
  const SmallNet mlp = SmallNets(TestRegistry())[0];
  const Symbol symbol = InHalves(mlp.losses);
  BindRequest request = RequestFor(mlp, symbol);
  request.group2ctx = kOnTwo;
  CHECK(CheckCopies(executor::RunPasses(symbol.graph(), request, *runtime)) == 2);
}

TEST_CASE("an operator without a group follows its input, a variable its first reader") {
  const auto runtime = NewRuntime("naive", 1);
  const SmallNet net = SmallNets(TestRegistry())[0];
  // fc1 tanh1 fc2 relu2 fc3 softmax
  const Symbol symbol =
      Grouped(TestRegistry(), net.losses, [](int i) { return i == 2 ? "b" : ""; });
  BindRequest request = RequestFor(net, symbol);
  request.group2ctx = {{"b", Context::cpu(1)}};
  const auto executor = Executor::SimpleBind(*runtime, symbol, request);
  for (const char* name : {"fc2", "fc3"}) {
    CHECK(executor->arg(format("{}_weight", name)).ctx() == Context::cpu(1));
    CHECK(executor->grad(format("{}_bias", name)).ctx() == Context::cpu(1));
  }
  // Nothing before fc2 has a place: it follows its reader.
  CHECK(executor->arg("fc1_weight").ctx() == Context::cpu(1));
  CHECK(executor->outputs()[0].ctx() == Context::cpu(1));

  const Symbol split = InHalves(net.losses);
  request.group2ctx = kOnTwo;
  const auto both = Executor::SimpleBind(*runtime, split, request);
  CHECK(both->arg("fc1_weight").ctx() == Context::cpu(0));
  CHECK(both->grad("fc1_weight").ctx() == Context::cpu(0));
  CHECK(both->arg("fc3_weight").ctx() == Context::cpu(1));
  CHECK(both->grad("fc3_weight").ctx() == Context::cpu(1));
  CHECK(both->outputs()[0].ctx() == Context::cpu(1));
}

TEST_CASE("each device has an arena, within which its buffers lie and never overlap") {
  const auto runtime = NewRuntime("naive", 1);
  for (const SmallNet& net : Nets()) {
    CAPTURE(net.name);
    const Symbol symbol = InTurns(TestRegistry(), net.losses);
    BindRequest request = RequestFor(net, symbol);
    request.group2ctx = kOnTwo;
    const ExecGraph graph = executor::RunPasses(symbol.graph(), request, *runtime);
    const MemoryPlan plan = PlanMemory(graph, request, executor::Strategy::kFull);
    REQUIRE(plan.arenas.size() == 2);
    int64_t sum = 0;
    for (int device = 0; device < 2; ++device) {
      const executor::ArenaPlan& arena = plan.arenas[static_cast<size_t>(device)];
      CHECK(arena.ctx == Context::cpu(device));
      CHECK(arena.bytes >= arena.lower_bound);
      CHECK(arena.bytes > 0);
      sum += arena.bytes;
      for (const executor::Buffer& a : plan.buffers) {
        if (a.external || a.arena != device) continue;
        CHECK(a.offset >= 0);
        CHECK(a.offset + a.bytes <= arena.bytes);
        for (const executor::Buffer& b : plan.buffers) {
          if (&a == &b || b.external || b.arena != device || b.last < a.first || a.last < b.first)
            continue;
          CHECK((b.offset + b.bytes <= a.offset || a.offset + a.bytes <= b.offset));
        }
      }
    }
    CHECK(plan.arena_bytes == sum);
    for (size_t id = 0; id < graph.nodes.size(); ++id) {
      for (const int buffer : plan.buffer_of[id]) {
        if (buffer < 0) continue;
        const int arena = plan.buffers[static_cast<size_t>(buffer)].arena;
        CHECK(plan.arenas[static_cast<size_t>(arena)].ctx == graph.nodes[id].ctx);
      }
    }
    const auto executor = Executor::SimpleBind(*runtime, symbol, request);
    CHECK(executor->arena_bytes() == sum);
  }
}

TEST_CASE("executors that share arenas on several devices run in turn, and may grow them") {
  const SmallNet net = Lstm();
  const Symbol symbol = InTurns(TestRegistry(), net.losses);
  SmallNet larger = net;
  std::map<std::string, TShape> shapes;
  for (auto* inputs : {&larger.data, &larger.labels}) {
    for (auto& [name, shape] : *inputs) {
      shape[0] = 50;
      shapes[name] = shape;
    }
  }
  std::vector<Result> results;
  for (const Groups& groups : {Groups(), kOnTwo}) {
    const auto runtime = NewRuntime("threaded", 1);
    BindRequest request = RequestFor(net, symbol);
    request.group2ctx = groups;
    const auto small = BindWithValues(*runtime, symbol, request);
    const auto inputs = MakeInputs(*runtime, net, small->input_names());
    small->Step(inputs);
    const auto large = small->Reshape(shapes);
    large->Step(MakeInputs(*runtime, larger, large->input_names()));
    const Result of_large = ResultOf(*large);
    small->Step(inputs);
    results.push_back(ResultOf(*small));
    results.push_back(of_large);
  }
  CHECK(results[0] == results[2]);
  CHECK(results[1] == results[3]);
}

// Two that come to it leave together; one that stays alone gives up after a long time.
class Rendezvous {
 public:
  bool Come() {
    std::unique_lock lock(mutex_);
    ++here_;
    changed_.notify_all();
    return changed_.wait_for(lock, std::chrono::seconds(20), [this] { return here_ >= 2; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int here_ = 0;
};
Rendezvous* meeting = nullptr;

// Gives ones if another operator runs at the same time.
class Meets final : public PropertyWithParam<NoParam> {
 public:
  std::string TypeString() const override { return "Meets"; }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>*) const override {
    return InferSameShape(*this, in, out);
  }
  bool HasGradient(int) const override { return false; }
};

class MeetsCpu final : public Operator {
 public:
  explicit MeetsCpu(const NoParam&) {}
  void Forward(const ForwardArgs& args) override {
    const bool met = meeting->Come();
    for (int64_t i = 0; i < args.out_data[0].shape.Size(); ++i)
      args.out_data[0].dptr<float>()[i] = met;
  }
};

TEST_CASE("devices compute at once, and the trace shows it") {
  const auto registry = BuiltinOperators();
  registry->AddProperty("Meets", {}, [] { return std::make_unique<Meets>(); });
  registry->AddKernel(ReferenceKernel<Meets, MeetsCpu>("Meets"));
  RuntimeOptions options;
  options.threads = 1;
  Runtime runtime(options, registry);
  const Symbol data = Symbol::Variable("data");
  const auto tower = [&](const std::string& name, const std::string& group) {
    return Symbol::Create(*registry, "Meets", name, {}, std::vector{data}, {},
                          {{"ctx_group", group}});
  };
  const Symbol net = Symbol::Create(*registry, "elemwise_add", "sum", {},
                                    std::vector{tower("left", "a"), tower("right", "b")}, {}, {});
  BindRequest request;
  request.is_train = false;
  request.inputs = {"data"};
  request.shapes = {{"data", {3}}};
  request.group2ctx = kOnTwo;
  const auto executor = Executor::SimpleBind(runtime, net, request);

  Rendezvous now;
  meeting = &now;
  const TempDir folder;
  runtime.engine().StartProfile();
  executor->Forward(std::vector{NDArray::Zeros(runtime, {3})});
  CHECK(GetValues(executor->outputs()[0]) == std::vector<double>{2, 2, 2});
  runtime.engine().StopProfile(folder.path("trace.json"));
  meeting = nullptr;

  std::map<int, std::string> rows;
  std::map<std::string, Json> spans;
  const Json trace = Json::parse(ReadFile(folder.path("trace.json")));
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("ph") == "M" && event.at("name") == "thread_name")
      rows[event.at("tid")] = event.at("args").at("name");
    if (event.at("ph") == "X") spans[event.at("name")] = event;
  }
  const Json &left = spans.at("left"), &right = spans.at("right");
  CHECK(rows.at(left.at("tid")) == "cpu compute 0");
  CHECK(rows.at(right.at("tid")) == "cpu(1) compute 0");
  const auto begin = [](const Json& span) { return span.at("ts").get<double>(); };
  const auto end = [&](const Json& span) { return begin(span) + span.at("dur").get<double>(); };
  CHECK(begin(left) < end(right));
  CHECK(begin(right) < end(left));
  CHECK(spans.contains("right_to_cpu(0)"));
  CHECK(rows.at(spans.at("right_to_cpu(0)").at("tid")) == "cpu copy to device 0");
}

TEST_CASE("what cannot be placed is refused") {
  const auto runtime = NewRuntime("naive", 1);
  const SmallNet net = SmallNets(TestRegistry())[0];
  const Symbol symbol = InHalves(net.losses);
  const auto message = [&](const std::function<void(BindRequest*)>& change, const Symbol& placed) {
    BindRequest request = RequestFor(net, placed);
    request.group2ctx = kOnTwo;
    change(&request);
    return MessageOf([&] { Executor::SimpleBind(*runtime, placed, request); });
  };
  const auto nothing = [](BindRequest*) {};
  CHECK(message(nothing, symbol).empty());
  CHECK(message([](BindRequest* r) { r->group2ctx["bb"] = Context::cpu(1); }, symbol)
            .starts_with("group 'bb' is placed on cpu(1), but no layer has this ctx_group"));
  CHECK(message(nothing, net.losses)
            .starts_with("group 'a' is placed on cpu(0), but no layer has this ctx_group; give"));
  CHECK(message([](BindRequest* r) { r->group2ctx["b"] = Context::cpu(99); }, symbol)
            .starts_with("cpu(99) is not available"));
  CHECK(message([](BindRequest* r) { r->amp = DType::kBfloat16; }, symbol)
            .starts_with("mixed precision in bfloat16 is not supported for a net on several"));
  CHECK(message([](BindRequest* r) { r->memory_budget.share = 0.5; }, symbol)
            .starts_with("a memory budget is not supported for a net on several devices"));
  CHECK(message([](BindRequest* r) { r->group2ctx["b"] = Context::cpu_pinned(); }, symbol) ==
        "groups are placed on cpu(0) and cpu_pinned(0): the devices of a net must be of one type");

  // A state that operators of both groups change.
  const Symbol mean = Symbol::Variable("mean"), var = Symbol::Variable("var");
  const auto norm = [&](const std::string& name, const Symbol& x, const std::string& group) {
    return Symbol::Create(TestRegistry(), "BatchNorm", name, {}, std::vector{x},
                          {{"moving_mean", mean}, {"moving_var", var}}, {{"ctx_group", group}});
  };
  const Symbol twice = norm("second", norm("first", Symbol::Variable("data"), "a"), "b");
  BindRequest request;
  request.inputs = {"data"};
  request.shapes = {{"data", {2, 3, 4, 4}}};
  request.group2ctx = kOnTwo;
  CHECK(MessageOf([&] { Executor::SimpleBind(*runtime, twice, request); })
            .starts_with("BatchNorm 'second' is placed on cpu(1), but its auxiliary state 'mean' "
                         "on cpu(0)"));
}

}  // namespace
}  // namespace mxtrain::test

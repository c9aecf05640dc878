// SPDX-License-Identifier: Apache-2.0
// An example of weight w trains and counts as w copies of it.
#include "mxtrain/train/example_weights.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "mxtrain/base/error.h"
#include "mxtrain/io/example_weight.h"
#include "tests/support/rank_runs.h"

namespace mxtrain::test {
namespace {

using Values1d = std::vector<float>;

// Arrays of a batch by name, the labels last.
struct WeighedBatch {
  std::vector<DataDesc> data, labels;
  std::map<std::string, Values1d> values;
  int64_t size = 0;
};

// Of which only the form of batches is asked.
class FormOfBatches final : public DataIter {
 public:
  explicit FormOfBatches(const WeighedBatch& batch) : batch_(batch) {}
  std::vector<DataDesc> provide_data() const override { return batch_.data; }
  std::vector<DataDesc> provide_label() const override { return batch_.labels; }
  int64_t batch_size() const override { return batch_.size; }
  int64_t batches_per_epoch() const override { return 1; }
  int64_t examples() const override { return batch_.size; }
  std::string ExampleName(int64_t index) const override { return std::to_string(index); }
  void Reset(int64_t, int64_t) override {}
  bool Next(DataBatch*) override { return false; }
  Stats stats() const override { return {}; }

 private:
  const WeighedBatch& batch_;
};

const Values1d kTimes = {1, 3, 0, 2};

Symbol MakeNode(const char* op, const std::string& name, const Kwargs& kwargs,
                const std::vector<Symbol>& inputs) {
  return Symbol::Create(TestRegistry(), op, name, kwargs, inputs);
}

Symbol TheData() {
  static const Symbol data = Symbol::Variable("data");
  return data;
}

Symbol ScoresOf(const std::string& name, int outputs) {
  const Symbol hidden =
      MakeNode("Activation", name + "_act", {{"act_type", "tanh"}},
               {MakeNode("FullyConnected", name + "_fc", {{"num_hidden", "5"}}, {TheData()})});
  return MakeNode("FullyConnected", name, {{"num_hidden", std::to_string(outputs)}}, {hidden});
}

// Rows of all arrays, each example as often as its weight says, or once, with its weight.
WeighedBatch WeighedBatchOf(const std::vector<std::pair<std::string, TShape>>& labels,
                            bool repeat) {
  WeighedBatch batch;
  const auto add = [&](const std::string& name, const TShape& example, bool label) {
    const int64_t width = example.Size();
    Values1d values;
    int64_t rows = 0;
    Values1d all;
    for (const double v : ValuesFor(name, std::ssize(kTimes) * width,
                                    name == "class" ? 3
                                    : name == "yes" ? 2
                                                    : 0))
      all.push_back(static_cast<float>(v));
    for (size_t n = 0; n < kTimes.size(); ++n) {
      for (int k = 0; k < (repeat ? static_cast<int>(kTimes[n]) : 1); ++k) {
        values.insert(values.end(), all.begin() + static_cast<std::ptrdiff_t>(n) * width,
                      all.begin() + static_cast<std::ptrdiff_t>(n + 1) * width);
        ++rows;
      }
    }
    std::vector<int64_t> dims = {rows};
    dims.insert(dims.end(), example.begin(), example.end());
    (label ? batch.labels : batch.data).push_back({name, TShape(dims)});
    batch.values[name] = values;
    batch.size = rows;
  };
  add("data", TShape{7}, false);
  for (const auto& [name, shape] : labels) add(name, shape, true);
  if (repeat) return batch;
  batch.labels.push_back({kExampleWeight, TShape{batch.size}});
  batch.values[kExampleWeight] = kTimes;
  return batch;
}

struct WeighedPass {
  std::map<std::string, Values1d> gradients;
  NamedValues scores;
};

WeighedPass TrainOnce(Runtime& runtime, const Symbol& net, const WeighedBatch& batch,
                      const std::vector<MetricSpec>& metrics) {
  const FormOfBatches form(batch);
  const Symbol bound = WithExampleWeights(TestRegistry(), net, form);
  CHECK(bound.ListOutputs() == net.ListOutputs());
  Executor::BindRequest request;
  request.is_train = true;
  for (const auto& descs : {batch.data, batch.labels}) {
    for (const DataDesc& desc : descs) request.shapes[desc.name] = desc.shape;
  }
  for (const std::string& name : bound.ListArguments()) {
    if (!batch.values.contains(name)) request.grad_req[name] = executor::GradReq::kWrite;
  }
  auto executor = Executor::SimpleBind(runtime, bound, request);
  std::map<std::string, TBlob> labels;
  for (const auto& [name, array] : executor->args()) {
    NDArray target = array;
    const auto own = batch.values.find(name);
    Values1d values = own == batch.values.end() ? Values1d() : own->second;
    if (own == batch.values.end()) {
      for (const double v : ValuesFor(name, array.shape().Size()))
        values.push_back(static_cast<float>(v));
    }
    target.CopyFrom(NDArray::FromVector(runtime, array.shape(), values));
  }
  executor->Forward({});
  executor->Backward({});
  WeighedPass pass;
  for (const auto& [name, gradient] : executor->grads()) pass.gradients[name] = gradient.ToVector();
  EpochScores scores(net, metrics, batch.labels);
  std::vector<TBlob> outputs;
  std::vector<Values1d> room;
  for (const NDArray& output : executor->outputs()) room.push_back(output.ToVector());
  for (size_t i = 0; i < room.size(); ++i)
    outputs.push_back({room[i].data(), executor->outputs()[i].shape(), DType::kFloat32, {}, {}});
  std::map<std::string, Values1d> label_values = batch.values;
  for (const DataDesc& desc : batch.labels)
    labels[desc.name] = {label_values[desc.name].data(), desc.shape, DType::kFloat32, {}, {}};
  scores.Add(outputs, labels, batch.size);
  pass.scores = scores.Values();
  return pass;
}

struct WeighedNet {
  std::string name;
  Symbol net;
  std::vector<std::pair<std::string, TShape>> labels;
  std::vector<MetricSpec> metrics = {};
};

const TShape kOneNumber{std::span<const int64_t>{}};

std::vector<WeighedNet> WeighedNets() {
  const auto variable = [](const char* name) { return Symbol::Variable(name); };
  std::vector<WeighedNet> nets;
  const std::vector<MetricSpec> of_class = {{"accuracy", {}, "", ""},
                                            {"cross_entropy", {}, "", ""}};
  nets.push_back({"softmax",
                  MakeNode("SoftmaxOutput", "softmax", {}, {ScoresOf("s", 3), variable("class")}),
                  {{"class", kOneNumber}},
                  of_class});
  nets.push_back(
      {"softmax with smoothing, class weights and a focal factor",
       MakeNode("SoftmaxOutput", "softmax",
                {{"smooth_alpha", "0.1"}, {"class_weights", "(1, 4, 2)"}, {"focal_gamma", "2"}},
                {ScoresOf("s", 3), variable("class")}),
       {{"class", kOneNumber}},
       of_class});
  nets.push_back({"softmax that ignores a label",
                  MakeNode("SoftmaxOutput", "softmax", {{"use_ignore", "1"}, {"ignore_label", "1"}},
                           {ScoresOf("s", 3), variable("class")}),
                  {{"class", kOneNumber}},
                  of_class});
  // Five classes at each of two places.
  nets.push_back(
      {"softmax over places",
       MakeNode("SoftmaxOutput", "softmax", {{"multi_output", "1"}},
                {MakeNode("Reshape", "places", {{"shape", "(0, 3, 2)"}}, {ScoresOf("s", 6)}),
                 variable("class")}),
       {{"class", TShape{2}}}});
  // As a language model: rows of all examples one below the other.
  nets.push_back(
      {"softmax over rows",
       MakeNode("SoftmaxOutput", "softmax", {},
                {MakeNode("Reshape", "rows", {{"shape", "(-1, 3)"}}, {ScoresOf("s", 6)}),
                 MakeNode("Reshape", "label_rows", {{"shape", "(-1,)"}}, {variable("class")})}),
       {{"class", TShape{2}}}});
  // Steps first, as an RNN reads them, and examples first again.
  const auto swapped = [](const std::string& name, const Symbol& of) {
    return MakeNode("SwapAxis", name, {{"dim1", "0"}, {"dim2", "1"}}, {of});
  };
  const Symbol steps = MakeNode(
      "Activation", "of_step", {{"act_type", "tanh"}},
      {swapped("steps_first",
               MakeNode("Reshape", "steps", {{"shape", "(0, -1, 3)"}}, {ScoresOf("s", 12)}))});
  nets.push_back(
      {"softmax over rows of steps",
       MakeNode("SoftmaxOutput", "softmax", {},
                {MakeNode("FullyConnected", "each", {{"num_hidden", "3"}},
                          {MakeNode("Reshape", "rows", {{"shape", "(-1, 3)"}},
                                    {swapped("examples_first", steps)})}),
                 MakeNode("Reshape", "label_rows", {{"shape", "(-1,)"}}, {variable("class")})}),
       {{"class", TShape{4}}}});
  const std::vector<MetricSpec> of_number = {{"rmse", {}, "linear", ""}, {"r2", {}, "linear", ""}};
  nets.push_back(
      {"two heads",
       Symbol::Group(std::vector{
           MakeNode("LinearRegressionOutput", "linear", {{"grad_scale", "0.5"}},
                    {ScoresOf("a", 2), variable("number")}),
           MakeNode("SoftmaxOutput", "softmax", {}, {ScoresOf("b", 3), variable("class")})}),
       {{"number", TShape{2}}, {"class", kOneNumber}},
       of_number});
  nets.push_back(
      {"logistic",
       MakeNode("LogisticRegressionOutput", "logistic", {}, {ScoresOf("a", 2), variable("yes")}),
       {{"yes", TShape{2}}},
       {{"multilabel_f1", {}, "", ""}, {"auc", {}, "", ""}}});
  nets.push_back(
      {"absolute",
       MakeNode("MAERegressionOutput", "mae", {}, {ScoresOf("a", 1), variable("number")}),
       {{"number", TShape{1}}},
       {{"mae", {}, "", ""}}});
  const Symbol error =
      MakeNode("elemwise_sub", "error", {}, {ScoresOf("a", 2), variable("number")});
  nets.push_back({"a loss of its own",
                  MakeNode("MakeLoss", "loss", {}, {MakeNode("square", "squares", {}, {error})}),
                  {{"number", TShape{2}}}});
  nets.push_back({"a margin",
                  MakeNode("SVMOutput", "svm", {}, {ScoresOf("s", 3), variable("class")}),
                  {{"class", kOneNumber}}});
  return nets;
}

TEST_CASE("gradients, losses and metrics are those of examples repeated as their weights say") {
  const auto runtime = NewRuntime("naive", 1, 3);
  for (const WeighedNet& net : WeighedNets()) {
    CAPTURE(net.name);
    const WeighedPass weighed = TrainOnce(*runtime, net.net, WeighedBatchOf(net.labels, false),
                                          net.metrics),
                      repeated = TrainOnce(*runtime, net.net, WeighedBatchOf(net.labels, true),
                                           net.metrics);
    REQUIRE(weighed.gradients.size() == repeated.gradients.size());
    double largest = 0;
    for (const auto& [name, gradient] : repeated.gradients) {
      CAPTURE(name);
      const Values1d& own = weighed.gradients.at(name);
      REQUIRE(own.size() == gradient.size());
      for (size_t i = 0; i < own.size(); ++i) {
        CHECK(own[i] == doctest::Approx(gradient[i]).epsilon(1e-6).scale(1));
        largest = std::max(largest, std::abs(double{gradient[i]}));
      }
    }
    CHECK(largest > 0.1);
    REQUIRE(weighed.scores.size() == repeated.scores.size());
    for (size_t i = 0; i < weighed.scores.size(); ++i) {
      CAPTURE(weighed.scores[i].first);
      CHECK(weighed.scores[i].second == doctest::Approx(repeated.scores[i].second).epsilon(1e-6));
      CHECK(std::isfinite(weighed.scores[i].second));
    }
  }
}

TEST_CASE("an example of weight 0 does not train, even if its gradient is not finite") {
  const auto runtime = NewRuntime("naive", 1, 3);
  const std::vector<std::pair<std::string, TShape>> labels = {{"number", TShape{2}}};
  const Symbol net = MakeNode("LinearRegressionOutput", "linear", {},
                              {ScoresOf("a", 2), Symbol::Variable("number")});
  const WeighedPass repeated = TrainOnce(*runtime, net, WeighedBatchOf(labels, true), {});
  for (const float number :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    CAPTURE(number);
    WeighedBatch batch = WeighedBatchOf(labels, false);
    REQUIRE(kTimes[2] == 0);
    batch.values.at("number")[4] = number;
    const WeighedPass weighed = TrainOnce(*runtime, net, batch, {});
    REQUIRE(weighed.gradients.size() == 4);
    for (const auto& [name, gradient] : repeated.gradients) {
      CAPTURE(name);
      const Values1d& own = weighed.gradients.at(name);
      for (size_t i = 0; i < own.size(); ++i)
        CHECK(own[i] == doctest::Approx(gradient[i]).epsilon(1e-6).scale(1));
    }
    // With any other weight it does.
    batch.values.at(kExampleWeight)[2] = 0.5f;
    const WeighedPass trained = TrainOnce(*runtime, net, batch, {});
    CHECK_FALSE(std::isfinite(trained.gradients.at("a_bias")[0]));
  }
}

TEST_CASE("the gradient of a weighed loss is its difference quotient") {
  const auto runtime = NewRuntime("naive", 1, 3);
  const Symbol probabilities = MakeNode(
      "softmax", "p", {},
      {MakeNode("FullyConnected", "fc", {{"num_hidden", "3"}}, {Symbol::Variable("data")})});
  const Symbol net = MakeNode("MakeLoss", "loss", {},
                              {MakeNode("square", "square", {},
                                        {MakeNode("elemwise_sub", "minus", {},
                                                  {probabilities, Symbol::Variable("number")})})});
  const WeighedBatch batch = WeighedBatchOf({{"number", TShape{3}}}, false);
  const FormOfBatches form(batch);
  const Symbol bound = WithExampleWeights(TestRegistry(), net, form);
  Executor::BindRequest request;
  request.is_train = true;
  for (const auto& descs : {batch.data, batch.labels}) {
    for (const DataDesc& desc : descs) request.shapes[desc.name] = desc.shape;
  }
  request.grad_req["fc_weight"] = executor::GradReq::kWrite;
  auto executor = Executor::SimpleBind(*runtime, bound, request);
  for (const auto& [name, array] : executor->args()) {
    Values1d values;
    const auto own = batch.values.find(name);
    if (own != batch.values.end()) values = own->second;
    if (own == batch.values.end()) {
      for (const double v : ValuesFor(name, array.shape().Size()))
        values.push_back(static_cast<float>(v));
    }
    NDArray(array).CopyFrom(NDArray::FromVector(*runtime, array.shape(), values));
  }
  const Values1d at = executor->arg("fc_weight").ToVector();
  const auto loss = [&](const Values1d& weight) {
    NDArray(executor->arg("fc_weight"))
        .CopyFrom(NDArray::FromVector(*runtime, executor->arg("fc_weight").shape(), weight));
    executor->Forward({});
    const Values1d squares = executor->outputs()[0].ToVector();
    double sum = 0;
    for (size_t i = 0; i < squares.size(); ++i) sum += double{kTimes[i / 3]} * squares[i];
    return sum;
  };
  loss(at);
  executor->Backward({});
  const Values1d gradient = executor->grad("fc_weight").ToVector();
  for (size_t i = 0; i < at.size(); ++i) {
    Values1d up = at, down = at;
    up[i] += 0.01f, down[i] -= 0.01f;
    CHECK(gradient[i] == doctest::Approx((loss(up) - loss(down)) / 0.02).epsilon(2e-3).scale(1));
  }
}

TEST_CASE("losses that have no axis of examples are refused where examples have weights") {
  const WeighedBatch batch = WeighedBatchOf({{"class", kOneNumber}}, false);
  const FormOfBatches form(batch);
  const Symbol label = Symbol::Variable("class"), data = Symbol::Variable("data");
  const Symbol blocks = MakeNode("linear_cross_entropy", "loss", {{"num_hidden", "8"}},
                                 {data, Symbol::Variable("w"), label, Symbol::Variable("b")});
  CHECK_THROWS_WITH_AS(
      WithExampleWeights(TestRegistry(), blocks, form),
      doctest::Contains("the loss 'loss' (linear_cross_entropy) cannot be weighed: "
                        "its argument 'weight' has no axis of examples"),
      Error);
  const Symbol total = MakeNode("MakeLoss", "total", {}, {MakeNode("sum", "sum", {}, {data})});
  CHECK_THROWS_WITH_AS(WithExampleWeights(TestRegistry(), total, form),
                       doctest::Contains("the loss 'total' (MakeLoss) cannot be weighed"), Error);
  // Without weights the net stays as it is.
  const WeighedBatch plain = WeighedBatchOf({{"class", kOneNumber}}, true);
  const FormOfBatches form_of_plain(plain);
  CHECK(WithExampleWeights(TestRegistry(), total, form_of_plain).ToJson() == total.ToJson());
}

TEST_CASE("losses of rows in which examples alternate are refused where examples have weights") {
  const WeighedBatch batch = WeighedBatchOf({{"class", TShape{2}}}, false);
  const FormOfBatches form(batch);
  const auto in_rows = [](const std::string& name, const Symbol& of, const char* shape) {
    return MakeNode("Reshape", name, {{"shape", shape}}, {of});
  };
  const auto is_refused = [&form](const Symbol& values) {
    CAPTURE(values.ToJson());
    CHECK_THROWS_WITH_AS(
        WithExampleWeights(TestRegistry(), MakeNode("MakeLoss", "rows", {}, {values}), form),
        doctest::Contains(
            "the loss 'rows' (MakeLoss) cannot be weighed: its argument 'data' has no "
            "axis of examples"),
        Error);
  };
  // As many steps as examples, fewer, and more.
  for (const int steps : {4, 2, 8}) {
    const Symbol by_example = in_rows("steps", ScoresOf("s", 3 * steps), "(0, -1, 3)");
    const Symbol by_step = MakeNode("transpose", "by_step", {{"axes", "(1, 0, 2)"}}, {by_example});
    const Symbol rows = in_rows("rows_of_steps", by_step, "(-1, 3)");
    is_refused(by_step);
    is_refused(rows);
    is_refused(MakeNode("FullyConnected", "fc", {{"num_hidden", "5"}}, {rows}));
    is_refused(in_rows("flat", MakeNode("square", "square", {}, {by_step}), "(-1,)"));
    is_refused(MakeNode("reverse", "turned", {{"axis", "0"}},
                        {in_rows("rows_of_examples", by_example, "(-1, 3)")}));
    WithExampleWeights(
        TestRegistry(),
        MakeNode("MakeLoss", "rows", {}, {in_rows("rows_of_examples", by_example, "(-1, 3)")}),
        form);
  }
  const Symbol scores = ScoresOf("s", 2);
  is_refused(MakeNode("Concat", "twice", {{"num_args", "2"}, {"dim", "0"}}, {scores, scores}));
  is_refused(MakeNode("tile", "tiled", {{"reps", "(2, 1)"}}, {scores}));
}

TEST_CASE("a run on weights: several workers and ranks, accumulation, resuming, the model") {
  const TempDir data, plain;
  WriteTable(plain);
  std::vector<double> weights(kExamples);
  for (size_t n = 0; n < weights.size(); ++n) weights[n] = static_cast<double>(n % 4) / 2;
  WriteTable(data, weights);
  RunSpec spec;
  spec.weighed = true;
  spec.symbol = QuietNet();
  for (const int64_t grad_accum : {1, 2}) {
    CAPTURE(grad_accum);
    spec.grad_accum = grad_accum;
    const Outcome one = RunWhole(data, spec);
    spec.workers = 2;
    const Outcome workers = RunWhole(data, spec);
    spec.workers = 1;
    const Outcome ranks = RunAsRanks(2, data, spec);
    CHECK(LargestDifference(ranks.bits, workers.bits) == 0);
    CHECK(LargestDifference(ranks.bits, one.bits) < 2e-5);
    CheckNearlySameEpochs(ranks, workers);
    spec.weighed = false;
    CHECK(LargestDifference(RunWhole(plain, spec).bits, one.bits) > 1e-3);
    spec.weighed = true;
  }
  spec.grad_accum = 1;
  const TempDir folder;
  RunSpec part = spec;
  part.folder = folder.path("checkpoints");
  part.max_steps = 7;
  Log log;
  {
    Process process(data, part);
    process.trainer->Run(log);
  }
  part.max_steps = 0;
  Process process(data, part);
  std::vector<std::string> warnings;
  process.trainer->Resume(CheckpointFolder(part.folder).LoadLast(*process.runtime, &warnings));
  process.trainer->Run(log);
  CHECK(OutcomeOf(process, part, log).bits == RunWhole(data, spec).bits);
  const Model model = LoadModel(*process.runtime, folder.path("checkpoints/last"));
  CHECK(model.info.labels.size() == 1);
  CHECK(model.symbol.ToJson().find("_scale_gradient") == std::string::npos);
}

}  // namespace
}  // namespace mxtrain::test

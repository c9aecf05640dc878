// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/train/evaluation.h"

#include <doctest/doctest.h>

#include <cmath>

#include "mxtrain/base/error.h"
#include "mxtrain/device/cpu/onednn/bfloat16.h"
#include "tests/support/training_run.h"

namespace mxtrain::test {
namespace {

// Both losses follow a cast, so they output the type they get.
Symbol NetOfLossesIn(const std::string& type) {
  const auto layer = [](const char* op, const std::string& name, const Kwargs& kwargs,
                        const Symbol& input) {
    return Symbol::Create(TestRegistry(), op, name, kwargs, std::vector{input});
  };
  const Symbol scores =
      layer("FullyConnected", "scores", {{"num_hidden", "3"}}, Symbol::Variable("data"));
  const Symbol cast = layer("Cast", "cast", {{"dtype", type}}, scores);
  return Symbol::Group(
      std::vector{layer("SoftmaxOutput", "softmax", {}, cast),
                  layer("MakeLoss", "size", {}, layer("square", "squares", {}, cast))});
}

TEST_CASE("losses and metrics of heads of another type are those of float32") {
  const TempDir data;
  WriteTable(data);
  RunSpec spec;
  spec.epochs = 1;
  spec.optimizer = {"sgd", {{"lr", "0.01"}}};
  spec.symbol = NetOfLossesIn("float32");
  const Outcome expected = RunWhole(data, spec);
  for (const std::string type : {"float16", "float64"}) {
    CAPTURE(type);
    spec.symbol = NetOfLossesIn(type);
    const Outcome outcome = RunWhole(data, spec);
    for (const auto values : {&EpochEvent::train, &EpochEvent::val}) {
      const NamedValues &found = outcome.epochs[0].*values, &wanted = expected.epochs[0].*values;
      REQUIRE(found.size() == wanted.size());
      for (size_t i = 0; i < found.size(); ++i) {
        CAPTURE(found[i].first);
        CHECK(found[i].first == wanted[i].first);
        CHECK(found[i].second == doctest::Approx(wanted[i].second).epsilon(0.01));
      }
    }
  }
}

TEST_CASE("training and evaluation are bound in the same modes") {
  TrainOptions options;
  options.symbol = QuietNet();
  options.workers = {Context::cpu(), Context::cpu()};
  options.modes = {
      .math = Math::kExact, .amp = DType::kBfloat16, .deterministic = true, .fuse = false};
  options.memory_budget.bytes = 1000;
  const std::vector<DataDesc> arrays = {{"data", TShape{8, 1, kSide, kSide}},
                                        {"softmax_label", TShape{8}},
                                        {"other_label", TShape{8}}};
  const auto training = TrainingRequest(options, options.symbol, arrays);
  const auto evaluation =
      EvaluationRequest(options.symbol, arrays, options.workers[0], options.modes);
  for (const auto* request : {&training, &evaluation}) {
    CHECK(request->math == Math::kExact);
    CHECK(request->amp == DType::kBfloat16);
    CHECK(request->deterministic);
    CHECK_FALSE(request->fuse);
    CHECK(request->inputs == std::set<std::string>{"data", "softmax_label"});
    CHECK(request->types.at("data") == DType::kFloat32);
  }
  CHECK(training.is_train);
  CHECK_FALSE(evaluation.is_train);
  CHECK(training.shapes.at("data") == TShape{4, 1, kSide, kSide});  // of one worker
  CHECK(evaluation.shapes.at("data") == TShape{8, 1, kSide, kSide});
  CHECK(training.memory_budget.bytes == 500);
  CHECK(training.grad_req.size() == 4);
  CHECK(evaluation.grad_req.empty());
}

TEST_CASE("a model is evaluated in the modes of its run to the values of its validation") {
  const TempDir data, folder;
  WriteTable(data);
  RunSpec spec;
  spec.symbol = SmallNets(TestRegistry())[1].losses;
  spec.folder = folder.path("checkpoints");
  if (WhyNoBfloat16().empty()) spec.amp = DType::kBfloat16;
  Process process(data, spec);
  Log log;
  process.trainer->Run(log);
  const Model model = LoadModel(*process.runtime, folder.path() + "/checkpoints/last");
  const std::vector<MetricSpec> metrics = {{"accuracy", {}, "", ""}, {"cross_entropy", {}, "", ""}};
  Evaluation evaluation(*process.runtime, model.symbol, *process.val, metrics, nullptr,
                        Context::cpu(), {.amp = spec.amp});
  SetParameters(model, &evaluation.executor(), {});
  // Bound beside training and bound alone are two plans: on processors without bfloat16 the last
  // bits of their losses differ (5e-7). Other modes would differ by 1e-3.
  const auto values = evaluation.Run();
  const auto& wanted = log.epochs.back().val;
  REQUIRE(values.size() == wanted.size());
  for (size_t i = 0; i < values.size(); ++i) {
    CHECK(values[i].first == wanted[i].first);
    CHECK(values[i].second == doctest::Approx(wanted[i].second).epsilon(1e-5));
  }
}

TEST_CASE("a label that the data lack and no output depends on is zero, wherever its loss is") {
  const TempDir data;
  WriteTable(data);
  RunSpec spec;
  spec.symbol = QuietNet();
  Process process(data, spec);
  const Symbol loss = QuietNet().Compose({{"softmax_label", Symbol::Variable("other_label")}});
  const Symbol net = Symbol::Create(TestRegistry(), "BlockGrad", "copy", {}, std::vector{loss});
  Evaluation evaluation(*process.runtime, net, *process.val, {}, nullptr, Context::cpu());
  CHECK(evaluation.MissingLabels() == std::vector<std::string>{"other_label"});
  CHECK(evaluation.executor().arg("other_label").ToVector() == std::vector<float>(kBatch));
}

TEST_CASE("parameters of layers that only compute a label are kept in the training executor") {
  const TempDir data;
  WriteTable(data);
  RunSpec spec;
  spec.symbol = QuietNet();
  Process process(data, spec);
  const Symbol input = Symbol::Variable("data");
  const auto scores = [&input](const char* name) {
    return Symbol::Create(TestRegistry(), "FullyConnected", name, {{"num_hidden", "3"}},
                          std::vector{input});
  };
  const Symbol net = Symbol::Create(TestRegistry(), "LinearRegressionOutput", "gap", {},
                                    std::vector{scores("student"), scores("teacher")});
  const auto training = Executor::SimpleBind(
      *process.runtime, net, EvaluationRequest(net, ArraysOf(*process.val), Context::cpu(), {}));
  NDArray(training->arg("teacher_bias")).Fill(2);
  Evaluation evaluation(*process.runtime, net, *process.val, {}, training.get(), Context::cpu());
  CHECK(training->arg("teacher_bias").ToVector() == std::vector<float>(3, 2.0f));
}

// As on machines that evaluate a part of the examples each.
TEST_CASE("merged scores of parts are those of one evaluation, counts to the last bit") {
  const auto layer = [](const char* op, const std::string& name, const Symbol& input) {
    return Symbol::Create(TestRegistry(), op, name, {}, std::vector{input});
  };
  const Symbol data = Symbol::Variable("data");
  const Symbol net =
      Symbol::Group(std::vector{layer("SoftmaxOutput", "softmax", data),
                                layer("MakeLoss", "size", layer("square", "squares", data))});
  const std::vector<MetricSpec> metrics = {
      {"accuracy", {}, "", ""}, {"f1", {}, "", ""}, {"cross_entropy", {}, "", ""}};
  const auto scores = [&] { return EpochScores(net, metrics, {}); };
  constexpr int kRows = 5, kClasses = 3, kBatches = 6;
  const auto add = [&](EpochScores* to, int batch, int64_t count, bool with_label) {
    std::vector<float> values, labels;
    for (double v : ValuesFor(format("batch {}", batch), kRows * kClasses))
      values.push_back(static_cast<float>(1 / (1 + std::exp(-v))));
    for (int i = 0; i < kRows; ++i) labels.push_back(static_cast<float>((batch + i) % kClasses));
    const TBlob output{values.data(), {kRows, kClasses}, DType::kFloat32, {}, {}},
        label{labels.data(), {kRows}, DType::kFloat32, {}, {}};
    std::map<std::string, TBlob> by_name;
    if (with_label) by_name["softmax_label"] = label;
    to->Add({output, output}, by_name, count);
  };
  EpochScores whole = scores();
  std::vector<EpochScores> parts;
  for (int part = 0; part < 3; ++part) parts.push_back(scores());  // the last one stays empty
  for (int batch = 0; batch < kBatches; ++batch) {
    const int64_t count = batch + 1 < kBatches ? kRows : 2;
    add(&whole, batch, count, true);
    add(&parts[static_cast<size_t>(batch % 2)], batch, count, true);
  }
  EpochScores merged = scores();
  for (const EpochScores& part : parts) merged.Merge(part.SaveState());
  const NamedValues found = merged.Values(), expected = whole.Values();
  REQUIRE(found.size() == 6);
  for (size_t i = 0; i < found.size(); ++i) {
    CAPTURE(found[i].first);
    CHECK(found[i].first == expected[i].first);
    const bool counts = found[i].first == "accuracy" || found[i].first == "f1";
    CHECK(std::abs(found[i].second - expected[i].second) <=
          (counts ? 0 : 1e-12 * std::abs(expected[i].second)));
  }

  EpochScores restored = scores();
  add(&restored, 0, kRows, true);  // forgotten
  restored.RestoreState(merged.SaveState());
  CHECK(restored.SaveState() == merged.SaveState());
  CHECK(restored.Values() == found);

  // A part without labels: its losses are unknown, and so are those of all.
  const EpochScores none(net, {}, {});
  EpochScores unlabelled(net, {}, {}), all(net, {}, {});
  add(&unlabelled, 0, kRows, false);
  all.Merge(none.SaveState());
  CHECK(all.Values().size() == 3);
  all.Merge(unlabelled.SaveState());
  all.Merge(none.SaveState());
  CHECK(all.Values().empty());
  all.RestoreState(none.SaveState());
  CHECK(all.Values().size() == 3);

  for (const std::string& text : {std::string(), std::string("known"), std::string("maybe\n\n"),
                                  none.SaveState(), merged.SaveState() + "f1\n"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(restored.Merge(text), Error);
  }
}

// Up to 40 parts of 44 examples: some have none.
TEST_CASE("parts of the data are evaluated to the values of the whole") {
  const TempDir data;
  WriteTable(data);
  RunSpec spec;
  spec.symbol = QuietNet();
  Process process(data, spec);
  const std::shared_ptr<const io::Source> source =
      io::MakeSource("csv", {{"path", data.path("table.csv")},
                             {"label_columns", "class"},
                             {"data_shape", format("(1, {}, {})", kSide, kSide)}});
  const std::vector<MetricSpec> metrics = {{"accuracy", {}, "", ""}, {"cross_entropy", {}, "", ""}};
  Executor* const shared = &process.trainer->executor();
  const NamedValues expected =
      Evaluation(*process.runtime, spec.symbol, *process.val, metrics, shared, Context::cpu())
          .Run();
  for (const int parts : {1, 2, 3, 7, 40}) {
    CAPTURE(parts);
    EpochScores merged(spec.symbol, metrics, {});
    int64_t batches = -1;
    for (int part = 0; part < parts; ++part) {
      io::PipelineParam param;
      param.Init({{"batch_size", "3"},
                  {"mode", "evaluation"},
                  {"workers", "1"},
                  {"label_name", "softmax_label"},
                  {"part_index", std::to_string(part)},
                  {"num_parts", std::to_string(parts)}},
                 "test");
      const auto iter = io::NewPipeline(*process.runtime, source, {}, param);
      CHECK((batches == -1 || batches == iter->batches_per_epoch()));
      batches = iter->batches_per_epoch();
      EpochScores scores(spec.symbol, metrics, {});
      int64_t seen = 0;
      Evaluation(*process.runtime, spec.symbol, *iter, metrics, shared, Context::cpu())
          .Run([&](const DataBatch& batch, const std::vector<NDArray>& outputs) {
            ++seen;
            scores.Add({outputs[0].data()}, {{"softmax_label", batch.label[0].data()}},
                       batch.count);
          });
      CHECK(seen == batches);
      merged.Merge(scores.SaveState());
    }
    const NamedValues found = merged.Values();
    REQUIRE(found.size() == expected.size());
    for (size_t i = 0; i < found.size(); ++i) {
      CAPTURE(found[i].first);
      CHECK(found[i].first == expected[i].first);
      if (found[i].first == "accuracy") CHECK(found[i].second == expected[i].second);
      // The outputs of batches of another size differ by rounding.
      CHECK(found[i].second == doctest::Approx(expected[i].second).epsilon(1e-6));
    }
  }
}

TEST_CASE("batches are processed one by one, in order, while the next one is computed") {
  const TempDir data;
  WriteTable(data);
  for (const char* engine : {"naive", "threaded"}) {
    CAPTURE(engine);
    RunSpec spec;
    spec.engine = engine;
    spec.symbol = QuietNet();
    Process process(data, spec);
    Evaluation evaluation(*process.runtime, spec.symbol, *process.val, {{"accuracy", {}, "", ""}},
                          &process.trainer->executor(), Context::cpu());
    Executor& executor = evaluation.executor();
    const InputOrder order(executor, *process.val);
    // One by one.
    std::vector<std::vector<float>> expected;
    DataBatch batch;
    std::vector<NDArray> inputs;
    process.val->Reset(0);
    while (process.val->Next(&batch)) {
      order.Arrange(batch, &inputs);
      executor.Forward(inputs);
      expected.push_back(executor.outputs()[0].ToVector());
    }
    REQUIRE(expected.size() == 6);
    const auto pushed = [&] {
      return process.runtime->engine().Version(executor.outputs()[0].var());
    };
    const uint64_t before = pushed();
    std::vector<std::vector<float>> seen;
    evaluation.Run([&](const DataBatch& b, const std::vector<NDArray>& outputs) {
      CHECK(b.batch == static_cast<int64_t>(seen.size()));
      seen.push_back(outputs[0].ToVector());
      CHECK(pushed() - before == std::min<size_t>(seen.size() + 1, expected.size()));
    });
    CHECK(seen == expected);
    // A callback that throws ends the run, and the next run is complete.
    CHECK_THROWS_WITH(evaluation.Run([](const DataBatch&, const std::vector<NDArray>&) {
      Throw(ErrorKind::kFileSystem, "the disk is full");
    }),
                      "the disk is full");
    seen.clear();
    evaluation.Run([&](const DataBatch&, const std::vector<NDArray>& outputs) {
      seen.push_back(outputs[0].ToVector());
    });
    CHECK(seen == expected);
  }
}

}  // namespace
}  // namespace mxtrain::test

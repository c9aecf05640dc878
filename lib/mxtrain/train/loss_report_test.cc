// SPDX-License-Identifier: Apache-2.0
// The reported loss is what training minimizes: by its definition, and by the operator's gradient.
#include "mxtrain/train/loss_report.h"

#include <doctest/doctest.h>

#include <cmath>

#include "mxtrain/base/error.h"
#include "mxtrain/base/text.h"
#include "mxtrain/operator/registry.h"
#include "mxtrain/train/evaluation.h"

namespace mxtrain {
namespace {

struct Row {
  std::vector<float> probabilities;
  float label;
};

// The mean over the rows of a net that ends in a SoftmaxOutput with these parameters.
double LossOf(const Kwargs& params, std::vector<Row> rows) {
  const auto classes = static_cast<int64_t>(rows[0].probabilities.size());
  std::vector<float> p, y;
  for (const Row& row : rows)
    p.insert(p.end(), row.probabilities.begin(), row.probabilities.end()), y.push_back(row.label);
  const auto registry = BuiltinOperators();
  const Symbol data = Symbol::Variable("data");
  LossReport report(
      Symbol::Create(*registry, "SoftmaxOutput", "softmax", params, std::span(&data, 1)));
  const auto count = static_cast<int64_t>(rows.size());
  const TBlob output{p.data(), {count, classes}, DType::kFloat32, {}, {}},
      label{y.data(), {count}, DType::kFloat32, {}, {}};
  report.Update(0, output, &label, count);
  return report.Total();
}

TEST_CASE("the loss has the smoothing of labels, with the weights of classes") {
  const std::vector<Row> rows = {{{0.7f, 0.2f, 0.1f}, 0}, {{0.25f, 0.25f, 0.5f}, 1}};
  const double plain = -(std::log(0.7) + std::log(0.25)) / 2;
  CHECK(LossOf({}, rows) == doctest::Approx(plain));
  // 0.4: the label keeps 0.6, the two others have 0.2 each.
  const double smooth = -(0.6 * std::log(0.7) + 0.2 * std::log(0.2) + 0.2 * std::log(0.1)  //
                          + 0.2 * std::log(0.25) + 0.6 * std::log(0.25) + 0.2 * std::log(0.5)) /
                        2;
  CHECK(LossOf({{"smooth_alpha", "0.4"}}, rows) == doctest::Approx(smooth));
  const double weighted =
      -(0.6 * 3 * std::log(0.7) + 0.2 * 1 * std::log(0.2) + 0.2 * 5 * std::log(0.1)  //
        + 0.2 * 3 * std::log(0.25) + 0.6 * 1 * std::log(0.25) + 0.2 * 5 * std::log(0.5)) /
      2;
  CHECK(LossOf({{"smooth_alpha", "0.4"}, {"class_weights", "(3, 1, 5)"}}, rows) ==
        doctest::Approx(weighted));
}

TEST_CASE("the smoothed loss of many classes, and of one; what the operator does not smooth; NaN") {
  Row many{{}, 20};
  double sum = 0;
  for (int k = 0; k < 21; ++k) {
    many.probabilities.push_back(k == 0 ? 0.0f : static_cast<float>(k) / 210);
    sum -= std::log(std::max<double>(many.probabilities.back(), 1e-30));
  }
  const double named = -std::log(20.0 / 210), other = 0.1 / 20;
  CHECK(LossOf({{"smooth_alpha", "0.1"}}, {many}) ==
        doctest::Approx((0.9 - other) * named + other * sum));
  CHECK(LossOf({{"smooth_alpha", "0.1"}}, {{{0.5f}, 0}}) == doctest::Approx(-std::log(0.5)));
  CHECK(LossOf({{"smooth_alpha", "0.4"}, {"multi_output", "True"}}, {{{0.7f, 0.3f}, 0}}) ==
        doctest::Approx(-std::log(0.7)));
  CHECK(std::isnan(LossOf({{"smooth_alpha", "0.1"}}, {{{0.5f, NAN}, 0}})));
}

TEST_CASE("a label of another size than the outputs need is refused, not read") {
  const auto registry = BuiltinOperators();
  const Symbol data = Symbol::Variable("data");
  std::vector<float> values(24, 0.5f);
  const auto blob = [&](const TShape& shape) {
    return TBlob{values.data(), shape, DType::kFloat32, {}, {}};
  };
  const auto update = [&](const char* op, const Kwargs& params, const TShape& output,
                          const TShape& label) {
    LossReport report(Symbol::Create(*registry, op, "head", params, std::span(&data, 1)));
    const TBlob given = blob(label);
    report.Update(0, blob(output), &given, output[0]);
  };
  for (const char* op :
       {"LinearRegressionOutput", "LogisticRegressionOutput", "MAERegressionOutput"}) {
    update(op, {}, {4, 3}, {4, 3});
    CHECK_THROWS_WITH_AS(
        update(op, {}, {4, 3}, {4, 1}),
        "'head': outputs of shape [4, 3] need 12 label values, but 'head_label' has shape [4, 1]",
        Error);
  }
  update("SoftmaxOutput", {}, {4, 3}, {4});
  CHECK_THROWS_AS(update("SoftmaxOutput", {}, {4, 3}, {3}), Error);
  const Kwargs per_position = {{"multi_output", "True"}};
  update("SoftmaxOutput", per_position, {2, 3, 4}, {2, 4});
  CHECK_THROWS_AS(update("SoftmaxOutput", per_position, {2, 3, 4}, {2}), Error);
}

TEST_CASE("a value depends on the labels of layers, not on those that losses read for gradients") {
  const auto registry = BuiltinOperators();
  const auto layer = [&](const char* op, const char* name, const std::vector<Symbol>& inputs) {
    return Symbol::Create(*registry, op, name, {}, inputs);
  };
  using Names = std::set<std::string>;
  const Symbol a = Symbol::Variable("a"), y = Symbol::Variable("y");
  for (const char* op : {"SoftmaxOutput", "LinearRegressionOutput", "LogisticRegressionOutput",
                         "MAERegressionOutput"}) {
    CAPTURE(op);
    const Symbol loss = layer(op, "loss", {a, y});
    CHECK(VariablesRead(loss) == Names{"a"});
    CHECK(VariablesRead(layer("elemwise_sub", "error", {loss, y})) == Names{"a", "y"});
    const Symbol squared = layer("square", "squared", {y});
    CHECK(VariablesRead(layer(op, "loss", {a, squared})) == Names{"a"});
    CHECK(VariablesRead(Symbol::Group(std::vector{layer(op, "loss", {a, squared}), squared})) ==
          Names{"a", "y"});
  }
  const Symbol error = layer("elemwise_sub", "error", {a, y});
  CHECK(VariablesRead(layer("MakeLoss", "loss", {error})) == Names{"a", "y"});
  CHECK(VariablesRead(Symbol::Group(std::vector{a, layer("BlockGrad", "stop", {y})})) ==
        Names{"a", "y"});
}

TEST_CASE("a variable is trained if a gradient reaches it past no BlockGrad, label or index") {
  const auto registry = BuiltinOperators();
  const auto layer = [&](const char* op, const char* name, const std::vector<Symbol>& inputs,
                         const Kwargs& kwargs = {}) {
    return Symbol::Create(*registry, op, name, kwargs, inputs);
  };
  using Names = std::set<std::string>;
  const Symbol a = Symbol::Variable("a"), b = Symbol::Variable("b"), y = Symbol::Variable("y");
  CHECK(VariablesTrained(layer("SoftmaxOutput", "loss", {a, layer("square", "s", {y})})) ==
        Names{"a"});
  const Symbol stopped = layer("BlockGrad", "stop", {layer("square", "below", {b})});
  const Symbol sum = layer("elemwise_add", "sum", {a, stopped});
  CHECK(VariablesTrained(layer("MakeLoss", "loss", {sum})) == Names{"a"});
  // Past another path, it is.
  const Symbol both = layer("elemwise_add", "both", {sum, b});
  CHECK(VariablesTrained(layer("MakeLoss", "loss", {both})) == Names{"a", "b"});
  const Symbol head[] = {layer("MakeLoss", "loss", {a}), layer("BlockGrad", "features", {b})};
  CHECK(VariablesTrained(Symbol::Group(head)) == Names{"a"});
  const Symbol words =
      layer("Embedding", "words", {a, b}, {{"input_dim", "3"}, {"output_dim", "2"}});
  CHECK(VariablesTrained(layer("MakeLoss", "loss", {words})) == Names{"b"});
}

TEST_CASE("a label is found past a reshape; one that the net computes has no loss to report") {
  const auto registry = BuiltinOperators();
  const auto make = [&](const char* op, const char* name, const Kwargs& params,
                        const std::vector<Symbol>& inputs) {
    return Symbol::Create(*registry, op, name, params, inputs);
  };
  // Two rows of scores for each of three examples.
  const Symbol data = Symbol::Variable("data"), label = Symbol::Variable("words");
  const Symbol rows = make("Reshape", "rows", {{"shape", "(-1, 2)"}}, {data}),
               flat = make("Reshape", "flat", {{"shape", "(-1,)"}}, {label});
  LossReport of_rows(make("SoftmaxOutput", "softmax", {}, {rows, flat}));
  REQUIRE(of_rows.heads().size() == 1);
  CHECK(of_rows.heads()[0].label == "words");
  std::vector<float> p = {0.5f, 0.5f, 0.25f, 0.75f, 0.5f, 0.5f, 1, 0, 9, 9, 9, 9},
                     y = {0, 1, 1, 0, 7, 7};
  const TBlob output{p.data(), {6, 2}, DType::kFloat32, {}, {}},
      words{y.data(), {3, 2}, DType::kFloat32, {}, {}};
  of_rows.Update(0, output, &words, 2);  // the third example is padding
  CHECK(of_rows.Mean(0) == doctest::Approx(-(2 * std::log(0.5) + std::log(0.75)) / 4));

  // The label is computed from what the net reads, or is the input itself.
  const Symbol computed = make("BlockGrad", "fixed", {}, {data});
  for (const Symbol& truth : {computed, data, make("abs", "size", {}, {label})}) {
    LossReport report(make("SoftmaxOutput", "softmax", {}, {data, truth}));
    REQUIRE(report.heads().size() == 1);
    CHECK(report.heads()[0].kind == LossReport::Head::Kind::kUnknown);
    CHECK(report.heads()[0].label.empty());
    CHECK_FALSE(report.has_values());
    report.Update(0, output, nullptr, 6);
    CHECK(std::isnan(report.Total()));
    CHECK_FALSE(report.Diverges(0));
    p[3] = std::nanf("");
    report.Update(0, output, nullptr, 6);
    CHECK(report.Diverges(0));
    p[3] = 0.75f;
  }
}

TEST_CASE("two losses read a label; what predictions depend on, or gradients reach, is none") {
  const auto registry = BuiltinOperators();
  const auto op = [&](const char* type, const char* name, const Kwargs& params,
                      std::vector<Symbol> inputs) {
    return Symbol::Create(*registry, type, name, params, inputs);
  };
  const Symbol data = Symbol::Variable("data"), truth = Symbol::Variable("truth");
  const auto loss = [&](const Symbol& value) { return op("MakeLoss", "beside", {}, {value}); };
  const auto labels = [](std::vector<Symbol> heads) {
    std::vector<std::string> names;
    const LossReport report(Symbol::Group(heads));
    for (const LossReport::Head& head : report.heads()) names.push_back(head.label);
    return names;
  };
  using Names = std::vector<std::string>;
  const Symbol softmax = op("SoftmaxOutput", "pixels", {{"multi_output", "True"}}, {data, truth}),
               linear = op("LinearRegressionOutput", "linear", {}, {data, truth});
  CHECK(labels({softmax, loss(op("dice_loss", "dice", {}, {data, truth}))}) == Names{"truth", ""});
  CHECK(labels({linear, loss(op("margin_ranking_loss", "rank", {},
                                {data, Symbol::Variable("other"), truth}))}) == Names{"truth", ""});
  CHECK(labels({linear, softmax}) == Names{"truth", "truth"});
  const Symbol fixed = op("BlockGrad", "fixed", {}, {truth});
  CHECK(labels({linear, loss(op("elemwise_sub", "gap", {}, {data, fixed}))}) == Names{"truth", ""});
  // A center that another loss moves.
  CHECK(labels({linear, loss(op("elemwise_sub", "gap", {}, {data, truth}))}) == Names{"", ""});
  // A prediction that is no loss.
  CHECK(labels({linear, fixed}) == Names{""});
}

TEST_CASE("the loss since earlier sums") {
  const auto registry = BuiltinOperators();
  const Symbol data = Symbol::Variable("data");
  LossReport report(
      Symbol::Create(*registry, "MAERegressionOutput", "gap", {}, std::span(&data, 1)));
  float p[] = {1, 5}, y[] = {0, 0};
  const TBlob output{p, {2, 1}, DType::kFloat32, {}, {}}, label{y, {2, 1}, DType::kFloat32, {}, {}};
  const LossReport::Sums none = report.sums();
  CHECK(std::isnan(report.Mean(0)));
  CHECK(std::isnan(report.Total()));
  report.Update(0, output, &label, 1);
  const LossReport::Sums one = report.sums();
  CHECK(report.TotalSince(none) == 1);
  CHECK(std::isnan(report.TotalSince(one)));
  CHECK_FALSE(report.Diverges(0));
  report.Update(0, output, &label, 2);
  CHECK(report.TotalSince(one) == 3);
  CHECK(report.Total() == doctest::Approx(7.0 / 3));
  p[0] = std::numeric_limits<float>::infinity();
  report.Update(0, output, &label, 1);
  CHECK(report.Diverges(0));
}

TEST_CASE("the total has each loss times its grad_scale, as its gradient is") {
  const auto registry = BuiltinOperators();
  const Symbol data = Symbol::Variable("data");
  const Symbol gap = Symbol::Create(*registry, "MAERegressionOutput", "gap", {{"grad_scale", "3"}},
                                    std::span(&data, 1)),
               size = Symbol::Create(*registry, "MakeLoss", "size", {{"grad_scale", "0.5"}},
                                     std::span(&data, 1));
  LossReport report(Symbol::Group(std::vector{gap, size}));
  float p[] = {1, 5}, y[] = {0, 0};
  const TBlob output{p, {2, 1}, DType::kFloat32, {}, {}}, label{y, {2, 1}, DType::kFloat32, {}, {}};
  report.Update(0, output, &label, 2);
  report.Update(1, output, nullptr, 2);
  CHECK(report.Mean(0) == 3);
  CHECK(report.Mean(1) == 3);
  CHECK(report.Total() == 3 * 3 + 0.5 * 3);
}

TEST_CASE("merged losses are means over the examples of all, not of the means") {
  const auto registry = BuiltinOperators();
  const Symbol data = Symbol::Variable("data");
  const Symbol gap =
                   Symbol::Create(*registry, "MAERegressionOutput", "gap", {}, std::span(&data, 1)),
               size = Symbol::Create(*registry, "MakeLoss", "size", {}, std::span(&data, 1));
  const Symbol net = Symbol::Group(std::vector{gap, size});
  float p[] = {1, 5, 9}, y[] = {0, 0, 0};
  const TBlob output{p, {3, 1}, DType::kFloat32, {}, {}}, label{y, {3, 1}, DType::kFloat32, {}, {}};
  LossReport whole(net), part(net);
  for (const int64_t count : {3, 0, 1}) {
    LossReport other(net);
    other.Update(0, output, &label, count);
    other.Update(1, output, nullptr, count);
    part.Merge(other.SaveState());
    whole.Update(0, output, &label, count);
    whole.Update(1, output, nullptr, count);
  }
  CHECK(part.SaveState() == whole.SaveState());
  CHECK(part.Mean(0) == (1 + 5 + 9 + 1) / 4.0);
  // A head without examples does not count.
  LossReport of_one(net);
  of_one.Update(0, output, &label, 3);
  CHECK(of_one.Total() == 5);
  CHECK(std::isnan(of_one.Mean(1)));
  part.Merge(LossReport(net).SaveState());  // of no batch
  CHECK(part.SaveState() == whole.SaveState());
  CHECK_THROWS_WITH_AS(part.Merge(LossReport(gap).SaveState()),
                       "the saved loss belongs to another net", Error);
}

TEST_CASE("an output that reads what a loss reads predicts its label") {
  const auto registry = BuiltinOperators();
  const auto op = [&](const char* type, const char* name, const Kwargs& params,
                      std::vector<Symbol> inputs) {
    return Symbol::Create(*registry, type, name, params, inputs);
  };
  const Kwargs strides = {{"strides", "(8,)"}};
  const Symbol scores = Symbol::Variable("scores"), sides = Symbol::Variable("sides"),
               others = Symbol::Variable("others"), truth = Symbol::Variable("truth");
  const Symbol loss = op("PointBoxLoss", "loss", strides, {scores, sides, truth}),
               boxes = op("PointBoxes", "boxes", strides, {scores, sides}),
               kept = op("BlockGrad", "kept", {}, {op("box_nms", "nms", {}, {boxes})}),
               foreign = op("PointBoxes", "foreign", strides, {scores, others});
  using Labels = std::map<int, std::string>;
  CHECK(LabelsBesideLosses(Symbol::Group(std::vector{loss, kept})) == Labels{{1, "truth"}});
  CHECK(LabelsBesideLosses(Symbol::Group(std::vector{boxes, loss})) == Labels{{0, "truth"}});
  CHECK(LabelsBesideLosses(Symbol::Group(std::vector{loss, foreign})).empty());
  CHECK(LabelsBesideLosses(kept).empty());
  // The label is read for the value of the loss, which infer therefore removes.
  CHECK(VariablesRead(kept).contains("scores"));
  CHECK_FALSE(VariablesRead(kept).contains("truth"));
  CHECK(VariablesRead(loss).contains("truth"));
  // Losses that answer themselves are named by LossReport.
  CHECK(LabelsBesideLosses(op("SoftmaxOutput", "softmax", {}, {scores, truth})).empty());
}

TEST_CASE("what reads the scores of a loss that MakeLoss makes predicts its label") {
  const auto registry = BuiltinOperators();
  const auto op = [&](const char* type, const Kwargs& params, std::vector<Symbol> inputs) {
    return Symbol::Create(*registry, type, Lower(type), params, inputs);
  };
  const Symbol scores = Symbol::Variable("scores"), text = Symbol::Variable("text");
  const Symbol loss = op("MakeLoss", {}, {op("CTCLoss", {}, {scores, text})}),
               said = op("ctc_greedy_decoder", {}, {scores}),
               other = op("ctc_greedy_decoder", {}, {Symbol::Variable("other")});
  using Labels = std::map<int, std::string>;
  CHECK(LabelsBesideLosses(Symbol::Group(std::vector{loss, said})) == Labels{{1, "text"}});
  CHECK(LabelsBesideLosses(Symbol::Group(std::vector{loss, other})).empty());
  const Kwargs lengths = {{"use_data_lengths", "1"}};
  const Symbol steps = Symbol::Variable("steps");
  const Symbol bounded = op("MakeLoss", {}, {op("CTCLoss", lengths, {scores, text, steps})});
  CHECK(LabelsBesideLosses(Symbol::Group(std::vector{bounded, said})).empty());
  const Symbol heard = op("ctc_greedy_decoder", lengths, {scores, steps});
  CHECK(LabelsBesideLosses(Symbol::Group(std::vector{bounded, heard})) == Labels{{1, "text"}});
}

TEST_CASE("a metric without an output compares that of the first labelled loss with its label") {
  const auto registry = BuiltinOperators();
  const auto op = [&](const char* type, const Kwargs& params, std::vector<Symbol> inputs) {
    return Symbol::Create(*registry, type, Lower(type), params, inputs);
  };
  const Symbol scores = op("FullyConnected", {{"num_hidden", "3"}}, {Symbol::Variable("data")}),
               active = op("Activation", {{"act_type", "relu"}}, {scores});
  // What reads the scores answers the label of the SVM too, but has one of its own.
  const Symbol net =
      Symbol::Group(std::vector{op("SVMOutput", {}, {scores, Symbol::Variable("margin")}),
                                op("SoftmaxOutput", {}, {active, Symbol::Variable("truth")})});
  MetricSet metrics(net, LossReport(net), {{"accuracy", {}, "", ""}}, {});
  CHECK_THROWS_WITH_AS(metrics.Update({TBlob(), TBlob()}, {}, 1),
                       "metric accuracy needs label 'truth', which the data do not provide", Error);
}

}  // namespace
}  // namespace mxtrain

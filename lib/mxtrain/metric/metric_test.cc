#include "mxtrain/metric/metric.h"

#include <doctest/doctest.h>

#include <cmath>

#include "mxtrain/base/error.h"

namespace mxtrain {
namespace {

struct Host {
  Host(const TShape& shape, std::vector<float> values) : shape(shape), values(std::move(values)) {}
  operator TBlob() const { return {const_cast<float*>(values.data()), shape, DType::kFloat32, {}, Context::cpu()}; }
  TShape shape;
  std::vector<float> values;
};

double ValueOf(Metric& metric, const Host& label, const Host& pred, int64_t count) {
  metric.Reset();
  metric.Update(TBlob(label), TBlob(pred), count);
  return metric.value();
}

const Host kScores({4, 3}, {0.1f, 0.7f, 0.2f,  //
                            0.5f, 0.2f, 0.3f,  //
                            0.3f, 0.3f, 0.4f,  //
                            0.9f, 0.0f, 0.1f});

TEST_CASE("accuracy and top k") {
  const auto accuracy = Metric::Create("accuracy"), top2 = Metric::Create("top_k", {{"k", "2"}});
  const Host labels({4}, {1, 2, 2, 1});
  CHECK(ValueOf(*accuracy, labels, kScores, 4) == 0.5);
  CHECK(ValueOf(*top2, labels, kScores, 4) == 0.75);
  CHECK(ValueOf(*accuracy, labels, kScores, 3) == 2.0 / 3);  // the last row is filling
  CHECK(ValueOf(*accuracy, Host({4, 1}, labels.values), kScores, 4) == 0.5);
  CHECK(ValueOf(*Metric::Create("acc", {{"ignore_label", "2"}}), labels, kScores, 4) == 0.5);                            // rows 0 and 3
  CHECK(ValueOf(*Metric::Create("acc"), Host({2, 2}, {0, 1, 1, 0}), Host({2, 2}, {0.2f, 0.8f, 0.3f, 0.7f}), 2) == 0.5);  // one-hot labels
  CHECK(accuracy->higher_is_better());
  CHECK(top2->name() == "top_2_accuracy");
}

TEST_CASE("equal scores go to the first class, and what is no number is never right") {
  const auto accuracy = Metric::Create("accuracy"), top5 = Metric::Create("top_k");
  CHECK(ValueOf(*accuracy, Host({2}, {0, 1}), Host({2, 2}, {0.5f, 0.5f, 0.5f, 0.5f}), 2) == 0.5);
  const float nan = std::nanf("");
  CHECK(ValueOf(*accuracy, Host({3}, {0, 0, 1}), Host({3, 2}, {nan, nan, nan, 0.5f, nan, 0.5f}), 3) == 0);
  CHECK(ValueOf(*top5, Host({1}, {0}), Host({1, 2}, {nan, nan}), 1) == 0);
}

TEST_CASE("a class at every position") {
  // (N, classes, width) = (1, 2, 3): the winners are 1, 0, 1.
  const Host scores({1, 2, 3}, {0.1f, 0.6f, 0.2f, 0.9f, 0.4f, 0.8f});
  CHECK(ValueOf(*Metric::Create("accuracy"), Host({1, 3}, {1, 1, 1}), scores, 1) == 2.0 / 3);
  const double expected = -(std::log(double(0.9f)) + std::log(double(0.4f)) + std::log(double(0.8f))) / 3;
  CHECK(ValueOf(*Metric::Create("ce"), Host({1, 3}, {1, 1, 1}), scores, 1) == doctest::Approx(expected).epsilon(1e-9));
}

TEST_CASE("cross entropy, squares and absolute differences") {
  const auto entropy = Metric::Create("cross_entropy");
  CHECK(ValueOf(*entropy, Host({2}, {1, 0}), Host({2, 2}, {0.25f, 0.75f, 0.5f, 0.5f}), 2) ==
        doctest::Approx(-(std::log(0.75) + std::log(0.5)) / 2).epsilon(1e-9));
  CHECK(ValueOf(*entropy, Host({1}, {1}), Host({1, 2}, {1, 0}), 1) == doctest::Approx(-std::log(1e-12)));
  const Host label({3, 2}, {1, 2, 3, 4, 100, 100}), pred({3, 2}, {1, 0, 6, 4, 0, 0});
  CHECK(ValueOf(*Metric::Create("mse"), label, pred, 2) == (4.0 / 2 + 9.0 / 2) / 2);
  CHECK(ValueOf(*Metric::Create("mae"), label, pred, 2) == (2.0 / 2 + 3.0 / 2) / 2);
  CHECK(ValueOf(*Metric::Create("mse"), Host({2}, {1, 2}), Host({2, 1}, {0, 0}), 2) == 2.5);
  CHECK_FALSE(entropy->higher_is_better());
}

TEST_CASE("a short batch weighs what it holds") {
  const auto mse = Metric::Create("mse");
  mse->Update(TBlob(Host({3}, {0, 0, 0})), TBlob(Host({3}, {1, 1, 1})), 3);
  mse->Update(TBlob(Host({3}, {0, 0, 0})), TBlob(Host({3}, {3, 9, 9})), 1);
  CHECK(mse->value() == (3 * 1 + 9) / 4.0);
  mse->Reset();
  CHECK(mse->value() == 0);
  mse->Update(TBlob(Host({3}, {0, 0, 0})), TBlob(Host({3}, {1, 1, 1})), 0);
  CHECK(mse->value() == 0);
}

TEST_CASE("the state survives to the bit") {
  const auto before = Metric::Create("mae"), after = Metric::Create("mae");
  for (int i = 1; i < 50; ++i) {
    const float value = 1.0f / static_cast<float>(i);
    before->Update(TBlob(Host({1}, {0})), TBlob(Host({1}, {value})), 1);
  }
  after->RestoreState(before->SaveState());
  CHECK(after->value() == before->value());
  CHECK(after->SaveState() == before->SaveState());
  for (const char* text : {"", "mae", "mse 0x1p+0 1", "mae 0x1p+0", "mae 0x1p+0 1 2", "mae x 0x1p+0", "mae 0x1p+0 -0x1p+0"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(after->RestoreState(text), Error);
  }
}

TEST_CASE("errors say what was expected") {
  const auto accuracy = Metric::Create("accuracy");
  CHECK_THROWS_WITH_AS(ValueOf(*accuracy, Host({4}, {0, 1, 3, 0}), kScores, 4),
                       "metric accuracy: label 3 in row 2 is none of the 3 classes of the output", Error);
  CHECK_THROWS_AS(ValueOf(*accuracy, Host({4}, {0, 0.5, 1, 0}), kScores, 4), Error);
  CHECK_THROWS_AS(ValueOf(*accuracy, Host({4}, {0, -1, 1, 0}), kScores, 4), Error);
  CHECK_THROWS_AS(ValueOf(*accuracy, Host({4, 2}, std::vector<float>(8)), kScores, 4), Error);
  CHECK_THROWS_AS(ValueOf(*accuracy, Host({3}, {0, 0, 0}), kScores, 3), Error);
  CHECK_THROWS_AS(ValueOf(*accuracy, Host({4}, {0, 0, 0, 0}), kScores, 5), Error);
  CHECK_THROWS_AS(ValueOf(*Metric::Create("mse"), Host({4}, {0, 0, 0, 0}), kScores, 4), Error);
  CHECK_THROWS_AS(ValueOf(*accuracy, Host({4}, {0, 0, 0, 0}), Host({4, 1}, {0, 0, 0, 0}), 4), Error);  // one class decides nothing
  CHECK_THROWS_AS(accuracy->Update({nullptr, {1}, DType::kInt32, {}, Context::cpu()}, kScores, 1), Error);
  CHECK_THROWS_WITH_AS(Metric::Create("acuracy"), "there is no metric 'acuracy'; did you mean 'accuracy'?", Error);
  CHECK_THROWS_WITH_AS(Metric::Create("f1"), "there is no metric 'f1'; use accuracy, top_k, cross_entropy, mse, mae", Error);
  CHECK_THROWS_AS(Metric::Create("top_k", {{"k", "0"}}), Error);
  CHECK_THROWS_AS(Metric::Create("mse", {{"k", "1"}}), Error);
  CHECK(Metric::Describe("top_k").size() == 2);
}

}  // namespace
}  // namespace mxtrain

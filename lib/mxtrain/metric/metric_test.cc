// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/metric/metric.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "mxtrain/base/error.h"
#include "mxtrain/base/philox.h"

namespace mxtrain {
namespace {

struct Host {
  Host(const TShape& of, std::vector<float> elements) : shape(of), values(std::move(elements)) {}
  operator TBlob() const {
    return {const_cast<float*>(values.data()), shape, DType::kFloat32, {}, Context::cpu()};
  }
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
  CHECK(ValueOf(*accuracy, labels, kScores, 3) == 2.0 / 3);  // the last row is padding
  CHECK(ValueOf(*accuracy, Host({4, 1}, labels.values), kScores, 4) == 0.5);
  // Rows 0 and 3.
  CHECK(ValueOf(*Metric::Create("acc", {{"ignore_label", "2"}}), labels, kScores, 4) == 0.5);
  // One-hot labels.
  CHECK(ValueOf(*Metric::Create("acc"), Host({2, 2}, {0, 1, 1, 0}),
                Host({2, 2}, {0.2f, 0.8f, 0.3f, 0.7f}), 2) == 0.5);
  CHECK(accuracy->higher_is_better());
  CHECK(top2->name() == "top_2_accuracy");
}

TEST_CASE("ties go to the first class, and NaN is never right") {
  const auto accuracy = Metric::Create("accuracy"), top5 = Metric::Create("top_k");
  CHECK(ValueOf(*accuracy, Host({2}, {0, 1}), Host({2, 2}, {0.5f, 0.5f, 0.5f, 0.5f}), 2) == 0.5);
  const float nan = std::nanf("");
  CHECK(ValueOf(*accuracy, Host({3}, {0, 0, 1}), Host({3, 2}, {nan, nan, nan, 0.5f, nan, 0.5f}),
                3) == 0);
  CHECK(ValueOf(*top5, Host({1}, {0}), Host({1, 2}, {nan, nan}), 1) == 0);
  // Nor is a finite score beside a NaN, however many guesses there are.
  CHECK(ValueOf(*top5, Host({3}, {0, 1, 1}), Host({3, 2}, {nan, 0.5f, nan, 0.5f, 0.5f, nan}), 3) ==
        0);
  // A row without a prediction misses its class: 2 tp / (2 tp + fp + fn) = 2 / 3 for class 0.
  CHECK(ValueOf(*Metric::Create("f1"), Host({2}, {0, 0}), Host({2, 2}, {0.9f, 0.1f, 0.9f, nan}),
                2) == doctest::Approx(2.0 / 3));
}

TEST_CASE("a class at every position") {
  // (N, classes, width) = (1, 2, 3): the winners are 1, 0, 1.
  const Host scores({1, 2, 3}, {0.1f, 0.6f, 0.2f, 0.9f, 0.4f, 0.8f});
  CHECK(ValueOf(*Metric::Create("accuracy"), Host({1, 3}, {1, 1, 1}), scores, 1) == 2.0 / 3);
  const double expected =
      -(std::log(double(0.9f)) + std::log(double(0.4f)) + std::log(double(0.8f))) / 3;
  CHECK(ValueOf(*Metric::Create("ce"), Host({1, 3}, {1, 1, 1}), scores, 1) ==
        doctest::Approx(expected).epsilon(1e-9));
}

TEST_CASE("cross entropy, squares and absolute differences") {
  const auto entropy = Metric::Create("cross_entropy");
  CHECK(ValueOf(*entropy, Host({2}, {1, 0}), Host({2, 2}, {0.25f, 0.75f, 0.5f, 0.5f}), 2) ==
        doctest::Approx(-(std::log(0.75) + std::log(0.5)) / 2).epsilon(1e-9));
  CHECK(ValueOf(*entropy, Host({1}, {1}), Host({1, 2}, {1, 0}), 1) ==
        doctest::Approx(-std::log(1e-12)));
  const Host label({3, 2}, {1, 2, 3, 4, 100, 100}), pred({3, 2}, {1, 0, 6, 4, 0, 0});
  CHECK(ValueOf(*Metric::Create("mse"), label, pred, 2) == (4.0 / 2 + 9.0 / 2) / 2);
  CHECK(ValueOf(*Metric::Create("mae"), label, pred, 2) == (2.0 / 2 + 3.0 / 2) / 2);
  CHECK(ValueOf(*Metric::Create("mse"), Host({2}, {1, 2}), Host({2, 1}, {0, 0}), 2) == 2.5);
  CHECK_FALSE(entropy->higher_is_better());
}

TEST_CASE("what nothing defines is NaN, and prints without a sign") {
  for (const std::string& name : Metric::Names()) {
    CAPTURE(name);
    const auto metric = Metric::Create(name);
    const auto is_undefined = [&metric] {
      return std::isnan(metric->value()) && !std::signbit(metric->value());
    };
    CHECK(is_undefined());
    const auto restored = Metric::Create(name);
    restored->RestoreState(metric->SaveState());
    CHECK(std::isnan(restored->value()));
    metric->Merge(restored->SaveState());
    CHECK(is_undefined());
  }
  // Every label is ignored.
  for (const char* name : {"accuracy", "top_k", "cross_entropy", "perplexity", "f1"}) {
    CAPTURE(name);
    const auto metric = Metric::Create(name, {{"ignore_label", "2"}});
    CHECK(std::isnan(ValueOf(*metric, Host({2}, {2, 2}), Host({2, 3}, std::vector<float>(6)), 2)));
  }
  // No class is labelled or predicted.
  for (const char* average : {"macro", "micro"}) {
    const auto metric = Metric::Create("multilabel_f1", {{"average", average}});
    CHECK(std::isnan(ValueOf(*metric, Host({2, 2}, {0, 0, 0, 0}), Host({2, 2}, {0, 0, 0, 0}), 2)));
  }
  // The classes that an auc has decide; a class that all examples have does not count.
  CHECK(ValueOf(*Metric::Create("auc"), Host({2, 2}, {1, 0, 1, 1}),
                Host({2, 2}, {0.1f, 0.2f, 0.3f, 0.4f}), 2) == 1);
}

TEST_CASE("a short batch weighs as much as its examples") {
  const auto mse = Metric::Create("mse");
  mse->Update(TBlob(Host({3}, {0, 0, 0})), TBlob(Host({3}, {1, 1, 1})), 3);
  mse->Update(TBlob(Host({3}, {0, 0, 0})), TBlob(Host({3}, {3, 9, 9})), 1);
  CHECK(mse->value() == (3 * 1 + 9) / 4.0);
  mse->Reset();
  CHECK(std::isnan(mse->value()));
  mse->Update(TBlob(Host({3}, {0, 0, 0})), TBlob(Host({3}, {1, 1, 1})), 0);
  CHECK(std::isnan(mse->value()));
}

// Pseudo-random numbers from 0 to 1; a quarter of them have a duplicate.
std::vector<float> Numbers(int count, double salt) {
  std::vector<float> numbers;
  for (int i = 0; i < count; ++i) {
    const double x = std::sin(salt * (i % 4 == 3 ? i - 1 : i) + salt) * 1000;
    numbers.push_back(static_cast<float>(x - std::floor(x)));
  }
  return numbers;
}

std::vector<float> Labels(int count, int classes, double salt) {
  std::vector<float> labels = Numbers(count, salt);
  for (float& label : labels) label = std::floor(label * static_cast<float>(classes));
  return labels;
}

Host RowsOf(const Host& host, int begin, int end) {
  const int64_t width = host.shape.Product(1, host.shape.ndim());
  TShape shape = host.shape;
  shape[0] = end - begin;
  return {shape, std::vector<float>(host.values.begin() + begin * width,
                                    host.values.begin() + end * width)};
}

// Rows of class, left, top, right, bottom, use or, with scores, of class, score and box: for each
// image up to `most` of two classes, then rows of -1.
Host BoxesOf(int images, int most, int columns, const std::vector<float>& scores) {
  std::vector<float> rows;
  for (int n = 0; n < images; ++n) {
    for (int m = 0; m < most; ++m) {
      const int drawn = (7 * n + 3 * m) % 5;
      if (m > drawn) {
        rows.insert(rows.end(), static_cast<size_t>(columns), -1.0f);
        continue;
      }
      const auto left = static_cast<float>(10 * m + n % 3), side = static_cast<float>(8 + n % 2);
      const std::vector<float> box = {left, 5, left + side, 5 + side};
      rows.push_back(static_cast<float>((n + m) % 2));
      if (scores.size() > 1) rows.push_back(scores[static_cast<size_t>(n + m) % scores.size()]);
      rows.insert(rows.end(), box.begin(), box.end());
      if (scores.size() == 1) rows.push_back(static_cast<float>((n + m) % 7 == 0));
    }
  }
  return {{images, most, columns}, rows};
}

// In two batches, the second with padding.
double ValueInParts(Metric& metric, const Host& label, const Host& pred, int rows) {
  metric.Reset();
  const int half = rows / 2;
  const Host label1 = RowsOf(label, 0, half), pred1 = RowsOf(pred, 0, half),
             label2 = RowsOf(label, half, rows), pred2 = RowsOf(pred, half, rows);
  metric.Update(TBlob(label1), TBlob(pred1), half);
  const auto state = metric.SaveState();
  metric.Reset();
  metric.RestoreState(state);
  CHECK(metric.SaveState() == state);
  metric.Update(TBlob(label2), TBlob(pred2), rows - half - 3);
  return metric.value();
}

TEST_CASE("f1 is that of brute force over all pairs of label and guess") {
  constexpr int kRows = 60, kClasses = 4, kCounted = kRows - 3;
  const Host label({kRows}, Labels(kRows, kClasses - 1, 1.7)),
      pred({kRows, kClasses}, Numbers(kRows * kClasses, 2.3));
  double sum = 0, present = 0;
  for (int c = 0; c < kClasses; ++c) {
    double tp = 0, fp = 0, fn = 0;
    for (int i = 0; i < kCounted; ++i) {
      const float* row = pred.values.data() + i * kClasses;
      const int guess = static_cast<int>(std::max_element(row, row + kClasses) - row),
                wanted = static_cast<int>(label.values[static_cast<size_t>(i)]);
      tp += guess == c && wanted == c;
      fp += guess == c && wanted != c;
      fn += guess != c && wanted == c;
    }
    if (tp + fp + fn == 0) continue;  // neither labelled nor predicted
    sum += 2 * tp / (2 * tp + fp + fn);
    present += 1;
  }
  CHECK(present >= kClasses - 1);
  const auto f1 = Metric::Create("f1");
  CHECK(ValueInParts(*f1, label, pred, kRows) == doctest::Approx(sum / present).epsilon(1e-12));
  CHECK(f1->higher_is_better());
  // Two classes: 2 right of 3 guesses and 3 labels.
  const Host two({5, 2}, {0.1f, 0.9f, 0.2f, 0.8f, 0.3f, 0.7f, 0.6f, 0.4f, 0.9f, 0.1f});
  CHECK(ValueOf(*Metric::Create("f1", {{"average", "binary"}}), Host({5}, {1, 1, 0, 1, 0}), two,
                5) == doctest::Approx(2.0 / 3));
  CHECK_THROWS_AS(ValueOf(*Metric::Create("f1", {{"average", "binary"}}), label, pred, 3), Error);
  CHECK(f1->value() > 0);
}

// The fraction of pairs, one example of the class and one of another, in which the first has the
// higher score.
double PairArea(const std::vector<float>& scores, const std::vector<bool>& positive) {
  double won = 0, pairs = 0;
  for (size_t i = 0; i < scores.size(); ++i) {
    for (size_t j = 0; j < scores.size(); ++j) {
      if (!positive[i] || positive[j]) continue;
      won += scores[i] > scores[j] ? 1 : scores[i] == scores[j] ? 0.5 : 0;
      pairs += 1;
    }
  }
  return won / pairs;
}

// Compared with pair counts by brute force.
TEST_CASE("mean_iou is that of sets of pixels over the data set, whatever the batches") {
  constexpr int64_t kImages = 7, kPixels = 35;
  for (const int64_t classes : {2, 3, 6}) {
    const auto c = static_cast<uint64_t>(classes);
    std::vector<float> scores, labels;
    for (int64_t i = 0; i < kImages * classes * kPixels; ++i)
      scores.push_back(static_cast<float>(PhiloxAt(1, c, 0, uint64_t(i)) % 5));  // with ties
    for (int64_t i = 0; i < kImages * kPixels; ++i) {
      const uint64_t draw = PhiloxAt(2, c, 0, uint64_t(i));
      // The last class is never labelled; one pixel in seven has no class.
      labels.push_back(draw % 7 == 0 ? -1 : static_cast<float>(draw / 7 % (c - (c > 2 ? 1 : 0))));
    }
    scores[static_cast<size_t>(classes * kPixels)] = std::nanf("");  // no class is predicted there
    std::vector<std::set<int64_t>> truth(c), guess(c);
    for (int64_t n = 0; n < kImages - 1; ++n) {  // the last image is padding
      for (int64_t i = 0; i < kPixels; ++i) {
        const int64_t pixel = n * kPixels + i;
        const float label = labels[static_cast<size_t>(pixel)];
        if (label < 0) continue;
        truth[static_cast<size_t>(label)].insert(pixel);
        int64_t best = 0;
        bool nan = false;
        const auto at = [&](int64_t k) {
          return scores[static_cast<size_t>((n * classes + k) * kPixels + i)];
        };
        for (int64_t k = 0; k < classes; ++k) {
          nan = nan || std::isnan(at(k));
          if (at(k) > at(best)) best = k;
        }
        if (!nan) guess[static_cast<size_t>(best)].insert(pixel);
      }
    }
    double sum = 0, count = 0;
    for (size_t k = 0; k < c; ++k) {
      std::set<int64_t> both = truth[k], common;
      both.insert(guess[k].begin(), guess[k].end());
      for (const int64_t pixel : truth[k]) {
        if (guess[k].contains(pixel)) common.insert(pixel);
      }
      if (both.empty()) continue;
      sum += static_cast<double>(common.size()) / static_cast<double>(both.size());
      count += 1;
    }
    const auto metric = Metric::Create("mean_iou");
    const Host pred({kImages, classes, 5, 7}, scores), label({kImages, 5, 7}, labels);
    CHECK(ValueOf(*metric, label, pred, kImages - 1) == doctest::Approx(sum / count));
    // In two parts, merged.
    const auto cut = static_cast<std::ptrdiff_t>(3 * kPixels);
    const auto first = Metric::Create("miou"), rest = Metric::Create("mean_iou");
    first->Update(label, pred, 3);
    rest->Update(Host({4, 5, 7}, {labels.begin() + cut, labels.end()}),
                 Host({4, classes, 5, 7}, {scores.begin() + cut * classes, scores.end()}), 3);
    first->Merge(rest->SaveState());
    CHECK(first->value() == metric->value());
  }
  const Host pred({1, 2, 1, 2}, {1, 0, 0, 1});
  CHECK(ValueOf(*Metric::Create("mean_iou", {{"ignore_label", "7"}}), Host({1, 1, 2}, {0, 7}), pred,
                1) == 1);
  const auto metric = Metric::Create("mean_iou");
  CHECK_THROWS_WITH_AS(ValueOf(*metric, Host({1, 1, 2}, {0, 2}), pred, 1),
                       "metric mean_iou: label 2 in row 0 is out of range for the 2 classes of the "
                       "output",
                       Error);
  CHECK_THROWS_AS(ValueOf(*metric, Host({1, 2}, {0, 1}), Host({1, 2}, {0, 1}), 1), Error);
}

TEST_CASE("metrics of examples with any number of classes") {
  const Host scores({3, 3}, {0.9f, 0.2f, 0.5f,  //
                             0.6f, 0.4f, 0.1f,  //
                             0.7f, 0.8f, 0.3f});
  const Host labels({3, 3}, {1, 0, 0,  //
                             0, 0, 0,  //
                             1, 1, 0});
  // Class 0: 2 right, 2 labelled, 3 predicted; class 1: 1, 1, 1; class 2: 0, 0, 1.
  CHECK(ValueOf(*Metric::Create("multilabel_accuracy"), labels, scores, 3) ==
        doctest::Approx(7.0 / 9));
  CHECK(ValueOf(*Metric::Create("multilabel_accuracy"), labels, scores, 2) ==
        doctest::Approx(4.0 / 6));
  CHECK(ValueOf(*Metric::Create("multilabel_accuracy", {{"threshold", "0.65"}}), labels, scores,
                3) == 1);
  CHECK(ValueOf(*Metric::Create("multilabel_f1"), labels, scores, 3) ==
        doctest::Approx((0.8 + 1 + 0) / 3));
  CHECK(ValueOf(*Metric::Create("multilabel_f1", {{"average", "micro"}}), labels, scores, 3) ==
        doctest::Approx(2 * 3.0 / (3 + 5)));
  // A class that is neither labelled nor predicted does not count.
  CHECK(ValueOf(*Metric::Create("multilabel_f1", {{"threshold", "0.65"}}), labels, scores, 3) == 1);
  CHECK(std::isnan(ValueOf(*Metric::Create("multilabel_f1"), Host({1, 2}, {0, 0}),
                           Host({1, 2}, {0.1f, std::nanf("")}), 1)));
  CHECK_THROWS_WITH_AS(ValueOf(*Metric::Create("multilabel_f1"), Host({3}, {0, 1, 2}), scores, 3),
                       "metric multilabel_f1: labels [3] do not fit an output [3, 3]; it takes a "
                       "label of 0 or 1 for each score",
                       Error);
}

TEST_CASE("auc is that of brute force over all pairs of examples") {
  constexpr int kRows = 50, kCounted = kRows - 3;
  for (const int classes : {2, 3}) {
    const Host label({kRows}, Labels(kRows, classes, 0.7)),
        pred({kRows, classes}, Numbers(kRows * classes, 1.1));
    double sum = 0;
    for (int c = classes == 2 ? 1 : 0; c < classes; ++c) {
      std::vector<float> scores;
      std::vector<bool> positive;
      for (int i = 0; i < kCounted; ++i) {
        const int at = i * classes + c;
        scores.push_back(pred.values[static_cast<size_t>(at)]);
        positive.push_back(label.values[static_cast<size_t>(i)] == static_cast<float>(c));
      }
      sum += PairArea(scores, positive);
    }
    CHECK(ValueInParts(*Metric::Create("auc"), label, pred, kRows) ==
          doctest::Approx(classes == 2 ? sum : sum / classes).epsilon(1e-12));
  }
  const auto auc = Metric::Create("auc");
  // One output.
  CHECK(ValueOf(*auc, Host({4}, {0, 1, 0, 1}), Host({4, 1}, {0.1f, 0.4f, 0.4f, 0.8f}), 4) == 0.875);
  // Several labels.
  CHECK(ValueOf(*auc, Host({3, 2}, {1, 0, 0, 0, 1, 1}),
                Host({3, 2}, {0.9f, 0.1f, 0.5f, 0.2f, 0.2f, 0.3f}), 3) == 0.75);
  CHECK(std::isnan(
      ValueOf(*auc, Host({2}, {1, 1}), Host({2, 1}, {0.1f, 0.4f}), 2)));  // only one class
}

TEST_CASE("r2, rmse, psnr and perplexity are their formulas") {
  constexpr int kRows = 40, kWidth = 2, kCounted = kRows - 3;
  const Host label({kRows, kWidth}, Numbers(kRows * kWidth, 3.1)),
      pred({kRows, kWidth}, Numbers(kRows * kWidth, 0.9));
  double r2 = 0, squares = 0;
  for (int c = 0; c < kWidth; ++c) {
    double mean = 0, spread = 0, error = 0;
    const auto at = [c](const auto& values, int i) {
      const int index = i * kWidth + c;
      return static_cast<double>(values[static_cast<size_t>(index)]);
    };
    const auto y = [&](int i) { return at(label.values, i); };
    const auto p = [&](int i) { return at(pred.values, i); };
    for (int i = 0; i < kCounted; ++i) mean += y(i) / kCounted;
    for (int i = 0; i < kCounted; ++i) {
      spread += (y(i) - mean) * (y(i) - mean);
      error += (y(i) - p(i)) * (y(i) - p(i));
    }
    r2 += (1 - error / spread) / kWidth;
    squares += error;
  }
  CHECK(ValueInParts(*Metric::Create("r2"), label, pred, kRows) ==
        doctest::Approx(r2).epsilon(1e-12));
  CHECK(ValueInParts(*Metric::Create("rmse"), label, pred, kRows) ==
        doctest::Approx(std::sqrt(squares / kWidth / kCounted)).epsilon(1e-12));
  CHECK(ValueInParts(*Metric::Create("psnr"), label, pred, kRows) ==
        doctest::Approx(10 * std::log10(1 / (squares / kWidth / kCounted))).epsilon(1e-12));
  CHECK(ValueOf(*Metric::Create("perplexity"), Host({2}, {1, 0}),
                Host({2, 2}, {0.25f, 0.75f, 0.5f, 0.5f}),
                2) == doctest::Approx(1 / std::sqrt(0.75 * 0.5)).epsilon(1e-9));
  // Constant labels.
  CHECK(std::isnan(ValueOf(*Metric::Create("r2"), Host({2}, {1, 1}), Host({2}, {0, 1}), 2)));
}

TEST_CASE("the state round-trips bit for bit") {
  const auto before = Metric::Create("mae"), after = Metric::Create("mae");
  for (int i = 1; i < 50; ++i) {
    const float value = 1.0f / static_cast<float>(i);
    before->Update(TBlob(Host({1}, {0})), TBlob(Host({1}, {value})), 1);
  }
  after->RestoreState(before->SaveState());
  CHECK(after->value() == before->value());
  CHECK(after->SaveState() == before->SaveState());
  for (const char* text : {"", "mae", "mse 0x1p+0 1", "mae 0x1p+0", "mae 0x1p+0 1 2",
                           "mae x 0x1p+0", "mae 0x1p+0 -0x1p+0"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(after->RestoreState(text), Error);
  }
}

// The states of metrics that saw consecutive rows each, merged in order, against one that saw all.
TEST_CASE("merged states have the value of all examples") {
  constexpr int kRows = 60, kClasses = 3;
  const Host numbers({kRows, kClasses}, Numbers(kRows * kClasses, 1.3)),
      probabilities({kRows, kClasses}, Numbers(kRows * kClasses, 2.1)),
      classes({kRows}, Labels(kRows, kClasses, 0.9));
  const Host marks({kRows, kClasses}, Labels(kRows * kClasses, 2, 1.9));
  const Host objects = BoxesOf(kRows, 4, 6, {0}), found = BoxesOf(kRows, 5, 6, {0.1f, 0.9f, 0.5f});
  const std::set<std::string> counting = {
      "accuracy", "top_k",         "f1",       "multilabel_accuracy",
      "auc",      "multilabel_f1", "mean_iou", "mean_ap"};
  for (const std::string& name : Metric::Names()) {
    if (name == "cer" || name == "wer") continue;  // error_rates_test.cc
    const bool by_class = name == "accuracy" || name == "top_k" || name == "cross_entropy" ||
                          name == "perplexity" || name == "f1" || name == "auc" ||
                          name == "mean_iou";
    const bool of_boxes = name == "mean_ap";
    const Host& label = of_boxes                          ? objects
                        : by_class                        ? classes
                        : name.starts_with("multilabel_") ? marks
                                                          : numbers;
    const Kwargs kwargs = name == "top_k" ? Kwargs{{"k", "2"}} : Kwargs{};
    const auto add = [&](Metric* metric, int begin, int end) {
      const Host label_rows = RowsOf(label, begin, end),
                 pred_rows = RowsOf(of_boxes ? found : probabilities, begin, end);
      metric->Update(TBlob(label_rows), TBlob(pred_rows), end - begin);
    };
    const auto whole = Metric::Create(name, kwargs);
    add(whole.get(), 0, kRows);
    CHECK(whole->value() != 0);
    for (uint64_t seed = 0; seed < 50; ++seed) {
      INFO(name << ", seed " << seed);
      std::vector<int> ends = {kRows};
      for (uint64_t part = 0; part < seed % 5; ++part)
        ends.push_back(static_cast<int>(PhiloxAt(seed, 1, 0, part) % (kRows + 1)));
      // At one end, or twice at one place: without rows.
      if (seed % 7 == 1) ends.push_back(0);
      if (seed % 7 == 2) ends.push_back(ends.back());
      std::sort(ends.begin(), ends.end());
      const auto merged = Metric::Create(name, kwargs);
      int begin = 0;
      for (const int end : ends) {
        const auto part = Metric::Create(name, kwargs);
        if (end > begin || seed % 2 == 0) add(part.get(), begin, end);
        merged->Merge(part->SaveState());
        begin = end;
      }
      if (counting.contains(name)) {
        CHECK(merged->value() == whole->value());
      } else {
        CHECK(merged->value() == doctest::Approx(whole->value()).epsilon(1e-12));
      }
    }
  }
}

// The naive formula, sum y^2 - n mean^2, loses all of them.
TEST_CASE("a merged r2 of labels far from zero keeps its digits") {
  constexpr int kRows = 30;
  Host label({kRows}, Numbers(kRows, 1.3)), pred({kRows}, Numbers(kRows, 0.4));
  for (Host* host : {&label, &pred}) {
    for (float& value : host->values) value = 1e6f + std::round(value * 16) / 16;
  }
  double mean = 0, spread = 0, error = 0;
  for (const float y : label.values) mean += double{y} / kRows;
  for (size_t i = 0; i < kRows; ++i) {
    const double y = label.values[i], difference = y - pred.values[i];
    spread += (y - mean) * (y - mean);
    error += difference * difference;
  }
  const auto merged = Metric::Create("r2");
  for (const auto& [begin, end] : {std::pair{0, 7}, {7, 7}, {7, 29}, {29, 30}}) {
    const auto part = Metric::Create("r2");
    const Host labels = RowsOf(label, begin, end), preds = RowsOf(pred, begin, end);
    part->Update(TBlob(labels), TBlob(preds), end - begin);
    merged->Merge(part->SaveState());
  }
  CHECK(merged->value() == doctest::Approx(1 - error / spread).epsilon(1e-9));
}

TEST_CASE("mean_ap is COCO's of the boxes of all images") {
  // An object that is found at IoU 0.81 behind a box of nothing, one that is missed, one that does
  // not count.
  const Host objects({2, 2, 6}, {0, 0,  0, 10, 10, 0, -1, -1, -1, -1, -1, -1,  //
                                 0, 20, 0, 30, 10, 0, 1,  0,  0,  5,  5,  1}),
      found({2, 2, 6}, {0, 0.6f, 0,  0, 9,  9,  -1, -1,   -1, -1, -1, -1,  //
                        0, 0.9f, 50, 0, 60, 10, 1,  0.8f, 0,  0,  5,  5});
  const auto value = [&](const Kwargs& kwargs) {
    return ValueOf(*Metric::Create("mean_ap", kwargs), objects, found, 2);
  };
  // Recall 0.5 with precision 0.5: 51 of 101 points, at IoU 0.5 to 0.8, of ten.
  CHECK(value({{"iou", "0.5"}}) == doctest::Approx(51 * 0.5 / 101));
  CHECK(value({{"iou", "0.85"}}) == 0);
  CHECK(value({}) == doctest::Approx(0.7 * 51 * 0.5 / 101));
  CHECK(Metric::Create("map", {{"iou", "0.75"}})->name() == "mean_ap_75");
  const auto metric = Metric::Create("mean_ap");
  CHECK_THROWS_WITH_AS(ValueOf(*metric, Host({2}, {0, 1}), found, 2),
                       doctest::Contains("metric mean_ap: labels [2] and output [2, 2, 6]"), Error);
  for (const char* const state :
       {"mean_ap 1", "mean_ap -1", "mean_ap 0.5", "mean_ap 0", "mean_ap nan"})
    CHECK_THROWS_AS(metric->RestoreState(state), Error);
}

TEST_CASE("a state of another metric is not merged") {
  for (const std::string& name : Metric::Names()) {
    const auto metric = Metric::Create(name);
    const std::string before = metric->SaveState();
    std::string ten = metric->name();
    for (int i = 0; i < 10; ++i) ten += " 0x1p+0";
    for (const std::string& text :
         {std::string(), std::string("kappa 0x1p+0 0x1p+1"), metric->name() + " x", ten}) {
      INFO(name << ", '" << text << "'");
      CHECK_THROWS_WITH_AS(metric->Merge(text), doctest::Contains("is not a saved state of metric"),
                           Error);
      CHECK(metric->SaveState() == before);
    }
  }
  // Of another number of outputs.
  const Host label({4, 3}, {0, 1, 0, 1, 0, 1, 0, 0, 1, 1, 1, 0}), narrow({4, 2}, Numbers(8, 1));
  for (const char* name : {"auc", "r2"}) {
    const auto metric = Metric::Create(name), other = Metric::Create(name);
    metric->Update(TBlob(label), TBlob(kScores), 4);
    other->Update(TBlob(narrow), TBlob(narrow), 4);
    CHECK_THROWS_AS(metric->Merge(other->SaveState()), Error);
  }
}

TEST_CASE("errors say what was expected") {
  const auto accuracy = Metric::Create("accuracy");
  CHECK_THROWS_WITH_AS(
      ValueOf(*accuracy, Host({4}, {0, 1, 3, 0}), kScores, 4),
      "metric accuracy: label 3 in row 2 is out of range for the 3 classes of the output", Error);
  CHECK_THROWS_AS(ValueOf(*accuracy, Host({4}, {0, 0.5, 1, 0}), kScores, 4), Error);
  CHECK_THROWS_AS(ValueOf(*accuracy, Host({4}, {0, -1, 1, 0}), kScores, 4), Error);
  CHECK_THROWS_AS(ValueOf(*accuracy, Host({4, 2}, std::vector<float>(8)), kScores, 4), Error);
  CHECK_THROWS_AS(ValueOf(*accuracy, Host({3}, {0, 0, 0}), kScores, 3), Error);
  CHECK_THROWS_AS(ValueOf(*accuracy, Host({4}, {0, 0, 0, 0}), kScores, 5), Error);
  CHECK_THROWS_AS(ValueOf(*Metric::Create("mse"), Host({4}, {0, 0, 0, 0}), kScores, 4), Error);
  // At least two classes are needed.
  CHECK_THROWS_AS(ValueOf(*accuracy, Host({4}, {0, 0, 0, 0}), Host({4, 1}, {0, 0, 0, 0}), 4),
                  Error);
  CHECK_THROWS_AS(accuracy->Update({nullptr, {1}, DType::kInt32, {}, Context::cpu()}, kScores, 1),
                  Error);
  CHECK_THROWS_WITH_AS(Metric::Create("acuracy"),
                       "there is no metric 'acuracy'; did you mean 'accuracy'?", Error);
  CHECK_THROWS_WITH_AS(Metric::Create("kappa"),
                       "there is no metric 'kappa'; use accuracy, top_k, cross_entropy, "
                       "perplexity, f1, mean_iou, mean_ap, cer, wer, multilabel_accuracy, "
                       "multilabel_f1, auc, mse, rmse, mae, psnr, r2",
                       Error);
  CHECK_THROWS_AS(Metric::Create("top_k", {{"k", "0"}}), Error);
  CHECK_THROWS_AS(Metric::Create("mse", {{"k", "1"}}), Error);
  CHECK_THROWS_WITH_AS(Metric::Create("psnr", {{"k", "1"}}), doctest::Contains("metric psnr"),
                       Error);
  CHECK(Metric::Describe("top_k").size() == 2);
}

// The rows of an array, each as often as its number says.
Host Repeated(const Host& rows, const std::vector<int>& times) {
  TShape shape = rows.shape;
  const auto width = static_cast<size_t>(shape.Product(1, shape.ndim()));
  std::vector<float> values;
  shape[0] = 0;
  for (size_t n = 0; n < times.size(); ++n) {
    shape[0] += times[n];
    for (int k = 0; k < times[n]; ++k)
      values.insert(values.end(), rows.values.begin() + static_cast<std::ptrdiff_t>(n * width),
                    rows.values.begin() + static_cast<std::ptrdiff_t>((n + 1) * width));
  }
  return {shape, values};
}

Host Drawn(const TShape& shape, uint64_t stream, float factor) {
  std::vector<float> values;
  for (int64_t i = 0; i < shape.Size(); ++i) {
    const uint32_t bits = PhiloxAt(7, stream, 0, static_cast<uint64_t>(i));
    values.push_back(factor * static_cast<float>(bits >> 8) / static_cast<float>(1 << 24));
  }
  return {shape, values};
}

TEST_CASE("an example with a weight counts as so many of them, in every metric but mean_ap") {
  const std::vector<int> times = {1, 3, 0, 2, 1, 0, 5, 1};
  const auto count = std::ssize(times);
  const Host weights({count}, std::vector<float>(times.begin(), times.end()));
  const auto classes = [&](const TShape& shape, int of) {
    Host labels = Drawn(shape, 1, static_cast<float>(of));
    for (float& label : labels.values) label = std::floor(label);
    return labels;
  };
  const Host scores = Drawn({count, 3}, 2, 1), truths = classes({count}, 3);
  const Host one_of_two({count}, {0, 1, 1, 0, 1, 0, 1, 0});
  const Host two({count, 2}, {0.6f, 0.4f, 0.1f, 0.9f, 0.8f, 0.2f, 0.4f, 0.6f,  //
                              0.7f, 0.3f, 0.9f, 0.1f, 0.2f, 0.8f, 0.3f, 0.7f});
  const Host sets = classes({count, 3}, 2), values = Drawn({count, 2}, 4, 5);
  const Host others = Drawn({count, 2}, 5, 5);
  const Host maps = Drawn({count, 3, 2, 2}, 6, 1), pixels = classes({count, 2, 2}, 3);
  Host texts = classes({count, 4}, 3), said({count, 4, 2}, std::vector<float>(count * 8));
  for (size_t i = 0; i < texts.values.size(); ++i) {
    texts.values[i] += 1;
    said.values[2 * i] = i % 3 == 0 ? 1.0f : texts.values[i];
  }
  struct Case {
    const char* name;
    Kwargs params;
    const Host *label, *pred;
  };
  const std::vector<Case> cases = {
      {"accuracy", {}, &truths, &scores},
      {"accuracy", {{"ignore_label", "1"}}, &truths, &scores},
      {"accuracy", {}, &pixels, &maps},
      {"top_k", {{"k", "2"}}, &truths, &scores},
      {"cross_entropy", {}, &truths, &scores},
      {"perplexity", {}, &truths, &scores},
      {"f1", {}, &truths, &scores},
      {"f1", {{"average", "binary"}}, &one_of_two, &two},
      {"mean_iou", {}, &pixels, &maps},
      {"cer", {{"blank_label", "first"}}, &texts, &said},
      {"wer", {{"blank_label", "first"}, {"space", "2"}}, &texts, &said},
      {"multilabel_accuracy", {}, &sets, &scores},
      {"multilabel_f1", {}, &sets, &scores},
      {"multilabel_f1", {{"average", "micro"}}, &sets, &scores},
      {"auc", {}, &truths, &scores},
      {"auc", {}, &one_of_two, &two},
      {"auc", {}, &sets, &scores},
      {"mse", {}, &values, &others},
      {"rmse", {}, &values, &others},
      {"mae", {}, &values, &others},
      {"psnr", {}, &values, &others},
      {"r2", {}, &values, &others}};
  std::set<std::string> seen;
  for (const Case& c : cases) {
    CAPTURE(c.name);
    seen.insert(c.name);
    const auto metric = Metric::Create(c.name, c.params),
               repeated = Metric::Create(c.name, c.params);
    const Host label = Repeated(*c.label, times), pred = Repeated(*c.pred, times);
    const TBlob w = weights;
    metric->Update(*c.label, *c.pred, count, &w);
    repeated->Update(label, pred, label.shape[0]);
    CHECK(metric->value() == doctest::Approx(repeated->value()).epsilon(1e-12));
    CHECK(std::isfinite(metric->value()));
    CHECK(metric->value() != doctest::Approx(ValueOf(*repeated, *c.label, *c.pred, count)));
    // What is merged and restored continues with the weights.
    const auto parts = Metric::Create(c.name, c.params), second = Metric::Create(c.name, c.params);
    parts->Update(*c.label, *c.pred, 4, &w);
    Host late = weights;
    for (size_t i = 0; i < 4; ++i) late.values[i] = 0;
    const TBlob of_late = late;
    second->Update(*c.label, *c.pred, count, &of_late);
    parts->Merge(second->SaveState());
    CHECK(parts->value() == doctest::Approx(metric->value()).epsilon(1e-12));
    const auto restored = Metric::Create(c.name, c.params);
    restored->RestoreState(metric->SaveState());
    CHECK(restored->value() == metric->value());
  }
  for (const std::string& name : Metric::Names())
    CHECK(Metric::Create(name)->takes_weights() == (name != "mean_ap"));
  for (const std::string& name : Metric::Names()) CHECK((seen.contains(name) || name == "mean_ap"));
}

TEST_CASE("weights that do not fit, and a loss beside which they stand") {
  const Host labels({2}, {0, 1}), scores({2, 2}, {0.9f, 0.1f, std::nanf(""), 0.2f});
  const Host weights({2}, {2, 0}), three({3}, {1, 1, 1});
  const TBlob good = weights, bad = three;
  const auto entropy = Metric::Create("cross_entropy");
  entropy->Update(labels, scores, 2, &good);
  CHECK(entropy->value() == doctest::Approx(-std::log(0.9)));  // the NaN has no weight
  CHECK_THROWS_WITH_AS(entropy->Update(labels, scores, 2, &bad),
                       "metric cross_entropy: 3 weights cannot weigh an output of 2 rows", Error);
  CHECK_THROWS_WITH_AS(Metric::Create("mean_ap")->Update(labels, scores, 2, &good),
                       "metric mean_ap counts every example once: examples cannot have weights",
                       Error);
  // Without weights again, all count alike.
  entropy->Reset();
  entropy->Update(labels, Host({2, 2}, {0.5f, 0.5f, 0.5f, 0.5f}), 2);
  CHECK(entropy->value() == doctest::Approx(std::log(2)));
  entropy->Reset();
  const Host losses({2}, {3, 5});
  entropy->UpdateFromLosses(labels, losses, 2, &good);
  CHECK(entropy->value() == doctest::Approx(3).epsilon(1e-9));
}

}  // namespace
}  // namespace mxtrain

// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "mxtrain/base/error.h"
#include "mxtrain/base/philox.h"
#include "mxtrain/metric/edit_distance.h"
#include "mxtrain/metric/metric.h"

namespace mxtrain {
namespace {

// By trying everything.
int64_t TriedDistance(const std::string& truth, const std::string& said) {
  if (truth.empty() || said.empty()) return std::ssize(truth) + std::ssize(said);
  const std::string t = truth.substr(1), s = said.substr(1);
  if (truth[0] == said[0]) return TriedDistance(t, s);
  return 1 + std::min({TriedDistance(t, s), TriedDistance(t, said), TriedDistance(truth, s)});
}

TEST_CASE("the edit distance is the least number of steps") {
  CHECK(EditDistance(std::string("kitten"), std::string("sitting")) == 3);
  CHECK(EditDistance(std::string(), std::string("abc")) == 3);
  uint32_t draw = 1;
  for (int i = 0; i < 300; ++i) {
    std::string words[2];
    for (std::string& word : words) {
      draw = draw * 1664525u + 1013904223u;
      const auto length = static_cast<size_t>(draw >> 28) % 7;
      for (size_t k = 0; k < length; ++k) {
        draw = draw * 1664525u + 1013904223u;
        word += static_cast<char>('a' + (draw >> 28) % 3);
      }
    }
    const int64_t distance = TriedDistance(words[0], words[1]);
    INFO(words[0] << " " << words[1]);
    CHECK(EditDistance(words[0], words[1]) == distance);
    // The steps make one of the other, and so many of them change something.
    std::string made;
    int64_t changes = 0;
    size_t used = 0;
    for (const Edit& edit : ShortestEdits(words[0], words[1])) {
      changes += edit.kind == Edit::kSame ? 0 : 1;
      if (edit.kind != Edit::kPutIn) CHECK(static_cast<size_t>(edit.truth) == used++);
      if (edit.kind == Edit::kSame)
        CHECK(words[0][static_cast<size_t>(edit.truth)] ==
              words[1][static_cast<size_t>(edit.said)]);
      if (edit.kind != Edit::kLeftOut) made += words[1][static_cast<size_t>(edit.said)];
    }
    CHECK(made == words[1]);
    CHECK(used == words[0].size());
    CHECK(changes == distance);
  }
}

struct Texts {
  TShape shape;
  std::vector<float> values;
  operator TBlob() const {
    return {const_cast<float*>(values.data()), shape, DType::kFloat32, {}, Context::cpu()};
  }
};

TEST_CASE("cer and wer count the errors of letters and words") {
  // "ab_c", "a", and a text that is not counted; _ is 4.
  const Texts label{{3, 5}, {1, 2, 4, 3, 0, 1, 0, 9, 9, 9, 1, 1, 1, 1, 1}};
  // "aab_c" (one letter too many, in one word of two); "" (a letter and a word deleted).
  const Texts said{{3, 6, 2}, std::vector<float>(36, -1)};
  Texts pred = said;
  const float first[] = {1, 1, 2, 4, 3};
  for (size_t i = 0; i < 5; ++i) {
    pred.values[2 * i] = first[i];
    pred.values[2 * i + 1] = 0.5f;
  }
  const auto value = [&](const char* name, const Kwargs& kwargs, const Texts& truth) {
    const auto metric = Metric::Create(name, kwargs);
    metric->Update(truth, pred, 2);
    CHECK_FALSE(metric->higher_is_better());
    return metric->value();
  };
  CHECK(value("cer", {}, label) == 2.0 / 5);
  CHECK(value("wer", {{"space", "4"}}, label) == 2.0 / 3);
  CHECK(value("wer", {}, label) == 1);  // two texts of a word each, both wrong
  CHECK(value("word_error_rate", {}, label) == 1);
  Texts last = label;  // labels from 0, which end at -1
  last.values = {0, 1, 3, 2, -1, 0, -1, 9, 9, 9, 0, 0, 0, 0, 0};
  const Kwargs kwargs = {{"blank_label", "last"}};
  for (size_t i = 0; i < 5; ++i) pred.values[2 * i] -= 1;
  CHECK(value("cer", kwargs, last) == 2.0 / 5);
}

TEST_CASE("merged states of cer and wer have the value of all texts") {
  Texts label{{6, 4}, {}}, pred{{6, 5, 2}, {}};
  for (int i = 0; i < 24; ++i)
    label.values.push_back(i % 4 == 3 ? 0.0f : static_cast<float>(1 + i % 3));
  for (int i = 0; i < 60; ++i) pred.values.push_back(static_cast<float>(i * 7 % 5 - 1));
  for (const char* name : {"cer", "wer"}) {
    const auto whole = Metric::Create(name), merged = Metric::Create(name);
    whole->Update(label, pred, 6);
    for (size_t row = 0; row < 6; ++row) {
      const Texts one{{1, 4},
                      {label.values.begin() + 4 * static_cast<int>(row),
                       label.values.begin() + 4 * static_cast<int>(row + 1)}},
          said{{1, 5, 2},
               {pred.values.begin() + 10 * static_cast<int>(row),
                pred.values.begin() + 10 * static_cast<int>(row + 1)}};
      const auto part = Metric::Create(name);
      part->Update(one, said, 1);
      merged->Merge(part->SaveState());
    }
    CHECK(whole->value() > 0);
    CHECK(merged->value() == whole->value());
  }
}

TEST_CASE("cer and wer: what is no text") {
  const auto cer = Metric::Create("cer");
  CHECK(std::isnan(cer->value()));
  const Texts label{{1, 2}, {1, 2}}, scores{{1, 3}, {1, 2, 3}}, said{{1, 1, 2}, {1, 0.5f}};
  CHECK_THROWS_WITH_AS(cer->Update(label, scores, 1),
                       "metric cer: labels [1, 2] and output [1, 3]; expected texts (N, letters) "
                       "and what ctc_greedy_decoder says (N, steps, 2)",
                       Error);
  const Texts wrong{{1, 2}, {1, std::nanf("")}};
  CHECK_THROWS_WITH_AS(cer->Update(wrong, said, 1), doctest::Contains("is no label"), Error);
  CHECK_THROWS_AS(Metric::Create("wer", {{"blank_label", "middle"}}), Error);
}

}  // namespace
}  // namespace mxtrain

// SPDX-License-Identifier: Apache-2.0
// Predictions and evaluation of lines of text, against counts by hand.
#include <doctest/doctest.h>

#include <limits>

#include "app/tasks/task_list.h"
#include "app/tasks/text_lines/line_report.h"
#include "app/tasks/text_lines/said_text.h"
#include "mxtrain/ndarray/runtime.h"
#include "tests/support/naive_runtime.h"

namespace mxtrain::tasks {
namespace {

constexpr int64_t kLines = 3, kSteps = 4, kLetters = 3;

// Batches with a label of three letters.
class LabelledLines final : public DataIter {
 public:
  std::vector<DataDesc> provide_data() const override { return {}; }
  std::vector<DataDesc> provide_label() const override { return {{"truth", {kLines, kLetters}}}; }
  int64_t batch_size() const override { return kLines; }
  int64_t batches_per_epoch() const override { return 1; }
  int64_t examples() const override { return kLines; }
  std::string ExampleName(int64_t index) const override { return format("{}.png", index); }
  void Reset(int64_t, int64_t) override {}
  bool Next(DataBatch*) override { return false; }
  Stats stats() const override { return {}; }
};

Head LineHead(const TShape& shape, const std::string& op = "ctc_greedy_decoder") {
  Head head;
  head.name = "text";
  head.label = "truth";
  head.op = op;
  head.shape = shape;
  head.label_shape = TShape{kLines, kLetters};
  head.facts.classes = {" ", "a", "b"};
  return head;
}

// Rows of a class and its probability, then of -1.
std::vector<float> SaidRows(std::initializer_list<float> classes, float probability) {
  std::vector<float> rows;
  for (const float k : classes) rows.insert(rows.end(), {k, probability});
  rows.resize(kSteps * 2, -1);
  return rows;
}

}  // namespace

TEST_CASE("a head of ctc_greedy_decoder is of the task text_lines") {
  const auto task = TaskOf(LineHead({kLines, kSteps, 2}), "");
  REQUIRE(task);
  CHECK(task->kind() == "text_lines");
  CHECK(task->DefaultMetric().name == "cer");
  CHECK(TaskOf(LineHead({kLines, kSteps, 2}, "Reshape"), "")->kind() != "text_lines");
  report::SheetImage shown;
  task->Show(std::vector<float>{3, 1, 0}, {1, 3}, &shown);
  CHECK(shown.lines == std::vector<std::string>{"b "});
}

TEST_CASE("the prediction of a line is its text, and the product of its probabilities") {
  const auto predictor = TaskOf(LineHead({1, kSteps, 2}), "")->NewPredictor({});
  REQUIRE(predictor);
  CHECK(predictor->width() == kSteps * 2);
  const std::vector<float> rows = SaidRows({2, 3, 9}, 0.5F);
  const auto p = predictor->Predict(rows, {});
  CHECK(p->Cells() == std::vector<std::string>{"ab\xef\xbf\xbd", "0.125"});
  CHECK(p->ToJson()["text"] == "ab\xef\xbf\xbd");
  CHECK(p->Caption() == "ab\xef\xbf\xbd");
  const std::vector<float> nothing = SaidRows({}, 0);
  CHECK(predictor->Predict(nothing, {})->Text() == "- 1.0000");
  std::vector<float> broken = rows;
  broken[1] = std::numeric_limits<float>::quiet_NaN();
  CHECK(predictor->Predict(broken, {})->Text() == "nan");
  CHECK(predictor->Predict(broken, {})->ToJson()["text"].is_null());
}

TEST_CASE("a report of lines counts letters, words and lines") {
  Runtime runtime(test::NaiveOptions(), nullptr);
  const LabelledLines iter;
  LineReport report(LineHead({kLines, kSteps, 2}), {" ", "a", "b"});
  CHECK(report.empty());
  DataBatch batch;
  batch.count = kLines;
  batch.index = {0, 1, 2};
  // "a b", "ab", "b".
  batch.label = {NDArray::FromVector(runtime, {kLines, kLetters}, {2, 1, 3, 2, 3, 0, 3, 0, 0})};
  // "a a", "aab", "b": a letter replaced, one inserted; two of four words are wrong.
  std::vector<float> said = SaidRows({2, 1, 2}, 1);
  for (const auto& rows : {SaidRows({2, 2, 3}, 1), SaidRows({3}, 1)})
    said.insert(said.end(), rows.begin(), rows.end());
  const std::vector<NDArray> outputs = {NDArray::FromVector(runtime, {kLines, kSteps, 2}, said)};
  report.Add(Examples(batch, iter, nullptr), outputs);
  report.Finish();
  CHECK(report.cer() == 2.0 / 6);
  CHECK(report.wer() == 2.0 / 4);
  REQUIRE(report.mistakes().size() == 2);
  CHECK(report.mistakes()[0].truth == "ab");  // one error in two letters
  CHECK(report.mistakes()[0].said == "aab");
  Json json;
  report.AddTo(&json, 1, false);
  CHECK(json["text_lines"]["right"] == 1);
  CHECK(json["text_lines"]["replaced"] == 1);
  CHECK(json["text_lines"]["put_in"] == 1);
  CHECK(json["text_lines"]["left_out"] == 0);
  CHECK(json["text_lines"]["worst"].size() == 1);
  CHECK(report.Text(1, false).find("'a' for 'b': 1") != std::string::npos);
  CHECK(report.CsvLines(false).find(",1,3,6,4,1,0,1\n") != std::string::npos);
}

}  // namespace mxtrain::tasks

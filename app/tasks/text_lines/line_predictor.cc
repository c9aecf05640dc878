// SPDX-License-Identifier: Apache-2.0
#include "app/tasks/text_lines/line_predictor.h"

#include <utility>

#include "app/tasks/text_lines/said_text.h"
#include "mxtrain/base/format.h"

namespace mxtrain::tasks {
namespace {

class LinePrediction final : public HeadPrediction {
 public:
  LinePrediction(std::span<const float> numbers, const std::vector<std::string>& alphabet)
      : numbers_(numbers), finite_(IsFinite(numbers)) {
    if (!finite_) return;
    SaidText said = ReadSaidText(numbers, alphabet);
    text_ = said.text();
    probability_ = said.probability;
  }

  std::span<const float> numbers() const override { return numbers_; }
  std::string Text() const override {
    return finite_ ? format("{} {:.4f}", text_.empty() ? "-" : text_, probability_) : "nan";
  }
  std::vector<std::string> Cells() const override {
    return {text_, finite_ ? format("{:.6g}", probability_) : "nan"};
  }
  Json ToJson() const override {
    if (!finite_) return {{"text", nullptr}, {"score", nullptr}};
    return {{"text", text_}, {"score", probability_}};
  }
  std::string Caption() const override { return finite_ ? text_ : "nan"; }

 private:
  const std::span<const float> numbers_;
  const bool finite_;
  std::string text_;
  double probability_ = 0;
};

class LinePredictor final : public Predictor {
 public:
  LinePredictor(int64_t width, std::vector<std::string> alphabet)
      : width_(width), alphabet_(std::move(alphabet)) {}

  // The steps of other views of an image are other steps.
  Abilities abilities() const override { return {.placed = true}; }
  int64_t width() const override { return width_; }
  std::vector<std::string> Columns() const override { return {"text", "score"}; }
  std::unique_ptr<HeadPrediction> Predict(std::span<const float> values,
                                          const Example& /*example*/) const override {
    return std::make_unique<LinePrediction>(values, alphabet_);
  }
  std::string HowNotFinite() const override {
    return "no text is predicted, and the score is shown as nan";
  }

 private:
  const int64_t width_;
  const std::vector<std::string> alphabet_;
};

}  // namespace

std::unique_ptr<Predictor> NewLinePredictor(int64_t width, std::vector<std::string> alphabet) {
  return std::make_unique<LinePredictor>(width, std::move(alphabet));
}

}  // namespace mxtrain::tasks

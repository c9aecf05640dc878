// SPDX-License-Identifier: Apache-2.0
#include "app/tasks/regression/value_predictor.h"

#include "mxtrain/base/format.h"

namespace mxtrain::tasks {
namespace {

class Values final : public HeadPrediction {
 public:
  Values(std::vector<float> values, const std::vector<std::string>& names)
      : values_(std::move(values)), names_(names) {}

  std::span<const float> numbers() const override { return values_; }
  std::string Text() const override { return Joined("  "); }
  std::vector<std::string> Cells() const override {
    std::vector<std::string> cells;
    for (const float value : values_) cells.push_back(TextOf(value));
    return cells;
  }
  Json ToJson() const override { return {{"values", values_}}; }
  std::string Caption() const override { return IsFinite(values_) ? Joined(", ") : "nan"; }

 private:
  // "width 31.25, height 8"
  std::string Joined(const char* separator) const {
    std::string text;
    for (size_t k = 0; k < values_.size(); ++k)
      text += format("{}{} {}", k > 0 ? separator : "", names_[k], TextOf(values_[k]));
    return text;
  }

  const std::vector<float> values_;
  const std::vector<std::string>& names_;
};

class ValuePredictor final : public Predictor {
 public:
  ValuePredictor(int64_t width, std::vector<std::string> names,
                 std::optional<Standardization> units)
      : names_(std::move(names)), units_(std::move(units)) {
    if (static_cast<int64_t>(names_.size()) == width) return;
    names_.clear();
    for (int64_t k = 1; k <= width; ++k)
      names_.push_back(width == 1 ? "value" : format("value_{}", k));
  }

  Abilities abilities() const override { return {}; }
  int64_t width() const override { return static_cast<int64_t>(names_.size()); }
  std::vector<std::string> Columns() const override {
    std::vector<std::string> columns;
    for (const std::string& name : names_) columns.push_back("predicted_" + name);
    return columns;
  }
  std::unique_ptr<HeadPrediction> Predict(std::span<const float> values,
                                          const Example& /*example*/) const override {
    std::vector<float> in_units(values.begin(), values.end());
    if (units_) units_->Restore(&in_units);
    return std::make_unique<Values>(std::move(in_units), names_);
  }
  std::string HowNotFinite() const override { return "the values are shown as nan, inf or -inf"; }

 private:
  std::vector<std::string> names_;
  const std::optional<Standardization> units_;
};

}  // namespace

std::unique_ptr<Predictor> NewValuePredictor(int64_t width, std::vector<std::string> names,
                                             std::optional<Standardization> units) {
  return std::make_unique<ValuePredictor>(width, std::move(names), std::move(units));
}

}  // namespace mxtrain::tasks

// SPDX-License-Identifier: Apache-2.0
#include "app/session/normalized_columns.h"

#include <algorithm>

#include "app/session/code_columns.h"
#include "mxtrain/base/suggest.h"
#include "mxtrain/io/find_table_columns.h"

namespace mxtrain::session {
namespace {

bool IsInteger(DType type) {
  return type == DType::kUint8 || type == DType::kInt32 || type == DType::kInt64;
}

class Choice {
 public:
  Choice(const SessionView& session, const std::vector<std::string>& targets)
      : session_(session),
        config_(session.config().data.train),
        codes_(FindCodeColumns(session.net)),
        targets_(targets) {}

  std::map<std::string, std::vector<NormalizedColumn>> Make(const io::Source& training) {
    CheckNames();
    std::map<std::string, std::vector<NormalizedColumn>> chosen;
    for (const io::FieldSpec& field : training.data_fields()) {
      if (field.kind == io::FieldKind::kValues) Choose(field.name, /*input=*/true, &chosen);
    }
    for (const std::string& target : targets_) Choose(target, /*input=*/false, &chosen);
    session_.diagnostics.ThrowIfErrors();
    return chosen;
  }

 private:
  const config::NormalizedColumns& wanted() const { return config_.normalize; }
  config::Place place() const {
    const config::Place own = session_.loaded.PlaceOf("data.train.normalize");
    return own ? own : config_.place;
  }

  void CheckNames() const {
    std::vector<std::string> known;
    for (const config::Column& column : config_.columns)
      known.insert(known.end(), column.columns.begin(), column.columns.end());
    for (const auto* names :
         {&wanted().columns, &wanted().except, &wanted().log, &wanted().quantile}) {
      for (const std::string& name : *names) {
        if (std::ranges::count(known, name) > 0) continue;
        session_.diagnostics.Error(
            place(), format("normalize names '{}', which is not among data.train.columns{}", name,
                            DidYouMean(name, known)));
      }
    }
  }

  void Choose(const std::string& field, bool input,
              std::map<std::string, std::vector<NormalizedColumn>>* chosen) const {
    const auto columns = std::ranges::find(config_.columns, field, &config::Column::input);
    if (columns == config_.columns.end()) return;
    std::vector<NormalizedColumn> of;
    for (size_t k = 0; k < columns->columns.size(); ++k) {
      const bool takes = Takes(*columns, k, input);
      of.push_back(
          {takes, takes ? TransformOf(columns->columns[k], input) : ColumnTransform::kNone});
    }
    if (std::ranges::any_of(of, &NormalizedColumn::standardized)) (*chosen)[field] = of;
  }

  bool Takes(const config::Column& column, size_t k, bool input) const {
    const std::string& name = column.columns[k];
    const auto in = [&name](const std::vector<std::string>& names) {
      return std::ranges::count(names, name) > 0;
    };
    const bool named = in(wanted().columns) || in(wanted().log) || in(wanted().quantile);
    if (!named && !wanted().automatic) return false;
    if (in(wanted().except)) {
      if (named)
        session_.diagnostics.Error(
            place(), format("normalize names '{}' both in except and in a transform", name));
      return false;
    }
    const std::string why = input ? WhyNot(column.input, k) : "";
    if (why.empty()) return true;
    if (named) {
      session_.diagnostics.Error(place(), format("normalize names '{}', but {}", name, why),
                                 "remove it from the list");
    }
    return false;
  }

  ColumnTransform::Kind TransformOf(const std::string& name, bool input) const {
    const bool log = std::ranges::count(wanted().log, name) > 0;
    const bool quantile = std::ranges::count(wanted().quantile, name) > 0;
    if (log && quantile)
      session_.diagnostics.Error(place(),
                                 format("normalize names '{}' in log and in quantile", name));
    if (quantile && !input)
      session_.diagnostics.Error(
          place(), format("normalize: quantile names '{}', which is to be predicted", name),
          "quantile is for inputs; log also for labels");
    return log        ? ColumnTransform::kLog
           : quantile ? ColumnTransform::kQuantile
                      : ColumnTransform::kNone;
  }

  // Why a column stays as it is; "" if it need not.
  std::string WhyNot(const std::string& input, size_t k) const {
    const auto columns = std::ranges::find(config_.columns, input, &config::Column::input);
    if (!io::IndicatedColumn(columns->columns[k]).empty())
      return "it is 0 or 1, where a cell is missing";
    const auto declared = std::ranges::find(session_.net.inputs, input, &config::NetInput::name);
    if (declared != session_.net.inputs.end() && IsInteger(declared->dtype))
      return format("the net's input '{}' has integers", input);
    const auto codes = codes_.find(input);
    if (codes == codes_.end()) return "";
    if (k < codes->second.rows.size() && codes->second.rows[k] > 0)
      return "its numbers are codes, which choose rows of a weight";
    if (!codes->second.unclear.empty() && wanted().automatic && wanted().except.empty() && k == 0) {
      session_.diagnostics.Error(
          place(),
          format(
              "normalize: auto cannot tell which columns of '{}' are numbers and which are codes "
              "that '{}' reads",
              input, codes->second.unclear),
          "name the numbers, normalize: {columns: [a, b]}, or the codes, normalize: {except: [c]}; "
          "an "
          "input with dtype: int32 is never standardized");
    }
    return "";
  }

  const SessionView& session_;
  const config::SourceConfig& config_;
  const std::map<std::string, CodeColumns> codes_;
  const std::vector<std::string>& targets_;
};

}  // namespace

std::map<std::string, std::vector<NormalizedColumn>> NormalizedFields(
    const SessionView& session, const io::Source& training,
    const std::vector<std::string>& targets) {
  return Choice(session, targets).Make(training);
}

}  // namespace mxtrain::session

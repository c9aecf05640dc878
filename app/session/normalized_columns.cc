// SPDX-License-Identifier: Apache-2.0
#include "app/session/normalized_columns.h"

#include <algorithm>

#include "app/session/code_columns.h"
#include "mxtrain/base/suggest.h"

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

  std::map<std::string, std::vector<bool>> Make(const io::Source& training) {
    CheckNames();
    std::map<std::string, std::vector<bool>> chosen;
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
    for (const auto* names : {&wanted().columns, &wanted().except}) {
      for (const std::string& name : *names) {
        if (std::ranges::count(known, name) > 0) continue;
        session_.diagnostics.Error(
            place(), format("normalize names '{}', which is not among data.train.columns{}", name,
                            DidYouMean(name, known)));
      }
    }
  }

  void Choose(const std::string& field, bool input,
              std::map<std::string, std::vector<bool>>* chosen) const {
    const auto columns = std::ranges::find(config_.columns, field, &config::Column::input);
    if (columns == config_.columns.end()) return;
    std::vector<bool> of;
    for (size_t k = 0; k < columns->columns.size(); ++k) of.push_back(Takes(*columns, k, input));
    if (std::ranges::count(of, true) > 0) (*chosen)[field] = of;
  }

  bool Takes(const config::Column& column, size_t k, bool input) const {
    const std::string& name = column.columns[k];
    const bool named = std::ranges::count(wanted().columns, name) > 0;
    if (!named && !wanted().automatic) return false;
    if (std::ranges::count(wanted().except, name) > 0) return false;
    const std::string why = input ? WhyNot(column.input, k) : "";
    if (why.empty()) return true;
    if (named) {
      session_.diagnostics.Error(place(), format("normalize names '{}', but {}", name, why),
                                 "remove it from the list");
    }
    return false;
  }

  // Why a column stays as it is; "" if it need not.
  std::string WhyNot(const std::string& input, size_t k) const {
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

std::map<std::string, std::vector<bool>> NormalizedFields(const SessionView& session,
                                                          const io::Source& training,
                                                          const std::vector<std::string>& targets) {
  return Choice(session, targets).Make(training);
}

}  // namespace mxtrain::session

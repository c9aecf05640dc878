// SPDX-License-Identifier: Apache-2.0
#pragma once
// The training and validation records of a configuration: which source they come from, opened once,
// with class names and statistics of the training set for both.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/session/session_view.h"
#include "mxtrain/io/example_files.h"
#include "mxtrain/io/source.h"

namespace mxtrain::session {

class DataSets {
 public:
  explicit DataSets(const SessionView& session) : session_(session) {}

  // The records, opened at the first call; null if the configuration names none. Throws kData for a
  // missing path, kConfig for labels that do not fit the loss, DiagnosticError for columns that are
  // missing, here or in the file, and for keys that the source refuses.
  std::shared_ptr<const io::Source> Open(bool validation);
  // Those that have been opened; else null.
  const std::shared_ptr<const io::Source>& opened(bool validation) const {
    return validation ? validation_ : training_;
  }
  // Of the training set, once it is open; empty if it names none.
  const std::vector<std::string>& class_names() const { return class_names_; }
  // The value of ${classes}, for a net that is not built yet: those of a table are the classes of
  // its first label of words. Nothing if the training set, which must exist, names none.
  std::optional<int64_t> CountClasses(const OperatorRegistry& operators);
  // The value of ${tokens}: the number of ids that texts have (io::Source::num_tokens). Nothing if
  // the training set, which must exist, holds none.
  std::optional<int64_t> CountTokens();

  // Data for a model that exists, resumed or evaluated: how its validation data was drawn, and what
  // was found in its training data (SourceKind::carried), as its pipeline says. Before Open.
  void KeepFindings(const std::string& pipeline);

  // Whether validation data is a part of the training set.
  bool HoldsOut() const;
  // Where the records come from, and as what io::MakeSource opens them.
  const config::SourceConfig& ConfigOf(bool validation) const;
  Kwargs ParamsOf(bool validation) const;
  Kwargs WholeParamsOf(bool validation) const;  // before examples are held out
  // The folder that their files lie in.
  std::string RootOf(bool validation) const { return io::RootOf(ParamsOf(validation)); }

 private:
  const config::Config& config() const { return session_.config(); }
  std::shared_ptr<const io::Source> Make(const config::SourceConfig& c, const Kwargs& params) const;
  std::shared_ptr<const io::Source> BeforeNet() const;
  config::Net NetOfOneClass(const OperatorRegistry& operators) const;
  config::Place PlaceOfError(const config::SourceConfig& c, const std::string& what) const;
  void RequirePath(const config::SourceConfig& c) const;
  void CheckColumns(const config::SourceConfig& c) const;
  void WarnOfUnreadColumns(const config::SourceConfig& c) const;
  void CompleteTable();
  void CheckTargets(const std::vector<std::string>& targets) const;

  const SessionView session_;
  std::shared_ptr<const io::Source> training_, validation_;
  std::vector<std::string> class_names_;
  // Of held-out data, as HoldoutParam names them; no seed: that of the configuration.
  std::string draw_ = "file", draw_seed_;
  Kwargs kept_;          // what was found in the training data of a model that exists
  Kwargs table_params_;  // for sources of tables: format and statistics of the training set
};

}  // namespace mxtrain::session

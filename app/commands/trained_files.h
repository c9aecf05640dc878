// SPDX-License-Identifier: Apache-2.0
#pragma once
// The files that a run was trained on, kept in its folder: whether examples that a metric is of are
// among them, also when the data has grown or moved since.
#include <set>
#include <string>
#include <vector>

#include "app/report/run_folder.h"
#include "mxtrain/io/source.h"

namespace mxtrain::commands {

class TrainedFiles {
 public:
  static constexpr const char* kName = "trained_on.txt";  // in a run folder

  // Those of a source, whose files lie below `root` or in an archive; paths are taken without the
  // folders that all begin with. None for a source without files, for one of more than 100000
  // and for an archive of more than 4 GiB, whose sizes would take long to look up.
  static TrainedFiles Of(const io::Source& source, const std::string& root);
  // Those of a run; none if it kept no list.
  static TrainedFiles OfRun(const std::string& run);

  bool empty() const { return files_.empty(); }
  void Add(const TrainedFiles& more) { files_.insert(more.files_.begin(), more.files_.end()); }
  void Save(const report::RunFolder& folder) const;
  // Names of those examples whose path below `root` and size are those of a file of the list,
  // also where one of the two lies in an archive.
  std::vector<std::string> In(const io::Source& source, const std::string& root) const;

 private:
  std::set<std::string> files_;  // "SIZE PATH"
};

}  // namespace mxtrain::commands

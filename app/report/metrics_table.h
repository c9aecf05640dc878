#pragma once
// metrics.csv of a run folder, read back: a row per epoch.
#include <string>
#include <vector>

#include "mxtrain/train/events.h"

namespace mxtrain::report {

struct MetricsTable {
  std::vector<std::string> columns;  // "epoch", "step", "lr", "seconds", "images_per_second", "train_loss", ..., "val_loss", ..., "best"
  std::vector<std::vector<double>> rows;  // a number for each column; NaN where a cell holds none

  // The values of one column; empty where there is none of that name.
  std::vector<double> Column(const std::string& name) const;
  // What was measured, in the order of the file: "loss", "accuracy": columns train_* and val_* without what stands before them.
  std::vector<std::string> Measures() const;
  // Of the last row that is marked as best; NaN for none.
  double BestEpoch() const;
};

// "top_5_accuracy" as people write it.
std::string Words(std::string name);
// An empty table where there is no such file. Throws kData for a file that is no such table.
MetricsTable ReadMetrics(const std::string& path);
// The file with one more row; rows of the same epoch and later ones are replaced. Throws kFileSystem.
void AppendMetrics(const std::string& path, const EpochEvent& epoch);

}  // namespace mxtrain::report

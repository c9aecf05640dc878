// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reads metrics.csv of a run folder: one row per epoch.
#include <string>
#include <vector>

#include "mxtrain/train/events.h"

namespace mxtrain::report {

struct MetricsTable {
  // "epoch", "step", "lr", "seconds", "images_per_second", "train_loss", ..., "val_loss", ...,
  // "best".
  std::vector<std::string> columns;
  // The numbers of the first columns, at least of the epoch; NaN for a cell without one.
  std::vector<std::vector<double>> rows;

  // The values of one column, NaN in rows that end before it; empty if it does not exist.
  std::vector<double> Column(const std::string& name) const;
  // The measures, in file order: "loss", "accuracy": the columns train_* and val_* without the
  // prefix.
  std::vector<std::string> Measures() const;
  // Value in the last row marked as best; NaN if there is none.
  double BestEpoch() const;
};

// "top_5_accuracy" as readable text.
std::string Words(std::string name);
// The cells of a line of a table of numbers and names, in which nothing is quoted.
std::vector<std::string> CellsOf(const std::string& line);
// An empty table if the file does not exist. Throws kData for a file that is not a metrics table.
MetricsTable ReadMetrics(const std::string& path);
// Adds a row to the file; replaces rows of the same and later epochs. Throws kFileSystem.
void AppendMetrics(const std::string& path, const EpochEvent& epoch);

}  // namespace mxtrain::report

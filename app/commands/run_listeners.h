// SPDX-License-Identifier: Apache-2.0
#pragma once
// Everything that follows a training run: the console, the files of its folder, runs/latest, and
// warnings of validation examples that could not be read.
#include <memory>

#include "app/console/console.h"
#include "app/report/monitor.h"
#include "app/report/run_folder.h"
#include "mxtrain/io/data_iter.h"
#include "mxtrain/train/events.h"

namespace mxtrain::commands {

class RunListeners {
 public:
  // `examples`: what rates count. `validation` may be null; it and the console must outlive this.
  // `monitor`: the rows of train.monitor, null without it. Throws kFileSystem if the files cannot
  // be written.
  RunListeners(const report::RunFolder& folder, const std::string& examples,
               const DataIter* validation, std::shared_ptr<report::MonitorRows> monitor,
               console::Console& console);
  // Writes the last rows of the monitor and its curves, also of a run that ended by an error.
  ~RunListeners();
  TrainListener& all();

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace mxtrain::commands

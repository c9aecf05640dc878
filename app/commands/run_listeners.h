// SPDX-License-Identifier: Apache-2.0
#pragma once
// Everything that follows a training run: the console, the files of its folder, runs/latest, and
// warnings of validation examples that could not be read.
#include <memory>

#include "app/report/console.h"
#include "app/report/run_folder.h"
#include "mxtrain/io/data_iter.h"
#include "mxtrain/train/events.h"

namespace mxtrain::commands {

class RunListeners {
 public:
  // `validation` may be null; it and the console must outlive this. Throws kFileSystem if the files
  // cannot be written.
  RunListeners(const report::RunFolder& folder, const DataIter* validation,
               report::Console& console);
  ~RunListeners();
  TrainListener& all();

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace mxtrain::commands

// SPDX-License-Identifier: Apache-2.0
#pragma once
// Every output of a net as numbers: `infer --input NAME=FILE.npy --output FILE.npy`.
#include <memory>
#include <string>
#include <vector>

#include "app/report/npy.h"
#include "mxtrain/base/log.h"
#include "mxtrain/base/shape.h"

namespace mxtrain::inference {

// The part that is of one example, of an output for a batch of this size. Throws kUsage for one
// without an axis of examples.
TShape RowOf(const TShape& output, int64_t batch, const std::string& name);

class OutputFiles {
 public:
  // Where outputs of these names go: one into `path`, several into PATH-OUTPUT.npy each.
  static std::vector<std::string> PathsOf(const std::string& path,
                                          const std::vector<std::string>& outputs);

  // Several files are reported. `shapes`: for a batch of this size. Throws as RowOf and NpyWriter.
  OutputFiles(const std::string& path, const std::vector<std::string>& outputs,
              const std::vector<TShape>& shapes, int64_t batch, int64_t examples,
              const Logger& log);

  size_t width(size_t output) const { return widths_[output]; }  // numbers of an example
  // In ascending order of the examples; the values of each output.
  void Write(int64_t example, const std::vector<const float*>& outputs);
  void Finish();  // throws kFileSystem if not everything was written

 private:
  std::vector<std::unique_ptr<report::NpyWriter>> writers_;
  std::vector<size_t> widths_;
};

}  // namespace mxtrain::inference

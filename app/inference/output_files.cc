// SPDX-License-Identifier: Apache-2.0
#include "app/inference/output_files.h"

#include <span>

#include "app/inference/file_names.h"
#include "mxtrain/base/error.h"
#include "mxtrain/train/evaluation.h"

namespace mxtrain::inference {

TShape RowOf(const TShape& output, int64_t batch, const std::string& name) {
  if (output.ndim() == 0 || output[0] != batch)
    Throw(ErrorKind::kUsage, "the output '{}' has no axis for the examples: {} for a batch of {}",
          name, output.ToString(), batch);
  return TShape(std::span(output.begin() + 1, static_cast<size_t>(output.ndim() - 1)));
}

std::vector<std::string> OutputFiles::PathsOf(const std::string& path,
                                              const std::vector<std::string>& outputs) {
  if (outputs.size() == 1) return {path};
  std::vector<std::string> paths;
  for (const std::string& output : outputs)
    paths.push_back(
        format("{}-{}.npy", path.substr(0, path.rfind('.')), FileName(HeadName(output))));
  return paths;
}

OutputFiles::OutputFiles(const std::string& path, const std::vector<std::string>& outputs,
                         const std::vector<TShape>& shapes, int64_t batch, int64_t examples,
                         const Logger& log) {
  const std::vector<std::string> paths = PathsOf(path, outputs);
  for (size_t k = 0; k < outputs.size(); ++k) {
    const std::string name = HeadName(outputs[k]);
    const TShape row = RowOf(shapes[k], batch, name);
    if (outputs.size() > 1) log.Write(LogLevel::kInfo, format("{}: {}", name, paths[k]));
    writers_.push_back(std::make_unique<report::NpyWriter>(paths[k], examples, row));
    widths_.push_back(static_cast<size_t>(row.Size()));
  }
}

void OutputFiles::Write(int64_t example, const std::vector<const float*>& outputs) {
  for (size_t k = 0; k < writers_.size(); ++k) writers_[k]->Write(example, outputs[k]);
}

void OutputFiles::Finish() {
  for (const auto& writer : writers_) writer->Finish();
}

}  // namespace mxtrain::inference

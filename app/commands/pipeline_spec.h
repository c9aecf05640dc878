#pragma once
// The input pipeline that a model carries: where its evaluation data came from and what was done to them, so that `infer` cannot differ from
// `eval`.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "mxtrain/io/pipeline.h"
#include "mxtrain/io/source_factory.h"
#include "mxtrain/train/checkpoint.h"
#include "mxtrain/train/evaluation.h"

namespace mxtrain::commands {

struct PipelineSpec {
  std::string source;                        // a kind of io::MakeSource; empty: none
  Kwargs source_params;                      // path, split, columns
  std::vector<io::TransformSpec> transforms;  // of evaluation
  std::vector<MetricSpec> metrics;           // of the run: what `eval` measures unless told
  bool exact_decode = false;

  // The columns of the table that make up an input or a label, by its name; empty where the data are no table.
  std::vector<std::string> ColumnsOf(const std::string& field) const;

  // The classes of a label of words, by its name; empty where the data are no table, or the label is numbers.
  std::vector<std::string> ClassesOf(const std::string& label) const;
  // How the numbers of a label were standardized; none where they were not.
  std::optional<Standardization> UnitsOf(const std::string& label) const;
  // Whether the examples are rows of a table, whatever images they name beside their numbers.
  bool IsTable() const;

  std::string ToJson() const;
  static PipelineSpec FromJson(const std::string& text);  // "" gives an empty one; throws kData

 private:
  std::vector<std::string> ValuesOf(const std::string& parameter, const std::string& field) const;  // of parameters that are FIELD=VALUE
};

// Evaluation batches for a model from a source: names, channels and shapes as the model's net wants them
// (without transforms, picture files are resized to the net's input), as `device` takes them best. Throws kConfig where they do not fit.
std::unique_ptr<DataIter> NewModelIter(Runtime& runtime, std::shared_ptr<const io::Source> source, const PipelineSpec& spec, const ModelInfo& model,
                                       int64_t batch_size, Context device);

}  // namespace mxtrain::commands

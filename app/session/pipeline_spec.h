// SPDX-License-Identifier: Apache-2.0
#pragma once
// The input pipeline stored in a model: the source and transforms of its evaluation data, so that
// `infer` processes data as `eval` does.
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "mxtrain/io/pipeline.h"
#include "mxtrain/io/source_factory.h"
#include "mxtrain/io/tiles.h"
#include "mxtrain/train/checkpoint.h"
#include "mxtrain/train/evaluation.h"

namespace mxtrain::session {

struct PipelineSpec {
  std::string source;                         // a kind of io::MakeSource; empty: none
  Kwargs source_params;                       // path, split, columns
  std::vector<io::TransformSpec> transforms;  // of evaluation
  std::vector<MetricSpec> metrics;            // of the run: the default of `eval`
  bool exact_decode = false;
  int bits = 8;           // per channel of an image, 8 or 16
  std::string task = {};  // that the configuration names; "": told by the losses
  std::optional<io::TileOptions> tiles = std::nullopt;  // of images; nothing: whole
  uint64_t seed = 0;  // of random transforms of the evaluation data; 0 if there are none

  std::string TextOf(std::string_view parameter) const;  // of the source; "" if it is not there

  // The table columns of an input or a label, by its name; empty if the data is not a table.
  std::vector<std::string> ColumnsOf(const std::string& field) const;

  // The classes of a label of words, by its name; empty if the data is not a table, or the label is
  // numeric.
  std::vector<std::string> ClassesOf(const std::string& label) const;
  // The words of an input's columns of words, in the order of their codes from 1, by column (from
  // 0).
  std::map<size_t, std::vector<std::string>> WordsOf(const std::string& input) const;
  // How a numeric field was standardized; none if it was not.
  std::optional<Standardization> UnitsOf(const std::string& label) const;
  // Whether the data is a table.
  bool IsTable() const;
  // Whether an example is more than an image: a row of a table, even if it also names images.
  bool NeedsTable() const;
  // For a run on a table with one column of images: that column, as the configuration names it.
  std::string ImageColumn() const;
  // Whether this is the beginning of a table with that column. A column given by its number has no
  // name to look for: then every table with as many columns, at least two.
  bool BeginsTable(std::string beginning) const;
  // For io::MakeSource: other data, that is no table, read as the run's as far as its kind is told
  // how, with the model's classes.
  Kwargs ParamsOfOther(const io::RecognizedSource& other, const std::vector<std::string>& classes,
                       bool with_labels) const;
  // What a path holds (io::RecognizeSource). To a model of texts any file is texts, unless it is
  // certainly something else.
  io::RecognizedSource Recognize(const std::string& path) const;
  // The folder of targets of other data, which lies beside it as that of the run, `targets`, beside
  // the run's data. Throws kUsage if there is none.
  std::string TargetsBeside(const std::string& targets, const Kwargs& other) const;
  // For io::MakeSource: another table in the form of the run's; "-" is stdin. Images named by a
  // pipe are relative to the working folder.
  Kwargs TableParams(const std::string& file, bool with_labels) const;

  // Reads only these inputs: a table with named columns may lack those of the others.
  PipelineSpec OfInputs(const std::vector<InputInfo>& inputs) const;
  // For predictions: without noise, which is for learning and its validation.
  PipelineSpec OfPrediction() const;
  // For arrays that are what the net reads: without what is done to images.
  PipelineSpec OfArrays() const;
  // The tokenizer of a model that was trained on text (Tokenizer::ToText); "" for others.
  std::string TokenizerText() const;
  // How the conversations that a model was trained on become text (text::ChatFormat::ToText); "" if
  // it was not.
  std::string ChatText() const;
  // How the texts of a classifier become ids (text::TextEncoder::ToText); "" for others.
  std::string EncoderText() const;
  // Whether it tells where its data is.
  bool NamesData() const;
  // Whether its data is a part of the source, held out in training.
  bool HoldsOut() const;
  // For other machines: does not tell where files are on this one.
  PipelineSpec WithoutPaths() const;

  std::string ToJson() const;
  static PipelineSpec FromJson(const std::string& text);  // "" gives an empty one; throws kData

 private:
  // The values of the parameters that are FIELD=VALUE.
  std::vector<std::string> ValuesOf(const std::string& parameter, const std::string& field) const;
};

// Evaluation batches for a model from a source: names, channels and shapes as the model's net wants
// them (without transforms, image files are resized to the net's input), in the layout that suits
// `device`. Throws kConfig on a mismatch.
std::unique_ptr<DataIter> NewModelIter(Runtime& runtime, std::shared_ptr<const io::Source> source,
                                       const PipelineSpec& spec, const ModelInfo& model,
                                       int64_t batch_size, Context device);

}  // namespace mxtrain::session

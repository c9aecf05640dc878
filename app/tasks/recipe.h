// SPDX-License-Identifier: Apache-2.0
#pragma once
// What data of a task looks like: the configuration that `init` writes for a folder, and the
// examples that `synth` makes.
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "app/tasks/published_net.h"
#include "mxtrain/base/json.h"
#include "mxtrain/base/log.h"

namespace mxtrain::tasks {

struct RecipeRequest {
  std::string folder;       // as the user gave it
  std::string root;         // the same, absolute and normalized
  std::string output;       // the configuration's file, for paths relative to it; "-": stdout
  Logger log;               // for warnings
  std::string target = {};  // of a table: the column to predict; "": chosen
};

// A path as the configuration `output` names it: relative to that if it is below its folder or
// beside it, else absolute. `path`: absolute.
std::string PathInFile(const std::string& path, const std::string& output);

// As a text of a configuration that stands for itself: in double quotes, "${" escaped.
std::string QuoteYaml(const std::string& text);

// What the user chose, or left to the recipe.
struct RecipeChoice {
  int input_size = 0;                      // edge of the net's input in pixels; 0: chosen
  const ZooNet* net = nullptr;             // one that comes with the program; null: a small one
  const WeightsChoice* weights = nullptr;  // with `net`: those that it begins with; null: random
  std::string file;                        // the name that the user will use for the configuration
};

// Data in a folder, as far as a configuration depends on it.
class Recipe {
 public:
  virtual ~Recipe() = default;
  // Whether the data has boxes, which a detector finds (ZooNet::finds_boxes).
  virtual bool has_boxes() const { return false; }
  // Once, before the others. Throws kUsage for choices that this kind of data does not have.
  virtual void Choose(const RecipeChoice& choice) = 0;
  virtual std::string Text() const = 0;              // the configuration, YAML
  virtual Json ToJson() const = 0;                   // the facts and the choices, an object
  virtual std::string Summary() const = 0;           // lines for the user
  virtual std::string Advice() const { return ""; }  // what may be better; "" for none
};

struct SynthRequest {
  std::string folder;  // to create
  int64_t count = 0;   // examples, at least 4
  int classes = 0;     // 0: the task's default
  int size = 0;        // of images, in pixels
  double val = 0;      // fraction for validation
  uint64_t seed = 0;
  std::function<bool()> stopped;  // whether to end early; what was made is then of no use
};
// How many examples are for validation. Throws kUsage if none is left to train on.
int64_t ValidationCount(const SynthRequest& request);

struct SynthResult {
  int64_t train = 0, val = 0;
  std::vector<std::string> classes;  // if there are any
};

}  // namespace mxtrain::tasks

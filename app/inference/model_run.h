// SPDX-License-Identifier: Apache-2.0
#pragma once
// A model run over examples without labels: batches, views, and the net's outputs for each example.
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/tasks/example.h"
#include "mxtrain/base/log.h"
#include "mxtrain/io/data_iter.h"
#include "mxtrain/io/source.h"
#include "mxtrain/io/tiles.h"
#include "mxtrain/train/evaluation.h"
#include "mxtrain/train/model.h"

namespace mxtrain::inference {

struct RunOptions {
  Context device = Context::cpu();
  ComputeModes modes;
  int64_t batch = 0;        // examples; 0: 64, or fewer to fit a quarter of the free memory
  int64_t least_batch = 1;  // that the net can be for
  std::string views;        // "": one; "flip" or "crops" (views.h), whose outputs are averaged
  std::optional<io::TileOptions> tiles;  // if set, the net reads the tiles of images
  Logger log;
};

// Used on one thread. The runtime outlives it.
class ModelRun {
 public:
  // `source`: not empty. Throws kUsage for an output whose part for an example changes with the
  // size of the batch, else as session::NewModelIter, WidenForCrops and Evaluation.
  ModelRun(Runtime& runtime, const Model& model, std::shared_ptr<const io::Source> source,
           const RunOptions& options);
  ~ModelRun();

  // The outputs of the net for one example, in its order, as float32; valid during the call. Of
  // several views of it, its inputs are those of the last.
  using OnRow =
      std::function<void(const tasks::Example& example, const std::vector<const float*>& outputs)>;
  // Calls `on_row` for each readable example, of tiles for each of them (Example::tile), in the
  // order of the source, and `on_batch` with the
  // number of those done. Ends early once `stop` is true.
  void ForEach(const OnRow& on_row, const std::function<void(int64_t)>& on_batch,
               const std::function<bool()>& stop);

  const io::Source& source() const { return *source_; }  // of whole images
  const DataIter& iter() const { return *iter_; }
  // The examples that could not be read, and why: images, even if the net reads tiles of them.
  std::vector<std::pair<std::string, std::string>> Bad() const;

 private:
  std::shared_ptr<const io::Source> source_;
  std::shared_ptr<const io::Source> read_;  // what the net reads: without labels; tiles
  std::unique_ptr<DataIter> iter_;
  int views_ = 1;
  std::optional<Evaluation> evaluation_;
};

// Warns if a parameter is not finite, as after a training that diverged; false if so. One that
// training leaves alone may be infinite, as masks are.
bool CheckParameters(const Model& model, const Logger& log);

}  // namespace mxtrain::inference

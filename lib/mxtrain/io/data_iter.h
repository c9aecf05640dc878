// SPDX-License-Identifier: Apache-2.0
#pragma once
// Batches for training, evaluation and inference. An iterator is used by one thread; it returns
// ordinary arrays filled through the engine: reading them waits as for any array.
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "mxtrain/base/pixel_levels.h"
#include "mxtrain/base/standardization.h"
#include "mxtrain/io/image_origin.h"
#include "mxtrain/ndarray/ndarray.h"

namespace mxtrain {

// An array provided by an iterator, as a net reads it. `shape` includes the batch.
struct MXTRAIN_API DataDesc {
  std::string name;
  TShape shape;
  DType type = DType::kFloat32;
  // If set, batches hold 8-bit pixels [N, H, W, C], a quarter of the bytes, which the device
  // normalizes with these numbers to the input [N, C, H, W] (operators/image_normalize).
  std::optional<PixelNormalization> pixels = std::nullopt;
  // If set, the values are standardized, and so are the net's predictions of them; this restores
  // the units.
  std::optional<Standardization> units = std::nullopt;

  // Shape and type of the arrays in batches.
  TShape array_shape() const;
  DType array_type() const;
};
// The values a net reads, plain float32, from a batch's array for this input; waits for it.
MXTRAIN_API std::vector<float> InputValues(const DataDesc& desc, const NDArray& array);

// The arrays of a batch.
struct BatchArrays {
  std::vector<DataDesc> data, label;
};

// An example that could not be read.
struct BadExample {
  int64_t index = 0;  // in its source
  std::string name, reason;
};

// The arrays may be overwritten once every copy of the batch (of `lease`) has been dropped and the
// engine has finished what was pushed on them. Keep the batch to keep the contents; an array alone
// does not.
struct DataBatch {
  std::vector<NDArray> data, label;  // in the order of provide_data and provide_label
  int64_t count = 0;           // real examples, at the front; the rest is padding with weight 0
  std::vector<int64_t> index;  // of each real example, in its source
  // Of each real example, where its first image comes from; empty unless asked for
  // (PipelineParam::origins).
  std::vector<io::ImageOrigin> origins;
  int64_t epoch = 0, batch = 0;
  std::vector<BadExample> bad;  // found while filling the batch; not among its examples
  std::shared_ptr<void> lease;  // null if the batch owns the arrays
};

class MXTRAIN_API DataIter {
 public:
  struct Stats {
    int64_t examples = 0;                                  // delivered
    int64_t bytes = 0;                                     // of encoded images, read
    std::vector<std::pair<std::string, std::string>> bad;  // distinct unreadable examples, and why
  };
  virtual ~DataIter() = default;

  virtual std::vector<DataDesc> provide_data() const = 0;
  virtual std::vector<DataDesc> provide_label() const = 0;  // empty: no labels
  // The arrays of batches of each size, if they differ (bucketed_iter.h, multi_scale.h), the
  // largest last, which is that of provide_data and provide_label.
  virtual std::vector<BatchArrays> sizes() const { return {{provide_data(), provide_label()}}; }
  virtual int64_t batch_size() const = 0;
  virtual int64_t batches_per_epoch() const = 0;
  virtual int64_t examples() const = 0;  // in the source
  // For messages and tables: a file, "train-images[17]".
  virtual std::string ExampleName(int64_t index) const = 0;

  // Starts an epoch at a given batch; continues exactly like an uninterrupted pass. The order
  // depends only on (seed, epoch).
  virtual void Reset(int64_t epoch, int64_t first_batch = 0) = 0;
  // Without a Reset, epoch 0. Returns false at the end of the epoch. Releases what *batch held.
  // Throws kData for an example that must not be skipped, and whatever failed while filling the
  // batch; the next call continues with the following batch.
  virtual bool Next(DataBatch* batch) = 0;
  virtual Stats stats() const = 0;
};

// Of the sizes of an iterator, that of one of its batches. Throws kBug if it is of none.
MXTRAIN_API size_t IndexOfSize(std::span<const BatchArrays> sizes, const DataBatch& batch);
// The arrays of one of the iterator's batches.
MXTRAIN_API BatchArrays ArraysOfBatch(const DataIter& iter, const DataBatch& batch);

}  // namespace mxtrain

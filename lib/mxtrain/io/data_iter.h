#pragma once
// Batches for training, evaluation and inference. Iterators are used by one thread; what they hand out are ordinary arrays, whose contents
// the engine delivers: reading them waits as for every array.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "mxtrain/base/pixel_levels.h"
#include "mxtrain/base/standardization.h"
#include "mxtrain/ndarray/ndarray.h"

namespace mxtrain {

// An array that an iterator provides, as a net reads it. `shape` includes the batch.
struct MXTRAIN_API DataDesc {
  std::string name;
  TShape shape;
  DType type = DType::kFloat32;
  // Where it stands, batches hold a quarter of the bytes: pixels [N, H, W, C] of 8 bits. The input [N, C, H, W] is made of them by these numbers
  // (operators/image_normalize), on the device.
  std::optional<PixelNormalization> pixels = std::nullopt;
  // Where it stands, the numbers are standardized: so are what a net learns of them and predicts, and these give them back.
  std::optional<Standardization> units = std::nullopt;

  // Of the arrays in batches.
  TShape array_shape() const;
  DType array_type() const;
};
// What a net reads, plain and in float32, of an array that a batch holds for this input; waits for it.
MXTRAIN_API std::vector<float> InputValues(const DataDesc& desc, const NDArray& array);

// An example that could not be had.
struct BadExample {
  int64_t index = 0;  // in its source
  std::string name, reason;
};

// The arrays may be written anew once every copy of the batch (of `lease`) has been dropped and the engine has finished what was pushed on
// them before. So keep the batch to keep the contents; an array alone does not hold them.
struct DataBatch {
  std::vector<NDArray> data, label;  // in the order of provide_data and provide_label
  int64_t count = 0;                 // real examples, the first of the batch; the rest is padding with weight 0
  std::vector<int64_t> index;        // of each real example in its source
  int64_t epoch = 0, batch = 0;
  std::vector<BadExample> bad;  // met while the batch was made; they are not among its examples
  std::shared_ptr<void> lease;  // null where the arrays are the batch's own
};

class MXTRAIN_API DataIter {
 public:
  struct Stats {
    int64_t examples = 0;                                  // handed out
    int64_t bytes = 0;                                     // of encoded pictures, read
    std::vector<std::pair<std::string, std::string>> bad;  // different examples that could not be had, and why
  };
  virtual ~DataIter() = default;

  virtual std::vector<DataDesc> provide_data() const = 0;
  virtual std::vector<DataDesc> provide_label() const = 0;  // empty: no labels
  virtual int64_t batch_size() const = 0;
  virtual int64_t batches_per_epoch() const = 0;
  virtual int64_t examples() const = 0;                      // in the source
  virtual std::string ExampleName(int64_t index) const = 0;  // for messages and tables: a file, "train-images[17]"

  // Starts an epoch at one of its batches: exactly what an uninterrupted pass gives from there. The order depends on (seed, epoch) only.
  virtual void Reset(int64_t epoch, int64_t first_batch = 0) = 0;
  // Without a Reset before, epoch 0. False at the end of the epoch. Drops what *batch held. Throws kData for what may not be skipped, and
  // whatever went wrong while the batch was made; the next call then goes on with the batch after it.
  virtual bool Next(DataBatch* batch) = 0;
  virtual Stats stats() const = 0;
};

}  // namespace mxtrain

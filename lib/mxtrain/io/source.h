#pragma once
// Where examples come from: a numbered collection of records, each with one value per data field and one per label field.
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "mxtrain/base/macros.h"
#include "mxtrain/base/params.h"
#include "mxtrain/base/shape.h"
#include "mxtrain/base/standardization.h"

namespace mxtrain::io {

enum class FieldKind {
  kImage,  // becomes [channels, height, width] after decoding and transforms
  kValues,   // float32 of a fixed shape, used as they are
};

struct FieldSpec {
  std::string name;
  FieldKind kind = FieldKind::kValues;
  TShape shape;  // of one example: () for a scalar; [C, H, W] of a picture, of unknown rank where pictures differ
  std::optional<Standardization> units = std::nullopt;  // kValues: they are standardized
};

// What one record holds for one field: exactly one of these. Views point into the source and live as long as it.
struct FieldValue {
  std::string encoded;              // kImage: the bytes of a JPEG, PNG or BMP
  std::span<const uint8_t> pixels;  // kImage: a decoded picture of the field's shape, channels interleaved (HWC)
  std::span<const float> values;    // kValues
};

struct Sample {
  std::vector<FieldValue> data, labels;  // as data_fields() and label_fields()
};

// Immutable after construction: every call may come from any thread.
class MXTRAIN_API Source {
 public:
  virtual ~Source() = default;

  virtual int64_t size() const = 0;
  virtual const std::vector<FieldSpec>& data_fields() const = 0;
  virtual const std::vector<FieldSpec>& label_fields() const = 0;  // empty: no labels
  // Fills *sample, whose memory is used again. Throws kFileSystem or kData for a record that cannot be read: a bad example, not the end.
  virtual void Read(int64_t index, Sample* sample) const = 0;
  // For messages and results: a path, "train-images[17]", "data.csv:18".
  virtual std::string Name(int64_t index) const = 0;
  // The class of an example, where there are classes.
  virtual std::optional<int> ClassOf(int64_t index) const = 0;
  // In the order of the label's values; empty without classes.
  virtual const std::vector<std::string>& class_names() const = 0;
  int num_classes() const { return static_cast<int>(class_names().size()); }

  // What was found in the data without being asked for by parameters, as parameters: with them a source of the same kind reads other data alike.
  const Kwargs& found() const { return found_; }

  // Things worth saying once: files that were passed over, classes without examples.
  const std::vector<std::string>& warnings() const { return warnings_; }
  // Examples that are there and will not be had, a sentence for each kind: pictures of a format that is not read.
  const std::vector<std::string>& losses() const { return losses_; }
  // Both.
  std::vector<std::string> remarks() const {
    std::vector<std::string> all = warnings_;
    all.insert(all.end(), losses_.begin(), losses_.end());
    return all;
  }

 protected:
  std::vector<std::string> warnings_, losses_;
  Kwargs found_;
};

}  // namespace mxtrain::io

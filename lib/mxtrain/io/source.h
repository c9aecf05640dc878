// SPDX-License-Identifier: Apache-2.0
#pragma once
// A data source: a numbered collection of records, each with one value per data field and one per
// label field.
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "mxtrain/base/macros.h"
#include "mxtrain/base/params.h"
#include "mxtrain/base/shape.h"
#include "mxtrain/base/standardization.h"
#include "mxtrain/io/image.h"

namespace mxtrain::io {

enum class FieldKind {
  // Becomes [channels, height, width] after decoding and transforms. As a label it is a target: of
  // the size of the first image of the data, moved as that by transforms, with values pixel / 255.
  kImage,
  kValues,  // float32 of a fixed shape, used as is
  // Labels only: a list of points of the first image of the data, each of `columns` numbers that
  // begin with its place: x, y in pixels from the upper left corner of the image as it is shown, as
  // in point_map.h. Transforms move them; one that leaves the image is dropped. Becomes float32
  // [most, columns], with rows of -1 after the last point.
  kPoints,
  // Labels only: the class of each pixel of the first image of the data, moved with it once, by the
  // nearest pixel. Becomes float32 [H, W], with -1 for pixels of no class and for padding.
  kMask,
  // Labels only: the objects in the first image of the data, rows as in boxes.h. Transforms move
  // their boxes (internal/box_labels.h). Becomes float32 [most, 6], with rows of -1 after the last
  // object.
  kBoxes,
};

struct FieldSpec {
  std::string name;
  FieldKind kind = FieldKind::kValues;
  // Of one example: () for a scalar; [C, H, W] of an image, of unknown rank if images differ;
  // [most, columns] of points and boxes, of which an example has at most so many; of unknown rank
  // of a mask.
  TShape shape;
  std::optional<Standardization> units = std::nullopt;  // kValues: set if standardized
};

// The value of one field of a record: exactly one of these. Views point into the source and are
// valid as long as it; `values` may point to `made`, and are then valid until the next reading.
struct FieldValue {
  std::string encoded;  // kImage: the bytes of a JPEG, PNG or BMP
  // kImage: a decoded image of the field's shape, channels interleaved (HWC).
  std::span<const uint8_t> pixels;
  // kValues; kPoints, kBoxes: [rows, columns] of as many rows as the record has.
  std::span<const float> values;
  std::vector<float> made;  // what `values` view, of a source that keeps no float32
  // kMask: a gray image of the size of the example's first one, of class numbers and kNoClass.
  Image classes;
};
inline constexpr uint8_t kNoClass = 255;

struct Tile;

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
  // Fills *sample, reusing its memory. Throws kFileSystem or kData for an unreadable record, which
  // the caller treats as a bad example.
  virtual void Read(int64_t index, Sample* sample) const = 0;
  // The values of one label, none of an image, without reading images where the source can;
  // *scratch is reusable memory. `position`: among label_fields(). Views and errors as of Read.
  virtual std::span<const float> LabelOf(int64_t index, size_t position, Sample* scratch) const {
    Read(index, scratch);
    return scratch->labels[position].values;
  }
  // What rounding to float32 took from the numbers of one field, if that matters and the source
  // still has it; else empty. `position`: among data_fields() or, of a label, label_fields().
  virtual std::span<const float> Rests(int64_t /*index*/, bool /*label*/,
                                       size_t /*position*/) const {
    return {};
  }
  // For messages and results: a path, "train-images[17]", "data.csv:18".
  virtual std::string Name(int64_t index) const = 0;
  // The file of an example's image; empty unless it has exactly one.
  virtual std::string FileOf(int64_t /*index*/) const { return ""; }
  // The part of its image that an example is (tiles.h); null: all of it. Valid as long as the
  // source.
  virtual const Tile* TileOf(int64_t /*index*/) const { return nullptr; }
  // The class of an example, if there are classes.
  virtual std::optional<int> ClassOf(int64_t index) const = 0;
  // In the order of the label's values; empty without classes.
  virtual const std::vector<std::string>& class_names() const = 0;
  int num_classes() const { return static_cast<int>(class_names().size()); }
  // Examples with equal ones belong together, such as those of one patient; empty: with no other.
  virtual std::string GroupOf(int64_t /*index*/) const { return ""; }
  // The text that an example is, or that its image shows; empty for others.
  virtual std::string TextOf(int64_t /*index*/) const { return ""; }
  // Whether Read gives only the beginning of the example's text.
  virtual bool IsCut(int64_t /*index*/) const { return false; }
  // Of texts: the number of ids that an example may hold, which an embedding has as rows; else 0.
  virtual int64_t num_tokens() const { return 0; }
  // Whether labels may be -1 where nothing is to be learnt, which a loss must then ignore.
  virtual bool ignores_labels() const { return false; }
  // If examples come in turn from so many streams, each going on where its last one ended: their
  // number, which must be that of a batch's rows; else 0.
  virtual int64_t streams() const { return 0; }

  // What was inferred from the data rather than given, as parameters: with them a source of the
  // same kind reads other data the same way.
  const Kwargs& found() const { return found_; }

  // What the source decided about its files, to tell at the start: whether the first line of a
  // table is its header.
  const std::vector<std::string>& notes() const { return notes_; }
  // Warnings to show once: ignored files, classes without examples.
  const std::vector<std::string>& warnings() const { return warnings_; }
  // Examples that exist but cannot be read, one sentence per kind: images of an unsupported format.
  const std::vector<std::string>& losses() const { return losses_; }
  // Warnings and losses.
  std::vector<std::string> remarks() const {
    std::vector<std::string> all = warnings_;
    all.insert(all.end(), losses_.begin(), losses_.end());
    return all;
  }

 protected:
  std::vector<std::string> notes_, warnings_, losses_;
  Kwargs found_;
};

}  // namespace mxtrain::io

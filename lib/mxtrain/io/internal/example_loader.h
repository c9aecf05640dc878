// SPDX-License-Identifier: Apache-2.0
#pragma once
// Loads one example from its source into a row of a batch: read, decode, augment, write. All images
// of an example draw the same random numbers; what these do to the first one also happens to
// targets, which are images of its size, to points and to masks. Private to io.
#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "mxtrain/base/expected.h"
#include "mxtrain/io/augmenter.h"
#include "mxtrain/io/internal/example_cache.h"
#include "mxtrain/io/internal/tiled_images.h"
#include "mxtrain/io/source.h"
#include "mxtrain/io/tiles.h"

namespace mxtrain::io {

// Converts class numbers to distributions: 1 - smoothing for the class, the rest in equal parts for
// the others.
struct SoftLabels {
  int classes = 0;  // 0: labels stay numbers
  double smoothing = 0;
};

struct LoaderOptions {
  uint64_t seed = 0;
  int channels = 0;  // of images: 1, 3, or 0: those of the source, 3 if its files may differ
  bool exact_decode = false;  // see DecodeOptions
  int bits = 8;               // see DecodeOptions
  int64_t cache_bytes = 0;    // memory limit of the cache of decoded examples; 0: no cache
  SoftLabels soft_labels;
  int box_rows = 1;      // rows of a label of boxes, as a multiple of the most of an example
  bool origins = false;  // BatchPointers::origins are filled
  bool pixels = false;   // images, of 8 bits, are written as 8-bit pixels [H, W, C], not normalized
};

// Address of the first row of each field's batch array: float32, or pixels.
struct BatchPointers {
  std::vector<void*> data;
  std::vector<float*> labels;
  ImageOrigin* origins = nullptr;  // of each row's first image
};

// Reusable memory of a thread.
struct LoaderScratch {
  Sample sample;
  ImageDecoder decoder;
  Image image, spare;
  CachedExample example;
  const Tile* tile = nullptr;  // that the sample is; null: whole images
  ImageSize shown;             // the first image, before transforms
  ImageOrigin origin;          // its own, if that is asked for
  int64_t bytes = 0;           // of encoded images read since the owner's last reset
};

// Calls may come from any thread, each with its own scratch; only `whole_` changes.
//
// Whether an example can be read does not depend on what the transforms need of it: an image file
// is read to its end until it was once without fault. After that a JPEG is read only as far as it
// is needed, so the epochs after the first are as fast as if nothing were checked.
class ExampleLoader {
 public:
  // Throws kConfig if transforms and fields do not match.
  ExampleLoader(std::shared_ptr<const Source> source, const std::vector<TransformSpec>& transforms,
                const LoaderOptions& options);

  const Source& source() const { return *source_; }
  const std::vector<TShape>& data_shapes() const {
    return data_shapes_;
  }  // of one example, as a net reads it: images are [C, H, W]
  const std::vector<TShape>& label_shapes() const { return label_shapes_; }  // of one example
  // The normalization still to be applied to a field's pixels; nothing if its rows are float32.
  std::optional<PixelNormalization> left_to_do(size_t data_field) const;
  // True if a load is only a few copies: work is then distributed in larger pieces.
  bool cheap() const { return cheap_; }

  // A function of (index, epoch) and the seed, independent of the cache. Returns the reason if the
  // example cannot be read; the row is then unspecified.
  std::optional<Refusal> Load(int64_t index, int64_t epoch, int64_t row, const BatchPointers& to,
                              LoaderScratch* scratch) const;
  // Null without one.
  const ExampleCache* cache() const { return cache_.get(); }
  void Clear(int64_t row, const BatchPointers& to) const;
  void CopyRow(int64_t from, int64_t to, const BatchPointers& rows) const;

 private:
  TShape DataShape(size_t data_field) const;
  TShape LabelShape(const FieldSpec& field) const;
  void MakeAugmenters(const std::vector<TransformSpec>& transforms);
  TShape CommonShape(size_t data_field) const;
  // A row of a field's array.
  struct Place {
    void* begin;
    const TShape& shape;  // as in data_shapes()
    float* numbers() const { return static_cast<float*>(begin); }
    uint8_t* pixels() const { return static_cast<uint8_t*>(begin); }
  };
  // An image of an example: of the data, or a target.
  struct ImageField {
    const FieldSpec& spec;
    const Augmenter& augmenter;
    bool is_first, is_target, as_pixels;
    ImageOrigin* origin;  // null: not asked for
  };
  ImageField DataImage(size_t data_field, ImageOrigin* origin) const;
  ImageField TargetImage(size_t label_field) const;
  // What a chain knows of an image; `objects`: the numbers of the field of boxes.
  ImagePart PartOf(const ImageField& field, std::span<const float> objects) const;
  void CheckReadersOfObjects() const;
  bool WritesPixels(size_t data_field) const;
  int64_t RowBytes(size_t data_field) const;
  Place DataPlace(size_t data_field, int64_t row, const BatchPointers& to) const;
  Place LabelPlace(size_t label_field, int64_t row, const BatchPointers& to) const;
  std::optional<Refusal> LoadOrThrow(int64_t index, int64_t epoch, int64_t row,
                                     const BatchPointers& to, LoaderScratch* scratch) const;
  std::optional<Refusal> LoadCached(const CachedExample& example, int64_t index, int64_t epoch,
                                    int64_t row, const BatchPointers& to,
                                    LoaderScratch* scratch) const;
  std::optional<Refusal> Decode(const ImageField& field, const FieldValue& value, bool to_end,
                                const RandomStream& random, size_t last, LoaderScratch* scratch,
                                Augmenter::Steps* steps, Frame* frame) const;
  std::optional<Refusal> DecodeTile(const ImageField& field, const FieldValue& value,
                                    LoaderScratch* scratch, Frame* frame) const;
  std::optional<Refusal> CompareSize(const ImageField& field, const ImageSize& size,
                                     ImageSize* shown) const;
  std::optional<Refusal> Prepare(const Sample& sample, bool to_end, LoaderScratch* scratch,
                                 CachedExample* example) const;
  std::optional<Refusal> LoadSample(bool to_end, const RandomStream& random, int64_t row,
                                    const BatchPointers& to, LoaderScratch* scratch) const;
  std::optional<Refusal> WriteImage(const ImageField& field, const Augmenter::Steps& steps,
                                    const Image& from, const Frame& frame, Place to,
                                    LoaderScratch* scratch) const;
  // Numbers, points and masks: `classes`, of a mask.
  std::optional<Refusal> LoadLabel(const FieldSpec& spec, std::span<const float> values,
                                   const Image& classes, const ImageOrigin& origin, Place to) const;
  std::optional<Refusal> LoadImage(const ImageField& field, const FieldValue& value, bool to_end,
                                   const RandomStream& random, Place to,
                                   LoaderScratch* scratch) const;

  std::shared_ptr<const Source> source_;
  LoaderOptions options_;
  std::unique_ptr<const Augmenter> augmenter_;  // null without images
  std::unique_ptr<const Augmenter> unscaled_;   // the same without normalization; null: no targets
  size_t first_image_ = 0;                      // of the data fields, if there are images
  bool tells_origins_ = false;                  // those of the first images are asked for
  std::optional<size_t> box_field_;             // the first of the labels that is boxes
  std::vector<TShape> data_shapes_, label_shapes_;
  bool cheap_ = false;
  std::unique_ptr<ExampleCache> cache_;
  mutable TiledImages tiled_images_;
  // [examples]: whose files were read to their ends; empty without images. From false to true, by
  // any thread.
  mutable std::vector<std::atomic<bool>> whole_;
};

}  // namespace mxtrain::io

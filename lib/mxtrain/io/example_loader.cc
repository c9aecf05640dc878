// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/internal/example_loader.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "mxtrain/base/error.h"
#include "mxtrain/io/example_weight.h"
#include "mxtrain/io/internal/field_kinds.h"

namespace mxtrain::io {
namespace {

bool IsImageField(const FieldSpec& field) {
  return field.kind == FieldKind::kImage;
}

bool IsMask(const FieldSpec& field) {
  return field.kind == FieldKind::kMask;
}

// The default number of channels.
int ChannelsOf(const std::vector<FieldSpec>& fields, int asked) {
  if (asked != 0) return asked;
  for (const FieldSpec& field : fields) {
    if (IsImageField(field) && field.shape.has_rank()) return static_cast<int>(field.shape[0]);
  }
  return 3;
}

std::optional<Refusal> CopyNumbers(const FieldSpec& spec, std::span<const float> values,
                                   const TShape& shape, float* to) {
  if (static_cast<int64_t>(values.size()) != shape.Size()) {
    return Refusal{
        format("'{}' has {} numbers, expected {}", spec.name, values.size(), shape.ToString())};
  }
  std::copy(values.begin(), values.end(), to);
  return std::nullopt;
}

void CopyPixels(const FieldSpec& spec, std::span<const uint8_t> pixels, Image* image) {
  image->Resize(static_cast<int>(spec.shape[1]), static_cast<int>(spec.shape[2]),
                static_cast<int>(spec.shape[0]));
  std::copy(pixels.begin(), pixels.end(), image->pixels.begin());
}

// The result of `load`, or its reason if it throws because of this example: a file that cannot be
// read, or an image that a transform would make too large (kConfig: transforms that are wrong for
// every image are refused when they are made).
template <typename F>
auto OrRefusal(F&& load) -> decltype(load()) {
  try {
    return load();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kData && error.kind() != ErrorKind::kFileSystem &&
        error.kind() != ErrorKind::kConfig)
      throw;
    return Refusal{error.what()};
  }
}

// Releases what a very large image needed: every decode thread would keep as much.
void ReleaseLarge(LoaderScratch* scratch) {
  constexpr size_t kKept = size_t{64} << 20;
  const auto release = [](Image* image) {
    if (image->pixels.capacity() + 2 * image->deep.capacity() > kKept) *image = Image();
  };
  release(&scratch->image);
  release(&scratch->spare);
  for (auto* images : {&scratch->example.images, &scratch->example.targets}) {
    for (Image& image : *images) release(&image);
  }
  for (auto* fields : {&scratch->sample.data, &scratch->sample.labels}) {
    for (FieldValue& value : *fields) {
      release(&value.classes);
      if (value.encoded.capacity() > kKept) std::string().swap(value.encoded);
    }
  }
}

}  // namespace

ExampleLoader::ExampleLoader(std::shared_ptr<const Source> source,
                             const std::vector<TransformSpec>& transforms,
                             const LoaderOptions& options)
    : source_(std::move(source)), options_(options), tells_origins_(options.origins) {
  const std::vector<FieldSpec>& fields = source_->data_fields();
  if (std::any_of(fields.begin(), fields.end(), IsImageField)) {
    MakeAugmenters(transforms);
  } else if (!transforms.empty()) {
    Throw(ErrorKind::kConfig, "transforms work on images, but the data are numbers: remove '{}'",
          transforms[0].name);
  } else if (options.bits > 8) {
    Throw(ErrorKind::kConfig, "bits: {} is for images, but the data are numbers: remove it",
          options.bits);
  }
  cheap_ = !augmenter_ || augmenter_->keeps_pixels();
  for (const FieldSpec& field : fields) {
    data_shapes_.push_back(DataShape(data_shapes_.size()));
    if (IsImageField(field) && !field.shape.has_rank()) cheap_ = false;
  }
  for (const FieldSpec& field : source_->label_fields()) {
    if (field.kind == FieldKind::kBoxes && !box_field_) box_field_ = label_shapes_.size();
    label_shapes_.push_back(LabelShape(field));
    if (IsImageField(field) && !field.shape.has_rank()) cheap_ = false;
    tells_origins_ = tells_origins_ || field.kind == FieldKind::kPoints || IsMask(field) ||
                     field.kind == FieldKind::kBoxes;
  }
  if (augmenter_) CheckReadersOfObjects();
  if (options.cache_bytes > 0 && augmenter_)
    cache_ = std::make_unique<ExampleCache>(source_->size(), options.cache_bytes);
  if (augmenter_) whole_ = std::vector<std::atomic<bool>>(static_cast<size_t>(source_->size()));
}

void ExampleLoader::MakeAugmenters(const std::vector<TransformSpec>& transforms) {
  const std::vector<FieldSpec>&data = source_->data_fields(), &labels = source_->label_fields();
  const int channels = ChannelsOf(data, options_.channels);
  first_image_ =
      static_cast<size_t>(std::find_if(data.begin(), data.end(), IsImageField) - data.begin());
  augmenter_ = std::make_unique<Augmenter>(transforms, channels);
  if (options_.bits > 8) augmenter_->RequireDeep();
  if (std::none_of(labels.begin(), labels.end(), IsImageField)) return;
  std::vector<TransformSpec> unscaled = transforms;
  std::erase_if(unscaled, [](const TransformSpec& spec) { return spec.name == "normalize"; });
  unscaled_ = std::make_unique<Augmenter>(unscaled, channels);
}

TShape ExampleLoader::LabelShape(const FieldSpec& field) const {
  if (IsBesideLabels(field.name)) return field.shape;
  const int classes = options_.soft_labels.classes;
  if (field.kind == FieldKind::kValues) {
    if (classes > 0 && field.shape.Size() != 1) {
      Throw(ErrorKind::kConfig,
            "the label '{}' is {}; only the number of a class becomes a distribution over classes",
            field.name, field.shape.ToString());
    }
    return classes > 0 ? TShape{classes} : field.shape;
  }
  const char* const what = WhatIs(field.kind);
  if (!augmenter_) {
    Throw(ErrorKind::kConfig, "the label '{}' is {}, but the data are numbers", field.name, what);
  }
  if (classes > 0) {
    Throw(ErrorKind::kConfig,
          "the label '{}' is {}; only the number of a class becomes a distribution over classes",
          field.name, what);
  }
  const TShape& image = data_shapes_[first_image_];
  if (IsImageField(field)) return image;
  if (IsMask(field)) return {image[1], image[2]};
  if (field.kind == FieldKind::kBoxes) {
    CheckBoxSpec(field);
    return {field.shape[0] * options_.box_rows, kBoxColumns};
  }
  CheckPointSpec(field);
  return field.shape;
}

TShape ExampleLoader::DataShape(size_t data_field) const {
  const FieldSpec& field = source_->data_fields()[data_field];
  if (!IsImageField(field)) return field.shape;
  const bool open = !field.shape.has_rank() && !augmenter_->OutputSize({}).known();
  return open ? CommonShape(data_field) : augmenter_->OutputShape(field.shape);
}

// The output shape for files that all have one size, judging by the headers of some; a file of
// another size is a bad example.
TShape ExampleLoader::CommonShape(size_t data_field) const {
  constexpr int64_t kLooks = 256;
  constexpr const char* kFixed =
      "end the transforms with a fixed one: resize: [height, width], letterbox, center_crop, "
      "random_crop or random_resized_crop";
  const int64_t step = std::max<int64_t>(1, source_->size() / kLooks);
  Sample sample;
  std::string first, unreadable;
  ImageSize size, stored;
  for (int64_t index = 0; index < source_->size(); index += step) {
    using Sizes = std::pair<ImageSize, ImageSize>;  // stored, and after the transforms
    const auto sizes = OrRefusal([&]() -> Expected<Sizes, Refusal> {
      source_->Read(index, &sample);
      const auto info = ProbeImage(sample.data[data_field].encoded);
      if (!info) return info.error();
      const Tile* const tile = source_->TileOf(index);
      const ImageSize as_stored = tile ? ImageSize{tile->box.height, tile->box.width}
                                       : ImageSize{info->height, info->width};
      return Sizes{as_stored, augmenter_->OutputSize(as_stored)};
    });
    if (!sizes) {
      if (unreadable.empty())
        unreadable = format("{}: {}", source_->Name(index), sizes.error().reason);
      continue;
    }
    const auto& [own, out] = *sizes;
    if (!out.known())
      Throw(ErrorKind::kConfig, "the transforms produce images of different sizes; {}", kFixed);
    if (first.empty()) {
      first = source_->Name(index);
      size = out;
      stored = own;
    } else if (out.height != size.height || out.width != size.width) {
      Throw(
          ErrorKind::kConfig,
          "the transforms produce images of different sizes: {} has {}x{} pixels, {} has {}x{}; {}",
          first, stored.width, stored.height, source_->Name(index), own.width, own.height, kFixed);
    }
  }
  if (first.empty()) Throw(ErrorKind::kData, "no image could be read; the first: {}", unreadable);
  return {augmenter_->channels(), size.height, size.width};
}

ExampleLoader::ImageField ExampleLoader::DataImage(size_t data_field, ImageOrigin* origin) const {
  const bool first = data_field == first_image_;
  return {source_->data_fields()[data_field],
          *augmenter_,
          first,
          /*is_target=*/false,
          options_.pixels,
          first && tells_origins_ ? origin : nullptr};
}

ExampleLoader::ImageField ExampleLoader::TargetImage(size_t label_field) const {
  return {source_->label_fields()[label_field],
          *unscaled_,
          /*is_first=*/false,
          /*is_target=*/true,
          /*as_pixels=*/false,
          nullptr};
}

ImagePart ExampleLoader::PartOf(const ImageField& field, std::span<const float> objects) const {
  ImagePart part{/*recolours=*/!field.is_target, field.origin};
  if (!box_field_) return part;
  part.objects = objects;
  part.columns = source_->label_fields()[*box_field_].shape[1];
  return part;
}

// Other images would not be moved alike.
void ExampleLoader::CheckReadersOfObjects() const {
  const std::string reader = augmenter_->ReaderOfObjects();
  if (reader.empty()) return;
  const auto images = [](const std::vector<FieldSpec>& fields) {
    return std::count_if(fields.begin(), fields.end(), IsImageField);
  };
  if (box_field_ && images(source_->data_fields()) == 1 && images(source_->label_fields()) == 0)
    return;
  Throw(ErrorKind::kConfig,
        "the transform {} looks where the objects of an image are: it needs data with one image "
        "and boxes; remove it",
        reader);
}

bool ExampleLoader::WritesPixels(size_t data_field) const {
  return options_.pixels && IsImageField(source_->data_fields()[data_field]);
}

std::optional<PixelNormalization> ExampleLoader::left_to_do(size_t data_field) const {
  if (!WritesPixels(data_field)) return std::nullopt;
  return augmenter_->normalization();
}

int64_t ExampleLoader::RowBytes(size_t data_field) const {
  return data_shapes_[data_field].Size() *
         (WritesPixels(data_field) ? 1 : static_cast<int64_t>(sizeof(float)));
}

ExampleLoader::Place ExampleLoader::DataPlace(size_t data_field, int64_t row,
                                              const BatchPointers& to) const {
  return {static_cast<char*>(to.data[data_field]) + row * RowBytes(data_field),
          data_shapes_[data_field]};
}

ExampleLoader::Place ExampleLoader::LabelPlace(size_t label_field, int64_t row,
                                               const BatchPointers& to) const {
  const TShape& shape = label_shapes_[label_field];
  return {to.labels[label_field] + row * shape.Size(), shape};
}

std::optional<Refusal> ExampleLoader::Load(int64_t index, int64_t epoch, int64_t row,
                                           const BatchPointers& to, LoaderScratch* scratch) const {
  auto refusal = OrRefusal([&] { return LoadOrThrow(index, epoch, row, to, scratch); });
  ReleaseLarge(scratch);
  return refusal;
}

std::optional<Refusal> ExampleLoader::LoadOrThrow(int64_t index, int64_t epoch, int64_t row,
                                                  const BatchPointers& to,
                                                  LoaderScratch* scratch) const {
  if (cache_) {
    if (const CachedExample* example = cache_->Find(index))
      return LoadCached(*example, index, epoch, row, to, scratch);
  }
  source_->Read(index, &scratch->sample);
  scratch->tile = source_->TileOf(index);
  if (scratch->tile && scratch->tile->height == 0) scratch->tile = nullptr;
  const bool to_end = augmenter_ && !whole_[static_cast<size_t>(index)].load();
  const auto read = [&](std::optional<Refusal> refusal) {
    if (to_end && !refusal) whole_[static_cast<size_t>(index)] = true;
    return refusal;
  };
  const RandomStream random(options_.seed, epoch, index);
  if (!cache_) return read(LoadSample(to_end, random, row, to, scratch));
  // The same path if the cache is full: a JPEG decoded for all transforms may be reduced further
  // than for the fixed ones.
  if (auto refusal = read(Prepare(scratch->sample, to_end, scratch, &scratch->example)))
    return refusal;
  auto refusal = LoadCached(scratch->example, index, epoch, row, to, scratch);
  if (!cache_->full()) cache_->Add(index, std::move(scratch->example));
  return refusal;
}

// Of scratch->sample.
std::optional<Refusal> ExampleLoader::LoadSample(bool to_end, const RandomStream& random,
                                                 int64_t row, const BatchPointers& to,
                                                 LoaderScratch* scratch) const {
  const Sample& sample = scratch->sample;
  scratch->origin = ImageOrigin();
  for (size_t i = 0; i < sample.data.size(); ++i) {
    const FieldSpec& spec = source_->data_fields()[i];
    const Place place = DataPlace(i, row, to);
    auto refusal = IsImageField(spec)
                       ? LoadImage(DataImage(i, &scratch->origin), sample.data[i], to_end, random,
                                   place, scratch)
                       : CopyNumbers(spec, sample.data[i].values, place.shape, place.numbers());
    if (refusal) return refusal;
  }
  for (size_t i = 0; i < sample.labels.size(); ++i) {
    const FieldSpec& spec = source_->label_fields()[i];
    const Place place = LabelPlace(i, row, to);
    auto refusal = IsImageField(spec)
                       ? LoadImage(TargetImage(i), sample.labels[i], to_end, random, place, scratch)
                       : LoadLabel(spec, sample.labels[i].values, sample.labels[i].classes,
                                   scratch->origin, place);
    if (refusal) return refusal;
  }
  if (to.origins) to.origins[row] = scratch->origin;
  return std::nullopt;
}

std::optional<Refusal> ExampleLoader::LoadLabel(const FieldSpec& spec,
                                                std::span<const float> values, const Image& classes,
                                                const ImageOrigin& origin, Place to) const {
  if (IsMask(spec)) return WriteMask(spec, classes, origin, to.shape, to.numbers());
  if (spec.kind == FieldKind::kPoints) {
    const TShape& image = data_shapes_[first_image_];
    return WritePoints(spec, values, origin.map(), image[1], image[2], to.numbers());
  }
  if (spec.kind == FieldKind::kBoxes)
    return WriteBoxes(spec, values, origin, to.shape, to.numbers());
  const SoftLabels& soft = options_.soft_labels;
  if (soft.classes == 0 || IsBesideLabels(spec.name))
    return CopyNumbers(spec, values, to.shape, to.numbers());
  float label = 0;
  if (auto refusal = CopyNumbers(spec, values, spec.shape, &label)) return refusal;
  if (!(label >= 0 && label < static_cast<float>(soft.classes)) || label != std::floor(label)) {
    return Refusal{format("'{}' = {} is not one of the {} classes of the net", spec.name, label,
                          soft.classes)};
  }
  std::fill_n(to.numbers(), soft.classes,
              static_cast<float>(soft.classes > 1 ? soft.smoothing / (soft.classes - 1) : 0));
  to.numbers()[static_cast<int64_t>(label)] = static_cast<float>(1 - soft.smoothing);
  return std::nullopt;
}

// Begins the transforms up to `last`; the pixels are in scratch->image.
std::optional<Refusal> ExampleLoader::Decode(const ImageField& field, const FieldValue& value,
                                             bool to_end, const RandomStream& random, size_t last,
                                             LoaderScratch* scratch, Augmenter::Steps* steps,
                                             Frame* frame) const {
  Image* image = &scratch->image;
  const Augmenter& augmenter = field.augmenter;
  ImagePart part =
      PartOf(field, box_field_ ? std::span<const float>(scratch->sample.labels[*box_field_].values)
                               : std::span<const float>());
  if (scratch->tile) part.tile = &scratch->tile->box;
  if (part.tile) {
    if (auto refusal = DecodeTile(field, value, scratch, frame)) return refusal;
    if (auto refusal = CompareSize(field, {frame->height, frame->width}, &scratch->shown))
      return refusal;
    *steps = augmenter.Begin(frame->height, frame->width, random, 0, last, part);
    return std::nullopt;
  }
  if (!value.pixels.empty()) {
    CopyPixels(field.spec, value.pixels, image);
    ConvertChannels(augmenter.channels(), image);
    *frame = {image->height, image->width, {0, 0, image->height, image->width}, 1};
    *steps = augmenter.Begin(image->height, image->width, random, 0, last, part);
    return CompareSize(field, {image->height, image->width}, &scratch->shown);
  }
  DecodeOptions options;
  options.channels = augmenter.channels();
  options.exact = options_.exact_decode;
  options.bits = options_.bits;
  options.to_end = to_end;
  options.part = [&](int height, int width) {
    *steps = augmenter.Begin(height, width, random, 0, last, part);
    return DecodeOptions::Part{steps->crop.Needed(), steps->crop.MinScale()};
  };
  scratch->bytes += static_cast<int64_t>(value.encoded.size());
  if (auto refusal = scratch->decoder.Decode(value.encoded, options, image, frame)) return refusal;
  *steps = augmenter.Begin(frame->height, frame->width, random, 0, last, part);
  return CompareSize(field, {frame->height, frame->width}, &scratch->shown);
}

// The pixels of the tile in scratch->image. Its image is decoded wholly and exactly.
std::optional<Refusal> ExampleLoader::DecodeTile(const ImageField& field, const FieldValue& value,
                                                 LoaderScratch* scratch, Frame* frame) const {
  const Tile& tile = *scratch->tile;
  const auto decode = [&]() -> TiledImages::Decoded {
    auto image = std::make_shared<Image>();
    if (!value.pixels.empty()) {
      CopyPixels(field.spec, value.pixels, image.get());
      ConvertChannels(field.augmenter.channels(), image.get());
      return std::shared_ptr<const Image>(image);
    }
    DecodeOptions options;
    options.channels = field.augmenter.channels();
    options.bits = options_.bits;
    scratch->bytes += static_cast<int64_t>(value.encoded.size());
    if (auto refusal = scratch->decoder.Decode(value.encoded, options, image.get()))
      return *refusal;
    return std::shared_ptr<const Image>(image);
  };
  const auto decoded = tiled_images_.Get({tile.image, &field.spec}, decode);
  if (!decoded) return decoded.error();
  const Image& whole = **decoded;
  if (whole.height != tile.height || whole.width != tile.width) {
    if (field.is_target) {
      return Refusal{format("the image has {}x{} pixels, but its target '{}' has {}x{}", tile.width,
                            tile.height, field.spec.name, whole.width, whole.height)};
    }
    return Refusal{format("the file changed: it had {}x{} pixels, and has {}x{}", tile.width,
                          tile.height, whole.width, whole.height)};
  }
  CropResize crop = CropResize::Whole(whole.height, whole.width);
  crop.Crop(tile.box);
  Apply(crop, whole, {whole.height, whole.width, {0, 0, whole.height, whole.width}, 1},
        &scratch->image);
  *frame = {whole.height, whole.width, tile.box, 1};
  return std::nullopt;
}

// A target has the size of the first image, `shown`.
std::optional<Refusal> ExampleLoader::CompareSize(const ImageField& field, const ImageSize& size,
                                                  ImageSize* shown) const {
  if (field.is_first) {
    *shown = size;
    if (field.origin) *field.origin = ImageOrigin(size.height, size.width);
  }
  if (!field.is_target || (size.height == shown->height && size.width == shown->width))
    return std::nullopt;
  return Refusal{format("the image has {}x{} pixels, but its target '{}' has {}x{}", shown->width,
                        shown->height, field.spec.name, size.width, size.height)};
}

std::optional<Refusal> ExampleLoader::WriteImage(const ImageField& field,
                                                 const Augmenter::Steps& steps, const Image& from,
                                                 const Frame& frame, Place to,
                                                 LoaderScratch* scratch) const {
  const ImageSize size{static_cast<int>(to.shape[1]), static_cast<int>(to.shape[2])};
  Image *image = &scratch->image, *spare = &scratch->spare;
  const Augmenter& augmenter = field.augmenter;
  const bool fits = field.as_pixels
                        ? augmenter.ToPixels(steps, from, frame, size, image, spare, to.pixels())
                        : augmenter.ToPlanes(steps, from, frame, size, image, spare, to.numbers());
  if (fits) return std::nullopt;
  return Refusal{format("the image has {}x{} pixels, expected {}x{}", image->width, image->height,
                        size.width, size.height)};
}

std::optional<Refusal> ExampleLoader::LoadImage(const ImageField& field, const FieldValue& value,
                                                bool to_end, const RandomStream& random, Place to,
                                                LoaderScratch* scratch) const {
  const TShape& shape = field.spec.shape;
  const Augmenter& augmenter = field.augmenter;
  if (!value.pixels.empty() && augmenter.keeps_pixels() && shape == to.shape && !scratch->tile) {
    const ImageSize size{static_cast<int>(shape[1]), static_cast<int>(shape[2])};
    if (auto refusal = CompareSize(field, size, &scratch->shown)) return refusal;
    if (field.as_pixels) {
      std::copy(value.pixels.begin(), value.pixels.end(), to.pixels());
    } else {
      augmenter.ToPlanes(value.pixels, to.numbers());
    }
    return std::nullopt;
  }
  Augmenter::Steps steps{{}, 0, 0, random};
  Frame frame;
  if (auto refusal =
          Decode(field, value, to_end, random, augmenter.size(), scratch, &steps, &frame))
    return refusal;
  return WriteImage(field, steps, scratch->image, frame, to, scratch);
}

// Prepares an example for the cache: after the leading non-random transforms. Reuses *example's
// memory.
std::optional<Refusal> ExampleLoader::Prepare(const Sample& sample, bool to_end,
                                              LoaderScratch* scratch,
                                              CachedExample* example) const {
  example->images.resize(sample.data.size());
  example->data.resize(sample.data.size());
  example->targets.resize(sample.labels.size());
  example->labels.resize(sample.labels.size());
  example->origin = ImageOrigin();
  const auto prepare = [&](const ImageField& field, const FieldValue& value,
                           Image* cached) -> std::optional<Refusal> {
    const RandomStream none(0, 0, 0);
    Augmenter::Steps steps{{}, 0, 0, none};
    Frame frame;
    if (auto refusal =
            Decode(field, value, to_end, none, augmenter_->fixed(), scratch, &steps, &frame))
      return refusal;
    field.augmenter.ToImage(steps, scratch->image, frame, &scratch->image, &scratch->spare);
    *cached = scratch->image;
    return std::nullopt;
  };
  for (size_t i = 0; i < sample.data.size(); ++i) {
    const FieldValue& value = sample.data[i];
    if (!IsImageField(source_->data_fields()[i])) {
      example->data[i].assign(value.values.begin(), value.values.end());
    } else if (auto refusal = prepare(DataImage(i, &example->origin), value, &example->images[i])) {
      return refusal;
    }
  }
  for (size_t i = 0; i < sample.labels.size(); ++i) {
    const FieldValue& value = sample.labels[i];
    if (IsMask(source_->label_fields()[i])) {
      example->targets[i] = value.classes;
    } else if (!IsImageField(source_->label_fields()[i])) {
      example->labels[i].assign(value.values.begin(), value.values.end());
    } else if (auto refusal = prepare(TargetImage(i), value, &example->targets[i])) {
      return refusal;
    }
  }
  return std::nullopt;
}

std::optional<Refusal> ExampleLoader::LoadCached(const CachedExample& example, int64_t index,
                                                 int64_t epoch, int64_t row,
                                                 const BatchPointers& to,
                                                 LoaderScratch* scratch) const {
  const RandomStream random(options_.seed, epoch, index);
  scratch->origin = example.origin;
  const auto write = [&](const ImageField& field, const Image& cached, Place place) {
    const ImagePart part = PartOf(
        field, box_field_ ? std::span(example.labels[*box_field_]) : std::span<const float>());
    const auto steps = field.augmenter.Begin(cached.height, cached.width, random,
                                             field.augmenter.fixed(), field.augmenter.size(), part);
    const Frame frame{cached.height, cached.width, {0, 0, cached.height, cached.width}, 1};
    return WriteImage(field, steps, cached, frame, place, scratch);
  };
  for (size_t i = 0; i < example.images.size(); ++i) {
    const Place place = DataPlace(i, row, to);
    if (!IsImageField(source_->data_fields()[i])) {
      std::copy(example.data[i].begin(), example.data[i].end(), place.numbers());
    } else if (auto refusal = write(DataImage(i, &scratch->origin), example.images[i], place)) {
      return refusal;
    }
  }
  for (size_t i = 0; i < example.labels.size(); ++i) {
    const FieldSpec& spec = source_->label_fields()[i];
    const Place place = LabelPlace(i, row, to);
    auto refusal = IsImageField(spec) ? write(TargetImage(i), example.targets[i], place)
                                      : LoadLabel(spec, example.labels[i], example.targets[i],
                                                  scratch->origin, place);
    if (refusal) return refusal;
  }
  if (to.origins) to.origins[row] = scratch->origin;
  return std::nullopt;
}

void ExampleLoader::Clear(int64_t row, const BatchPointers& to) const {
  for (size_t i = 0; i < data_shapes_.size(); ++i)
    std::memset(DataPlace(i, row, to).begin, 0, static_cast<size_t>(RowBytes(i)));
  for (size_t i = 0; i < label_shapes_.size(); ++i) {
    const float nothing = NothingOf(source_->label_fields()[i].kind);
    std::fill_n(LabelPlace(i, row, to).numbers(), label_shapes_[i].Size(), nothing);
  }
}

void ExampleLoader::CopyRow(int64_t from, int64_t to, const BatchPointers& rows) const {
  for (size_t i = 0; i < data_shapes_.size(); ++i) {
    std::memcpy(DataPlace(i, to, rows).begin, DataPlace(i, from, rows).begin,
                static_cast<size_t>(RowBytes(i)));
  }
  for (size_t i = 0; i < label_shapes_.size(); ++i) {
    std::copy_n(LabelPlace(i, from, rows).numbers(), label_shapes_[i].Size(),
                LabelPlace(i, to, rows).numbers());
  }
  if (rows.origins) rows.origins[to] = rows.origins[from];
}

}  // namespace mxtrain::io

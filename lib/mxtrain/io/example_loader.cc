// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/internal/example_loader.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "mxtrain/base/error.h"

namespace mxtrain::io {
namespace {

bool IsImageField(const FieldSpec& field) {
  return field.kind == FieldKind::kImage;
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
  for (Image& image : scratch->example.images) release(&image);
  for (FieldValue& value : scratch->sample.data) {
    if (value.encoded.capacity() > kKept) std::string().swap(value.encoded);
  }
}

}  // namespace

ExampleLoader::ExampleLoader(std::shared_ptr<const Source> source,
                             const std::vector<TransformSpec>& transforms,
                             const LoaderOptions& options)
    : source_(std::move(source)), options_(options) {
  const std::vector<FieldSpec>& fields = source_->data_fields();
  if (std::any_of(fields.begin(), fields.end(), IsImageField)) {
    augmenter_ = std::make_unique<Augmenter>(transforms, ChannelsOf(fields, options.channels));
    if (options.bits > 8) augmenter_->RequireDeep();
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
    if (IsImageField(field))
      Throw(ErrorKind::kConfig, "the label '{}' is an image; labels are numbers", field.name);
    label_shapes_.push_back(options.soft_labels.classes > 0 ? TShape{options.soft_labels.classes}
                                                            : field.shape);
    if (options.soft_labels.classes > 0 && field.shape.Size() != 1) {
      Throw(ErrorKind::kConfig,
            "the label '{}' is {}; only the number of a class becomes a distribution over classes",
            field.name, field.shape.ToString());
    }
  }
  if (options.cache_bytes > 0 && augmenter_)
    cache_ = std::make_unique<ExampleCache>(source_->size(), options.cache_bytes);
  if (augmenter_) whole_ = std::vector<std::atomic<bool>>(static_cast<size_t>(source_->size()));
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
      const ImageSize as_stored{info->height, info->width};
      return Sizes{as_stored, augmenter_->OutputSize(as_stored)};
    });
    if (!sizes) {
      if (unreadable.empty())
        unreadable = format("{}: {}", source_->Name(index), sizes.error().reason);
      continue;
    }
    const auto& [own, out] = *sizes;
    if (first.empty()) {
      first = source_->Name(index);
      size = out;
      stored = own;
    } else if (out.height != size.height || out.width != size.width) {
      Throw(ErrorKind::kConfig,
            "the transforms produce images of different sizes: {} has {}x{} pixels, {} has {}x{}; "
            "end the transforms with a fixed one: "
            "resize: [height, width], center_crop, random_crop or random_resized_crop",
            first, stored.width, stored.height, source_->Name(index), own.width, own.height);
    }
  }
  if (first.empty()) Throw(ErrorKind::kData, "no image could be read; the first: {}", unreadable);
  return {augmenter_->channels(), size.height, size.width};
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
  for (size_t i = 0; i < sample.data.size(); ++i) {
    if (auto refusal = LoadField(source_->data_fields()[i], sample.data[i], to_end, random,
                                 DataPlace(i, row, to), scratch))
      return refusal;
  }
  for (size_t i = 0; i < sample.labels.size(); ++i) {
    if (auto refusal =
            LoadLabel(source_->label_fields()[i], sample.labels[i].values, LabelPlace(i, row, to)))
      return refusal;
  }
  return std::nullopt;
}

std::optional<Refusal> ExampleLoader::LoadField(const FieldSpec& spec, const FieldValue& value,
                                                bool to_end, const RandomStream& random, Place to,
                                                LoaderScratch* scratch) const {
  if (IsImageField(spec)) return LoadImage(spec, value, to_end, random, to, scratch);
  return CopyNumbers(spec, value.values, to.shape, to.numbers());
}

std::optional<Refusal> ExampleLoader::LoadLabel(const FieldSpec& spec,
                                                std::span<const float> values, Place to) const {
  const SoftLabels& soft = options_.soft_labels;
  if (soft.classes == 0) return CopyNumbers(spec, values, to.shape, to.numbers());
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

// Runs the transforms up to `last`; the pixels are in scratch->image.
std::optional<Refusal> ExampleLoader::Decode(const FieldSpec& spec, const FieldValue& value,
                                             bool to_end, const RandomStream& random, size_t last,
                                             LoaderScratch* scratch, Augmenter::Steps* steps,
                                             Frame* frame) const {
  Image* image = &scratch->image;
  if (!value.pixels.empty()) {
    CopyPixels(spec, value.pixels, image);
    ConvertChannels(augmenter_->channels(), image);
    *frame = {image->height, image->width, {0, 0, image->height, image->width}, 1};
    *steps = augmenter_->Begin(image->height, image->width, random, 0, last);
    return std::nullopt;
  }
  DecodeOptions options;
  options.channels = augmenter_->channels();
  options.exact = options_.exact_decode;
  options.bits = options_.bits;
  options.to_end = to_end;
  options.part = [&](int height, int width) {
    *steps = augmenter_->Begin(height, width, random, 0, last);
    return DecodeOptions::Part{steps->crop.Needed(), steps->crop.MinScale()};
  };
  scratch->bytes += static_cast<int64_t>(value.encoded.size());
  if (auto refusal = scratch->decoder.Decode(value.encoded, options, image, frame)) return refusal;
  *steps = augmenter_->Begin(frame->height, frame->width, random, 0, last);
  return std::nullopt;
}

std::optional<Refusal> ExampleLoader::WriteImage(const Augmenter::Steps& steps, const Image& from,
                                                 const Frame& frame, Place to,
                                                 LoaderScratch* scratch) const {
  const ImageSize size{static_cast<int>(to.shape[1]), static_cast<int>(to.shape[2])};
  Image *image = &scratch->image, *spare = &scratch->spare;
  const bool fits =
      options_.pixels ? augmenter_->ToPixels(steps, from, frame, size, image, spare, to.pixels())
                      : augmenter_->ToPlanes(steps, from, frame, size, image, spare, to.numbers());
  if (fits) return std::nullopt;
  return Refusal{format("the image has {}x{} pixels, expected {}x{}", image->width, image->height,
                        size.width, size.height)};
}

std::optional<Refusal> ExampleLoader::LoadImage(const FieldSpec& spec, const FieldValue& value,
                                                bool to_end, const RandomStream& random, Place to,
                                                LoaderScratch* scratch) const {
  if (!value.pixels.empty() && augmenter_->keeps_pixels() && spec.shape[0] == to.shape[0]) {
    if (options_.pixels) {
      std::copy(value.pixels.begin(), value.pixels.end(), to.pixels());
    } else {
      augmenter_->ToPlanes(value.pixels, to.numbers());
    }
    return std::nullopt;
  }
  Augmenter::Steps steps{{}, 0, 0, random};
  Frame frame;
  if (auto refusal =
          Decode(spec, value, to_end, random, augmenter_->size(), scratch, &steps, &frame))
    return refusal;
  return WriteImage(steps, scratch->image, frame, to, scratch);
}

// Prepares an example for the cache: after the leading non-random transforms. Reuses *example's
// memory.
std::optional<Refusal> ExampleLoader::Prepare(const Sample& sample, bool to_end,
                                              LoaderScratch* scratch,
                                              CachedExample* example) const {
  example->images.resize(sample.data.size());
  example->data.resize(sample.data.size());
  example->labels.resize(sample.labels.size());
  for (size_t i = 0; i < sample.data.size(); ++i) {
    const FieldSpec& spec = source_->data_fields()[i];
    Image& cached = example->images[i];
    std::vector<float>& numbers = example->data[i];
    if (!IsImageField(spec)) {
      numbers.assign(sample.data[i].values.begin(), sample.data[i].values.end());
      continue;
    }
    const RandomStream none(0, 0, 0);
    Augmenter::Steps steps{{}, 0, 0, none};
    Frame frame;
    if (auto refusal = Decode(spec, sample.data[i], to_end, none, augmenter_->fixed(), scratch,
                              &steps, &frame))
      return refusal;
    augmenter_->ToImage(steps, scratch->image, frame, &scratch->image, &scratch->spare);
    cached = scratch->image;
  }
  for (size_t i = 0; i < sample.labels.size(); ++i)
    example->labels[i].assign(sample.labels[i].values.begin(), sample.labels[i].values.end());
  return std::nullopt;
}

std::optional<Refusal> ExampleLoader::LoadCached(const CachedExample& example, int64_t index,
                                                 int64_t epoch, int64_t row,
                                                 const BatchPointers& to,
                                                 LoaderScratch* scratch) const {
  const RandomStream random(options_.seed, epoch, index);
  for (size_t i = 0; i < example.images.size(); ++i) {
    const Place place = DataPlace(i, row, to);
    const Image& cached = example.images[i];
    if (!IsImageField(source_->data_fields()[i])) {
      std::copy(example.data[i].begin(), example.data[i].end(), place.numbers());
      continue;
    }
    const auto steps = augmenter_->Begin(cached.height, cached.width, random, augmenter_->fixed(),
                                         augmenter_->size());
    const Frame frame{cached.height, cached.width, {0, 0, cached.height, cached.width}, 1};
    if (auto refusal = WriteImage(steps, cached, frame, place, scratch)) return refusal;
  }
  for (size_t i = 0; i < example.labels.size(); ++i) {
    if (auto refusal =
            LoadLabel(source_->label_fields()[i], example.labels[i], LabelPlace(i, row, to)))
      return refusal;
  }
  return std::nullopt;
}

void ExampleLoader::Clear(int64_t row, const BatchPointers& to) const {
  for (size_t i = 0; i < data_shapes_.size(); ++i)
    std::memset(DataPlace(i, row, to).begin, 0, static_cast<size_t>(RowBytes(i)));
  for (size_t i = 0; i < label_shapes_.size(); ++i)
    std::fill_n(LabelPlace(i, row, to).numbers(), label_shapes_[i].Size(), 0.0f);
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
}

}  // namespace mxtrain::io

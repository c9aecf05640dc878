#include "mxtrain/io/example_loader.h"

#include <algorithm>

#include "mxtrain/base/error.h"

namespace mxtrain::io {
namespace {

bool IsPicture(const FieldSpec& field) {
  return field.kind == FieldKind::kPicture;
}

// What pictures are decoded to when nothing was said.
int ChannelsOf(const std::vector<FieldSpec>& fields, int asked) {
  if (asked != 0) return asked;
  for (const FieldSpec& field : fields) {
    if (IsPicture(field) && field.shape.has_rank()) return static_cast<int>(field.shape[0]);
  }
  return 3;
}

float* RowOf(float* base, int64_t row, const TShape& shape) {
  return base + row * shape.Size();
}

void CopyPixels(const FieldSpec& spec, std::span<const uint8_t> pixels, Image* image) {
  image->Resize(static_cast<int>(spec.shape[1]), static_cast<int>(spec.shape[2]), static_cast<int>(spec.shape[0]));
  std::copy(pixels.begin(), pixels.end(), image->pixels.begin());
}

}  // namespace

ExampleLoader::ExampleLoader(std::shared_ptr<const Source> source, const std::vector<TransformSpec>& transforms,
                             const LoaderOptions& options)
    : source_(std::move(source)), options_(options) {
  const std::vector<FieldSpec>& fields = source_->data_fields();
  if (std::any_of(fields.begin(), fields.end(), IsPicture)) {
    augmenter_ = std::make_unique<Augmenter>(transforms, ChannelsOf(fields, options.channels));
  } else if (!transforms.empty()) {
    Throw(ErrorKind::kConfig, "transforms work on pictures, but the data are numbers: remove '{}'", transforms[0].name);
  }
  cheap_ = !augmenter_ || augmenter_->keeps_pixels();
  for (const FieldSpec& field : fields) {
    data_shapes_.push_back(IsPicture(field) ? augmenter_->OutputShape(field.shape) : field.shape);
    if (IsPicture(field) && !field.shape.has_rank()) cheap_ = false;
  }
  for (const FieldSpec& field : source_->label_fields()) {
    if (IsPicture(field)) Throw(ErrorKind::kConfig, "the label '{}' is a picture; labels are numbers", field.name);
    label_shapes_.push_back(field.shape);
  }
}

std::optional<Refusal> ExampleLoader::Load(int64_t index, int64_t epoch, int64_t row, const BatchPointers& to,
                                           LoaderScratch* scratch) const {
  try {
    source_->Read(index, &scratch->sample);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kData && error.kind() != ErrorKind::kFileSystem) throw;
    return Refusal{error.what()};
  }
  const RandomStream random(options_.seed, epoch, index);
  const Sample& sample = scratch->sample;
  for (size_t i = 0; i < sample.data.size(); ++i) {
    const Place place{RowOf(to.data[i], row, data_shapes_[i]), &data_shapes_[i]};
    if (auto refusal = LoadField(source_->data_fields()[i], sample.data[i], random, place, scratch)) return refusal;
  }
  for (size_t i = 0; i < sample.labels.size(); ++i) {
    const Place place{RowOf(to.labels[i], row, label_shapes_[i]), &label_shapes_[i]};
    if (auto refusal = LoadField(source_->label_fields()[i], sample.labels[i], random, place, scratch)) return refusal;
  }
  return std::nullopt;
}

std::optional<Refusal> ExampleLoader::LoadField(const FieldSpec& spec, const FieldValue& value, const RandomStream& random, Place to,
                                                LoaderScratch* scratch) const {
  if (IsPicture(spec)) return LoadPicture(spec, value, random, to, scratch);
  if (static_cast<int64_t>(value.values.size()) != to.second->Size()) {
    return Refusal{format("'{}' has {} numbers, expected {}", spec.name, value.values.size(), to.second->ToString())};
  }
  std::copy(value.values.begin(), value.values.end(), to.first);
  return std::nullopt;
}

std::optional<Refusal> ExampleLoader::LoadPicture(const FieldSpec& spec, const FieldValue& value, const RandomStream& random, Place to,
                                                  LoaderScratch* scratch) const {
  const TShape& shape = *to.second;
  if (!value.pixels.empty() && augmenter_->keeps_pixels() && spec.shape[0] == shape[0]) {
    augmenter_->ToPlanes(value.pixels, to.first);
    return std::nullopt;
  }
  Image* image = &scratch->image;
  if (!value.pixels.empty()) {
    CopyPixels(spec, value.pixels, image);
    ConvertChannels(augmenter_->channels(), image);
  } else {
    DecodeOptions options;
    options.channels = augmenter_->channels();
    options.exact = options_.exact_decode;
    options.min_scale = [&](int height, int width) { return augmenter_->MinScale(height, width, random); };
    scratch->bytes += static_cast<int64_t>(value.encoded.size());
    if (auto refusal = scratch->decoder.Decode(value.encoded, options, image)) return refusal;
  }
  augmenter_->Apply(image, &scratch->spare, random);
  if (image->height != shape[1] || image->width != shape[2]) {
    return Refusal{format("the picture has {}x{} pixels, expected {}x{}", image->width, image->height, shape[2], shape[1])};
  }
  augmenter_->ToPlanes(image->pixels, to.first);
  return std::nullopt;
}

void ExampleLoader::Clear(int64_t row, const BatchPointers& to) const {
  for (size_t i = 0; i < data_shapes_.size(); ++i) std::fill_n(RowOf(to.data[i], row, data_shapes_[i]), data_shapes_[i].Size(), 0.0f);
  for (size_t i = 0; i < label_shapes_.size(); ++i) std::fill_n(RowOf(to.labels[i], row, label_shapes_[i]), label_shapes_[i].Size(), 0.0f);
}

void ExampleLoader::CopyRow(int64_t from, int64_t to, const BatchPointers& rows) const {
  const auto copy = [from, to](float* base, const TShape& shape) {
    std::copy_n(RowOf(base, from, shape), shape.Size(), RowOf(base, to, shape));
  };
  for (size_t i = 0; i < data_shapes_.size(); ++i) copy(rows.data[i], data_shapes_[i]);
  for (size_t i = 0; i < label_shapes_.size(); ++i) copy(rows.labels[i], label_shapes_[i]);
}

}  // namespace mxtrain::io

#include "mxtrain/io/augmenter.h"

#include <algorithm>
#include <iterator>

#include "mxtrain/base/suggest.h"

namespace mxtrain::io {
namespace {

struct NormalizeParam : Parameter<NormalizeParam> {
  std::vector<double> mean, std;
  static void Declare(Fields<NormalizeParam>& f) {
    f.Add("mean", &NormalizeParam::mean).Default({0}).Help("subtracted from pixel / 255: one number, or one per channel");
    f.Add("std", &NormalizeParam::std).Default({1}).Help("divides the difference: one number, or one per channel");
  }
};

constexpr const char* kNormalize = "normalize";

const std::vector<detail::TransformEntry>& Entries() {
  static const std::vector<detail::TransformEntry> entries = [] {
    std::vector<detail::TransformEntry> all = detail::ResizeTransforms(), random = detail::RandomTransforms();
    std::move(random.begin(), random.end(), std::back_inserter(all));
    return all;
  }();
  return entries;
}

TransformInfo InfoOf(const std::string& name) {
  std::vector<std::string> names;
  for (TransformInfo& info : ListTransforms()) {
    if (info.name == name) return std::move(info);
    names.push_back(info.name);
  }
  Throw(ErrorKind::kConfig, "there is no transform '{}'{}; known are {}", name, DidYouMean(name, names), join(names, ", "));
}

// The main parameter under its own name.
Kwargs Named(const TransformSpec& spec) {
  Kwargs kwargs = spec.kwargs;
  const TransformInfo info = InfoOf(spec.name);
  for (auto& [key, value] : kwargs) {
    if (key.empty()) key = info.parameters.front().name;
  }
  return kwargs;
}

std::vector<double> PerChannel(std::vector<double> values, const char* name, int channels) {
  if (values.size() == 1) values.resize(static_cast<size_t>(channels), values[0]);
  if (values.size() != static_cast<size_t>(channels)) {
    Throw(ErrorKind::kConfig, "normalize: {} has {} numbers, the pictures have {} channel{}", name, values.size(), channels,
          channels == 1 ? "" : "s");
  }
  return values;
}

std::vector<float> MakeTable(const NormalizeParam& param, int channels) {
  const std::vector<double> mean = PerChannel(param.mean, "mean", channels), std = PerChannel(param.std, "std", channels);
  std::vector<float> table;
  for (size_t c = 0; c < static_cast<size_t>(channels); ++c) {
    if (!(std[c] > 0)) Throw(ErrorKind::kConfig, "normalize: std = {}: expected numbers above 0", params::Print(std));
    for (int value = 0; value < 256; ++value) table.push_back(static_cast<float>((value / 255.0 - mean[c]) / std[c]));
  }
  return table;
}

}  // namespace

std::vector<TransformInfo> ListTransforms() {
  std::vector<TransformInfo> infos;
  for (const detail::TransformEntry& entry : Entries()) infos.push_back(entry.info);
  infos.push_back({kNormalize, "(pixel / 255 - mean) / std; stands last", NormalizeParam::Describe()});
  return infos;
}

Augmenter::Augmenter(const std::vector<TransformSpec>& specs, int channels) : channels_(channels) {
  if (channels != 1 && channels != 3) Throw(ErrorKind::kConfig, "pictures have 1 channel (gray) or 3 (RGB), not {}", channels);
  NormalizeParam normalize;
  normalize.Init({}, kNormalize);
  for (const TransformSpec& spec : specs) {
    const Kwargs kwargs = Named(spec);
    if (spec.name == kNormalize) {
      if (&spec != &specs.back()) Throw(ErrorKind::kConfig, "normalize is not the last of the transforms: move it to the end");
      normalize.Init(kwargs, kNormalize);
      continue;
    }
    const auto entry = std::find_if(Entries().begin(), Entries().end(), [&](const auto& e) { return e.info.name == spec.name; });
    transforms_.push_back(entry->make(kwargs, spec.name));
  }
  table_ = MakeTable(normalize, channels);
}

TShape Augmenter::OutputShape(const TShape& input) const {
  PictureSize size;
  if (input.has_rank()) size = {static_cast<int>(input[1]), static_cast<int>(input[2])};
  for (const auto& transform : transforms_) size = transform->OutputSize(size);
  if (!size.known()) {
    Throw(ErrorKind::kConfig,
          "the pictures come out in different sizes; end the transforms with a fixed one: resize: [height, width], center_crop, "
          "random_crop or "
          "random_resized_crop");
  }
  return {channels_, size.height, size.width};
}

void Augmenter::Apply(Image* image, Image* scratch, RandomStream random) const {
  for (const auto& transform : transforms_) transform->Apply(image, scratch, &random);
}

double Augmenter::MinScale(int height, int width, RandomStream random) const {
  return transforms_.empty() ? 1.0 : transforms_.front()->MinScale(height, width, random);
}

void Augmenter::ToPlanes(std::span<const uint8_t> pixels, float* planes) const {
  const float* table = table_.data();
  if (channels_ == 1) {
    for (size_t i = 0; i < pixels.size(); ++i) planes[i] = table[pixels[i]];
    return;
  }
  const size_t plane = pixels.size() / 3;
  float *red = planes, *green = planes + plane, *blue = planes + 2 * plane;
  for (size_t i = 0; i < plane; ++i) {
    red[i] = table[pixels[3 * i]];
    green[i] = table[256 + pixels[3 * i + 1]];
    blue[i] = table[512 + pixels[3 * i + 2]];
  }
}

}  // namespace mxtrain::io

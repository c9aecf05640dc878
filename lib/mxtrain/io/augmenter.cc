// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/augmenter.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "mxtrain/base/suggest.h"

namespace mxtrain::io {
namespace {

struct NormalizeParam : Parameter<NormalizeParam>, PixelNormalization {
  enum From { kGiven, kAuto, kImageNet };
  int from;
  static void Declare(Fields<NormalizeParam>& f) {
    f.Add("from", &NormalizeParam::from)
        .Enum({{"given", kGiven}, {"auto", kAuto}, {"imagenet", kImageNet}})
        .Default(kGiven)
        .Help(
            "auto: mean and std of the training set's pixels; imagenet: mean 0.485, 0.456, 0.406 "
            "and std 0.229, 0.224, 0.225, those of torchvision's and timm's weights");
    f.Add("mean", &NormalizeParam::mean)
        .Default({0})
        .Help("subtracted from pixel / 255: one number, or one per channel");
    f.Add("std", &NormalizeParam::std)
        .Default({1})
        .Help("divides the difference: one number, or one per channel");
  }
};

constexpr const char* kNormalize = "normalize";

const std::vector<detail::TransformEntry>& TransformEntries() {
  static const std::vector<detail::TransformEntry> entries = [] {
    std::vector<detail::TransformEntry> all;
    for (const auto family :
         {detail::ResizeTransforms, detail::RandomTransforms, detail::WarpTransforms,
          detail::ColourTransforms, detail::NoiseTransforms, detail::AugmentTransforms,
          detail::ErasingTransforms, detail::ObjectTransforms}) {
      for (detail::TransformEntry& entry : family()) all.push_back(std::move(entry));
    }
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
  Throw(ErrorKind::kConfig, "there is no transform '{}'{}; known are {}", name,
        DidYouMean(name, names), join(names, ", "));
}

// What a crop-resize does to points.
void Tell(const CropResize& crop, const ImagePart& part) {
  part.Moves(crop.Map());
  part.EndsAt(crop.height(), crop.width());
}

Frame WholeOf(const Image& image) {
  return {image.height, image.width, {0, 0, image.height, image.width}, 1};
}

}  // namespace

Kwargs NamedKwargs(const TransformSpec& spec) {
  Kwargs kwargs = spec.kwargs;
  const TransformInfo info = InfoOf(spec.name);
  for (auto& [key, value] : kwargs) {
    if (key.empty()) key = info.parameters.front().name;
  }
  return kwargs;
}

std::vector<TransformInfo> ListTransforms() {
  std::vector<TransformInfo> infos;
  for (const detail::TransformEntry& entry : TransformEntries()) infos.push_back(entry.info);
  infos.push_back(
      {kNormalize, "(pixel / 255 - mean) / std; must be last", NormalizeParam::Describe()});
  return infos;
}

bool StaysInEvaluation(const TransformSpec& spec) {
  return spec.name == "resize" || spec.name == "center_crop" || spec.name == "letterbox" ||
         spec.name == kNormalize;
}

std::vector<TransformSpec> EvaluationTransforms(const std::vector<TransformSpec>& training) {
  std::vector<TransformSpec> chain;
  for (const TransformSpec& spec : training) {
    if (StaysInEvaluation(spec)) chain.push_back(spec);
    if (spec.name != "random_crop" && spec.name != "random_resized_crop") continue;
    Kwargs resize, crop;
    for (const auto& [key, value] : NamedKwargs(spec)) {
      if (key == "size") crop.emplace_back(key, value);
      if (key == "interpolation" || key == "antialias") resize.emplace_back(key, value);
    }
    TShape size;
    if (!crop.empty()) params::Parse(crop[0].second, &size);
    if (spec.name == "random_resized_crop" && size.ndim() > 0) {
      const int64_t edge = *std::max_element(size.begin(), size.end());
      resize.emplace_back("size", params::Print(edge + edge / 8));
      chain.push_back({"resize", resize});
    }
    chain.push_back({"center_crop", crop});
  }
  return chain;
}

TransformSpec WithNumbers(TransformSpec spec) {
  if (spec.name != kNormalize) return spec;
  NormalizeParam param;
  param.Init(NamedKwargs(spec), kNormalize);
  if (param.from != NormalizeParam::kImageNet) return spec;
  if (spec.kwargs.size() > 1)
    Throw(ErrorKind::kConfig, "normalize: imagenet has its own mean and std: remove the others");
  spec.kwargs = {{"mean", "(0.485, 0.456, 0.406)"}, {"std", "(0.229, 0.224, 0.225)"}};
  return spec;
}

Augmenter::Augmenter(const std::vector<TransformSpec>& specs, int channels) : channels_(channels) {
  if (channels != 1 && channels != 3)
    Throw(ErrorKind::kConfig, "images have 1 channel (gray) or 3 (RGB), not {}", channels);
  NormalizeParam normalize;
  normalize.Init({}, kNormalize);
  for (const TransformSpec& spec : specs) {
    const Kwargs kwargs = NamedKwargs(WithNumbers(spec));
    if (spec.name == kNormalize) {
      if (&spec != &specs.back())
        Throw(ErrorKind::kConfig, "normalize must be the last transform: move it to the end");
      normalize.Init(kwargs, kNormalize);
      continue;
    }
    const auto entry = std::find_if(TransformEntries().begin(), TransformEntries().end(),
                                    [&](const auto& e) { return e.info.name == spec.name; });
    transforms_.push_back(entry->make(kwargs, spec.name));
    names_.push_back(spec.name);
  }
  if (normalize.from == NormalizeParam::kAuto)
    Throw(ErrorKind::kConfig, "normalize: auto needs a training set to measure");
  normalization_ = normalize;
  levels_ = LevelsOf(normalization_, channels, kNormalize);
}

std::string Augmenter::ReaderOfObjects() const {
  const auto reader = std::find_if(transforms_.begin(), transforms_.end(),
                                   [](const auto& t) { return t->reads_objects(); });
  return reader == transforms_.end() ? ""
                                     : names_[static_cast<size_t>(reader - transforms_.begin())];
}

ImageSize Augmenter::OutputSize(ImageSize input) const {
  for (const auto& transform : transforms_) input = transform->OutputSize(input);
  return input;
}

void Augmenter::RequireDeep() const {
  constexpr int kLarge = 1 << 15;  // than any crop
  for (size_t i = 0; i < transforms_.size(); ++i) {
    CropResize crop = CropResize::Whole(kLarge, kLarge);
    RandomStream random(0, 0, 0);
    if (!transforms_[i]->Fold(&crop, &random)) {
      Throw(ErrorKind::kConfig,
            "the transform {} works on 8 bits per channel; with bits: 16 crops, resizes, flips and "
            "normalize can be used",
            names_[i]);
    }
    if (crop.how.antialias && crop.resized()) {
      Throw(ErrorKind::kConfig,
            "the transform {}: antialias works on 8 bits per channel; with bits: 16 set antialias: "
            "false",
            names_[i]);
    }
  }
}

TShape Augmenter::OutputShape(const TShape& input) const {
  const ImageSize size = OutputSize(
      input.has_rank() ? ImageSize{static_cast<int>(input[1]), static_cast<int>(input[2])}
                       : ImageSize());
  if (!size.known()) {
    Throw(ErrorKind::kConfig,
          "the transforms produce images of different sizes; end them with a fixed one: resize: "
          "[height, width], center_crop, "
          "random_crop or "
          "random_resized_crop");
  }
  return {channels_, size.height, size.width};
}

size_t Augmenter::fixed() const {
  const auto drawing = std::find_if(transforms_.begin(), transforms_.end(),
                                    [](const auto& t) { return t->draws(); });
  return static_cast<size_t>(drawing - transforms_.begin());
}

Augmenter::Steps Augmenter::Begin(int height, int width, RandomStream random, size_t first,
                                  size_t last, const ImagePart& part) const {
  Steps steps{CropResize::Whole(height, width), first, last, random, part};
  if (part.tile) steps.crop.Crop(*part.tile);
  while (steps.next < last && transforms_[steps.next]->Fold(&steps.crop, &steps.random))
    ++steps.next;
  return steps;
}

// Runs the steps up to the last crop-resize, which is returned and applies to **from.
CropResize Augmenter::Run(const Steps& steps, const Image** from, Frame* frame, Image* image,
                          Image* scratch) const {
  CropResize crop = steps.crop;
  RandomStream random = steps.random;
  for (size_t next = steps.next; next < steps.last;) {
    const bool as_is = *from == image && frame->scale == 1 &&
                       crop == CropResize::Whole(frame->height, frame->width);
    if (!as_is) {
      io::Apply(crop, **from, *frame, scratch);
      std::swap(*image, *scratch);
      Tell(crop, steps.part);
    }
    transforms_[next++]->Apply(image, scratch, &random, steps.part);
    steps.part.EndsAt(image->height, image->width);
    *from = image;
    *frame = WholeOf(*image);
    crop = CropResize::Whole(image->height, image->width);
    while (next < steps.last && transforms_[next]->Fold(&crop, &random)) ++next;
  }
  return crop;
}

void Augmenter::ToImage(const Steps& steps, const Image& from, const Frame& frame, Image* image,
                        Image* scratch) const {
  const Image* at = &from;
  Frame shown = frame;
  const CropResize crop = Run(steps, &at, &shown, image, scratch);
  io::Apply(crop, *at, shown, scratch);
  std::swap(*image, *scratch);
  Tell(crop, steps.part);
}

// Calls write(crop, image, frame) with the last crop-resize and the image it applies to.
template <typename Write>
bool Augmenter::RunTo(const Steps& steps, const Image& from, const Frame& frame, ImageSize size,
                      Image* image, Image* scratch, Write&& write) const {
  const Image* at = &from;
  Frame shown = frame;
  const CropResize crop = Run(steps, &at, &shown, image, scratch);
  if (crop.height() != size.height || crop.width() != size.width) {
    image->Resize(crop.height(), crop.width(), channels_);
    return false;
  }
  write(crop, *at, shown);
  Tell(crop, steps.part);
  return true;
}

bool Augmenter::ToPlanes(const Steps& steps, const Image& from, const Frame& frame, ImageSize size,
                         Image* image, Image* scratch, float* planes) const {
  return RunTo(steps, from, frame, size, image, scratch,
               [&](const CropResize& crop, const Image& at, const Frame& shown) {
                 ApplyToPlanes(crop, at, shown, levels_, planes);
               });
}

bool Augmenter::ToPixels(const Steps& steps, const Image& from, const Frame& frame, ImageSize size,
                         Image* image, Image* scratch, uint8_t* pixels) const {
  return RunTo(steps, from, frame, size, image, scratch,
               [&](const CropResize& crop, const Image& at, const Frame& shown) {
                 ApplyToPixels(crop, at, shown, pixels);
               });
}

}  // namespace mxtrain::io

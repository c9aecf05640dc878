// SPDX-License-Identifier: Apache-2.0
#include "app/tasks/recipe_text.h"

#include <algorithm>
#include <cmath>

#include "mxtrain/base/error.h"
#include "mxtrain/base/suggest.h"

namespace mxtrain::tasks {
namespace {

constexpr int kColumn = 42;  // of comments

std::string Numbers(const std::vector<double>& numbers) {
  std::string text;
  for (const double number : numbers) text += format("{}{:.9g}", text.empty() ? "" : ", ", number);
  return "[" + text + "]";
}

}  // namespace

std::string TextLine(std::string text, const std::string& comment) {
  if (!comment.empty()) {
    text.resize(std::max<size_t>(text.size() + 1, kColumn), ' ');
    text += "# " + comment;
  }
  return text + "\n";
}

std::string ExactDecodeText() {
  return TextLine("  exact_decode: true",
                  "JPEG files as other programs decode them, also for an "
                  "exported model;") +
         TextLine("", "false: faster with photos of many megapixels");
}

std::string ResizedText(const std::string& transform, int height, int width,
                        const std::string& more) {
  return format("      - {}: {{size: [{}, {}]{}, interpolation: bilinear, antialias: true}}",
                transform, height, width, more);
}

std::string NormalizeText(const ZooWeights& weights, bool from_weights) {
  if (!from_weights || !weights.family) return "normalize: imagenet";
  const config::WeightsFamily usual;
  const config::WeightsFamily& family = *weights.family;
  if (family.mean == usual.mean && family.std == usual.std) return "normalize: imagenet";
  return format("normalize: {{mean: {}, std: {}}}", Numbers(family.mean), Numbers(family.std));
}

std::string NearOrAll(const std::string& name, const std::vector<std::string>& names) {
  const std::string near = DidYouMean(name, names);
  return !near.empty() || names.empty() ? near : format("; it has {}", FirstOf(names, 12));
}

std::string ListText(const std::vector<std::string>& texts) {
  std::string list;
  for (const std::string& text : texts) list += (list.empty() ? "" : ", ") + QuoteYaml(text);
  return "[" + list + "]";
}

void RequireAllLayers(const RecipeChoice& choice, const std::string& what) {
  if (choice.weights && choice.weights->head_only)
    Throw(ErrorKind::kUsage, "--head-only is for images of one class; {} need the decoder", what);
}

void RequireTrunk(const RecipeChoice& choice, const std::string& what) {
  RequireAllLayers(choice, what);
  if (!choice.net || choice.net->has_strides) return;
  Throw(ErrorKind::kUsage,
        "--net {}: it does not say which of its layers a decoder of {} takes; efficientnet_b0, "
        "efficientnet_lite0, mobilenet_v2, mobilenet_v3_large, mobilenet_v3_small and the resnets "
        "do",
        choice.net->name, what);
}

io::ImageSize TrunkInput(const io::ImageSize& images, int shorter_side) {
  constexpr double kLongest = 384;
  const auto [shorter, longer] = std::minmax(images.height, images.width);
  const double scale = shorter_side > 0 ? static_cast<double>(shorter_side) / shorter
                                        : std::min(1.0, kLongest / longer);
  const auto rounded = [scale](int side) {
    return std::max(1, static_cast<int>(std::lround(side * scale / kTrunkMultiple))) *
           kTrunkMultiple;
  };
  return {rounded(images.height), rounded(images.width)};
}

int64_t EpochsOf(int64_t seen, int64_t train_images, const io::ImageSize& input) {
  constexpr int64_t kPixels = 128 * 128;
  const int64_t pixels = int64_t{input.height} * input.width;
  const int64_t more = std::clamp<int64_t>(kPixels / std::max<int64_t>(pixels, 1), 1, 4);
  return seen * more / std::max<int64_t>(train_images, 1) / 5 * 5;
}

std::string RoundingText(const RecipeChoice& choice, const io::ImageSize& input) {
  const int asked = choice.input_size;
  if (asked == 0 || input.height == asked || input.width == asked) return "";
  return format(" (--size {} is rounded: sides are multiples of {})", asked, kTrunkMultiple);
}

std::string TrunkVariables(const RecipeChoice& choice) {
  std::string vars;
  if (choice.net && choice.net->drops_paths) vars += "  stochastic_depth: 0\n";
  const bool weighted = choice.net && !choice.weights->file.empty();
  if (weighted && choice.weights->facts.family) {
    const config::WeightsFamily& family = *choice.weights->facts.family;
    for (const auto& [name, value] : family.vars) {
      if (name == "stochastic_depth") continue;
      vars += TextLine(format("  {}: {}", name, value),
                       format("as the weights of {} were trained", family.name));
    }
  }
  return vars.empty() ? "" : "\nvars:\n" + vars;
}

std::string WeightsText(const WeightsChoice& weights) {
  std::string text = format("  weights:\n    file: {}\n", QuoteYaml(weights.file));
  if (!weights.state.empty()) text += format("    state: {}\n", QuoteYaml(weights.state));
  if (!weights.sha256.empty())
    text += TextLine("    sha256: " + weights.sha256, "no other file is used");
  return text;
}

io::ImageSize MedianSize(const io::Source& images) {
  constexpr int64_t kMost = 200;  // that are read
  std::vector<int> heights, widths;
  io::Sample sample;
  const int64_t count = std::min(images.size(), kMost);
  for (int64_t i = 0; i < count; ++i) {
    try {
      images.Read(i * images.size() / count, &sample);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kData && error.kind() != ErrorKind::kFileSystem) throw;
      continue;
    }
    const auto info = io::ProbeImage(sample.data[0].encoded);
    if (!info) continue;
    heights.push_back(info->height);
    widths.push_back(info->width);
  }
  if (heights.empty()) Throw(ErrorKind::kData, "none of the images can be read");
  std::ranges::sort(heights);
  std::ranges::sort(widths);
  return {heights[heights.size() / 2], widths[widths.size() / 2]};
}

}  // namespace mxtrain::tasks

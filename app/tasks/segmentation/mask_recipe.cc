// SPDX-License-Identifier: Apache-2.0
#include "app/tasks/segmentation/mask_recipe.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "app/tasks/recipe_text.h"
#include "mxtrain/base/format.h"

namespace mxtrain::tasks {
namespace {

constexpr int64_t kSeenImages = 20'000;  // in all epochs
constexpr double kMaskHoldout = 0.2;

// The configuration of a net from random weights.
constexpr const char* kSmallNet = R"(
blocks:
  conv:
    params: {width, stride: 1}
    layers:
      - Convolution: {num_filter: "${width}", kernel: 3, pad: 1, stride: "${stride}", no_bias: true}
      - BatchNorm: {fix_gamma: false}
      - Activation: {act_type: relu}
  finer:                                  # twice as fine, beside what was seen at that size (U-Net)
    params: {width}
    inputs: [deep, fine]
    layers:
      - UpSampling: {name: up, inputs: deep, scale: 2, sample_type: nearest}
      - Concat: {inputs: [up, fine]}
      - conv: {width: "${width}"}

)";
constexpr const char* kSmallLayers = R"(    - conv: {name: fine1, width: 24, stride: 2}
    - conv: {name: fine2, width: 48, stride: 2}
    - conv: {name: fine2b, width: 48}
    - conv: {name: fine3, width: 96, stride: 2}
    - conv: {name: fine3b, width: 96}
    - conv: {name: fine4, width: 160, stride: 2}
    - conv: {name: fine4b, width: 160}
    - conv: {name: fine5, width: 160, stride: 2}
    - finer: {name: up4, inputs: [fine5, fine4b], width: 128}
    - finer: {name: up3, inputs: [up4, fine3b], width: 96}
    - finer: {name: up2, inputs: [up3, fine2b], width: 64}
    - finer: {name: up1, inputs: [up2, fine1], width: 48}
    - Convolution: {name: scores, num_filter: "${classes}", kernel: 1}
    - BilinearResize2D: {name: full_size, scale_height: 2, scale_width: 2, align_corners: false}
    - SoftmaxOutput: {name: pixels, multi_output: true, use_ignore: true, normalization: valid}
)";

class MaskRecipe final : public Recipe {
 public:
  explicit MaskRecipe(MaskData data) : data_(std::move(data)) {}

  void Choose(const RecipeChoice& choice) override {
    choice_ = choice;
    RequireTrunk(choice, "masks");
    const io::ImageSize input = TrunkInput(data_.size, choice.input_size);
    height_ = input.height, width_ = input.width;
    epochs_ = std::clamp<int64_t>(EpochsOf(kSeenImages, data_.train_images, input), 10, 100);
    batch_ = std::clamp<int64_t>(data_.train_images, 1, data_.train_images >= 80 ? 8 : 4);
  }

  std::string Text() const override {
    const bool published = choice_.net != nullptr;
    const bool weighted = published && !choice_.weights->file.empty();
    const std::string pixels =
        NormalizeText(published ? choice_.weights->facts : ZooWeights(), weighted);
    std::string text = format(
        "# A class for each pixel: written by `mxtrain init`; every line can be changed.\n"
        "#   mxtrain check {0}\n#   mxtrain train {0}\n\nseed: 1\n",
        choice_.file);
    if (published) {
      text += format("\nnet:\n  use: {}\n", choice_.net->name);
      text += TextLine("  decoder: pyramid",
                       "scores of classes for each pixel of its layers; also deeplab, unet");
    } else {
      text += kSmallNet;
      text += "net:\n";
    }
    text += TextLine(format("  input: [3, {}, {}]", height_, width_),
                     format("sides are multiples of {}", kTrunkMultiple));
    if (!published) text += std::string("  layers:\n") + kSmallLayers;
    text += TrunkVariables(choice_);
    text += format("\ndata:\n  batch_size: {}\n{}  train:\n", batch_, ExactDecodeText());
    text += Data(pixels);
    return text + Training(weighted);
  }

  Json ToJson() const override {
    return {
        {"file", choice_.file},    {"classes", data_.classes},        {"train", data_.train_images},
        {"val", data_.val_images}, {"input_size", {height_, width_}}, {"batch_size", batch_},
        {"epochs", epochs_}};
  }

  std::string Summary() const override {
    return format(
        "{}: masks of {} classes{}, {} images to train on, {} to validate{}\n"
        "net input 3x{}x{}{}, batches of {}, {} epochs\n",
        choice_.file, data_.classes.size(), data_.form, data_.train_images, data_.val_images,
        data_.val.empty() ? " (a fifth, held out)" : "", height_, width_,
        RoundingText(choice_, {height_, width_}), batch_, epochs_);
  }

  std::string Advice() const override {
    if (choice_.net || data_.train_images >= 2000) return "";
    return format(
        "{} are few for a net that begins with random weights; a published one needs fewer: "
        "--net efficientnet_lite0 --weights FILE (`mxtrain help fine-tuning`)",
        Counted(data_.train_images, "image"));
  }

 private:
  std::string Data(const std::string& pixels) const {
    std::string text = data_.train + "    shuffle: true\n    transforms:\n";
    text += ResizedText("random_resized_crop", height_, width_, ", area: [0.25, 1]") + "\n";
    text += TextLine("      - flip", "remove it if left and right differ in meaning");
    text += "      - brightness: 0.3\n      - contrast: 0.3\n      - saturation: 0.2\n";
    text += format("      - {}\n  val:\n", pixels);
    text += data_.val.empty() ? TextLine(format("    split: {}", kMaskHoldout),
                                         "fraction held out for validation")
                              : data_.val;
    return text + format("    transforms:\n{}\n      - {}\n",
                         ResizedText("resize", height_, width_), pixels);
  }

  std::string Training(bool weighted) const {
    std::string text = format("\ntrain:\n  epochs: {}\n", epochs_);
    if (weighted) text += WeightsText(*choice_.weights);
    text += "  optimizer: {name: adamw, lr: 0.001, weight_decay: 0.01}\n";
    text += TextLine("  lr_schedule: {name: cosine, warmup_epochs: 1}", "");
    text += TextLine("  ema: 0.99", "validation and checkpoints use averages of the weights");
    return text + TextLine("  metrics: [mean_iou]", "of the classes, over all pixels");
  }

  const MaskData data_;
  RecipeChoice choice_;
  int height_ = 0, width_ = 0;
  int64_t epochs_ = 0, batch_ = 0;
};

}  // namespace

void MaskData::HoldOut() {
  val_images = std::llround(kMaskHoldout * static_cast<double>(train_images));
  train_images -= val_images;
}

std::unique_ptr<Recipe> NewMaskRecipe(MaskData data) {
  return std::make_unique<MaskRecipe>(std::move(data));
}

}  // namespace mxtrain::tasks

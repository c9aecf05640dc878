// SPDX-License-Identifier: Apache-2.0
#include "app/tasks/detection/box_folders.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>

#include "app/config/document.h"
#include "app/tasks/annotated_data.h"
#include "app/tasks/recipe_text.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"

namespace mxtrain::tasks {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kSeenBoxImages = 12'500;  // in all epochs
constexpr double kBoxHoldout = 0.2;

// The names in the data.yaml of YOLO data, a list or a map from numbers; none without one.
std::vector<std::string> NamesInYaml(const fs::path& root) {
  constexpr size_t kMost = size_t{16} << 20;
  for (const char* const name : {"data.yaml", "data.yml", "dataset.yaml"}) {
    const fs::path file = root / name;
    std::error_code none;
    if (!fs::is_regular_file(file, none)) continue;
    const config::Value root_value =
        config::ParseResolved(file.string(), ReadFile(file.string(), kMost));
    const config::Value* const names = root_value.is_map() ? root_value.Get("names") : nullptr;
    if (!names) continue;
    std::map<int64_t, std::string> by_number;
    for (const config::Value& value : names->list)
      by_number.emplace(std::ssize(by_number), value.text);
    for (const config::Member& member : names->members)
      by_number.emplace(config::Value::Scalar(member.key).AsInteger().value_or(-1),
                        member.value.text);
    std::vector<std::string> list;
    for (const auto& [number, text] : by_number) {
      if (number != std::ssize(list))
        Throw(ErrorKind::kData, "{}: names: expected a list, or a map from 0, 1, ...",
              file.string());
      list.push_back(text);
    }
    return list;
  }
  return {};
}

class BoxFolders final : public Recipe {
 public:
  BoxFolders(std::string output, AnnotatedData train, std::optional<AnnotatedData> val)
      : output_(std::move(output)),
        train_(std::move(train)),
        val_(std::move(val)),
        size_(MedianSize(*train_.source)) {
    train_images_ = train_.source->size();
    val_images_ = val_ ? val_->source->size()
                       : std::llround(kBoxHoldout * static_cast<double>(train_images_));
    if (!val_) train_images_ -= val_images_;
    io::Sample scratch;
    for (int64_t i = 0; i < train_.source->size(); ++i)
      objects_ += std::ssize(train_.source->LabelOf(i, 0, &scratch)) /
                  train_.source->label_fields()[0].shape[1];
  }

  bool has_boxes() const override { return true; }

  void Choose(const RecipeChoice& choice) override {
    choice_ = choice;
    RequireAllLayers(choice, "boxes");
    if (!is_detector()) RequireTrunk(choice, "boxes");
    const io::ImageSize input = InputSize();
    height_ = input.height, width_ = input.width;
    epochs_ = std::clamp<int64_t>(EpochsOf(kSeenBoxImages, train_images_, input), 12, 120);
    batch_ = train_images_ >= 80 ? 8 : std::min<int64_t>(4, train_images_);
  }

  std::string Text() const override {
    std::string text = format(
        "# Boxes of objects: written by `mxtrain init`; every line can be changed.\n"
        "#   mxtrain check {0}\n#   mxtrain train {0}\n\nseed: 1\n",
        choice_.file);
    text += format("\nnet:\n  use: {}\n", choice_.net ? choice_.net->name : "efficientnet_lite0");
    if (!is_detector())
      text += TextLine("  decoder: boxes", "objects at the points of three grids");
    if (!is_detector() || letterboxes()) {
      text += TextLine(format("  input: [3, {}, {}]", height_, width_),
                       format("sides are multiples of {}", kTrunkMultiple));
    }
    text += VariablesText();
    text += format("\ndata:\n  batch_size: {}\n{}  train:\n{}", batch_, ExactDecodeText(),
                   SourceLines(train_, output_));
    text += TextLine("    classes: " + ListText(train_.source->class_names()),
                     "in the order of their numbers");
    text += "    shuffle: true\n    transforms:\n";
    const std::vector<std::string> whole = WholeImage();
    text += TextLine(CropText(), "boxes move along");
    text += TextLine("      - flip", "remove it if left and right differ in meaning");
    text += "      - brightness: 0.3\n      - contrast: 0.3\n";
    // What cuts has the size of the input already.
    for (size_t i = is_detector() ? 0 : 1; i < whole.size(); ++i) text += whole[i];
    text += "  val:\n";
    text +=
        val_ ? SourceLines(*val_, output_)
             : TextLine(format("    split: {}", kBoxHoldout), "fraction held out for validation");
    text += "    transforms:\n";
    for (const std::string& step : whole) text += step;
    return text + TrainText();
  }

  Json ToJson() const override {
    return {{"file", choice_.file},
            {"source", train_.kind},
            {"classes", train_.source->class_names()},
            {"objects", objects_},
            {"train", train_images_},
            {"val", val_images_},
            {"input_size", {height_, width_}},
            {"batch_size", batch_},
            {"epochs", epochs_}};
  }

  std::string Summary() const override {
    return format(
        "{}: boxes of {} {} ({}), {} in {} images; {} to train on, {} to validate{}\n"
        "net input 3x{}x{}{}, batches of {}, {} epochs\n",
        choice_.file, train_.source->class_names().size(),
        train_.source->class_names().size() == 1 ? "class" : "classes", train_.kind,
        Counted(objects_, "object"), train_.source->size(), train_images_, val_images_,
        val_ ? "" : " (a fifth, held out)", height_, width_,
        RoundingText(choice_, {height_, width_}), batch_, epochs_);
  }

  std::string Advice() const override {
    if (choice_.net || train_images_ >= 5000) return "";
    return format(
        "{} are few for a net that begins with random weights; a published one needs fewer: "
        "--net efficientnet_lite0 --weights FILE (`mxtrain help fine-tuning`)",
        Counted(train_images_, "image"));
  }

 private:
  // Whether the net is one by itself, and has no decoder.
  bool is_detector() const { return choice_.net && choice_.net->finds_boxes(); }
  bool is_weighted() const { return choice_.net && !choice_.weights->file.empty(); }
  static bool IsLetterbox(const std::string& transform) {
    return transform.starts_with("letterbox");
  }
  bool letterboxes() const {
    return is_detector() && std::ranges::any_of(choice_.net->transforms, IsLetterbox);
  }
  // In a letterbox the longer side is as asked for, or as the detector was made for; the other one
  // covers images of the median size.
  io::ImageSize InputSize() const {
    if (!is_detector()) return TrunkInput(size_, choice_.input_size);
    if (!letterboxes()) return {choice_.net->train_size, choice_.net->train_size};
    const double longer = choice_.net->train_size;
    const double scale = longer / std::max(size_.height, size_.width);
    const auto rounded = [scale](int side) {
      return static_cast<int>(std::ceil(side * scale / kTrunkMultiple - 1e-9)) * kTrunkMultiple;
    };
    return {rounded(size_.height), rounded(size_.width)};
  }
  // The section `vars`; "" for none.
  std::string VariablesText() const {
    if (letterboxes()) return "";
    if (is_detector())
      return "\nvars:\n" +
             TextLine(format("  size: {}", height_), "sides of images, as the net reads them");
    return choice_.net ? TrunkVariables(choice_) : "\nvars:\n  stochastic_depth: 0\n";
  }
  // What shows a part of an image in training.
  std::string CropText() const {
    if (letterboxes()) return "      - scale: {factor: [0.6, 1.6], fill: 114}";
    if (is_detector()) return "      - iou_crop";
    return ResizedText("random_resized_crop", height_, width_, ", area: [0.4, 1]");
  }
  // The lines of the transforms of an image that is seen wholly: to the size of the input, then of
  // values.
  std::vector<std::string> WholeImage() const {
    if (!is_detector()) {
      const std::string pixels =
          NormalizeText(is_weighted() ? choice_.weights->facts : ZooWeights(), is_weighted());
      return {ResizedText("resize", height_, width_) + "\n", format("      - {}\n", pixels)};
    }
    std::vector<std::string> lines;
    for (const std::string& step : choice_.net->transforms) {
      lines.push_back(
          IsLetterbox(step)
              ? format("      - letterbox: {{size: [{}, {}], interpolation: bilinear}}\n", height_,
                       width_)
              : format("      - {}\n", step));
    }
    return lines;
  }
  std::string TrainText() const {
    std::string text = format("\ntrain:\n  epochs: {}\n", epochs_);
    if (is_weighted()) text += WeightsText(*choice_.weights);
    text += format("  optimizer: {{name: adamw, lr: {}, weight_decay: 0.01}}\n",
                   is_detector() ? 0.001 : 0.003);
    text += "  lr_schedule: {name: cosine, warmup_epochs: 2}\n";
    text += TextLine("  ema: 0.99", "validation and checkpoints use averages of the weights");
    return text + TextLine("  metrics: [mean_ap, {name: mean_ap, iou: 0.5}]",
                           "the first selects the `best` checkpoint");
  }

  const std::string output_;
  const AnnotatedData train_;
  const std::optional<AnnotatedData> val_;  // none: held out of the training data
  const io::ImageSize size_;
  int64_t train_images_ = 0, val_images_ = 0, objects_ = 0;
  RecipeChoice choice_;
  int height_ = 0, width_ = 0;
  int64_t epochs_ = 0, batch_ = 0;
};

}  // namespace

std::unique_ptr<Recipe> RecognizeBoxFolders(const RecipeRequest& request) {
  const fs::path root = request.root;
  auto parts = FindAnnotatedData(request, io::FieldKind::kBoxes, NamesInYaml(root));
  if (!parts) return nullptr;
  if (parts->train.source->class_names().empty())
    Throw(ErrorKind::kData, "none of the images in {} has an object", parts->train.path);
  return std::make_unique<BoxFolders>(request.output, std::move(parts->train),
                                      std::move(parts->val));
}

}  // namespace mxtrain::tasks

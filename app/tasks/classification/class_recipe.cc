// SPDX-License-Identifier: Apache-2.0
#include "app/tasks/classification/class_recipe.h"

#include <algorithm>

#include "app/report/list_item.h"
#include "app/report/output.h"
#include "app/tasks/recipe.h"
#include "app/tasks/recipe_text.h"
#include "mxtrain/base/format.h"

namespace mxtrain::tasks {
namespace {

// For the end of a comment line: a name must not start a new line.
std::string OneLine(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < ' '; }, '?');
  return text;
}

std::string ClassList(const ImageFolder& folder) {
  std::string text;
  for (size_t i = 0; i < folder.classes.size() && i < 12; ++i) {
    text += format("{}{} {}", i ? ", " : "", report::ListItem(folder.classes[i].first),
                   folder.classes[i].second);
  }
  return text + (folder.classes.size() > 12 ? ", ..." : "");
}

std::string Sides(const ImageFolder& f) {
  if (f.min_side == f.max_side) return format("shorter side {} pixels", f.min_side);
  return format("shorter sides {} to {} pixels, median {}", f.min_side, f.max_side, f.median_side);
}

constexpr const char* kBlocks = R"(
# Parts of the net: convolution with batch normalization, and a residual unit of two of them (He et al. 2015).
blocks:
  conv_bn:
    params: {width, kernel: 3, stride: 1}
    layers:
      - Convolution: {name: conv, num_filter: "${width}", kernel: "${kernel}", stride: "${stride}", pad: "${kernel // 2}", no_bias: true}
      - BatchNorm: {name: bn, fix_gamma: false, eps: 1.0e-5}
  unit:
    params: {width, stride: 2}
    layers:
      - conv_bn: {name: a, width: "${width}", stride: "${stride}"}
      - Activation: {act_type: relu}
      - conv_bn: {name: b, width: "${width}"}
      - conv_bn: {name: shortcut, inputs: input, width: "${width}", kernel: 1, stride: "${stride}"}
      - elemwise_add: {name: sum, inputs: [b, shortcut]}
      - Activation: {act_type: relu}
)";

std::string Net(const ImageFolder& f, const TrainingChoice& choice) {
  const int size = choice.input_size;
  return format(R"(
net:
  input: [{}, {}, {}]                   # channels, height, width: the output of the transforms below
  layers:
)",
                f.channels, size, size) +
         SmallTrunkLayers(size, "") +
         R"(    - FullyConnected: {num_hidden: "${classes}"}   # the number of sub-folders of the training folder
    - SoftmaxOutput: {name: softmax, smooth_alpha: 0.1}   # label smoothing
)";
}

std::string Data(const ImageFolder& f, const TrainingChoice& choice) {
  const int size = choice.input_size;
  std::string text = format(R"(
data:
  batch_size: {}
{}  # cache: ram                            # keep decoded images in memory, if reading them limits the speed
  train:
{}    shuffle: true
    transforms:                           # a different view of each image in every epoch
      - random_resized_crop: {{size: {}, area: [0.35, 1]}}
      - flip                              # remove it if left and right differ in meaning: digits, text
      - normalize: auto                   # mean 0 and deviation 1, measured on the training images
)",
                            choice.batch_size, ExactDecodeText(), SourceText(f.train), size);
  text += "  val:\n";
  text += f.val.empty() ? format(
                              "    split: {}                           # fraction of each class "
                              "held out for validation\n",
                              f.holdout)
                        : SourceText(f.val);
  return text + format(R"(    transforms:
      - resize: {}
      - center_crop: {}
      - normalize: auto
)",
                       size + size / 8, size);
}

std::string TrainSection(const ImageFolder& f, const TrainingChoice& choice) {
  return format(R"(
train:
  epochs: {}
  optimizer: {{name: nag, lr: {}, momentum: 0.9, weight_decay: 5.0e-4}}
  lr_schedule: {{name: one_cycle}}          # up to lr, then down to almost 0
  initializer: {{name: xavier, rnd_type: gaussian, factor_type: in, magnitude: 2}}
  metrics: [accuracy, {}cross_entropy]    # the first selects the `best` checkpoint
)",
                choice.epochs, choice.batch_size >= 32 ? "0.05" : "0.02",
                f.classes.size() > 10 ? "{name: top_k, k: 5}, " : "");
}

}  // namespace

std::string SourceText(const ImagePlace& place) {
  std::string text =
      format("    source: {}\n    path: {}\n", place.archive ? "image_archive" : "image_folder",
             QuoteYaml(place.path));
  if (!place.folder.empty())
    text +=
        format("    folder: {}                     # in the archive\n", QuoteYaml(place.folder));
  if (!place.excluded.empty())
    text += TextLine(format("    exclude: {}", ListText(place.excluded)), "they are no classes");
  return text;
}

std::string HeadText(const ImageFolder& f, const std::string& file) {
  const std::string test = f.test.empty()
                               ? ""
                               : format(
                                     "# {0} is not used in training; it measures the "
                                     "finished net: `mxtrain eval runs/latest {1}`.\n",
                                     OneLine(f.test), OneLine(report::QuoteShell(f.test)));
  return format(R"(# Made by `mxtrain init`: {} to train on, {} to validate, {} classes ({}).
# Images: {}. To try it: `mxtrain check {}`, then `mxtrain train {}`.
{}# Any value can also be given on the command line: train.epochs=5. `mxtrain ops` lists the layers.
seed: 1                                   # of all random numbers; the same seed gives the same run
)",
                Counted(f.train_images, "image"), f.val_images, f.classes.size(), ClassList(f),
                Sides(f), OneLine(report::QuoteShell(file)), OneLine(report::QuoteShell(file)),
                test);
}

TrainingChoice ChooseTraining(const ImageFolder& folder, int input_size) {
  TrainingChoice choice;
  choice.input_size = input_size > 0 ? input_size : 32;
  for (int size : {64, 96, 128}) {
    if (input_size == 0 && folder.median_side >= size) choice.input_size = size;
  }
  choice.batch_size = 32;
  while (choice.batch_size > 8 && folder.train_images < int64_t{10} * choice.batch_size)
    choice.batch_size /= 2;
  while (choice.batch_size > 1 && folder.train_images < choice.batch_size) choice.batch_size /= 2;
  choice.epochs =
      std::clamp<int64_t>((90'000 / std::max<int64_t>(folder.train_images, 1) + 2) / 5 * 5, 10, 60);
  return choice;
}

std::string SmallTrunkBlocks() {
  return kBlocks;
}

std::string SmallTrunkLayers(int size, const std::string& input) {
  std::string text =
      format("    - conv_bn: {{name: stem{}, width: 32, kernel: {}, stride: {}}}\n",
             input.empty() ? "" : ", inputs: " + input, size >= 96 ? 5 : 3, size > 40 ? 2 : 1);
  text += "    - Activation: {act_type: relu}\n";
  if (size >= 96) text += "    - Pooling: {pool_type: max, kernel: 3, stride: 2, pad: 1}\n";
  text += R"(    - unit: {name: unit1, width: 32, stride: 1}
    - unit: {name: unit2, width: 64}
    - unit: {name: unit3, width: 128}
)";
  if (size > 40)
    text +=
        "    - unit: {name: unit4, width: 256}         # wider, or more units: better on many "
        "images, but slower\n";
  return text + R"(    - Pooling: {pool_type: avg, kernel: 1, global_pool: true}
    - Flatten: {name: features}
)";
}

std::string ConfigText(const ImageFolder& folder, const TrainingChoice& choice,
                       const std::string& file) {
  return HeadText(folder, file) + kBlocks + Net(folder, choice) + Data(folder, choice) +
         TrainSection(folder, choice);
}

}  // namespace mxtrain::tasks

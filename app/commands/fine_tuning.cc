// SPDX-License-Identifier: Apache-2.0
#include "app/commands/fine_tuning.h"

#include <algorithm>
#include <cmath>

#include "mxtrain/base/format.h"

namespace mxtrain::commands {
namespace {

constexpr int64_t kMostImages = 30'000;  // that fine-tuning looks at
constexpr int kColumn = 42;              // of comments

// A line with its comment.
std::string Line(std::string text, const std::string& comment) {
  if (!comment.empty()) {
    text.resize(std::max<size_t>(text.size() + 1, kColumn), ' ');
    text += "# " + comment;
  }
  return text + "\n";
}

std::string Numbers(const std::vector<double>& numbers) {
  std::string text;
  for (const double number : numbers) text += format("{}{:.9g}", text.empty() ? "" : ", ", number);
  return "[" + text + "]";
}

std::string Normalize(const ZooWeights& weights, bool from_weights) {
  if (!from_weights || !weights.family) return "normalize: imagenet";
  const config::WeightsFamily usual;
  const config::WeightsFamily& family = *weights.family;
  if (family.mean == usual.mean && family.std == usual.std) return "normalize: imagenet";
  return format("normalize: {{mean: {}, std: {}}}", Numbers(family.mean), Numbers(family.std));
}

std::string Resampling(const ZooWeights& weights, bool from_weights) {
  const std::string kind =
      from_weights && weights.family ? weights.family->interpolation : "bilinear";
  return format("interpolation: {}, antialias: true", kind);
}

std::string Net(const ZooNet& net, const WeightsChoice& weights) {
  std::string text = "\nnet:\n";
  text += Line("  use: " + net.name, "as `mxtrain nets` lists it; with as many classes as folders");
  if (net.train_size != net.native)
    text += Line(format("  input: [3, {0}, {0}]", net.train_size),
                 format("it is made for {0}x{0}; smaller images train faster", net.native));
  std::string vars;
  if (net.smooths) vars += Line("  smoothing: 0.1", "of the labels");
  if (weights.facts.family) {
    for (const auto& [name, value] : weights.facts.family->vars)
      vars += Line(format("  {}: {}", name, value),
                   format("as the weights of {} were trained", weights.facts.family->name));
  }
  return vars.empty() ? text : text + "\nvars:\n" + vars;
}

std::string Data(const ImageFolder& folder, const ZooNet& net, const WeightsChoice& weights,
                 const TrainingChoice& choice) {
  const bool given = !weights.file.empty();
  const std::string pixels = Normalize(weights.facts, given),
                    resampling = Resampling(weights.facts, given);
  std::string text = format("\ndata:\n  batch_size: {}\n  train:\n", choice.batch_size);
  text += format("    source: image_folder\n    path: {}\n    shuffle: true\n",
                 QuoteYaml(folder.train));
  text += Line("    transforms:", "a different view of each image in every epoch");
  text += format("      - random_resized_crop: {{size: {}, area: [0.35, 1], {}}}\n", net.train_size,
                 resampling);
  text += Line("      - flip", "remove it if left and right differ in meaning: digits, text");
  text += format("      - {}\n", pixels);
  text += "  val:\n";
  text += folder.val.empty()
              ? Line(format("    split: {}", folder.holdout),
                     "fraction of each class held out for validation")
              : format("    source: image_folder\n    path: {}\n", QuoteYaml(folder.val));
  text += Line("    transforms:", "larger than in training, where crops enlarge what they show");
  text += Line("      - center_crop: {fraction: 1}", "the largest square");
  text += format("      - resize: {{size: [{0}, {0}], {1}}}\n", net.val_size, resampling);
  return text + format("      - {}\n", pixels);
}

std::string FineTuning(const ImageFolder& folder, const ZooNet& net, const WeightsChoice& weights,
                       const TrainingChoice& choice) {
  std::string head, weight;
  for (const std::string& pattern : net.head) {
    const char* comma = head.empty() ? "" : ", ";
    head += format("{}{}: 5", comma, pattern);
    weight += format("{}{}weight: {{normal: 0.01}}", comma, pattern.substr(0, pattern.size() - 1));
  }
  std::string text = format("\ntrain:\n  epochs: {}\n", choice.epochs);
  if (weights.sha256.empty()) {
    text += format("  weights: {{file: {}}}\n", QuoteYaml(weights.file));
  } else {
    text += format("  weights:\n    file: {}\n", QuoteYaml(weights.file));
    text += Line("    sha256: " + weights.sha256, "no other file is used");
  }
  text += format("  optimizer: {{name: nag, lr: {}, momentum: 0.9, weight_decay: 5.0e-5}}\n",
                 choice.batch_size >= 32 ? "0.02" : "0.01");
  text += Line("  lr_mult: {" + head + "}", "larger steps for the new head");
  text += Line("  initializers: {" + weight + "}", "small initial weights for the new head");
  text += "  lr_schedule: {name: cosine, warmup_epochs: 1}\n";
  text += Line("  ema: 0.99", "validation and checkpoints use averages of the weights");
  text += Line("  early_stop: 5", "epochs without a better validation accuracy");
  return text + format("  metrics: [accuracy, {}cross_entropy]\n",
                       folder.classes.size() > 10 ? "{name: top_k, k: 5}, " : "");
}

std::string FromScratch(const ImageFolder& folder, const TrainingChoice& choice) {
  return format(R"(
train:
  epochs: {}
  optimizer: {{name: nag, lr: {}, momentum: 0.9, weight_decay: 5.0e-4}}
  lr_schedule: {{name: one_cycle}}          # up to lr, then down to almost 0
  ema: 0.99                               # validation and checkpoints use averages of the weights
  metrics: [accuracy, {}cross_entropy]    # the first selects the `best` checkpoint
)",
                choice.epochs, choice.batch_size >= 32 ? "0.05" : "0.02",
                folder.classes.size() > 10 ? "{name: top_k, k: 5}, " : "");
}

}  // namespace

TrainingChoice ChooseFineTuning(const ImageFolder& folder, const ZooNet& net, bool from_weights) {
  TrainingChoice choice = ChooseTraining(folder, net.train_size);
  if (from_weights) {
    const int64_t images = std::max<int64_t>(folder.train_images, 1);
    choice.epochs = std::clamp<int64_t>((kMostImages + images / 2) / images, 6, 30);
  }
  return choice;
}

std::string RecipeText(const ImageFolder& folder, const ZooNet& net, const WeightsChoice& weights,
                       const TrainingChoice& choice, const std::string& file) {
  return HeadText(folder, file) + Net(net, weights) + Data(folder, net, weights, choice) +
         (weights.file.empty() ? FromScratch(folder, choice)
                               : FineTuning(folder, net, weights, choice));
}

}  // namespace mxtrain::commands

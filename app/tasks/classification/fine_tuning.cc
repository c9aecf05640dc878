// SPDX-License-Identifier: Apache-2.0
#include "app/tasks/classification/fine_tuning.h"

#include <algorithm>
#include <cmath>

#include "app/tasks/recipe.h"
#include "app/tasks/recipe_text.h"
#include "mxtrain/base/format.h"

namespace mxtrain::tasks {
namespace {

constexpr int64_t kMostImages = 30'000;  // that fine-tuning looks at

std::string Net(const ZooNet& net, const WeightsChoice& weights) {
  std::string text = "\nnet:\n";
  text +=
      TextLine("  use: " + net.name, "as `mxtrain nets` lists it; with as many classes as folders");
  const int size = weights.head_only ? net.val_size : net.train_size;
  if (size != net.native)
    text += TextLine(format("  input: [3, {0}, {0}]", size),
                     format("it is made for {0}x{0}; smaller images train faster", net.native));
  std::string vars;
  if (net.drops_paths && !weights.file.empty())
    vars += TextLine("  stochastic_depth: 0", weights.head_only
                                                  ? "nothing random before the head"
                                                  : "the net was trained with more, for long");
  if (net.smooths) vars += TextLine("  smoothing: 0.1", "of the labels");
  if (weights.facts.family) {
    for (const auto& [name, value] : weights.facts.family->vars) {
      if (name == "stochastic_depth") continue;
      vars += TextLine(format("  {}: {}", name, value),
                       format("as the weights of {} were trained", weights.facts.family->name));
    }
  }
  return vars.empty() ? text : text + "\nvars:\n" + vars;
}

std::string Data(const ImageFolder& folder, const ZooNet& net, const WeightsChoice& weights,
                 const TrainingChoice& choice) {
  const bool given = !weights.file.empty();
  const std::string pixels = NormalizeText(weights.facts, given),
                    resampling = ResamplingText(weights);
  const std::string whole =
      TextLine("      - center_crop: {fraction: 1}", "the largest square") +
      format("      - resize: {{size: [{0}, {0}], {1}}}\n", net.val_size, resampling) +
      format("      - {}\n", pixels);
  std::string text = format("\ndata:\n  batch_size: {}\n", choice.batch_size) + ExactDecodeText();
  if (weights.head_only)
    text += TextLine("  cache: features", "what the head reads is computed once for each image");
  text += "  train:\n" + SourceText(folder.train) + "    shuffle: true\n";
  if (weights.head_only) {
    text += TextLine("    transforms:", "none that is random") + whole;
  } else {
    text += TextLine("    transforms:", "a different view of each image in every epoch");
    text += format("      - random_resized_crop: {{size: {}, area: [0.35, 1], {}}}\n",
                   net.train_size, resampling);
    text += TextLine("      - flip", "remove it if left and right differ in meaning: digits, text");
    text += format("      - {}\n", pixels);
  }
  text += "  val:\n";
  text += folder.val.empty() ? TextLine(format("    split: {}", folder.holdout),
                                        "fraction of each class held out for validation")
                             : SourceText(folder.val);
  return text +
         TextLine("    transforms:", weights.head_only
                                         ? ""
                                         : "larger than in training, where crops enlarge "
                                           "what they show") +
         whole;
}

std::string FineTuning(const ImageFolder& folder, const ZooNet& net, const WeightsChoice& weights,
                       const TrainingChoice& choice) {
  std::string weight;
  for (const std::string& pattern : net.head) {
    weight += format("{}{}weight: {{normal: 0.01}}", weight.empty() ? "" : ", ",
                     pattern.substr(0, pattern.size() - 1));
  }
  std::string text = format("\ntrain:\n  epochs: {}\n", choice.epochs);
  if (weights.sha256.empty() && weights.state.empty()) {
    text += format("  weights: {{file: {}}}\n", QuoteYaml(weights.file));
  } else {
    text += format("  weights:\n    file: {}\n", QuoteYaml(weights.file));
    if (!weights.state.empty()) text += format("    state: {}\n", QuoteYaml(weights.state));
  }
  if (!weights.sha256.empty()) {
    text += TextLine("    sha256: " + weights.sha256, "no other file is used");
  }
  const std::string but_head = format("  freeze: {{except: [{}]", fmt::join(net.head, ", "));
  if (weights.head_only)
    text += TextLine(but_head + ", global_stats: true}", "all but the new head");
  text += LearningText(net, weights.head_only, choice.batch_size);
  text += TextLine("  initializers: {" + weight + "}", "small initial weights for the new head");
  if (weights.head_only)
    text += TextLine("  early_stop: 5", "epochs without a better validation accuracy");
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

TrainingChoice ChooseFineTuning(const ImageFolder& folder, const ZooNet& net,
                                const WeightsChoice& weights) {
  TrainingChoice choice = ChooseTraining(folder, weights.head_only ? net.val_size : net.train_size);
  if (weights.head_only) {
    choice.epochs = 30;
  } else if (!weights.file.empty()) {
    choice.epochs = EpochsOfFineTuning(folder.train_images);
  }
  return choice;
}

int64_t EpochsOfFineTuning(int64_t images) {
  const int64_t count = std::max<int64_t>(images, 1);
  return std::clamp<int64_t>((kMostImages + count / 2) / count, 6, 30);
}

std::string ResamplingText(const WeightsChoice& weights) {
  const bool known = !weights.file.empty() && weights.facts.family;
  return format("interpolation: {}, antialias: true",
                known ? weights.facts.family->interpolation : "bilinear");
}

std::string LearningText(const ZooNet& net, bool head_only, int batch_size) {
  const double of_batch = batch_size >= 32 ? 1 : 0.5;
  std::string text;
  if (head_only) {
    text = format("  optimizer: {{name: nag, lr: {:g}, momentum: 0.9, weight_decay: 1.0e-4}}\n",
                  0.02 * of_batch);
    text += "  lr_schedule: {name: cosine, warmup_epochs: 1}\n";
  } else {
    // Without batch norms large steps do not merely scale the weights.
    const double rate = (net.has_batch_norm ? 1e-3 : 2e-4) * of_batch;
    text = format("  optimizer: {{name: adamw, lr: {:g}, weight_decay: 0.05}}\n", rate);
    text += TextLine("  lr_schedule: {name: one_cycle}",
                     "up to lr in 3 of 10 steps, then down to almost 0, however many epochs");
  }
  return text + TextLine("  ema: 0.99", "validation and checkpoints use averages of the weights");
}

std::string RecipeText(const ImageFolder& folder, const ZooNet& net, const WeightsChoice& weights,
                       const TrainingChoice& choice, const std::string& file) {
  return HeadText(folder, file) + Net(net, weights) + Data(folder, net, weights, choice) +
         (weights.file.empty() ? FromScratch(folder, choice)
                               : FineTuning(folder, net, weights, choice));
}

}  // namespace mxtrain::tasks

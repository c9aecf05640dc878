// SPDX-License-Identifier: Apache-2.0
// The kinds of schema_kinds.h, from the library's factories, with the names of other tools.
#include "app/config/schema_kinds.h"

#include <map>

#include "app/config/kind_help.h"
#include "mxtrain/initializer/initializer.h"
#include "mxtrain/io/augmenter.h"
#include "mxtrain/metric/metric.h"
#include "mxtrain/optimizer/lr_schedule.h"
#include "mxtrain/optimizer/optimizer.h"

namespace mxtrain::config {
namespace {

// Names of kinds in other tools.
using OtherNames = std::map<std::string, std::vector<std::string>>;

std::vector<std::string> NamesOf(const std::string& kind, const OtherNames& names) {
  const auto found = names.find(kind);
  return found == names.end() ? std::vector<std::string>() : found->second;
}

FieldInfo TextField(std::string name, std::string help) {
  FieldInfo field;
  field.name = std::move(name);
  field.type = "string";
  field.help = std::move(help);
  return field;
}

std::vector<NamedKind> MakeInitializerKinds() {
  static const OtherNames kAlso = {
      {"xavier", {"glorot", "xavier_uniform", "glorot_uniform"}},
      {"msra_prelu", {"msra", "he", "kaiming", "kaiming_normal", "he_normal"}},
      {"normal", {"gaussian"}}};
  std::vector<NamedKind> kinds;
  for (const std::string& name : Initializer::Names()) {
    NamedKind& kind =
        kinds.emplace_back(NamedKind{name, HelpOnInitializer(name), Initializer::Describe(name)});
    kind.check = [name](const Kwargs& params) { Initializer::Create(name, params); };
    kind.also = NamesOf(name, kAlso);
  }
  return kinds;
}

}  // namespace

std::vector<std::string> OtherNamesOfSourceParam(const std::string& name) {
  static const OtherNames kAlso = {
      {"path", {"dir", "directory", "folder", "file", "path_imgrec", "path_imglist", "data_csv"}},
      {"root", {"path_root"}},
      {"label_delim", {"label_delimiter", "label_sep", "multi_label", "multilabel"}},
      {"delimiter", {"sep", "separator", "delim"}},
      {"missing",
       {"missing_value_strategy", "missing_values", "na", "nan", "fillna", "dropna", "impute"}}};
  return NamesOf(name, kAlso);
}

std::vector<NamedKind> TransformKinds() {
  static const OtherNames kAlso = {
      {"resize", {"Resize"}},
      {"center_crop", {"CenterCrop"}},
      {"random_crop", {"RandomCrop", "rand_crop"}},
      {"random_resized_crop", {"RandomResizedCrop"}},
      {"rotate", {"RandomRotation", "random_rotation", "rotation", "max_rotate_angle"}},
      {"scale", {"RandomZoom", "random_zoom", "zoom", "random_scale", "max_random_scale"}},
      {"aspect", {"max_aspect_ratio"}},
      {"shear", {"max_shear_ratio"}},
      {"brightness", {"RandomBrightness", "random_brightness"}},
      {"contrast", {"RandomContrast", "random_contrast"}},
      {"lighting", {"pca_noise"}},
      {"gaussian_noise", {"GaussianNoise", "RandomGaussianNoise"}},
      {"random_erasing", {"RandomErasing", "cutout"}},
      {"trivial_augment", {"TrivialAugmentWide", "TrivialAugment", "trivialaugment"}},
      {"rand_augment", {"RandAugment", "randaugment", "auto_augment", "AutoAugment"}},
      {"flip",
       {"RandomHorizontalFlip", "RandomFlip", "random_flip", "horizontal_flip", "rand_mirror",
        "mirror"}},
      {"iou_crop", {"RandomIoUCrop", "BBoxSafeRandomCrop"}},
      {"zoom_out", {"RandomZoomOut", "Expand", "expand"}},
      {"normalize", {"Normalize", "Normalization", "normalization"}}};
  std::vector<NamedKind> kinds;
  for (io::TransformInfo& info : io::ListTransforms()) {
    NamedKind& kind =
        kinds.emplace_back(NamedKind{info.name, info.help, std::move(info.parameters)});
    kind.also = NamesOf(kind.name, kAlso);
    if (kind.name != "normalize") continue;
    kind.resolve = [](Kwargs params) {
      return io::WithNumbers({"normalize", std::move(params)}).kwargs;
    };
    kind.check = [resolve = kind.resolve](const Kwargs& params) { resolve(params); };
  }
  return kinds;
}

std::vector<NamedKind> MetricKinds() {
  static const OtherNames kAlso = {
      {"accuracy", {"acc"}},
      {"top_k", {"top_k_accuracy", "topk", "top5"}},
      {"cross_entropy", {"ce", "cross-entropy", "log_loss", "nll_loss"}},
      {"f1", {"f1_score", "F1", "fscore"}},
      {"multilabel_accuracy", {"binary_accuracy", "MultilabelAccuracy", "hamming"}},
      {"multilabel_f1", {"MultilabelF1Score", "f1_micro", "f1_samples"}},
      {"auc", {"roc_auc", "AUC", "auroc"}},
      {"r2", {"r_squared", "R2"}}};
  std::vector<NamedKind> kinds;
  for (const std::string& name : Metric::Names()) {
    NamedKind& kind =
        kinds.emplace_back(NamedKind{name, HelpOnMetric(name), Metric::Describe(name)});
    kind.params.push_back(TextField("output", "name of the output; the first loss by default"));
    kind.params.push_back(TextField("label", "name of the label; that of the output by default"));
    kind.check = [name](const Kwargs& params) { Metric::Create(name, ParamsOfMetric(params)); };
    kind.also = NamesOf(name, kAlso);
  }
  return kinds;
}

const std::vector<NamedKind>& InitializerKinds() {
  static const std::vector<NamedKind> kinds = MakeInitializerKinds();
  return kinds;
}

std::vector<NamedKind> OptimizerKinds() {
  std::vector<NamedKind> kinds;
  for (const std::string& name : Optimizer::Names()) {
    std::vector<FieldInfo> params = Optimizer::Describe(name);
    // Written as train.clip.value.
    std::erase_if(params, [](const FieldInfo& f) { return f.name == "clip_gradient"; });
    kinds.push_back({name,
                     HelpOnOptimizer(name),
                     std::move(params),
                     {},
                     {{"lr0", "lr"},
                      {"base_lr", "lr"},
                      {"learning_rate", "lr"},
                      {"learning-rate", "lr"},
                      {"initial_lr", "lr"},
                      {"eta", "lr"},
                      {"wd", "weight_decay"},
                      {"decay", "weight_decay"},
                      {"l2", "weight_decay"},
                      {"weight-decay", "weight_decay"},
                      {"mom", "momentum"},
                      {"adam_beta1", "beta1"},
                      {"beta_1", "beta1"},
                      {"adam_beta2", "beta2"},
                      {"beta_2", "beta2"},
                      {"eps", "epsilon"},
                      {"adam_epsilon", "epsilon"},
                      {"gamma1", "rho"},
                      {"alpha", "rho"},
                      {"gamma2", "momentum"},
                      {"lamda1", "lambda1"},
                      {"l1", "lambda1"},
                      {"lamda", "lambda"},
                      {"trust_coefficient", "eta"}}});
    kinds.back().check = [name](const Kwargs& given) { Optimizer::Create(name, given); };
  }
  return kinds;
}

std::vector<NamedKind> LrScheduleKinds() {
  static const OtherNames kAlso = {
      {"one_cycle", {"onecycle", "OneCycleLR", "1cycle"}},
      {"poly", {"polynomial", "PolynomialLR"}},
      {"cosine",
       {"CosineAnnealingLR", "CosineAnnealing", "CosineDecay", "cosine_annealing", "cosine_decay",
        "cos"}},
      {"exponential", {"exp", "ExponentialLR", "ExponentialDecay"}},
      {"plateau", {"ReduceLROnPlateau", "reduce_lr_on_plateau", "reduce_on_plateau"}}};
  std::vector<NamedKind> kinds;
  for (const std::string& name : LrSchedule::Names()) {
    kinds.push_back({name,
                     HelpOnSchedule(name),
                     LrSchedule::Describe(name),
                     {},
                     {{"gamma", "factor"},
                      {"lr_factor", "factor"},
                      {"step_size", "every"},
                      {"stepsize", "every"},
                      {"steps", "milestones"},
                      {"stepvalue", "milestones"},
                      {"eta_min", "final"},
                      {"lrf", "final"},
                      {"final_lr", "final"},
                      {"warmup", "warmup_epochs"},
                      {"warmup_iters", "warmup_steps"},
                      {"warmup_begin_lr", "warmup_from"},
                      {"warmup_lr", "warmup_from"},
                      {"pct_start", "rise"},
                      {"anneal_strategy", "curve"},
                      {"decay_rate", "factor"},
                      {"decay_steps", "every"},
                      {"threshold", "min_delta"},
                      {"min_lr", "min"},
                      {"exponent", "power"}}});
    kinds.back().check = [name](const Kwargs& params) {
      LrSchedule::Create(name, params, /*steps_per_epoch=*/1000, /*total_steps=*/1'000'000);
    };
    kinds.back().also = NamesOf(name, kAlso);
  }
  return kinds;
}

Kwargs ParamsOfMetric(Kwargs params) {
  std::erase_if(params,
                [](const auto& item) { return item.first == "output" || item.first == "label"; });
  return params;
}

}  // namespace mxtrain::config

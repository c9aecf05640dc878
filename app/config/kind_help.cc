// SPDX-License-Identifier: Apache-2.0
#include "app/config/kind_help.h"

#include <map>
#include <string_view>

namespace mxtrain::config {
namespace {

using Texts = std::map<std::string, const char*, std::less<>>;

std::string Find(const Texts& texts, const std::string& name) {
  const auto found = texts.find(name);
  return found == texts.end() ? "" : found->second;
}

}  // namespace

// w: weight, g: its gradient, m and v: moving means.
std::string HelpOnOptimizer(const std::string& name) {
  static const Texts kTexts = {
      {"sgd",
       "stochastic gradient descent, m = momentum * m - lr * g, w += m. With momentum 0.9 the "
       "usual "
       "choice for convolutional nets that are trained from scratch"},
      {"nag",
       "Nesterov's momentum: as sgd, with the gradient's effect looked ahead by one update; often "
       "a "
       "little faster than sgd at the same rate"},
      {"adam",
       "each weight has a rate of its own, w -= lr * m / (sqrt(v) + epsilon) with means m of g and "
       "v "
       "of g squared. Works without much tuning at 0.001; weight decay is added to g, so adamw is "
       "better with decay"},
      {"adamw",
       "adam with weight decay apart from the gradient, w -= lr * (m / (sqrt(v) + epsilon) + decay "
       "* "
       "w). The usual choice for transformers, for fine-tuning and for tables"},
      {"rmsprop",
       "the gradient over the root of its mean square, w -= lr * g / sqrt(v); for recurrent nets "
       "and "
       "recipes that were published with it (MobileNet, EfficientNet)"},
      {"adagrad",
       "the gradient over the root of the sum of all its squares, so that rates only fall; for "
       "features that are seldom there"},
      {"adadelta",
       "as rmsprop, with updates measured in units of earlier updates, so that lr may stay 1; for "
       "recipes that were published with it"},
      {"ftrl",
       "follow the regularized leader, with an L1 norm that makes weights exactly 0; for linear "
       "nets "
       "on many sparse features"},
      {"lamb",
       "adam with the update of each array scaled to the norm of its weights; for batches of "
       "thousands "
       "of examples (BERT)"},
      {"lars",
       "sgd with momentum and a rate for each array that is proportional to norm(w) / norm(g); for "
       "batches of thousands of images"},
      {"signsgd",
       "w -= lr * sign(g): every weight moves by the same amount; for gradients whose sizes say "
       "little"},
      {"signum", "signsgd of the momentum: w -= lr * sign(m); steadier than signsgd"},
      {"ftml",
       "follow the moving leader: as adam, each update weighed against all earlier ones; where "
       "adam "
       "oscillates"},
      {"nadam", "adam with Nesterov's momentum; as adam, often a little faster at first"},
      {"adamax",
       "adam with the largest recent gradient in place of the root mean square; for embeddings and "
       "gradients with rare peaks"},
      {"lion",
       "w -= lr * (sign(mix of m and g) + decay * w): one array of state where adam has two. Take "
       "a "
       "third to a tenth of adamw's rate, and as many times its decay"},
      {"dcasgd",
       "sgd that corrects gradients for how far weights have moved since they were read; for "
       "train.kvstore.type: dist_async"},
      {"sgld",
       "sgd with normal noise of deviation sqrt(lr) in each update (Langevin dynamics): samples "
       "weights, where others search the best ones"},
      {"group_adagrad",
       "adagrad with one sum of squares for each row of an array; for large embeddings"}};
  return Find(kTexts, name);
}

// t: the run's progress from 0 to 1, after the warm-up.
std::string HelpOnSchedule(const std::string& name) {
  static const Texts kTexts = {
      {"constant", "the base rate throughout, after a warm-up if there is one; for first trials"},
      {"step",
       "times `factor` after every interval: lr * factor^floor(t / every). The classic for sgd, "
       "when "
       "it is known how long a run makes progress at one rate"},
      {"multistep",
       "times `factor` at each of the milestones; as published recipes of ResNets have it"},
      {"exponential", "a little lower each time: lr * factor^(t / every), without jumps"},
      {"plateau",
       "times `factor` when the metric has not improved for `patience` epochs; when the length of "
       "the "
       "run is not known beforehand. Needs validation data"},
      {"cosine",
       "half a cosine from the base rate to `final` at the end of the run: lr * (1 + cos(pi * t)) "
       "/ 2. "
       "A good default; begin with a warm-up of some epochs for large rates"},
      {"linear",
       "a straight line to `final` at the end of the run; usual for fine-tuning language models"},
      {"poly", "lr * (1 - t)^power; usual for segmentation, with power 0.9"},
      {"one_cycle",
       "rises from `start` to the base rate, then falls along a cosine below where it began (Smith "
       "and "
       "Topin 2017). For short runs at a high rate"}};
  return Find(kTexts, name);
}

std::string HelpOnMetric(const std::string& name) {
  static const Texts kTexts = {
      {"accuracy",
       "share of examples whose class is predicted; says little where one class is most of the "
       "data "
       "(see f1)"},
      {"top_k", "share of examples whose class is among the k with the highest scores"},
      {"cross_entropy",
       "mean of -log(probability of the true class): also how sure the net is; lower is better, "
       "log(classes) is a guess"},
      {"perplexity",
       "exp(cross_entropy): among how many tokens the net hesitates; for language models, lower is "
       "better"},
      {"f1",
       "2 * precision * recall / (precision + recall), the mean over classes or of the positive "
       "one; "
       "for classes of different sizes"},
      {"mean_iou",
       "mean over classes of (pixels in both masks) / (pixels in either); for segmentation"},
      {"mean_ap",
       "mean average precision of boxes over classes and overlaps of 0.5 to 0.95, as COCO measures "
       "it; "
       "for detection"},
      {"cer",
       "letters to insert, remove or replace, over the letters of the true texts; for lines of "
       "text"},
      {"wer",
       "words to insert, remove or replace, over the words of the true texts; for lines of text"},
      {"multilabel_accuracy",
       "share of decisions, of each example and class, that are right; high where few classes are "
       "true"},
      {"multilabel_f1",
       "F1 of all decisions of an example's classes; for several classes of an example"},
      {"auc",
       "probability that a positive example has a higher score than a negative one: 0.5 is a "
       "guess. "
       "Does not depend on a threshold"},
      {"mse", "mean of (prediction - value)^2; large errors count most"},
      {"rmse", "root of mse, in the units of the label; the usual metric of regression"},
      {"mae",
       "mean of |prediction - value|, in the units of the label; outliers count less than in rmse"},
      {"psnr",
       "peak signal-to-noise ratio of images, 10 * log10(1 / mse) in decibels; higher is better"},
      {"r2",
       "1 - mse / variance of the label: 1 is perfect, 0 as good as the mean; compares labels of "
       "different units"}};
  return Find(kTexts, name);
}

std::string HelpOnInitializer(const std::string& name) {
  static const Texts kTexts = {
      {"zero", "all 0: for biases; a layer whose weights are all equal learns nothing of its own"},
      {"one", "all 1: for scales, such as gamma of batch norm"},
      {"constant", "all the same number"},
      {"uniform", "evenly distributed from -scale to scale"},
      {"normal",
       "normally distributed about 0, with deviation sigma: 0.01 or 0.02 in many recipes"},
      {"xavier",
       "random numbers whose size follows the number of inputs and outputs of a layer, so that "
       "signals "
       "keep their size (Glorot and Bengio 2010); a good default"},
      {"msra_prelu",
       "as xavier, for layers followed by ReLU or PReLU (He et al. 2015); for deep convolutional "
       "nets"},
      {"orthogonal",
       "a random rotation, which keeps lengths (Saxe et al. 2013); for recurrent layers"},
      {"bilinear",
       "the filter of bilinear interpolation; for transposed convolutions that enlarge images"},
      {"fused_rnn",
       "for the parameters of RNN: weights by another initializer, and the bias of LSTM's forget "
       "gates"}};
  return Find(kTexts, name);
}

}  // namespace mxtrain::config

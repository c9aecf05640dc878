// SPDX-License-Identifier: Apache-2.0
#include "app/tasks/classification/text_class_recipe.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "app/tasks/recipe_text.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/format.h"
#include "mxtrain/base/text.h"
#include "mxtrain/io/find_text_columns.h"
#include "mxtrain/io/source_factory.h"

namespace mxtrain::tasks {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostTextBatch = 50, kTextSteps = 1500;
constexpr int64_t kLeastWords = 8, kMostWords = 400;
constexpr double kTextsHeldOut = 0.1;

// Kim 2014, as configs/text/cnn.yaml.
constexpr const char* kTextLayers = R"(
blocks:
  words:                                  # filters over `count` words, of each the largest value
    params: {count}
    layers:
      - Convolution: {name: conv, kernel: ["${count}", "${width}"], num_filter: "${filters}"}
      - Activation: {name: relu, act_type: relu}
      - Pooling: {name: most, pool_type: max, global_pool: true, kernel: [1, 1]}

net:
  input: ["${length}"]
  layers:
    - Embedding: {name: tokens, input_dim: "${tokens}", output_dim: "${width}"}
    - expand_dims: {name: image, axis: 1}
    - words: {name: words3, inputs: image, count: 3}
    - words: {name: words4, inputs: image, count: 4}
    - words: {name: words5, inputs: image, count: 5}
    - Concat: {name: found, inputs: [words3, words4, words5], dim: 1}
    - Flatten: {name: features}
    - Dropout: {name: dropped, p: 0.5}
    - FullyConnected: {name: scores, num_hidden: "${classes}"}
)";

struct ClassTexts {
  std::string path, validation;  // as the configuration names them; validation: "" for none
  io::FoundTextColumns columns;
  int64_t texts = 0, length = 0;
  std::vector<std::string> classes;
};

// Words of all but the longest of a twentieth of the texts.
int64_t WordsOfMost(const io::Source& source) {
  std::vector<int64_t> counts;
  for (int64_t i = 0; i < source.size(); ++i) {
    const std::string text = source.TextOf(i);
    int64_t words = 0;
    for (size_t k = 0; k < text.size(); ++k)
      words += text[k] > ' ' && (k == 0 || (text[k - 1] >= 0 && text[k - 1] <= ' '));
    counts.push_back(words);
  }
  std::ranges::sort(counts);
  const int64_t most = counts[counts.size() * 19 / 20];
  return std::clamp((most + 7) / 8 * 8, kLeastWords, kMostWords);
}

// "train.tsv" -> "validation.tsv"; "" if there is no such file.
std::string ValidationTextsBeside(const fs::path& file) {
  const std::string name = file.filename().string();
  const size_t at = Lower(name).find("train");
  if (at == std::string::npos) return "";
  std::error_code none;
  for (const char* other : {"validation", "valid", "val", "dev", "test"}) {
    for (const size_t length :
         {std::string_view("training").size(), std::string_view("train").size()}) {
      std::string beside = name;
      if (Lower(name).compare(at, length, std::string_view("training").substr(0, length)) != 0)
        continue;
      const fs::path found = file.parent_path() / beside.replace(at, length, other);
      if (fs::is_regular_file(found, none)) return found.string();
    }
  }
  return "";
}

class TextClassRecipe final : public Recipe {
 public:
  explicit TextClassRecipe(ClassTexts texts) : texts_(std::move(texts)) {}

  void Choose(const RecipeChoice& choice) override {
    if (choice.net || choice.input_size > 0)
      Throw(ErrorKind::kUsage, "--net, --weights and --size are for images; {} holds texts",
            texts_.path);
    choice_ = choice;
    batch_ = std::clamp<int64_t>(texts_.texts / 8, 1, kMostTextBatch);
    epochs_ = std::clamp<int64_t>(kTextSteps * batch_ / texts_.texts, 3, 40);
  }

  std::string Text() const override {
    std::string text = format(
        "# Classes of texts: written by `mxtrain init`; every line can be changed.\n"
        "#   mxtrain train {0}\n#   mxtrain infer runs/latest texts.txt\n\nseed: 1\n\n",
        choice_.file);
    text += TextLine(format("vars: {{length: {}, width: 100, filters: 100}}", texts_.length),
                     "words of a text; longer ones are cut");
    text += kTextLayers;
    text += is_sets() ? TextLine("    - LogisticRegressionOutput: {name: classes_of_text}",
                                 "each class is there or not")
                      : "    - SoftmaxOutput: {name: softmax}\n";
    text += format("\ndata:\n  batch_size: {}\n", batch_);
    const std::string delim =
        is_sets() ? format("label_delim: {}", QuoteYaml(texts_.columns.label_delim)) : "";
    const std::string columns =
        format("text_columns: {}, label_column: {}{}", ListText(texts_.columns.texts),
               QuoteYaml(texts_.columns.label), is_sets() ? ", " + delim : "");
    text +=
        format("  train:\n    source: labelled_text\n    path: {}\n    {}\n    {}\n",
               QuoteYaml(texts_.path), format("text_columns: {}", ListText(texts_.columns.texts)),
               format("label_column: {}", QuoteYaml(texts_.columns.label)));
    if (is_sets()) text += TextLine("    " + delim, "a text has any number of classes");
    text += TextLine("    lowercase: true", "before words are told apart");
    text += TextLine("    split_punctuation: true", "punctuation marks are words");
    text += TextLine("    least_count: 2", "rarer words are <unk>");
    text += texts_.validation.empty()
                ? TextLine(format("  val: {{split: {}}}", kTextsHeldOut), "a tenth is held out")
                : format("  val: {{source: labelled_text, path: {}, {}}}\n",
                         QuoteYaml(texts_.validation), columns);
    text += format("\ntrain:\n  epochs: {}\n  optimizer: {{name: adam, lr: 0.001}}\n", epochs_);
    return text + "  initializer: {name: xavier}\n";
  }

  Json ToJson() const override {
    return {{"file", choice_.file},
            {"texts", texts_.texts},
            {"classes", texts_.classes},
            {"length", texts_.length},
            {"batch_size", batch_},
            {"epochs", epochs_},
            {"validation", texts_.validation.empty() ? Json(nullptr) : Json(texts_.validation)}};
  }

  std::string Summary() const override {
    return format(
        "{}: {} in {} classes ({}), {} to validate\nthe text is in {}, the label in {}{}\nexamples "
        "of {} words, batches of {}, {}\n",
        choice_.file, Counted(texts_.texts, "text"), texts_.classes.size(),
        FirstOf(texts_.classes, 8), texts_.validation.empty() ? "a tenth" : texts_.validation,
        join(texts_.columns.texts, ", "), texts_.columns.label,
        is_sets() ? format(", several classes of a text with '{}' between them (label_delim)",
                           texts_.columns.label_delim)
                  : "",
        texts_.length, batch_, Counted(epochs_, "epoch"));
  }

 private:
  bool is_sets() const { return !texts_.columns.label_delim.empty(); }

  const ClassTexts texts_;
  RecipeChoice choice_;
  int64_t epochs_ = 0, batch_ = 0;
};

}  // namespace

std::unique_ptr<Recipe> RecognizeClassTexts(const RecipeRequest& request) {
  std::error_code none;
  const bool folder = fs::is_directory(request.root, none);
  const std::string file = folder ? io::TrainingTextsIn(request.root) : request.root;
  if (file.empty()) return nullptr;
  std::optional<io::FoundTextColumns> columns = io::FindTextColumns(file);
  if (!columns) return nullptr;
  const auto source =
      io::MakeSource("labelled_text", {{"path", file},
                                       {"text_columns", params::Print(columns->texts)},
                                       {"label_column", columns->label},
                                       {"label_delim", columns->label_delim},
                                       {"length", "1"}});
  const std::string validation = ValidationTextsBeside(file);
  ClassTexts texts;
  texts.path = PathInFile(file, request.output);
  if (!validation.empty()) texts.validation = PathInFile(validation, request.output);
  texts.columns = std::move(*columns);
  texts.texts = source->size();
  texts.length = WordsOfMost(*source);
  texts.classes = source->class_names();
  return std::make_unique<TextClassRecipe>(std::move(texts));
}

}  // namespace mxtrain::tasks

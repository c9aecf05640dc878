// SPDX-License-Identifier: Apache-2.0
#include "app/tasks/image_table_recipe.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "app/tasks/classification/class_recipe.h"
#include "app/tasks/classification/fine_tuning.h"
#include "app/tasks/recipe_text.h"
#include "app/tasks/table_columns.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/format.h"
#include "mxtrain/base/text.h"
#include "mxtrain/io/find_table_columns.h"
#include "mxtrain/io/image_formats.h"
#include "mxtrain/io/source_factory.h"

namespace mxtrain::tasks {
namespace {

namespace fs = std::filesystem;

constexpr double kHeldOut = 0.2;

struct ImageColumns {
  std::string images;
  const io::TableColumn* target = nullptr;
  std::string delimiter;  // between the classes of a cell; "": one
  int64_t classes = 0;    // of sets
  std::vector<std::string> numbers;
  struct Words {
    std::string column, input;
    int64_t count = 0;
  };
  std::vector<Words> words;
  std::vector<std::string> skipped;  // "id (counts the rows)"
  bool missing = false;              // cells of numbers
  bool commas = false;               // decimals are written with commas

  bool beside() const { return !numbers.empty() || !words.empty(); }
};

// The first column of paths of images, relative to the table, as far as its first cell tells.
const io::TableColumn* ImagesAmong(const std::vector<io::TableColumn>& columns,
                                   const RecipeRequest& request) {
  for (const io::TableColumn& column : columns) {
    if (!column.holds_words() || !io::HasImageEnding(column.first_word)) continue;
    const fs::path file = fs::path(request.root).parent_path() / column.first_word;
    std::error_code none;
    if (fs::is_regular_file(file, none)) return &column;
  }
  return nullptr;
}

// The last column that is neither the images nor counts the rows, if the request names none.
const io::TableColumn& TargetAmong(const std::vector<io::TableColumn>& columns,
                                   const io::TableColumn& images, const RecipeRequest& request) {
  if (!request.target.empty()) {
    std::vector<std::string> names;
    for (const io::TableColumn& column : columns) {
      if (column.name == request.target && &column != &images) return column;
      if (&column != &images) names.push_back(column.name);
    }
    Throw(ErrorKind::kUsage, "--target {}: {} has no such column beside the images{}",
          request.target, request.folder, NearOrAll(request.target, names));
  }
  for (size_t i = columns.size(); i-- > 0;) {
    if (&columns[i] != &images && columns[i].distinct > 1) return columns[i];
  }
  Throw(ErrorKind::kData, "{}: no column beside the images, '{}', holds what could be predicted",
        request.folder, images.name);
}

// The images with their targets; `delimiter`: between the classes of a cell, "": each cell is one.
std::unique_ptr<io::Source> TableOf(const RecipeRequest& request, const ImageColumns& columns,
                                    const std::string& delimiter) {
  Kwargs kwargs = {
      {"path", request.root},
      {"missing", "drop"},
      {"picture_fields", "(data)"},
      {"data_fields", params::Print(std::vector<std::string>{"data=" + columns.images})}};
  kwargs.emplace_back("label_fields",
                      params::Print(std::vector<std::string>{"target=" + columns.target->name}));
  if (!delimiter.empty()) kwargs.emplace_back("label_delim", delimiter);
  if (columns.commas) kwargs.emplace_back("decimal", ",");
  return io::MakeSource("csv", kwargs);
}

// Whether the cells hold several words with a sign between them: then the words are others than
// the cells, and no more.
void LookForSets(const RecipeRequest& request, ImageColumns* columns) {
  if (!columns->target->holds_words()) return;
  const std::vector<std::string> cells = TableOf(request, *columns, "")->class_names();
  for (const char* sign : {";", "|", ","}) {
    const std::vector<std::string> words = TableOf(request, *columns, sign)->class_names();
    if (words == cells || words.size() > cells.size()) continue;
    columns->delimiter = sign;
    columns->classes = std::ssize(words);
    return;
  }
}

ImageTarget TargetKind(const ImageColumns& columns) {
  const io::TableColumn& target = *columns.target;
  if (!columns.delimiter.empty()) return ImageTarget::kSets;
  return HoldsClasses(target) ? ImageTarget::kClasses : ImageTarget::kNumbers;
}

// Also of further images, which are none to learn from.
std::string WhyNotBeside(const io::TableColumn& column) {
  const bool images = column.holds_words() && io::HasImageEnding(column.first_word);
  return images ? "more images" : WhyNoInput(column);
}

void PlanColumns(const std::vector<io::TableColumn>& all, ImageColumns* columns,
                 std::set<std::string>* used) {
  for (const io::TableColumn& column : all) {
    if (&column == columns->target || column.name == columns->images) continue;
    if (const std::string why = WhyNotBeside(column); !why.empty()) {
      columns->skipped.push_back(format("{} ({})", column.name, why));
    } else if (column.holds_words()) {
      columns->words.push_back({column.name, LayerNameOf(column.name, used), column.distinct});
    } else {
      columns->numbers.push_back(column.name);
      columns->missing = columns->missing || column.missing > 0;
    }
  }
}

class ImageTableRecipe final : public Recipe {
 public:
  // `used`: names that layers and inputs have.
  ImageTableRecipe(const RecipeRequest& request, const io::TableColumn& target,
                   ImageColumns columns, ImageTarget kind, std::set<std::string> used)
      : path_(PathInFile(request.root, request.output)),
        target_(target),
        columns_(std::move(columns)),
        kind_(kind) {
    const io::ImageSize size = MedianSize(*TableOf(request, columns_, ""));
    columns_.target = nullptr;  // of the caller
    facts_.median_side = std::min(size.height, size.width);
    facts_.train_images =
        std::max<int64_t>(std::llround(static_cast<double>(target_.rows()) * (1 - kHeldOut)), 1);
    head_ = LayerNameOf(target_.name, &used);
  }

  void Choose(const RecipeChoice& choice) override {
    choice_ = choice;
    if (choice.net && !choice.net->has_features) {
      Throw(ErrorKind::kUsage,
            "--net {}: its last layer reads no row of features that other layers could read; "
            "choose another net (`mxtrain nets`)",
            choice.net->name);
    }
    const int wanted = !choice.net           ? choice.input_size
                       : Weights().head_only ? choice.net->val_size
                                             : choice.net->train_size;
    training_ = ChooseTraining(facts_, wanted);
    if (Weights().head_only) {
      training_.epochs = 30;
    } else if (!Weights().file.empty()) {
      training_.epochs = EpochsOfFineTuning(facts_.train_images);
    }
  }

  std::string Text() const override {
    return format(
               "# {} for each image of a table: written by `mxtrain init`; every line can be "
               "changed.\n#   mxtrain train {}\n#   mxtrain infer runs/latest new.csv\n\nseed: 1\n",
               WhatIsLearned(), choice_.file) +
           (choice_.net ? TrunkVariables(choice_) : SmallTrunkBlocks()) + NetText() + DataText() +
           TrainText();
  }

  Json ToJson() const override {
    Json words = Json::object();
    for (const ImageColumns::Words& column : columns_.words) words[column.column] = column.count;
    return {{"file", choice_.file},
            {"rows", target_.rows()},
            {"images", columns_.images},
            {"target", target_.name},
            {"kind", kKinds[static_cast<size_t>(kind_)]},
            {"numbers", columns_.numbers},
            {"categories", words},
            {"skipped", columns_.skipped},
            {"input_size", training_.input_size},
            {"batch_size", training_.batch_size},
            {"epochs", training_.epochs}};
  }

  std::string Summary() const override {
    std::string beside;
    if (columns_.beside()) {
      beside = format("beside the images: {} of numbers, {} of words\n",
                      Counted(std::ssize(columns_.numbers), "column"), columns_.words.size());
    }
    if (!columns_.skipped.empty()) beside += format("not read: {}\n", FirstOf(columns_.skipped, 8));
    const std::string what =
        kind_ == ImageTarget::kNumbers
            ? format("numbers from {:.6g} to {:.6g}", target_.least, target_.most)
        : kind_ == ImageTarget::kClasses
            ? ClassesText(target_)
            : format("any of {} classes, '{}' between them", columns_.classes, columns_.delimiter);
    return format(
               "{}: {} rows, a fifth to validate; the column '{}' holds images\nwhat is predicted: "
               "{}, {}\n",
               choice_.file, target_.rows(), columns_.images, target_.name, what) +
           beside +
           format("net input 3x{0}x{0}, batches of {1}, {2}\n", training_.input_size,
                  training_.batch_size, Counted(training_.epochs, "epoch"));
  }

 private:
  static constexpr const char* kKinds[] = {"numbers", "classes", "sets"};

  const WeightsChoice& Weights() const {
    static const WeightsChoice kNone;
    return choice_.weights && choice_.net ? *choice_.weights : kNone;
  }
  int ValidationSize() const { return choice_.net ? choice_.net->val_size : training_.input_size; }

  std::string WhatIsLearned() const {
    return kind_ == ImageTarget::kNumbers   ? "A number"
           : kind_ == ImageTarget::kClasses ? "A class"
                                            : "Any number of classes";
  }

  std::string NetText() const {
    const int size = training_.input_size;
    std::string text = "\nnet:\n";
    if (choice_.net) {
      text += TextLine("  use: " + choice_.net->name, "as `mxtrain nets` lists it");
      text += TextLine("  until: features", "without its last layer");
    }
    if (columns_.beside()) {
      text += format("  inputs:\n    data: [3, {0}, {0}]\n", size);
      if (!columns_.numbers.empty()) text += format("    numbers: [{}]\n", columns_.numbers.size());
      for (const ImageColumns::Words& column : columns_.words)
        text += format("    {}: {{shape: [1], dtype: int32}}\n", column.input);
    } else {
      text += TextLine(format("  input: [3, {0}, {0}]", size), "as the transforms make the images");
    }
    text += "  layers:\n";
    if (!choice_.net) text += SmallTrunkLayers(size, columns_.beside() ? "data" : "");
    return text + LayersBeside() + HeadLayers();
  }

  // What becomes of the other columns, and one row of all.
  std::string LayersBeside() const {
    std::string layers;
    std::vector<std::string> parts = {"features"};
    if (!columns_.numbers.empty()) {
      layers += R"(    - FullyConnected: {name: number_row, inputs: numbers, num_hidden: 32}
    - Activation: {name: number_relu, act_type: relu}
)";
      parts.emplace_back("number_relu");
    }
    for (const ImageColumns::Words& column : columns_.words) {
      layers += TextLine(
          format("    - Embedding: {{name: {0}_vector, inputs: {0}, input_dim: {1}, output_dim: "
                 "{2}}}",
                 column.input, column.count + 1,
                 std::clamp<int64_t>((column.count + 2) / 2, 2, 50)),
          "words have codes from 1; 0: unknown or missing");
      layers += format("    - Flatten: {{name: {}_row}}\n", column.input);
      parts.push_back(column.input + "_row");
    }
    if (parts.size() > 1)
      layers += format("    - Concat: {{name: row, inputs: [{}], dim: 1}}\n", join(parts, ", "));
    return layers + "    - Dropout: {name: dropped, p: 0.2}\n";
  }

  std::string HeadLayers() const {
    if (kind_ == ImageTarget::kNumbers) {
      return format(
          "    - FullyConnected: {{name: value, num_hidden: 1}}\n    - LinearRegressionOutput: "
          "{{name: {}}}\n",
          head_);
    }
    const bool named = target_.holds_words();
    return TextLine(format("    - FullyConnected: {{name: scores, num_hidden: {}}}",
                           named ? "\"${classes}\"" : format("{}", target_.distinct)),
                    named ? "as many as the column has" : "") +
           (kind_ == ImageTarget::kClasses
                ? format("    - SoftmaxOutput: {{name: {}, smooth_alpha: 0.1}}\n", head_)
                : format("    - LogisticRegressionOutput: {{name: {}}}\n", head_));
  }

  std::string DataText() const {
    std::string text = format("\ndata:\n  batch_size: {}\n", training_.batch_size);
    text += ExactDecodeText();
    if (Weights().head_only)
      text += TextLine("  cache: features", "what the net makes of each image is computed once");
    text += format("  train:\n    source: csv\n    path: {}\n    columns:\n      data: {}\n",
                   QuoteYaml(path_), QuoteYaml(columns_.images));
    if (!columns_.numbers.empty())
      text += format("      numbers: {}\n", ListText(columns_.numbers));
    for (const ImageColumns::Words& column : columns_.words)
      text += format("      {}: {}\n", column.input, QuoteYaml(column.column));
    text += format("      {}_label: {}\n", head_, QuoteYaml(target_.name));
    if (kind_ == ImageTarget::kSets)
      text += TextLine(format("    label_delim: {}", QuoteYaml(columns_.delimiter)),
                       "between the classes of a cell");
    if (!columns_.numbers.empty() || kind_ == ImageTarget::kNumbers)
      text += TextLine("    normalize: auto", "numbers get mean 0 and deviation 1");
    if (columns_.commas) text += TextLine("    decimal: ','", "3,14 is a number");
    if (target_.missing > 0) {
      text += TextLine("    missing: drop", "rows with an empty cell are skipped");
    } else if (columns_.missing) {
      text += TextLine("    missing: mean", "empty cells of numbers take the mean of their column");
    }
    return text + "    shuffle: true\n" + Transforms();
  }

  std::string Transforms() const {
    const std::string pixels = choice_.net ? NormalizeText(Weights().facts, !Weights().file.empty())
                                           : "normalize: imagenet";
    const std::string resampling = ResamplingText(Weights());
    const std::string whole = TextLine("      - center_crop: {fraction: 1}", "the largest square") +
                              format("      - resize: {{size: [{0}, {0}], {1}}}\n      - {2}\n",
                                     ValidationSize(), resampling, pixels);
    std::string text;
    if (Weights().head_only) {
      text = TextLine("    transforms:", "none that is random") + whole;
    } else {
      // What is measured in an image may be at its edge, or depend on how large it is.
      text = TextLine("    transforms:", "a different view of each image in every epoch") +
             format("      - random_resized_crop: {{size: {}, area: [0.6, 1], {}}}\n",
                    training_.input_size, resampling) +
             TextLine("      - flip", "remove it if left and right differ in meaning") +
             format("      - {}\n", pixels);
    }
    return text + "  val:\n" +
           TextLine(format("    split: {}", kHeldOut), "fraction of the rows that is held out") +
           "    transforms:\n" + whole;
  }

  std::string TrainText() const {
    std::string text = format("\ntrain:\n  epochs: {}\n", training_.epochs);
    if (Weights().file.empty()) {
      text += R"(  optimizer: {name: adamw, lr: 0.002, weight_decay: 0.05}
  lr_schedule: {name: one_cycle}          # up to lr, then down to almost 0
)";
    } else {
      text += WeightsText(Weights());
      if (Weights().head_only) text += FreezeText();
      text += LearningText(*choice_.net, Weights().head_only, training_.batch_size);
    }
    const char* const metrics[] = {"rmse, mae, r2", "accuracy, cross_entropy",
                                   "multilabel_f1, multilabel_accuracy"};
    return text + format("  metrics: [{}]\n", metrics[static_cast<size_t>(kind_)]);
  }

  std::string FreezeText() const {
    std::vector<std::string> own = {kind_ == ImageTarget::kNumbers ? "value_*" : "scores_*"};
    if (!columns_.numbers.empty()) own.emplace_back("number_row_*");
    for (const ImageColumns::Words& column : columns_.words)
      own.push_back(column.input + "_vector_*");
    return TextLine(format("  freeze: {{except: [{}], global_stats: true}}", join(own, ", ")),
                    "all layers of the net");
  }

  const std::string path_;
  const io::TableColumn target_;
  ImageColumns columns_;
  const ImageTarget kind_;
  std::string head_;
  ImageFolder facts_;
  TrainingChoice training_;
  RecipeChoice choice_;
};

}  // namespace

std::unique_ptr<Recipe> RecognizeImageTable(const RecipeRequest& request, ImageTarget wanted) {
  std::error_code none;
  if (!fs::is_regular_file(request.root, none)) return nullptr;
  const std::optional<std::vector<io::TableColumn>> all = io::FindTableColumns(request.root);
  const io::TableColumn* const images =
      all && all->size() > 1 ? ImagesAmong(*all, request) : nullptr;
  if (!images) return nullptr;
  ImageColumns columns;
  columns.images = images->name;
  const io::TableColumn& target = TargetAmong(*all, *images, request);
  columns.target = &target;
  columns.commas = std::ranges::any_of(*all, &io::TableColumn::reads_commas);
  RefuseNumberLike(target, request.folder);
  LookForSets(request, &columns);
  const ImageTarget kind = TargetKind(columns);
  if (kind != wanted) return nullptr;
  if (kind == ImageTarget::kNumbers && target.words > 0) {
    Throw(ErrorKind::kData,
          "{}: the column '{}', which is to be predicted, holds numbers and {}, such as '{}'",
          request.folder, target.name, Counted(target.words, "other cell"), target.first_word);
  }
  if (target.distinct < 2) {
    Throw(
        ErrorKind::kData,
        "{}: the column '{}', which is to be predicted, is the same in every row; --target COLUMN "
        "names another",
        request.folder, target.name);
  }
  std::set<std::string> used = {"data",     "numbers", "number_row", "number_relu",
                                "features", "row",     "dropped",    "scores",
                                "value",    "stem",    "fc",         "softmax"};
  PlanColumns(*all, &columns, &used);
  return std::make_unique<ImageTableRecipe>(request, target, std::move(columns), kind,
                                            std::move(used));
}

}  // namespace mxtrain::tasks

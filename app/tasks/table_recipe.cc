// SPDX-License-Identifier: Apache-2.0
#include "app/tasks/table_recipe.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "app/tasks/recipe_text.h"
#include "app/tasks/table_columns.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/format.h"
#include "mxtrain/base/text.h"
#include "mxtrain/io/find_table_columns.h"

namespace mxtrain::tasks {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTargetNames[] = {"target", "label",   "class",   "y",        "outcome",
                                             "price",  "income",  "salary",  "response", "churn",
                                             "result", "quality", "survived"};
constexpr int64_t kStepsOfNumbers = 4000, kStepsOfClasses = 1500, kLeastBatch = 16,
                  kMostBatch = 256, kLeastEpochs = 5, kMostEpochs = 100;

// From so many rows on, functions of a number that change often are learned, and not by heart.
constexpr int64_t kManyRows = 20'000;
// Classes of fewer rows are learned by heart in as many steps.
constexpr int64_t kFewRows = 2000, kStepsOfFew = 600;

// Columns that an input takes, and those that none takes, with the reason.
struct TablePlan {
  std::vector<std::string> numbers;
  std::vector<std::string> ranked;  // of them those of more than two different numbers
  std::vector<std::string> holes;   // of them those with missing cells
  std::set<std::string> missing_words;
  struct Category {
    std::string column, name;
    int64_t words = 0;
  };
  std::vector<Category> categories;
  std::vector<std::string> skipped;  // "id (a number for each row)"
  bool missing = false;              // cells of numbers, or of the target
  bool commas = false;               // decimals are written with commas
};

std::set<std::string> ReservedNames() {
  return {"numbers", "absent", "each",         "frequency", "angle", "sines",
          "cosines", "waves",  "wave_vectors", "bent",      "row",   "number_row",
          "start",   "unit1",  "unit2",        "norm",      "relu",  "scores"};
}

// Half of the categories, at most 50, as fast.ai's rule once was.
int64_t LengthOfVector(int64_t words) {
  constexpr int64_t kMost = 50;
  return std::clamp<int64_t>((words + 2) / 2, 2, kMost);
}

// Whether the logarithms of a target are far less lopsided.
bool IsSkewed(const io::TableColumn& target) {
  constexpr double kSkewed = 1;
  return target.log_skewness && target.skewness > kSkewed &&
         std::abs(*target.log_skewness) < target.skewness / 2;
}

TablePlan PlanTable(const std::vector<io::TableColumn>& columns, const io::TableColumn& target) {
  TablePlan plan;
  std::set<std::string> used = ReservedNames();
  const auto take_missing = [&plan](const io::TableColumn& column) {
    plan.missing_words.insert(column.missing_words.begin(), column.missing_words.end());
  };
  plan.missing = target.missing > 0;
  plan.commas = std::ranges::any_of(columns, &io::TableColumn::reads_commas);
  take_missing(target);
  for (const io::TableColumn& column : columns) {
    if (&column == &target) continue;
    if (const std::string why = WhyNoInput(column); !why.empty()) {
      plan.skipped.push_back(format("{} ({})", column.name, why));
    } else if (column.holds_words()) {
      plan.categories.push_back({column.name, LayerNameOf(column.name, &used), column.distinct});
      take_missing(column);
    } else {
      plan.numbers.push_back(column.name);
      if (column.distinct > 2) plan.ranked.push_back(column.name);
      if (column.missing > 0) plan.holes.push_back(column.name);
      plan.missing = plan.missing || column.missing > 0;
      take_missing(column);
    }
  }
  return plan;
}

class TableRecipe final : public Recipe {
 public:
  TableRecipe(std::string path, const io::TableColumn& target, TablePlan plan, bool classes)
      : path_(std::move(path)), target_(target), plan_(std::move(plan)), classes_(classes) {
    std::set<std::string> used = ReservedNames();
    for (const TablePlan::Category& category : plan_.categories) used.insert(category.name);
    head_ = LayerNameOf(target_.name, &used);
    skewed_ = !classes_ && IsSkewed(target_);
    frequencies_ = rows() < kManyRows ? 1 : 8;
    few_ = classes_ && rows() < kFewRows;
    const int64_t steps = few_ ? kStepsOfFew : classes_ ? kStepsOfClasses : kStepsOfNumbers;
    batch_ = std::min(std::clamp<int64_t>(rows() / 32, kLeastBatch, kMostBatch),
                      std::max<int64_t>(rows() / 2, 1));
    epochs_ = std::clamp<int64_t>(steps * batch_ / std::max<int64_t>(rows(), 1), kLeastEpochs,
                                  kMostEpochs);
  }

  void Choose(const RecipeChoice& choice) override {
    if (choice.net || choice.input_size > 0)
      Throw(ErrorKind::kUsage, "--net, --weights and --size are for images; {} is a table", path_);
    choice_ = choice;
  }

  std::string Text() const override {
    std::string text = format(
        "# {} of a table: written by `mxtrain init`; every line can be changed.\n"
        "#   mxtrain train {}\n#   mxtrain infer runs/latest new.csv\n\nseed: 1\n\n",
        classes_ ? "Classes of the rows" : "A number for each row", choice_.file);
    // Classes are learned by heart sooner than numbers.
    text += TextLine(format("vars: {{width: {}, dropout: {}}}", few_ ? 64 : 128,
                            few_       ? "0.6"
                            : classes_ ? "0.4"
                                       : "0.1"),
                     "of the layers; more of it for fewer rows");
    text += R"(
blocks:
  unit:                                   # what it reads, and what two layers make of it
    layers:
      - BatchNorm: {name: norm, inputs: input, fix_gamma: false}
      - FullyConnected: {name: wide, num_hidden: "${2 * width}"}
      - Activation: {name: relu, act_type: relu}
      - Dropout: {name: dropped, p: "${dropout}"}
      - FullyConnected: {name: narrow, num_hidden: "${width}"}
      - elemwise_add: {name: sum, inputs: [input, narrow]}

)";
    return text + NetText() + DataText() + TrainText();
  }

  Json ToJson() const override {
    Json categories = Json::object();
    for (const TablePlan::Category& category : plan_.categories)
      categories[category.column] = category.words;
    return {{"file", choice_.file},     {"rows", rows()},
            {"target", target_.name},   {"classes", classes_},
            {"numbers", plan_.numbers}, {"categories", categories},
            {"skipped", plan_.skipped}, {"missing_words", plan_.missing_words},
            {"skewed", skewed_},        {"batch_size", batch_},
            {"epochs", epochs_}};
  }

  std::string Summary() const override {
    std::string text = format(
        "{}: {} {}, a fifth to validate\nwhat is predicted: {}, {}{}\n{} of numbers, {}; {} of "
        "words, "
        "categories with a vector each\n",
        choice_.file, rows(), rows() == 1 ? "row" : "rows", target_.name,
        classes_ ? ClassesText(target_)
                 : format("numbers from {:.6g} to {:.6g}", target_.least, target_.most),
        skewed_ ? ", most of them small (normalize: log)" : "",
        Counted(std::ssize(plan_.numbers), "column"),
        plan_.ranked.empty() ? "standardized" : "by their ranks (normalize: quantile)",
        std::ssize(plan_.categories));
    if (plan_.numbers.empty() && plan_.categories.size() == 1)
      text += format(
          "texts of fewer than three words are categories here; to learn from the words in "
          "'{}', name that column text, and what is predicted label\n",
          plan_.categories[0].column);
    if (plan_.commas) text += "numbers have decimal commas (decimal: ',')\n";
    const std::vector<std::string> missing(plan_.missing_words.begin(), plan_.missing_words.end());
    if (!missing.empty())
      text += format("taken as missing, as empty cells are: {}\n", FirstOf(missing, 8));
    if (!plan_.skipped.empty()) text += format("not read: {}\n", FirstOf(plan_.skipped, 8));
    return text + format("batches of {}, {}\n", batch_, Counted(epochs_, "epoch"));
  }

 private:
  int64_t rows() const { return target_.rows(); }

  std::string NetText() const {
    std::string inputs, layers;
    std::vector<std::string> parts;
    if (!plan_.numbers.empty()) {
      inputs += format("    numbers: [{}]\n", plan_.numbers.size());
      layers += NumberLayers(plan_.numbers.size());
      parts.emplace_back("number_row");
    }
    if (!plan_.holes.empty()) {
      inputs += TextLine(format("    absent: [{}]", plan_.holes.size()),
                         "1 where a number is missing, else 0");
      parts.emplace_back("absent");
    }
    bool first = true;
    for (const TablePlan::Category& category : plan_.categories) {
      inputs += format("    {}: {{shape: [1], dtype: int32}}\n", category.name);
      layers += TextLine(
          format(
              "    - Embedding: {{name: {0}_vector, inputs: {0}, input_dim: {1}, output_dim: {2}}}",
              category.name, category.words + 1, LengthOfVector(category.words)),
          first ? "words have codes from 1; 0: unknown or missing" : "");
      first = false;
      layers += format("    - Flatten: {{name: {}_row}}\n", category.name);
      parts.push_back(category.name + "_row");
    }
    if (parts.size() > 1)
      layers += format("    - Concat: {{name: row, inputs: [{}], dim: 1}}\n", join(parts, ", "));
    layers +=
        format("    - FullyConnected: {{name: start, inputs: {}, num_hidden: \"${{width}}\"}}\n",
               parts.size() > 1 ? "row" : parts[0]);
    layers += R"(    - unit: {name: unit1}
    - unit: {name: unit2}
    - BatchNorm: {name: norm, fix_gamma: false}
    - Activation: {name: relu, act_type: relu}
)";
    layers += classes_ && target_.holds_words()
                  ? TextLine("    - FullyConnected: {name: scores, num_hidden: \"${classes}\"}",
                             "as many as the column has")
                  : format("    - FullyConnected: {{name: scores, num_hidden: {}}}\n",
                           classes_ ? target_.distinct : 1);
    layers += classes_ ? format("    - SoftmaxOutput: {{name: {}}}\n", head_)
                       : format("    - LinearRegressionOutput: {{name: {}}}\n", head_);
    return format("net:\n  inputs:\n{}  layers:\n{}", inputs, layers);
  }

  std::string NumberLayers(size_t numbers) const {
    return TextLine(format("    - Reshape: {{name: each, inputs: numbers, shape: [-1, {}, 1]}}",
                           numbers),
                    "each number becomes sines and cosines") +
           TextLine(
               format(
                   "    - Variable: {{name: frequency, shape: [1, {}, 24], init: {{name: normal, "
                   "sigma: {}}}}}",
                   numbers, frequencies_),
               "of frequencies that are learned, and these a vector") +
           R"(    - broadcast_mul: {name: angle, inputs: [each, frequency]}
    - sin: {name: sines, inputs: angle}
    - cos: {name: cosines, inputs: angle}
    - Concat: {name: waves, inputs: [each, sines, cosines], dim: 2}
    - FullyConnected: {name: wave_vectors, num_hidden: 16, flatten: false}
    - Activation: {name: bent, act_type: relu}
    - Flatten: {name: number_row}
)";
  }

  std::string DataText() const {
    std::string columns;
    if (!plan_.numbers.empty()) columns += format("      numbers: {}\n", ListText(plan_.numbers));
    if (!plan_.holes.empty()) {
      std::vector<std::string> absent;
      for (const std::string& column : plan_.holes) absent.push_back(format("missing({})", column));
      columns += format("      absent: {}\n", ListText(absent));
    }
    for (const TablePlan::Category& category : plan_.categories)
      columns += format("      {}: {}\n", category.name, QuoteYaml(category.column));
    columns += format("      {}_label: {}\n", head_, QuoteYaml(target_.name));
    std::string text = format(
        "\ndata:\n  batch_size: {}\n  train:\n    source: csv\n    path: {}\n"
        "    columns:\n{}",
        batch_, QuoteYaml(path_), columns);
    text += NormalizeLines();
    if (plan_.commas) text += TextLine("    decimal: ','", "3,14 is a number");
    if (!plan_.missing_words.empty())
      text += TextLine(format("    missing_words: {}",
                              ListText({plan_.missing_words.begin(), plan_.missing_words.end()})),
                       "cells that are missing, beside empty ones");
    if (plan_.missing)
      text += TextLine("    missing: mean", "empty cells of numbers take the mean of their column");
    return text + TextLine("  val: {split: 0.2}", "a fifth of the rows is held out");
  }

  std::string NormalizeLines() const {
    std::string text;
    if (plan_.ranked.empty())
      return TextLine("    normalize: auto", "numbers get mean 0 and deviation 1");
    text += "    normalize:\n";
    if (!plan_.ranked.empty())
      text += TextLine(format("      quantile: {}", ListText(plan_.ranked)),
                       "numbers get the ranks of a normal distribution");
    if (skewed_)
      text += TextLine(format("      # log: {}", ListText({target_.name})),
                       "for small relative errors; without, for a small rmse");
    return text;
  }

  std::string TrainText() const {
    return format(
        "\ntrain:\n  epochs: {}\n  optimizer: {{name: adamw, lr: 0.002, weight_decay: 0.02}}\n"
        "  lr_schedule: {{name: one_cycle}}\n  ema: {{decay: 0.99}}\n  metrics: [{}]\n  "
        "initializer: {{name: xavier}}\n",
        epochs_,
        !classes_               ? "rmse, mae, r2"
        : target_.distinct == 2 ? "accuracy, auc, cross_entropy"
                                : "accuracy, cross_entropy");
  }

  const std::string path_;
  const io::TableColumn target_;
  const TablePlan plan_;
  const bool classes_;
  std::string head_;
  bool skewed_ = false, few_ = false;
  int64_t batch_ = 0, epochs_ = 0, frequencies_ = 0;
  RecipeChoice choice_;
};

const io::TableColumn& TargetOf(const std::vector<io::TableColumn>& columns,
                                const RecipeRequest& request) {
  if (!request.target.empty()) {
    const auto named = std::ranges::find(columns, request.target, &io::TableColumn::name);
    if (named != columns.end()) return *named;
    std::vector<std::string> names;
    for (const io::TableColumn& column : columns) names.push_back(column.name);
    Throw(ErrorKind::kUsage, "--target {}: {} has no such column{}", request.target, request.folder,
          NearOrAll(request.target, names));
  }
  for (const std::string_view name : kTargetNames) {
    const auto named = std::ranges::find_if(
        columns, [name](const io::TableColumn& column) { return Lower(column.name) == name; });
    if (named != columns.end()) return *named;
  }
  return columns.back();
}

}  // namespace

std::unique_ptr<Recipe> RecognizeTable(const RecipeRequest& request, TableTarget wanted) {
  std::error_code none;
  if (!fs::is_regular_file(request.root, none)) return nullptr;
  const std::optional<std::vector<io::TableColumn>> columns = io::FindTableColumns(request.root);
  if (!columns || columns->size() < 2) return nullptr;
  const io::TableColumn& target = TargetOf(*columns, request);
  constexpr int64_t kLeastRows = 4;
  if (target.rows() < kLeastRows) {
    Throw(ErrorKind::kData,
          "{}: {} too few: one is held out to validate, and a batch needs two others; at least {} "
          "are needed, and hundreds for useful results",
          request.folder, target.rows() == 1 ? "1 row is" : format("{} rows are", target.rows()),
          kLeastRows);
  }
  if (MixesDecimalCommas(target)) {
    Throw(
        ErrorKind::kData,
        "{}: the column '{}', which is to be predicted, holds numbers with decimal commas, such as "
        "'{}', and other columns have decimal points; write all numbers alike",
        request.folder, target.name, target.first_word);
  }
  RefuseNumberLike(target, request.folder);
  const bool classes = HoldsClasses(target);
  if (classes != (wanted == TableTarget::kClasses)) return nullptr;
  if (!classes && target.words > 0) {
    Throw(
        ErrorKind::kData,
        "{}: the column '{}', which is to be predicted, holds numbers and {} that {}, such as '{}'",
        request.folder, target.name, Counted(target.words, "cell"),
        target.words == 1 ? "is none" : "are none", target.first_word);
  }
  if (target.distinct < 2)
    Throw(ErrorKind::kData,
          "{}: the column '{}', which is to be predicted, is the same in every row; "
          "--target COLUMN names another",
          request.folder, target.name);
  TablePlan plan = PlanTable(*columns, target);
  if (plan.numbers.empty() && plan.categories.empty())
    Throw(ErrorKind::kData, "{}: no column is left to learn '{}' from: {}", request.folder,
          target.name, FirstOf(plan.skipped, 8));
  return std::make_unique<TableRecipe>(PathInFile(request.root, request.output), target,
                                       std::move(plan), classes);
}

}  // namespace mxtrain::tasks

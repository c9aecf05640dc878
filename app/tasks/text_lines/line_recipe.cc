// SPDX-License-Identifier: Apache-2.0
#include "app/tasks/text_lines/line_recipe.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "app/tasks/recipe_text.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/format.h"
#include "mxtrain/base/json.h"
#include "mxtrain/base/text.h"
#include "mxtrain/io/first_record.h"
#include "mxtrain/io/image.h"
#include "mxtrain/io/letters.h"
#include "mxtrain/io/source_factory.h"

namespace mxtrain::tasks {
namespace {

namespace fs = std::filesystem;

constexpr int kLineHeight = 32, kPixelsOfStep = 4;
constexpr int kLeastLineWidth = 64, kMostLineWidth = 1024, kLineWidthStep = 16;
constexpr int64_t kMostLineBatch = 32, kLineSteps = 2500, kLinesLooked = 500;
constexpr double kLinesHeldOut = 0.1;
constexpr size_t kLineBeginning = size_t{1} << 16;

// Shi et al. 2015, in small.
constexpr const char* kLineNet = R"(
blocks:
  conv_bn:
    params: {filters}
    layers:
      - Convolution: {name: conv, num_filter: "${filters}", kernel: 3, pad: 1, no_bias: true}
      - BatchNorm: {name: bn, fix_gamma: false}
      - Activation: {name: relu, act_type: relu}

net:
  input: [1, 32, "${width}"]
  layers:
    - conv_bn: {name: conv1, filters: 32}
    - Pooling: {name: pool1, pool_type: max, kernel: 2, stride: 2}
    - conv_bn: {name: conv2, filters: 64}
    - Pooling: {name: pool2, pool_type: max, kernel: 2, stride: 2}
    - conv_bn: {name: conv3, filters: 96}
    - Pooling: {name: pool3, pool_type: max, kernel: [2, 1], stride: [2, 1]}
    - conv_bn: {name: conv4, filters: 128}
    - Pooling: {name: pool4, pool_type: max, kernel: [4, 1], stride: [4, 1]}
    - Reshape: {name: columns, shape: [0, 0, -1]}            # [images, filters, steps]
    - transpose: {name: steps, axes: [2, 0, 1]}              # [steps, images, filters]
    - RNN: {name: lstm, mode: lstm, state_size: 96, num_layers: 1, bidirectional: true}
    - FullyConnected: {name: scores, num_hidden: "${classes + 1}", flatten: false}   # of the blank, and of the letters
    - CTCLoss: {name: ctc, inputs: scores}
    - MakeLoss: {name: loss}
    - ctc_greedy_decoder: {name: letters, inputs: scores}
    - BlockGrad: {name: text}
)";

struct Lines {
  std::string path, validation;  // as the configuration names them; validation: "" for none
  std::string image_column, text_column;
  int64_t lines = 0, letters = 0, longest = 0;
  int width = 0;  // of the net's input
};

class LineRecipe final : public Recipe {
 public:
  explicit LineRecipe(Lines lines) : lines_(std::move(lines)) {}

  void Choose(const RecipeChoice& choice) override {
    if (choice.net || choice.input_size > 0) {
      Throw(ErrorKind::kUsage,
            "--net, --weights and --size are for other images; lines of text have a net of their "
            "own, {} pixels high",
            kLineHeight);
    }
    choice_ = choice;
    batch_ = std::clamp<int64_t>(lines_.lines / 8, 1, kMostLineBatch);
    epochs_ = std::clamp<int64_t>(kLineSteps * batch_ / lines_.lines, 3, 60);
  }

  std::string Text() const override {
    std::string text = format(
        "# Lines of text: written by `mxtrain init`; every line can be changed.\n"
        "#   mxtrain train {0}\n#   mxtrain infer runs/latest FOLDER\n\nseed: 1\n\n",
        choice_.file);
    text += TextLine(
        format("vars: {{width: {}}}", lines_.width),
        format("pixels of a line {} pixels high; {} make a step", kLineHeight, kPixelsOfStep));
    text += kLineNet;
    text += format("\ndata:\n  batch_size: {}\n", batch_);
    text += "  train:\n" + Source(lines_.path) + "    shuffle: true\n";
    text += Transforms("      - brightness: 0.3\n      - contrast: 0.3\n");
    text += "  val:\n";
    text += lines_.validation.empty()
                ? TextLine(format("    split: {}", kLinesHeldOut), "a tenth is held out")
                : Source(lines_.validation);
    text += Transforms("");
    text += format("\ntrain:\n  epochs: {}\n  optimizer: {{name: adam, lr: 0.002}}\n", epochs_);
    text += "  lr_schedule: {name: cosine, warmup_steps: 100}\n  clip: {norm: 5}\n";
    return text + TextLine("  metrics: [cer]", "errors by letters; the least is `best`");
  }

  Json ToJson() const override {
    return {{"file", choice_.file},
            {"lines", lines_.lines},
            {"letters", lines_.letters},
            {"longest", lines_.longest},
            {"input_size", {kLineHeight, lines_.width}},
            {"batch_size", batch_},
            {"epochs", epochs_},
            {"validation", lines_.validation.empty() ? Json(nullptr) : Json(lines_.validation)}};
  }

  std::string Summary() const override {
    return format(
        "{}: {} of {}, at most {} long, {} to validate\n"
        "net input 1x{}x{}, {} steps, batches of {}, {}\n",
        choice_.file, Counted(lines_.lines, "line"), Counted(lines_.letters, "letter"),
        lines_.longest, lines_.validation.empty() ? "a tenth" : lines_.validation, kLineHeight,
        lines_.width, lines_.width / kPixelsOfStep, batch_, Counted(epochs_, "epoch"));
  }

 private:
  std::string Source(const std::string& path) const {
    return format(
        "    source: text_lines\n    path: {}\n    image_column: {}\n    text_column: {}\n",
        QuoteYaml(path), QuoteYaml(lines_.image_column), QuoteYaml(lines_.text_column));
  }
  static std::string Transforms(const std::string& more) {
    return "    transforms:\n"
           "      - letterbox: {size: [32, \"${width}\"], fill: 0, interpolation: bilinear, "
           "antialias: true}\n" +
           more + "      - normalize: {mean: [0.5], std: [0.25]}\n";
  }

  const Lines lines_;
  RecipeChoice choice_;
  int64_t batch_ = 0, epochs_ = 0;
};

// The names of the columns of a table, or of the keys of the first line of JSON lines.
std::vector<std::string> ColumnsOf(const fs::path& file) {
  const std::string ending = Lower(file.extension().string());
  std::string beginning = ReadBeginMaybeGzip(file.string(), kLineBeginning);
  beginning.resize(std::min(beginning.find('\n'), beginning.size()));
  if (ending == ".tsv" || ending == ".tab") return io::FirstRecord(beginning, "tab");
  if (ending == ".csv") return io::FirstRecord(beginning, "auto");
  if (ending != ".jsonl" && ending != ".ndjson") return {};
  std::vector<std::string> keys;
  const Json json = Json::parse(beginning, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return {};
  for (const auto& [key, value] : json.items()) keys.push_back(key);
  return keys;
}

std::optional<std::string> FirstNamed(const std::vector<std::string>& columns,
                                      std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const auto found = std::ranges::find_if(
        columns, [name](const std::string& column) { return Lower(column) == name; });
    if (found != columns.end()) return *found;
  }
  return std::nullopt;
}

// Names of the columns of images and texts.
std::optional<std::pair<std::string, std::string>> LineColumns(const fs::path& file) {
  const std::vector<std::string> columns = ColumnsOf(file);
  const auto image = FirstNamed(columns, {"image", "file", "file_name", "filename", "path"}),
             text = FirstNamed(columns, {"text", "transcription", "transcript", "words"});
  if (!image || !text) return std::nullopt;
  return std::pair(*image, *text);
}

// A table of the folder with one of these names.
std::optional<fs::path> TableNamed(const fs::path& folder,
                                   std::initializer_list<const char*> names) {
  std::error_code none;
  for (const char* name : names) {
    for (const char* ending : {".tsv", ".csv", ".jsonl", ".tab", ".ndjson"}) {
      const fs::path file = folder / (std::string(name) + ending);
      if (fs::is_regular_file(file, none)) return file;
    }
  }
  return std::nullopt;
}

// The widest of some images that are to be kLineHeight high.
int WidestLine(const io::Source& source) {
  double widest = 1;
  io::Sample sample;
  const int64_t count = std::min(source.size(), kLinesLooked);
  for (int64_t i = 0; i < count; ++i) {
    try {
      source.Read(i * source.size() / count, &sample);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kData && error.kind() != ErrorKind::kFileSystem) throw;
      continue;
    }
    const auto info = io::ProbeImage(sample.data[0].encoded);
    if (info && info->height > 0)
      widest = std::max(widest, static_cast<double>(info->width) / info->height);
  }
  return static_cast<int>(std::min<double>(widest * kLineHeight, kMostLineWidth));
}

}  // namespace

std::unique_ptr<Recipe> RecognizeLines(const RecipeRequest& request) {
  std::error_code none;
  const fs::path root = request.root;
  fs::path file = root;
  if (!fs::is_regular_file(root, none)) {
    const auto found = TableNamed(root, {"train", "training", "labels", "metadata"});
    if (!found) return nullptr;
    file = *found;
  }
  const auto columns = LineColumns(file);
  if (!columns) return nullptr;
  const auto source = io::MakeSource("text_lines", {{"path", file.string()},
                                                    {"image_column", columns->first},
                                                    {"text_column", columns->second}});
  if (!fs::is_regular_file(source->FileOf(0), none)) return nullptr;
  Lines lines;
  lines.path = PathInFile(file.string(), request.output);
  lines.image_column = columns->first;
  lines.text_column = columns->second;
  const auto other = TableNamed(file.parent_path(), {"val", "valid", "validation", "dev", "test"});
  if (other && *other != file && LineColumns(*other) == columns)
    lines.validation = PathInFile(other->string(), request.output);
  lines.lines = source->size();
  lines.letters = source->num_classes();
  int64_t steps = 0;
  for (int64_t i = 0; i < source->size(); ++i) {
    const std::vector<std::string> letters = io::LettersOf(source->TextOf(i));
    int64_t needed = std::ssize(letters);
    lines.longest = std::max(lines.longest, needed);
    for (size_t k = 1; k < letters.size(); ++k) needed += letters[k] == letters[k - 1];
    steps = std::max(steps, needed);
  }
  const int width =
      std::max<int>(WidestLine(*source),
                    static_cast<int>(std::min<int64_t>(steps, kMostLineWidth)) * kPixelsOfStep);
  lines.width = std::clamp((width + kLineWidthStep - 1) / kLineWidthStep * kLineWidthStep,
                           kLeastLineWidth, kMostLineWidth);
  return std::make_unique<LineRecipe>(std::move(lines));
}

}  // namespace mxtrain::tasks

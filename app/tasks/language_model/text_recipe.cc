// SPDX-License-Identifier: Apache-2.0
#include "app/tasks/language_model/text_recipe.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "app/tasks/recipe_text.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/format.h"
#include "mxtrain/base/text.h"
#include "mxtrain/io/find_text_columns.h"
#include "mxtrain/io/image_formats.h"
#include "mxtrain/io/source_factory.h"

namespace mxtrain::tasks {
namespace {

namespace fs = std::filesystem;

constexpr int kLength = 64, kChatLength = 192, kBatch = 16;
constexpr int64_t kSteps = 3000;  // of a whole run, or an epoch if that is more
constexpr double kTrainPart = 0.9;

// A transformer of 4 layers, norm first, as in GPT-2.
constexpr const char* kNet = R"(

blocks:
  attention:                              # a token sees those before it, and itself
    layers:
      - FullyConnected: {name: qkv, num_hidden: "${3 * width}", flatten: false}
      - Reshape: {name: by_place, shape: [0, 0, 3, "${heads}", "${width // heads}"]}
      - transpose: {name: by_head, axes: [2, 0, 3, 1, 4]}
      - SliceChannel: {name: part, num_outputs: 3, axis: 0, squeeze_axis: true}
      - scaled_dot_product_attention: {name: heads, inputs: [part.output0, part.output1, part.output2], is_causal: true}
      - transpose: {name: places, axes: [0, 2, 1, 3]}
      - Reshape: {name: joined, shape: [0, 0, -3]}
      - FullyConnected: {name: proj, num_hidden: "${width}", flatten: false}
      - Dropout: {name: drop, p: "${dropout}"}
  unit:
    layers:
      - LayerNorm: {name: norm1}
      - attention: {name: attention}
      - elemwise_add: {name: attended, inputs: [attention, input]}
      - LayerNorm: {name: norm2}
      - FullyConnected: {name: hidden, num_hidden: "${4 * width}", flatten: false}
      - gelu: {name: gelu}
      - FullyConnected: {name: narrow, num_hidden: "${width}", flatten: false}
      - Dropout: {name: drop, p: "${dropout}"}
      - elemwise_add: {name: result, inputs: [drop, attended]}

net:
  input: ["${length}"]
  layers:
    - Variable: {name: token_weight, shape: ["${classes}", "${width}"]}
    - Variable: {name: position, shape: [1, "${length}", "${width}"], init: {name: normal, sigma: 0.02}}
    - Embedding: {name: tokens, inputs: data, weight: token_weight, input_dim: "${classes}", output_dim: "${width}"}
    - broadcast_add: {name: placed, inputs: [tokens, position]}
    - repeat: {count: "${units}", index: i, layers: [{unit: {name: "unit${i}"}}]}
    - LayerNorm: {name: head}
    - FullyConnected: {name: scores, weight: token_weight, num_hidden: "${classes}", flatten: false, no_bias: true}
    - transpose: {name: by_token, axes: [0, 2, 1]}
    - SoftmaxOutput: {name: softmax, multi_output: true, normalization: valid, use_ignore: true}
)";

struct Texts {
  std::string path;  // as the configuration names it
  int64_t files = 0, bytes = 0;
  bool chats = false;  // conversations in JSON lines
  int length() const { return chats ? kChatLength : kLength; }
};

class TextRecipe final : public Recipe {
 public:
  explicit TextRecipe(Texts texts) : texts_(std::move(texts)) {}

  void Choose(const RecipeChoice& choice) override {
    if (choice.net || choice.input_size > 0)
      Throw(ErrorKind::kUsage, "--net, --weights and --size are for images; {} holds text",
            texts_.path);
    choice_ = choice;
    const auto examples =
        static_cast<int64_t>(static_cast<double>(texts_.bytes) * kTrainPart) / texts_.length();
    const int64_t steps = std::max<int64_t>(examples / kBatch, 1);
    epochs_ = std::clamp<int64_t>(kSteps / steps, 1, 100);
    if (examples < kBatch) {
      Throw(ErrorKind::kData, "{}: {} are too few to learn from: at least {} are wanted",
            texts_.path, Counted(texts_.bytes, "byte"), 2 * kBatch * texts_.length());
    }
  }

  std::string Text() const override {
    std::string text = format(
        "# {0}: written by `mxtrain init`; every line can be changed.\n"
        "#   mxtrain train {1}\n#   mxtrain generate runs/latest --prompt \"...\"\n\n"
        "task: language_model\nseed: 1\n\n"
        "vars: {{length: {2}, width: 128, heads: 4, units: 4, dropout: 0}}\n",
        texts_.chats ? "Answers of conversations" : "The next character of a text", choice_.file,
        texts_.length());
    text += kNet;
    text += format("\ndata:\n  batch_size: {}\n", kBatch);
    const std::string path = QuoteYaml(texts_.path);
    if (texts_.chats) {
      text += TextLine(
          format("  train: {{source: chat, path: {}, tokenizer: bytes, shuffle: true}}", path),
          "tokenizer_file: FILE for other tokens");
      text += TextLine(format("  val: {{split: {:g}}}", 1 - kTrainPart), "held out");
    } else {
      text += TextLine(format("  train: {{source: text, path: {}, part: [0, {}], shuffle: true}}",
                              path, kTrainPart),
                       "tokenizer: words, or tokenizer_file: FILE, for other tokens");
      text += TextLine(format("  val: {{source: text, path: {}, part: [{}, 1]}}", path, kTrainPart),
                       "the rest");
    }
    text += format("\ntrain:\n  epochs: {}\n", epochs_);
    text += "  optimizer: {name: adamw, lr: 0.001, beta2: 0.99, weight_decay: 0.1}\n";
    text += "  lr_schedule: {name: cosine, warmup_steps: 100, final: 0.1}\n";
    text += "  clip: {norm: 1}\n  initializer: {name: normal, sigma: 0.02}\n";
    return text + TextLine("  metrics: [perplexity]",
                           texts_.chats ? "of an answer's next byte" : "of the next character");
  }

  Json ToJson() const override {
    return {{"file", choice_.file},      {"texts", texts_.files}, {"bytes", texts_.bytes},
            {"length", texts_.length()}, {"batch_size", kBatch},  {"epochs", epochs_}};
  }

  std::string Summary() const override {
    return format("{}: {} of {}, {} to validate\nexamples of {} {}, batches of {}, {}\n",
                  choice_.file, texts_.chats ? "conversations" : Counted(texts_.files, "text"),
                  Counted(texts_.bytes, "byte"), texts_.chats ? "a tenth" : "the last tenth",
                  texts_.length(), texts_.chats ? "bytes" : "characters", kBatch,
                  Counted(epochs_, "epoch"));
  }

 private:
  const Texts texts_;
  RecipeChoice choice_;
  int64_t epochs_ = 0;
};

bool IsText(const fs::path& path) {
  return Lower(path.extension().string()) == ".txt";
}

}  // namespace

std::unique_ptr<Recipe> RecognizeTexts(const RecipeRequest& request) {
  std::error_code none;
  Texts texts;
  texts.path = PathInFile(request.root, request.output);
  const auto add = [&](const fs::path& file) {
    ++texts.files;
    texts.bytes += static_cast<int64_t>(fs::file_size(file, none));
  };
  if (fs::is_regular_file(request.root, none)) {
    const io::RecognizedSource found = io::RecognizeSource(request.root, "");
    texts.chats = found.kind && found.kind->name == "chat";
    if (IsText(request.root) || texts.chats) add(request.root);
  } else {
    if (!io::TrainingTextsIn(request.root).empty()) return nullptr;  // texts with labels
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(
             request.root, fs::directory_options::skip_permission_denied, none)) {
      if (io::HasImageEnding(entry.path().string())) return nullptr;
      if (IsText(entry.path()) && entry.is_regular_file(none)) add(entry.path());
    }
  }
  if (texts.files == 0) return nullptr;
  return std::make_unique<TextRecipe>(std::move(texts));
}

}  // namespace mxtrain::tasks

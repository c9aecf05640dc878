// SPDX-License-Identifier: Apache-2.0
#include "app/inference/text_generator.h"

#include "app/session/pipeline_spec.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/math.h"

namespace mxtrain::inference {
namespace {

// Of the net's only output, for so many texts at once.
tasks::TokenLayout LayoutOf(const Model& model, const std::string& input, int64_t rows,
                            int64_t length, int64_t tokens) {
  const std::vector<TShape> outputs =
      model.symbol.InferShape({{input, TShape{rows, length}}}).outputs;
  const auto layout = tasks::TokenLayoutOf(outputs[0], {rows, length});
  if (outputs.size() == 1 && layout && layout->tokens == tokens) return *layout;
  Throw(ErrorKind::kUsage,
        "{} gives {}; a language model of {} tokens that reads {} gives {} or {}, what comes after "
        "each of them; as many tokens as it reads cannot be told apart",
        model.file, outputs[0].ToString(), tokens, length, TShape{rows, tokens, length}.ToString(),
        TShape{rows, length, tokens}.ToString());
}

}  // namespace

text::TokenizerPtr TokenizerOf(const Model& model) {
  const std::string text = session::PipelineSpec::FromJson(model.info.pipeline).TokenizerText();
  if (!text.empty()) return text::TokenizerFromText(text, model.file);
  Throw(ErrorKind::kUsage,
        "{} is no language model: it was not trained on text (data.train.source: text or chat)",
        model.file);
}

std::optional<text::ChatFormat> ChatFormatOf(const Model& model) {
  const std::string text = session::PipelineSpec::FromJson(model.info.pipeline).ChatText();
  if (text.empty()) return std::nullopt;
  return text::ChatFormat::FromText(text, model.file);
}

int64_t WindowRule::Begin(int64_t tokens) const {
  if (tokens <= length) return 0;
  const int64_t step = length - keep;
  return CeilDivide(tokens - length, step) * step;
}

TextGenerator::TextGenerator(Runtime& runtime, const Model& model, int64_t tokens, Context device,
                             const ComputeModes& modes, const GenerationOptions& options,
                             const Logger& log)
    : rows_(options.rows) {
  const std::vector<InputInfo>& inputs = model.info.inputs;
  if (inputs.size() != 1 || !inputs[0].shape.known() || inputs[0].shape.ndim() != 1)
    Throw(ErrorKind::kUsage, "{} does not read a list of tokens", model.file);
  rule_.length = inputs[0].shape[0];
  rule_.keep = options.keep.value_or(rule_.length / 2);
  if (options.keep && (rule_.keep < 1 || rule_.keep >= rule_.length)) {
    Throw(ErrorKind::kUsage, "{} tokens cannot stay in a window of {}: keep 1 to {}", rule_.keep,
          rule_.length, rule_.length - 1);
  }
  const WindowRequest request{
      runtime,        model,
      inputs[0].name, LayoutOf(model, inputs[0].name, options.rows, rule_.length, tokens),
      options.rows,   device,
      modes};
  next_.resize(static_cast<size_t>(options.rows * tokens));
  if (options.caches) {
    Expected<std::unique_ptr<TokenWindows>, Refusal> cached = CachedWindows(request);
    if (cached) {
      windows_ = std::move(*cached);
      return;
    }
    log.Info("no cache of keys and values, each token is computed from the whole window: {}",
             cached.error().reason);
  }
  windows_ = WholeWindows(request);
}

std::span<float> TextGenerator::After(std::span<const std::span<const text::TokenId>> texts) {
  std::vector<std::span<const text::TokenId>> windows;
  for (const std::span<const text::TokenId> text : texts)
    windows.push_back(text.subspan(static_cast<size_t>(rule_.Begin(std::ssize(text)))));
  windows_->Run(windows, next_);
  return next_;
}

}  // namespace mxtrain::inference

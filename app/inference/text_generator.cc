// SPDX-License-Identifier: Apache-2.0
#include "app/inference/text_generator.h"

#include <algorithm>
#include <set>

#include "app/session/pipeline_spec.h"
#include "mxtrain/base/error.h"
#include "mxtrain/train/loss_report.h"

namespace mxtrain::inference {

text::TokenizerPtr TokenizerOf(const Model& model) {
  const std::string text = session::PipelineSpec::FromJson(model.info.pipeline).TokenizerText();
  if (!text.empty()) return text::TokenizerFromText(text, model.file);
  Throw(ErrorKind::kUsage,
        "{} is no language model: it was not trained on text (data.train.source: text)",
        model.file);
}

TextGenerator::TextGenerator(Runtime& runtime, const Model& model, int64_t tokens, Context device,
                             const ComputeModes& modes) {
  const std::vector<InputInfo>& inputs = model.info.inputs;
  if (inputs.size() != 1 || !inputs[0].shape.known() || inputs[0].shape.ndim() != 1)
    Throw(ErrorKind::kUsage, "{} does not read a list of tokens", model.file);
  length_ = inputs[0].shape[0];
  const DataDesc input{inputs[0].name, TShape{1, length_}};
  executor_ = Executor::SimpleBind(runtime, model.symbol,
                                   EvaluationRequest(model.symbol, {&input, 1}, device, modes));
  // Labels, which no output depends on.
  const std::set<std::string> read = VariablesRead(model.symbol);
  std::vector<std::string> labels;
  for (const auto& [name, array] : executor_->args()) {
    if (read.contains(name)) continue;
    NDArray(array).Fill(0);
    labels.push_back(name);
  }
  SetParameters(model, executor_.get(), labels);
  const TShape output = executor_->outputs()[0].shape();
  const auto layout = tasks::TokenLayoutOf(output, {1, length_});
  if (executor_->outputs().size() != 1 || !layout || layout->tokens != tokens) {
    Throw(
        ErrorKind::kUsage,
        "{} gives {}; a language model of {} tokens that reads {} gives {} or {}, what comes after "
        "each of them; as many tokens as it reads cannot be told apart",
        model.file, output.ToString(), tokens, length_, TShape{1, tokens, length_}.ToString(),
        TShape{1, length_, tokens}.ToString());
  }
  layout_ = *layout;
  input_ = NDArray(runtime, {1, length_}, DType::kFloat32, device, {}, "tokens");
  ids_.resize(static_cast<size_t>(length_));
  next_.resize(static_cast<size_t>(tokens));
}

std::span<float> TextGenerator::After(std::span<const text::TokenId> tokens) {
  const auto seen = std::min(tokens.size(), ids_.size());
  std::ranges::fill(ids_, 0.0F);
  std::ranges::copy(tokens.last(seen), ids_.begin());
  input_.CopyFromHost(ids_.data(), static_cast<int64_t>(ids_.size() * sizeof(float)));
  const NDArray inputs[] = {input_};
  executor_->Forward(inputs);
  const std::vector<float> output = executor_->outputs()[0].ToVector();
  for (size_t token = 0; token < next_.size(); ++token)
    next_[token] = output[layout_.At(seen - 1, token)];
  return next_;
}

}  // namespace mxtrain::inference

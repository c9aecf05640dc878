// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>
#include <vector>

#include "app/inference/token_windows.h"
#include "mxtrain/train/loss_report.h"

namespace mxtrain::inference {

void FillExecutor(const Model& model, Executor* executor) {
  const std::set<std::string> read = VariablesRead(model.symbol);
  const std::vector<std::string> states = model.symbol.ListAuxiliaryStates();
  std::vector<std::string> others;
  const auto clear = [&](const std::string& name, NDArray array) {
    array.Fill(0);
    others.push_back(name);
  };
  for (const auto& [name, array] : executor->args()) {
    if (!read.contains(name)) clear(name, array);
  }
  for (const auto& [name, array] : executor->auxs()) {
    if (std::ranges::find(states, name) == states.end()) clear(name, array);
  }
  SetParameters(model, executor, others);
}

namespace {

class Whole final : public TokenWindows {
 public:
  explicit Whole(const WindowRequest& r) : rows_(static_cast<size_t>(r.rows)), layout_(r.layout) {
    const DataDesc input{r.input, TShape{r.rows, layout_.length}};
    executor_ =
        Executor::SimpleBind(r.runtime, r.model.symbol,
                             EvaluationRequest(r.model.symbol, {&input, 1}, r.device, r.modes));
    FillExecutor(r.model, executor_.get());
    input_ = NDArray(r.runtime, {r.rows, layout_.length}, DType::kFloat32, r.device, {}, "tokens");
    ids_.resize(rows_ * static_cast<size_t>(layout_.length));
  }

  void Run(std::span<const std::span<const text::TokenId>> windows,
           std::span<float> probabilities) override {
    const auto length = static_cast<size_t>(layout_.length),
               tokens = static_cast<size_t>(layout_.tokens);
    std::ranges::fill(ids_, 0.0F);
    for (size_t row = 0; row < rows_; ++row)
      std::ranges::copy(windows[row], ids_.begin() + static_cast<ptrdiff_t>(row * length));
    input_.CopyFromHost(ids_.data(), static_cast<int64_t>(ids_.size() * sizeof(float)));
    const NDArray inputs[] = {input_};
    executor_->Forward(inputs);
    const std::vector<float> output = executor_->outputs()[0].ToVector();
    for (size_t row = 0; row < rows_; ++row) {
      if (windows[row].empty()) continue;
      const float* from = output.data() + row * layout_.size();
      for (size_t token = 0; token < tokens; ++token)
        probabilities[row * tokens + token] = from[layout_.At(windows[row].size() - 1, token)];
    }
  }

 private:
  const size_t rows_;
  const tasks::TokenLayout layout_;
  std::unique_ptr<Executor> executor_;
  NDArray input_;
  std::vector<float> ids_;
};

}  // namespace

std::unique_ptr<TokenWindows> WholeWindows(const WindowRequest& request) {
  return std::make_unique<Whole>(request);
}

}  // namespace mxtrain::inference

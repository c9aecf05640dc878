// SPDX-License-Identifier: Apache-2.0
// Windows with caches. What a row's caches hold is known by its tokens: of a new window the part
// that it begins with alike stays, whatever came before, and the rest is computed: all but the last
// token by one run that only fills the caches, and the last one by a run for a single token. So a
// token costs one such run, and a prompt two runs.
#include <algorithm>
#include <vector>

#include "app/inference/token_windows.h"
#include "mxtrain/base/math.h"
#include "mxtrain/train/token_steps.h"

namespace mxtrain::inference {
namespace {

using Window = std::span<const text::TokenId>;

// A net for some tokens of each row, and its inputs.
class PartNet {
 public:
  PartNet(const WindowRequest& r, const Symbol& net, const std::string& position, int64_t tokens,
          Executor* shared)
      : tokens_(static_cast<size_t>(tokens)) {
    const std::vector<DataDesc> arrays = {{r.input, TShape{r.rows, tokens}},
                                          {position, TShape{r.rows}}};
    executor_ = Executor::SimpleBind(r.runtime, net,
                                     EvaluationRequest(net, arrays, r.device, r.modes), shared);
    for (const std::string& name : executor_->input_names()) {
      const bool is_ids = name == r.input;
      inputs_.emplace_back(r.runtime, is_ids ? arrays[0].shape : arrays[1].shape, DType::kFloat32,
                           r.device, Layout(), name);
      order_.push_back(is_ids);
    }
    ids_.resize(static_cast<size_t>(r.rows) * tokens_);
    places_.resize(static_cast<size_t>(r.rows));
  }

  size_t tokens() const { return tokens_; }
  Executor* executor() const { return executor_.get(); }

  // Tokens [first[r], first[r] + count[r]) of each row; rows without tokens rest.
  void Run(std::span<const Window> windows, std::span<const size_t> first,
           std::span<const size_t> count) {
    std::ranges::fill(ids_, 0.0F);
    for (size_t row = 0; row < places_.size(); ++row) {
      places_[row] = count[row] == 0 ? -1.0F : static_cast<float>(first[row]);
      std::ranges::copy(windows[row].subspan(first[row], count[row]),
                        ids_.begin() + static_cast<ptrdiff_t>(row * tokens_));
    }
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const std::vector<float>& from = order_[i] ? ids_ : places_;
      inputs_[i].CopyFromHost(from.data(), static_cast<int64_t>(from.size() * sizeof(float)));
    }
    executor_->Forward(inputs_);
  }

 private:
  const size_t tokens_;
  std::unique_ptr<Executor> executor_;
  std::vector<NDArray> inputs_;
  std::vector<bool> order_;  // of each input: whether it is the tokens
  std::vector<float> ids_, places_;
};

class Cached final : public TokenWindows {
 public:
  Cached(const WindowRequest& request, TokenSteps steps)
      : request_(request),
        steps_(std::move(steps)),
        one_(request, steps_.Net(request.rows, 1), steps_.position(), 1, nullptr),
        has_caches_(steps_.Filling(request.rows, 1).NumOutputs() > 0),
        held_(static_cast<size_t>(request.rows)) {
    FillExecutor(request.model, one_.executor());
  }

  void Run(std::span<const Window> windows, std::span<float> probabilities) override {
    std::vector<size_t> first(held_.size()), count(held_.size());
    for (size_t row = 0; row < held_.size(); ++row) {
      const Window window = windows[row];
      if (window.empty()) continue;
      const size_t most = window.size() - 1;
      const auto differs = std::ranges::mismatch(held_[row], window.first(most)).in2;
      first[row] = static_cast<size_t>(differs - window.begin());
      count[row] = most - first[row];
      held_[row].assign(window.begin(), window.end());
    }
    if (has_caches_) Fill(windows, first, count);
    for (size_t row = 0; row < held_.size(); ++row) {
      first[row] = windows[row].empty() ? 0 : windows[row].size() - 1;
      count[row] = windows[row].empty() ? 0 : 1;
    }
    one_.Run(windows, first, count);
    const std::vector<float> output = one_.executor()->outputs()[0].ToVector();
    std::ranges::copy(output, probabilities.begin());
  }

 private:
  // One run for the longest part that is missing. Its length is rounded, so that few nets are made.
  void Fill(std::span<const Window> windows, std::span<const size_t> first,
            std::span<const size_t> count) {
    constexpr int64_t kRounding = 16;
    const auto longest = static_cast<int64_t>(*std::ranges::max_element(count));
    if (longest == 0) return;
    const int64_t tokens = std::min(RoundUp(longest, kRounding), request_.layout.length);
    if (!filling_ || filling_->tokens() != static_cast<size_t>(tokens)) {
      filling_.reset();
      filling_ = std::make_unique<PartNet>(request_, steps_.Filling(request_.rows, tokens),
                                           steps_.position(), tokens, one_.executor());
    }
    filling_->Run(windows, first, count);
  }

  const WindowRequest request_;
  const TokenSteps steps_;
  PartNet one_;
  const bool has_caches_;
  std::unique_ptr<PartNet> filling_;  // of the length that was last needed
  std::vector<text::Ids> held_;       // by row: the tokens whose keys and values the caches have
};

}  // namespace

Expected<std::unique_ptr<TokenWindows>, Refusal> CachedWindows(const WindowRequest& request) {
  Expected<TokenSteps, Refusal> steps = TokenSteps::Of(
      request.runtime.operators(), request.model.symbol, request.input, request.layout.length);
  if (!steps) return steps.error();
  if (steps->tokens_axis() != (request.layout.tokens_last ? 1 : 2))
    return Refusal{"the output of the net has the tokens of the text along another axis"};
  return std::unique_ptr<TokenWindows>(std::make_unique<Cached>(request, std::move(*steps)));
}

}  // namespace mxtrain::inference

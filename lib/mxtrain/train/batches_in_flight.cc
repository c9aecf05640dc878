// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/train/internal/batches_in_flight.h"

#include <algorithm>
#include <utility>

#include "mxtrain/base/error.h"

namespace mxtrain {

BatchesInFlight::BatchesInFlight(Runtime& runtime, const std::vector<Context>& workers,
                                 const DataIter& train, EpochScores& scores)
    : runtime_(runtime), workers_(workers), train_(train), scores_(scores) {
  for (const DataDesc& desc : train.provide_label()) label_names_.push_back(desc.name);
  engine::Engine& engine = runtime.engine();
  sums_ = engine.NewVar();
  for (int i = 0; i < 2; ++i) batch_marks_.push_back(engine.NewVar());
  for (size_t w = 0; w < workers.size(); ++w) ends_.push_back(engine.NewVar());
  ended_ = engine.NewVar();
}

BatchesInFlight::~BatchesInFlight() {
  // Pushed functions use members, and what runs them need not have been awaited.
  for (engine::VarHandle var : {sums_, ended_}) runtime_.engine().Drain(var);
  for (engine::VarHandle var : {sums_, ended_})
    runtime_.engine().DeleteVariable(var, {}, workers_[0]);
  for (const auto* marks : {&batch_marks_, &ends_}) {
    for (engine::VarHandle mark : *marks) runtime_.engine().DeleteVariable(mark, {}, workers_[0]);
  }
}

void BatchesInFlight::WaitForOlder() {
  runtime_.engine().WaitForVar(batch_marks_[static_cast<size_t>(batches_ % 2)]);
}

void BatchesInFlight::Begin() {
  WaitForOlder();
  data_wait_.Pushed();
}

void BatchesInFlight::End(const DataBatch& batch, const BoundNet& net,
                          const ParameterUpdates& updates, bool updated, int64_t step) {
  MarkEnd(updates, updated);
  Collect(batch, net, step);
  ++batches_;
}

void BatchesInFlight::WaitForScores() {
  runtime_.engine().WaitForVar(sums_);
}

void BatchesInFlight::WaitForAll() {
  runtime_.engine().WaitForVar(ended_);
  WaitForScores();
}

// Pushes a function ordered after everything the batch computes; its outputs are ready long before.
// On a GPU it is preceded by an empty function, so the next step's updates need not wait for the
// host.
void BatchesInFlight::MarkEnd(const ParameterUpdates& updates, bool updated) {
  reads_.clear();
  for (size_t w = 0; w < ends_.size(); ++w) {
    const bool on_gpu = workers_[w].type == DeviceType::kGPU;
    updates.AppendLastWritten(w, updated, on_gpu ? &computed_last_ : &reads_);
    if (computed_last_.empty()) continue;
    writes_.assign({ends_[w]});
    engine::DeduplicateVars(&computed_last_, &writes_);
    runtime_.engine().PushSync([](RunContext) {}, computed_last_, writes_,
                               {.ctx = workers_[w], .priority = 1, .name = "batch_end"});
    computed_last_.clear();
    reads_.push_back(ends_[w]);
  }
  writes_.assign({ended_});
  engine::DeduplicateVars(&reads_, &writes_);
  runtime_.engine().PushSync([this](RunContext) { data_wait_.Done(); }, reads_, writes_,
                             {.ctx = Context::cpu(), .priority = 1, .name = "batch_done"});
}

// Pushes the function that adds a batch's losses and metrics. Besides the sums it mutates one of
// two marks: waiting for that mark waits for this batch and not for the next one.
void BatchesInFlight::Collect(const DataBatch& batch, const BoundNet& net, int64_t step) {
  reads_.clear();
  writes_.assign({sums_, batch_marks_[static_cast<size_t>(batches_ % 2)]});
  auto outcome = outcomes_.Take();
  for (const auto& executor : net.running()) {
    for (const NDArray& output : executor->outputs())
      reads_.push_back(outcome->outputs.emplace_back(output.ToHost()).var());
  }
  for (const NDArray& label : batch.label) reads_.push_back(label.var());
  engine::DeduplicateVars(&reads_, &writes_);
  outcome->labels = batch.label;
  outcome->index = batch.index;
  outcome->count = batch.count;
  outcome->step = step;
  runtime_.engine().PushSync([this, outcome = std::move(outcome)](RunContext) { TakeIn(*outcome); },
                             reads_, writes_,
                             {.ctx = Context::cpu(), .priority = 1, .name = "metrics"});
}

// Adds a batch to the sums of losses and metrics.
void BatchesInFlight::TakeIn(const Outcome& outcome) {
  const auto parts = static_cast<int64_t>(workers_.size());
  const size_t outputs = outcome.outputs.size() / workers_.size();
  for (int64_t w = 0; w < parts; ++w) {
    output_blobs_.clear();
    for (size_t i = 0; i < outputs; ++i)
      output_blobs_.push_back(outcome.outputs[static_cast<size_t>(w) * outputs + i].data());
    int64_t count = outcome.count;
    for (size_t i = 0; i < outcome.labels.size(); ++i) {
      const NDArray& label = outcome.labels[i];
      const int64_t rows = label.shape()[0] / parts;
      label_blobs_[label_names_[i]] =
          (parts == 1 ? label : label.Slice(w * rows, (w + 1) * rows)).data();
      count = std::clamp<int64_t>(outcome.count - w * rows, 0, rows);
    }
    scores_.Add(output_blobs_, label_blobs_, count);
  }
  const LossReport& loss = scores_.loss();
  for (size_t h = 0; h < loss.heads().size(); ++h) {
    if (loss.Diverges(static_cast<int>(h))) ThrowDiverged(outcome.step, outcome.index);
  }
}

void BatchesInFlight::ThrowDiverged(int64_t step, const std::vector<int64_t>& index) {
  constexpr size_t kShown = 4;
  std::vector<std::string> heads, examples;
  const LossReport& loss = scores_.loss();
  for (size_t h = 0; h < loss.heads().size(); ++h) {
    if (loss.Diverges(static_cast<int>(h))) heads.push_back(format("'{}'", loss.heads()[h].name));
  }
  for (int64_t i : index) examples.push_back(train_.ExampleName(i));
  const std::vector<std::string> shown(
      examples.begin(),
      examples.begin() + static_cast<ptrdiff_t>(std::min(examples.size(), kShown)));
  const std::string text = format(
      "the loss of {} is not finite at step {} (batch of {}: {}{}); lower the learning rate, or "
      "clip "
      "gradients",
      join(heads, ", "), step + 1, Counted(std::ssize(examples), "example"), join(shown, ", "),
      examples.size() > kShown ? ", ..." : "");
  DivergedError error(text, step + 1, std::move(examples));
  if (!has_diverged_) {
    diverged_.emplace(error);
    has_diverged_ = true;
  }
  throw error;
}

}  // namespace mxtrain

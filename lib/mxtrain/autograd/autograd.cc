// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/autograd/autograd.h"

#include <algorithm>

#include "mxtrain/autograd/internal/recorder.h"
#include "mxtrain/base/error.h"

namespace mxtrain::autograd {
namespace {

void CheckHeads(const std::vector<NDArray>& heads, const std::vector<NDArray>& head_gradients) {
  if (heads.empty()) Throw(ErrorKind::kConfig, "Backward: no head was given");
  if (!head_gradients.empty() && head_gradients.size() != heads.size()) {
    Throw(ErrorKind::kConfig, "Backward: {} and {} were given; give one gradient per head, or none",
          Counted(heads.size(), "head"), Counted(head_gradients.size(), "head gradient"));
  }
  for (size_t i = 0; i < heads.size(); ++i) {
    if (heads[i].empty()) Throw(ErrorKind::kConfig, "Backward: head {} is an empty array", i);
    if (&heads[i].runtime() != &heads[0].runtime() || heads[i].ctx() != heads[0].ctx()) {
      Throw(ErrorKind::kConfig,
            "Backward: heads 0 and {} are on {} and {} or of two runtimes; call Backward for each "
            "device, with retain = true",
            i, heads[0].ctx().ToString(), heads[i].ctx().ToString());
    }
    if (head_gradients.empty() || head_gradients[i].empty()) continue;
    const NDArray& gradient = head_gradients[i];
    if (gradient.shape() != heads[i].shape() || gradient.dtype() != heads[i].dtype()) {
      Throw(ErrorKind::kConfig, "Backward: head gradient {} is {} {}, but head {} is {} {}", i,
            NameOf(gradient.dtype()), gradient.shape().ToString(), i, NameOf(heads[i].dtype()),
            heads[i].shape().ToString());
    }
  }
}

}  // namespace

Variables::Variables(std::vector<NDArray> arrays, GradReq req) : arrays_(std::move(arrays)) {
  if (Recorder::OfThisThread().recording())
    Throw(ErrorKind::kUsage, "arrays cannot be attached during a Recording; attach them before it");
  if (req == GradReq::kNull)
    Throw(ErrorKind::kConfig, "an attached array has a gradient: kWrite or kAdd, not kNull");
  for (const NDArray& array : arrays_) {
    if (array.empty()) Throw(ErrorKind::kConfig, "an empty array cannot be attached");
    if (!IsFloating(array.dtype())) {
      Throw(ErrorKind::kConfig, "array {} cannot be attached: only floating types have gradients",
            Describe(array));
    }
    gradients_.push_back(
        NDArray::Zeros(array.runtime(), array.shape(), array.dtype(), array.ctx(), array.layout()));
    attachments_.push_back(State::Of(array.runtime()).Attach(array, gradients_.back(), req));
  }
}

Variables::~Variables() = default;
Variables::Variables(Variables&&) noexcept = default;
Variables& Variables::operator=(Variables&&) noexcept = default;

NDArray GradientOf(const NDArray& array) {
  if (array.empty()) Throw(ErrorKind::kConfig, "GradientOf: the array is empty");
  for (const auto& variable : State::Of(array.runtime()).AttachedTo(array.var())) {
    if (variable->array.SameView(array)) return variable->gradient;
  }
  Throw(ErrorKind::kConfig, "GradientOf: the array {} is not attached; give it to Variables",
        Describe(array));
}

Recording::Recording() : outer_(SetCallListener(&Recorder::OfThisThread())) {
  Recorder::OfThisThread().Enter();
}

Recording::~Recording() {
  Recorder::OfThisThread().Leave();
  SetCallListener(outer_);
}

Pause::Pause() : outer_(SetCallListener(nullptr)) {}

Pause::~Pause() {
  SetCallListener(outer_);
}

void Backward(const std::vector<NDArray>& heads, const std::vector<NDArray>& head_gradients,
              bool retain) {
  CheckHeads(heads, head_gradients);
  const Pause pause;
  Recorder& recorder = Recorder::OfThisThread();
  const std::shared_ptr<Tape> tape = recorder.tape();
  std::vector<Value> values;
  for (size_t i = 0; i < heads.size(); ++i) {
    const bool foreign = &heads[i].runtime() != &tape->runtime();
    values.push_back(foreign ? Value() : tape->ResultIn(heads[i]));
    if (values.back()) continue;
    Throw(ErrorKind::kConfig,
          "Backward: head {}, {}, is not a recorded result: it depends on no attached array, was "
          "computed outside of the Recording, or has been overwritten",
          i, Describe(heads[i]));
  }
  tape->state().programs().Run(*tape, values, heads, head_gradients);
  if (!retain) recorder.ReleaseTape();
}

BackwardCounts CountsOf(Runtime& runtime) {
  return State::Of(runtime).programs().counts();
}

}  // namespace mxtrain::autograd

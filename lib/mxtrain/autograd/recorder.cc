// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/autograd/internal/recorder.h"

#include <algorithm>

#include "mxtrain/base/error.h"

namespace mxtrain::autograd {
namespace {

// A call has at least one array.
Runtime& RuntimeOf(const InvokedCall& call) {
  const auto& first = !call.in.empty() ? call.in : !call.out.empty() ? call.out : call.aux;
  return first.front().runtime();
}

bool TouchesAttached(const InvokedCall& call, const State& state) {
  const auto attached = [&state](const NDArray& array) {
    return !state.AttachedTo(array.var()).empty();
  };
  return std::any_of(call.in.begin(), call.in.end(), attached) ||
         std::any_of(call.out.begin(), call.out.end(), attached) ||
         std::any_of(call.aux.begin(), call.aux.end(), attached);
}

}  // namespace

Recorder& Recorder::OfThisThread() {
  thread_local Recorder recorder;
  return recorder;
}

// At the end of the thread, when other state of the thread is gone: nothing is pushed.
Recorder::~Recorder() {
  if (const std::shared_ptr<Tape> tape = tape_.lock()) tape->state().Abandon(*tape);
}

void Recorder::Enter() {
  if (depth_++ > 0) return;
  ReleaseTape();
  spent_ = false;
}

void Recorder::ReleaseTape() {
  if (const std::shared_ptr<Tape> tape = tape_.lock()) tape->state().Release(*tape);
  tape_.reset();
  spent_ = true;
}

std::shared_ptr<Tape> Recorder::tape() const {
  if (std::shared_ptr<Tape> tape = tape_.lock()) return tape;
  if (spent_) {
    Throw(ErrorKind::kUsage,
          "Backward: the Backward before has released the recording; pass retain = true to it, or "
          "record again");
  }
  Throw(ErrorKind::kUsage,
        "Backward: this thread has recorded no call that depends on an attached array; attach "
        "arrays with autograd::Variables, then compute the heads during an autograd::Recording");
}

bool Recorder::BeforeCall(const InvokedCall& call) {
  Runtime& runtime = RuntimeOf(call);
  std::shared_ptr<Tape> tape = tape_.lock();
  if (!tape || &tape->runtime() != &runtime) {
    State& state = State::Of(runtime);
    if (!TouchesAttached(call, state)) return false;
    if (tape) {
      Throw(ErrorKind::kUsage,
            "{} got an attached array of another Runtime than the calls before it in the "
            "Recording; use one Recording for each",
            call.op);
    }
    tape = state.NewTape();
    tape_ = tape;
  }
  return tape->BeforeCall(call);
}

std::optional<CallDraws> Recorder::DrawsOf(const InvokedCall& call) {
  const std::shared_ptr<Tape> tape = tape_.lock();
  return tape && &tape->runtime() == &RuntimeOf(call) ? tape->DrawsOf(call) : std::nullopt;
}

void Recorder::AfterCall(const InvokedCall& call) {
  const std::shared_ptr<Tape> tape = tape_.lock();
  if (tape && &tape->runtime() == &RuntimeOf(call)) tape->AfterCall(call);
}

}  // namespace mxtrain::autograd

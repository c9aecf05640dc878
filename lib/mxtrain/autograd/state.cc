// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/autograd/internal/state.h"

#include <utility>

#include "mxtrain/autograd/internal/tape.h"
#include "mxtrain/base/error.h"

namespace mxtrain::autograd {

std::string Describe(const NDArray& array) {
  return format("'{}' ({} {})", array.who(), NameOf(array.dtype()), array.shape().ToString());
}

State& State::Of(Runtime& runtime) {
  return *std::static_pointer_cast<State>(
      runtime.Extension("autograd", [&runtime] { return std::make_shared<State>(runtime); }));
}

std::shared_ptr<const void> State::Attach(const NDArray& array, const NDArray& gradient,
                                          GradReq req) {
  std::shared_ptr<Variable> variable;
  {
    const MutexLock lock(mutex_);
    const auto found = attached_.find(array.var());
    if (found != attached_.end()) {
      for (const std::shared_ptr<Variable>& other : found->second) {
        if (!other->array.Overlaps(array) && !other->array.SameView(array)) continue;
        Throw(ErrorKind::kConfig, "array {} overlaps array {}, which is already attached",
              Describe(array), Describe(other->array));
      }
    }
    variable = std::make_shared<Variable>(next_id_++, array, gradient, req);
    attached_[array.var()].push_back(variable);
  }
  return {variable.get(), [this, variable](const void*) { Detach(*variable); }};
}

void State::Detach(Variable& variable) {
  variable.attached = false;
  {
    const MutexLock lock(mutex_);
    const auto found = attached_.find(variable.array.var());
    std::erase_if(found->second, [&](const auto& other) { return other.get() == &variable; });
    if (found->second.empty()) attached_.erase(found);
  }
  programs_.Forget(variable.id);
}

std::vector<std::shared_ptr<Variable>> State::AttachedTo(engine::VarHandle var) const {
  const MutexLock lock(mutex_);
  const auto found = attached_.find(var);
  return found == attached_.end() ? std::vector<std::shared_ptr<Variable>>() : found->second;
}

std::shared_ptr<Tape> State::NewTape() {
  auto tape = std::make_shared<Tape>(*this);
  std::vector<std::shared_ptr<Tape>> released;  // frees their arrays after the lock
  const MutexLock lock(mutex_);
  released.swap(abandoned_);
  tapes_.emplace(tape.get(), tape);
  return tape;
}

void State::Abandon(const Tape& tape) {
  const MutexLock lock(mutex_);
  const auto found = tapes_.find(&tape);
  if (found == tapes_.end()) return;
  abandoned_.push_back(std::move(found->second));
  tapes_.erase(found);
}

void State::Release(const Tape& tape) {
  std::shared_ptr<Tape> released;  // frees its arrays after the lock
  const MutexLock lock(mutex_);
  const auto found = tapes_.find(&tape);
  if (found == tapes_.end()) return;
  released = std::move(found->second);
  tapes_.erase(found);
}

}  // namespace mxtrain::autograd

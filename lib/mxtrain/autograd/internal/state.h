// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a Runtime keeps for autograd: attached arrays, the tapes of threads, bound programs. Private
// to this module; thread-safe.
#include <atomic>
#include <memory>
#include <unordered_map>
#include <vector>

#include "mxtrain/autograd/internal/programs.h"
#include "mxtrain/base/mutex.h"

namespace mxtrain::autograd {

class Tape;

// An attached array.
struct Variable {
  Variable(int64_t number, NDArray of, NDArray grad, GradReq grad_req)
      : id(number), array(std::move(of)), gradient(std::move(grad)), req(grad_req) {}

  const int64_t id;  // unique in the Runtime
  const NDArray array, gradient;
  const GradReq req;
  std::atomic<bool> attached = true;
};

class State {
 public:
  explicit State(Runtime& runtime) : runtime_(runtime), programs_(runtime) {}
  static State& Of(Runtime& runtime);

  // The array is detached when the last copy of the result is gone.
  std::shared_ptr<const void> Attach(const NDArray& array, const NDArray& gradient, GradReq req);
  // Attached parts of an allocation.
  std::vector<std::shared_ptr<Variable>> AttachedTo(engine::VarHandle var) const;

  // Owned here, so that no tape outlives the Runtime.
  std::shared_ptr<Tape> NewTape();
  void Release(const Tape& tape);
  // Released when the next tape begins, or with the Runtime.
  void Abandon(const Tape& tape);

  Runtime& runtime() const { return runtime_; }
  Programs& programs() { return programs_; }

 private:
  void Detach(Variable& variable);

  Runtime& runtime_;
  Programs programs_;
  mutable Mutex mutex_;
  int64_t next_id_ MXTRAIN_GUARDED_BY(mutex_) = 0;
  std::unordered_map<engine::VarHandle, std::vector<std::shared_ptr<Variable>>> attached_
      MXTRAIN_GUARDED_BY(mutex_);
  std::unordered_map<const Tape*, std::shared_ptr<Tape>> tapes_ MXTRAIN_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<Tape>> abandoned_ MXTRAIN_GUARDED_BY(mutex_);
};

// "'weight' (float32 [2, 3])".
std::string Describe(const NDArray& array);

}  // namespace mxtrain::autograd

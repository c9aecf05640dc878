// SPDX-License-Identifier: Apache-2.0
#pragma once
// Writes the calls of one thread to its tape, which begins with the first call that touches an
// attached array. Private to this module.
#include <memory>

#include "mxtrain/autograd/internal/tape.h"

namespace mxtrain::autograd {

class Recorder final : public CallListener {
 public:
  static Recorder& OfThisThread();
  ~Recorder() override;

  // Of a Recording.
  void Enter();
  void Leave() { --depth_; }
  bool recording() const { return depth_ > 0; }

  // Throws kUsage if there is none.
  std::shared_ptr<Tape> tape() const;
  void ReleaseTape();

  bool BeforeCall(const InvokedCall& call) override;
  std::optional<CallDraws> DrawsOf(const InvokedCall& call) override;
  void AfterCall(const InvokedCall& call) override;

 private:
  int depth_ = 0;  // of Recordings
  std::weak_ptr<Tape> tape_;
  bool spent_ = false;  // a Backward released the tape
};

}  // namespace mxtrain::autograd

// SPDX-License-Identifier: Apache-2.0
#pragma once
// Gradients of imperative programs, whose loops and branches may depend on data.
//
//   NDArray w = ..., loss;
//   autograd::Variables variables({w});
//   {
//     autograd::Recording recording;
//     NDArray h = x;
//     while (Unfinished(h)) h = h * w + x;
//     loss = h * h;
//   }
//   autograd::Backward({loss});
//   w -= autograd::GradientOf(w) * 0.1;
//
// While a Recording lives, the calls of Invoke and InvokeInto of its thread, hence also the
// arithmetic of arrays, are written to a tape if they depend on an attached array. Backward turns
// the part of the tape that leads from attached arrays to the heads into a Symbol and an Executor,
// which runs forward again and then backward: gradients, fusion and memory plan are those of the
// same net as a symbol.
//
// What is recorded. Calls of operators. Slice and Reshape of an attached array or of a recorded
// result are followed. Everything else that writes arrays (Copy, CopyFrom, ToPlain, ToLayout, Fill,
// CopyFromHost, an Executor, a call under a Pause) is not: what it writes is a constant, as if it
// had passed BlockGrad. Invoke("_copy") copies with the gradient.
//
// Arrays that are overwritten. Forward runs again, so arrays that a recorded call read and none
// made must keep their elements until Backward. Calls of operators in the Recording may
// overwrite them, as `sum += loss` does: the tape copies them first. After any other write Backward
// throws kUsage, with the array; so does a recorded call that would write an attached array. A
// write is known by the version of the engine's variable, which all views of an allocation share: a
// write to another view of it counts too, unless it is a call in the Recording. What bypasses the
// engine (writes through NDArray::data()) is not seen.
//
// Training mode. The calls of a Recording are in training mode, as those of an executor that
// trains: Dropout drops, BatchNorm takes the statistics of the batch. Under a Pause, and outside,
// calls are in evaluation mode. Backward's forward pass draws the random numbers of the recorded
// calls again, so they must not be seeded in between (kUsage). Auxiliary states (moving averages)
// change in each Backward that leads through a call, as in a step of an executor, and not in the
// recorded call. There are no gradients of gradients.
//
// Cost. An executor is bound once per structure (operators, parameters, shapes, types, wiring) and
// found again by it; each Runtime keeps the kMostPrograms most recently used, in one arena per
// device. A number that changes from step to step belongs in an array: as a parameter (`h *
// 0.37`) it is part of the structure. The tape keeps every array of a recorded call until it is
// released: by a Backward without `retain`, by the thread's next outermost Recording, or at the
// Runtime's end; that of a thread that has ended, when another tape begins. What was made on a
// released tape is a constant from then on.
//
// Threads. Each has its own tape: a Recording, a Pause and a Backward belong to the thread that
// created the first, and to one Runtime. Several threads may record at once, with common variables
// too; their gradients are written in the order of the calls of Backward. Recorded calls push and
// return. So does Backward, unless it binds a new structure that needs a larger arena: that waits
// for what uses the arena. Errors of their work are thrown by the next wait on a gradient.
#include <cstdint>
#include <memory>
#include <vector>

#include "mxtrain/executor/passes.h"
#include "mxtrain/ndarray/ndarray.h"

namespace mxtrain {

class CallListener;

namespace autograd {

using executor::GradReq;

// Executors that a Runtime keeps for Backward.
inline constexpr int kMostPrograms = 64;

// Attaches arrays: Backward computes their gradients. The gradients are new arrays of the same
// shape, type, layout and device, and zero until the first Backward that reaches them; kWrite
// overwrites them, kAdd adds. The end of the object detaches the arrays and frees what Backward
// keeps for them. It must not outlive the Runtime.
class MXTRAIN_API Variables {
 public:
  // Throws kConfig for an array that is empty, not of a floating type or overlaps an attached one,
  // and for kNull; kUsage during a Recording of this thread.
  explicit Variables(std::vector<NDArray> arrays, GradReq req = GradReq::kWrite);
  ~Variables();
  Variables(Variables&&) noexcept;
  Variables& operator=(Variables&&) noexcept;

  const std::vector<NDArray>& arrays() const { return arrays_; }
  const std::vector<NDArray>& gradients() const { return gradients_; }  // in that order

 private:
  std::vector<NDArray> arrays_, gradients_;
  std::vector<std::shared_ptr<const void>> attachments_;
};

// The gradient of an attached array, given any handle of the same elements. Throws kConfig if it is
// not attached.
MXTRAIN_API NDArray GradientOf(const NDArray& array);

// Records the calls of this thread while it lives. The outermost one starts a new tape; one inside
// another, or inside its Pause, continues its tape. Ends on the thread and in the order of a local
// variable.
class MXTRAIN_API Recording {
 public:
  Recording();
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

 private:
  CallListener* const outer_;
};

// Nothing is recorded on this thread while it lives: what is computed meanwhile is a constant.
class MXTRAIN_API Pause {
 public:
  Pause();
  ~Pause();
  Pause(const Pause&) = delete;
  Pause& operator=(const Pause&) = delete;

 private:
  CallListener* const outer_;
};

// Gives d(heads)/d(array), weighted with the head gradients and summed over the heads, to every
// attached array that a head depends on; other gradients stay. `head_gradients`: none, or one per
// head; an empty array stands for ones. Losses (SoftmaxOutput, MakeLoss) read none. With `retain`
// the tape can serve another Backward. Throws kUsage if there is no tape, and for an array that was
// overwritten or detached since; kConfig for a head that is no recorded result, on another device
// than the rest, or with an unfit head gradient. The tape is then kept.
MXTRAIN_API void Backward(const std::vector<NDArray>& heads,
                          const std::vector<NDArray>& head_gradients = {}, bool retain = false);

// How often Backward bound an executor, and how often it found one, in this Runtime.
struct BackwardCounts {
  int64_t bound = 0, reused = 0;
};
MXTRAIN_API BackwardCounts CountsOf(Runtime& runtime);

}  // namespace autograd
}  // namespace mxtrain

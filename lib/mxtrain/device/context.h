// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where a function runs and an array lives. Every build knows every device name; its Backend
// rejects what a build cannot do and says how to get it.
#include <compare>
#include <memory>
#include <string>
#include <string_view>

#include "mxtrain/base/macros.h"

namespace mxtrain {

enum class DeviceType : int { kCPU = 1, kGPU = 2, kCPUPinned = 3 };

struct MXTRAIN_API Context {
  DeviceType type = DeviceType::kCPU;
  int id = 0;

  static Context cpu(int id = 0) { return {DeviceType::kCPU, id}; }
  static Context gpu(int id = 0) { return {DeviceType::kGPU, id}; }
  static Context cpu_pinned(int id = 0) { return {DeviceType::kCPUPinned, id}; }

  std::string ToString() const;                 // "cpu(0)", "gpu(1)"
  static Context Parse(std::string_view text);  // "cpu", "gpu", "gpu:1", "gpu(1)"; throws kUsage
  auto operator<=>(const Context&) const = default;
};

// A point in the work of a stream, set by Stream::Record. May be recorded again once no thread
// waits for it.
class MXTRAIN_API Event {
 public:
  virtual ~Event() = default;
  // Blocks the calling thread until the work before the point is done. Throws kDevice if the device
  // failed, before or at this point.
  virtual void Wait() = 0;
};

// Work captured from a stream for repeated launches (Stream::BeginCapture).
class MXTRAIN_API CapturedGraph {
 public:
  virtual ~CapturedGraph() = default;  // work launched before is still done
};

// An ordered queue of a device and its library handles. Work is *issued* when the call returns, and
// *done* later. One thread issues work, the worker that owns the stream; the functions below may be
// called from any thread. The CPU has no streams: its functions are done when they return.
class MXTRAIN_API Stream {
 public:
  virtual ~Stream() = default;  // waits for all issued work
  virtual std::unique_ptr<Event> NewEvent() = 0;
  // Records the event after all work issued so far.
  virtual void Record(Event& event) = 0;
  // Work issued from now on starts when the work before the event, which is on another stream of
  // the same backend, is done. Does not block.
  virtual void WaitFor(const Event& event) = 0;

  // Work issued from here to EndCapture is captured, not executed. Work that cannot be captured
  // fails or makes the captured graph null. Returns false if this stream cannot capture. All on the
  // issuing thread.
  virtual bool BeginCapture() { return false; }
  virtual std::unique_ptr<CapturedGraph> EndCapture() { return nullptr; }
  // Launches the captured graph, with the addresses and numbers at capture time.
  virtual void Replay(CapturedGraph& recording) { (void)recording; }

  // The handle of the device's own library, for kernels that know it: CUDA's cudaStream_t. Null if
  // there is none.
  virtual void* native() const { return nullptr; }
};

// What the engine decides for a running function.
struct RunContext {
  Context ctx;
  Stream* stream = nullptr;  // of the worker; null on the CPU
};

}  // namespace mxtrain

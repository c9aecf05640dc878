#pragma once
// Where a function runs and an array lives. Every build knows every device name; what a build cannot do is refused by its Backend with the
// way to get it.
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

// A point in the work of a stream, set by Stream::Record. May be recorded again once nobody waits for it.
class MXTRAIN_API Event {
 public:
  virtual ~Event() = default;
  // Blocks the calling thread until the work before the point is done. Throws kDevice when the device has failed, before or there.
  virtual void Wait() = 0;
};

// Work that was given to a stream and kept, to be given again (Stream::BeginCapture).
class MXTRAIN_API CapturedGraph {
 public:
  virtual ~CapturedGraph() = default;  // what was given before is done all the same
};

// An ordered queue of a device, with the library handles that hang on it. What is given to a stream is *issued* when the call that gave it
// returns, and *done* later. Work is given by one thread, that of the worker that owns the stream; the functions below may be called from any.
// The CPU has no streams: its functions are done when they return.
class MXTRAIN_API Stream {
 public:
  virtual ~Stream() = default;  // waits for all that was issued
  virtual std::unique_ptr<Event> NewEvent() = 0;
  // Sets the event behind all that was issued so far.
  virtual void Record(Event& event) = 0;
  // What is issued from now on begins when the work before the event, of another stream of the same backend, is done. Does not block.
  virtual void WaitFor(const Event& event) = 0;

  // What is given to the stream from here to EndCapture is kept and not done; what cannot be kept fails, or makes the recording null. False:
  // this stream keeps nothing. All on the thread that gives work.
  virtual bool BeginCapture() { return false; }
  virtual std::unique_ptr<CapturedGraph> EndCapture() { return nullptr; }
  // Gives what was kept, with the addresses and numbers of that time.
  virtual void Replay(CapturedGraph& recording) { (void)recording; }
};

// What the engine decides for a running function.
struct RunContext {
  Context ctx;
  Stream* stream = nullptr;  // of the worker; null on the CPU
};

}  // namespace mxtrain

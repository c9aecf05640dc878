#pragma once
// Where a function runs and an array lives. Every build knows every device name; what a build cannot do is refused by its Backend with the
// way to get it.
#include <compare>
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

// An ordered queue of a device, with the library handles that hang on it. The CPU's has none; it carries the size of its OpenMP team.
class MXTRAIN_API Stream {
 public:
  virtual ~Stream() = default;
};

// What the engine decides for a running function.
struct RunContext {
  Context ctx;
  Stream* stream = nullptr;
};

}  // namespace mxtrain

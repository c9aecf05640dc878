// SPDX-License-Identifier: Apache-2.0
#pragma once
// The library never prints: messages go to a sink that the program sets. Thread-safe.
#include <functional>
#include <string>
#include <string_view>

#include "mxtrain/base/format.h"
#include "mxtrain/base/macros.h"

namespace mxtrain {

enum class LogLevel : int { kDebug, kInfo, kWarning, kError };
using LogSink = std::function<void(LogLevel, std::string_view message)>;

// The program creates a logger and passes it down (Runtime carries it); a default one discards
// messages.
class MXTRAIN_API Logger {
 public:
  Logger() = default;
  explicit Logger(LogSink sink) : sink_(std::move(sink)) {}

  template <typename... Args>
  void Info(fmt::format_string<Args...> text, Args&&... args) const {
    Write(LogLevel::kInfo, text, std::forward<Args>(args)...);
  }
  template <typename... Args>
  void Warning(fmt::format_string<Args...> text, Args&&... args) const {
    Write(LogLevel::kWarning, text, std::forward<Args>(args)...);
  }
  template <typename... Args>
  void Debug(fmt::format_string<Args...> text, Args&&... args) const {
    Write(LogLevel::kDebug, text, std::forward<Args>(args)...);
  }

 private:
  template <typename... Args>
  void Write(LogLevel level, fmt::format_string<Args...> text, Args&&... args) const {
    if (sink_) sink_(level, fmt::format(text, std::forward<Args>(args)...));
  }
  LogSink sink_;
};

}  // namespace mxtrain

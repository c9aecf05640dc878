// SPDX-License-Identifier: Apache-2.0
#pragma once
// Log messages. The library never prints: without a Log, messages are discarded. The program
// creates one Log, gives it sinks and passes it down (Runtime carries it); each module writes to
// its own Logger, and has its own level if need be. Behind it stands spdlog, which only log.cc
// includes. All functions are thread-safe.
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "mxtrain/base/format.h"
#include "mxtrain/base/macros.h"

namespace mxtrain {

enum class LogLevel : int { kDebug, kInfo, kWarning, kError, kOff };

// The least level that is logged: one for all modules, and others for single modules.
struct MXTRAIN_API LogLevels {
  LogLevel level = LogLevel::kInfo;
  std::map<std::string, LogLevel, std::less<>> modules;

  // "debug", "engine=debug", or "warning,engine=debug,io=info"; levels are debug, info, warning,
  // error and off. Throws kUsage with the nearest valid word.
  static LogLevels Parse(const std::string& text);
  LogLevel Of(std::string_view module) const;
};

// The modules that log; "program" is the program itself.
MXTRAIN_API std::span<const std::string> LogModules();

// Writes the messages of one module. Cheap to copy; may outlive its Log, whose sinks it keeps.
class MXTRAIN_API Logger {
 public:
  Logger() = default;  // discards
  bool Enabled(LogLevel level) const;
  void Write(LogLevel level, std::string_view text) const;

  template <typename... Args>
  void Debug(fmt::format_string<Args...> text, Args&&... args) const {
    WriteFormatted(LogLevel::kDebug, text, std::forward<Args>(args)...);
  }
  template <typename... Args>
  void Info(fmt::format_string<Args...> text, Args&&... args) const {
    WriteFormatted(LogLevel::kInfo, text, std::forward<Args>(args)...);
  }
  template <typename... Args>
  void Warning(fmt::format_string<Args...> text, Args&&... args) const {
    WriteFormatted(LogLevel::kWarning, text, std::forward<Args>(args)...);
  }
  template <typename... Args>
  void Error(fmt::format_string<Args...> text, Args&&... args) const {
    WriteFormatted(LogLevel::kError, text, std::forward<Args>(args)...);
  }

 private:
  friend class Log;
  struct Channel;
  explicit Logger(std::shared_ptr<const Channel> channel) : channel_(std::move(channel)) {}

  // Messages below the level cost a comparison; they are not formatted.
  template <typename... Args>
  void WriteFormatted(LogLevel level, fmt::format_string<Args...> text, Args&&... args) const {
    if (Enabled(level)) Write(level, fmt::format(text, std::forward<Args>(args)...));
  }
  std::shared_ptr<const Channel> channel_;
};

struct LogMessage {
  LogLevel level;
  std::string_view module, text;
};
// Called for one message at a time. It must neither log nor throw.
using LogSink = std::function<void(const LogMessage&)>;

struct LogOptions {
  LogLevels levels;
  // Applied to each text before the sinks see it; for example, to escape control characters.
  std::function<std::string(std::string_view)> rewrite;
  // The last messages before the first OpenFile that are also written to that file.
  size_t early_messages = 0;
};

struct LogFileOptions {
  // A file that would grow beyond this is renamed first; 0: never.
  int64_t max_bytes = int64_t{16} << 20;
  // Renamed files that are kept, at least 1: run.1.log is the newest, run.3.log the oldest.
  int kept = 3;
};

class MXTRAIN_API Log {
 public:
  explicit Log(LogOptions options = {});
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  // `module` as in LogModules.
  Logger For(std::string_view module);
  // Messages from `least` on are passed to the sink. Call it before the first message.
  void AddSink(LogSink sink, LogLevel least = LogLevel::kDebug);
  // Appends messages to a file, each a line with time, level and module; closes the previous file.
  // An error message is on disk when the call returns. The file is opened as FileAppender does;
  // throws its error. If writing fails later, the file is closed and the other sinks get a warning.
  void OpenFile(const std::string& path, const LogFileOptions& options = {});
  void CloseFile();

  // The name of renamed file `number`: "runs/1/mxtrain.2.log".
  static std::string RotatedName(const std::string& path, int number);

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace mxtrain

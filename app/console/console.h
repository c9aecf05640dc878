// SPDX-License-Identifier: Apache-2.0
#pragma once
// Messages and progress on stderr; results go to stdout elsewhere. Colour and a progress bar only
// on a terminal, otherwise whole lines. Owns the log, one of whose sinks it is. Thread-safe.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/console/progress_text.h"
#include "mxtrain/base/log.h"
#include "mxtrain/base/mutex.h"
#include "mxtrain/train/events.h"

namespace mxtrain::console {

enum class Choice { kAuto, kAlways, kNever };
enum class Progress { kAuto, kBar, kLines, kNone };

struct ConsoleOptions {
  // Auto: on a terminal, unless NO_COLOR is set; FORCE_COLOR counts as always.
  Choice color = Choice::kAuto;
  Progress progress = Progress::kAuto;  // auto: a bar on a terminal, lines elsewhere
  bool quiet = false;                   // on stderr warnings and errors only
  // Of a process of a distributed run other than the first: on stderr only errors, after this text.
  std::string follower;
  LogLevels levels;                                // of stderr and the log file
  int64_t log_bytes = LogFileOptions().max_bytes;  // size at which a log file is rotated; 0: never
};

class Console {
 public:
  explicit Console(const ConsoleOptions& options);
  ~Console();
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  // Logs a message of the program itself.
  void Message(LogLevel level, std::string_view text) { program_.Write(level, text); }
  const Logger& logger() const { return program_; }  // of such messages
  // For the library's messages.
  const std::shared_ptr<Log>& log() const { return log_; }
  // The status line at the bottom of a terminal; messages are written above it. "" removes it.
  void ShowBar(const std::string& text);
  bool bar() const { return progress_ == Progress::kBar; }
  bool lines() const { return progress_ == Progress::kLines; }
  int width() const;  // columns: COLUMNS, else of the terminal, else 80
  // All messages are also written to this file, which is rotated as it grows. "" closes it. If it
  // cannot be written, a warning says so and the program continues without it.
  void LogTo(const std::string& path);
  // Counts the warnings and repeats each distinct one; does nothing in quiet mode, which shows
  // little else.
  void RepeatWarnings();
  // The distinct ones so far, in order.
  std::vector<std::string> Warnings();
  // From here on a warning that was shown is not shown again.
  void ShowWarningsOnce();

 private:
  void Show(const LogMessage& message);  // the sink of the log
  void Write(const std::string& line) MXTRAIN_REQUIRES(mutex_);

  bool color_ = false;
  Progress progress_ = Progress::kLines;
  const bool quiet_;
  const std::string follower_;
  const int64_t log_bytes_;
  const std::shared_ptr<Log> log_;
  const Logger program_;
  Mutex mutex_;
  std::string bar_ MXTRAIN_GUARDED_BY(mutex_);
  std::vector<std::string> warnings_ MXTRAIN_GUARDED_BY(mutex_);  // distinct ones, in order
  int warning_count_ MXTRAIN_GUARDED_BY(mutex_) = 0;
  bool once_ MXTRAIN_GUARDED_BY(mutex_) = false;  // ShowWarningsOnce
};

// Progress of a run on the console.
class ConsoleListener final : public TrainListener {
 public:
  // `examples`: what rates count, "images".
  ConsoleListener(Console& console, std::string examples)
      : console_(console), examples_(std::move(examples)) {}
  void OnStart(const RunStart& start) override;
  void OnStep(const StepEvent& step) override;
  void OnValidation(const ValidationEvent& validation) override;
  void OnEpoch(const EpochEvent& epoch) override;
  void OnSave(const SaveEvent& save) override;
  void OnWarning(const std::string& text) override;

 private:
  using Clock = std::chrono::steady_clock;
  // The status line; without a bar a line within seconds, or after 1 % of the run, then every 30 s.
  void Report(double done, const std::vector<std::string>& parts);

  Console& console_;
  const std::string examples_;
  int64_t trained_ = 0;                    // examples of an epoch
  std::optional<EpochLines> epoch_lines_;  // from the start of the run
  Clock::time_point last_line_;            // without a bar; at first the start of the run
  bool any_line_ = false;
};

}  // namespace mxtrain::console

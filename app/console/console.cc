// SPDX-License-Identifier: Apache-2.0
#include "app/console/console.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <span>

#include "app/report/output.h"
#include "app/report/process_memory.h"
#include "app/report/text_width.h"
#include "mxtrain/base/error.h"

namespace mxtrain::console {
namespace {

bool IsTerminal() {
  const char* term = std::getenv("TERM");
  return isatty(STDERR_FILENO) != 0 && !(term && std::strcmp(term, "dumb") == 0);
}

bool IsSet(const char* variable) {
  const char* value = std::getenv(variable);
  return value && *value;
}

// A bar, if there is room for more than that, and as many of the parts as fit.
std::string BarOfWidth(double done, std::span<const std::string> parts, size_t width) {
  constexpr size_t kBarWidth = 16, kLeastWithBar = 70;
  const auto filled = static_cast<size_t>(std::clamp(done, 0.0, 1.0) * kBarWidth);
  std::string text;
  if (width >= kLeastWithBar)
    text = format("[{}{}] ", std::string(filled, '='), std::string(kBarWidth - filled, ' '));
  for (const std::string& part : parts) {
    const std::string gap = &part == parts.data() ? "" : "  ";
    if (text.size() + gap.size() + part.size() > width) break;
    text += gap + part;
  }
  return text;
}

// Of a run before its folder exists: more than any start has at level debug.
constexpr size_t kEarlyMessages = 4096;

}  // namespace

Console::Console(const ConsoleOptions& options)
    : quiet_(options.quiet || !options.follower.empty()),
      follower_(options.follower),
      log_bytes_(options.log_bytes),
      log_(std::make_shared<Log>(LogOptions{options.levels, report::MessageText, kEarlyMessages})),
      program_(log_->For("program")) {
  const bool terminal = IsTerminal();
  const bool wanted = IsSet("FORCE_COLOR") || (terminal && !IsSet("NO_COLOR"));
  color_ = options.color == Choice::kAlways || (options.color == Choice::kAuto && wanted);
  progress_ = options.progress != Progress::kAuto ? options.progress
              : terminal                          ? Progress::kBar
                                                  : Progress::kLines;
  if (quiet_) progress_ = Progress::kNone;
  log_->AddSink([this](const LogMessage& message) { Show(message); }, !follower_.empty()
                                                                          ? LogLevel::kError
                                                                      : quiet_ ? LogLevel::kWarning
                                                                               : LogLevel::kDebug);
}

Console::~Console() {
  ShowBar("");
  LogTo("");
}

void Console::Write(const std::string& line) {
  std::string text = bar_.empty() ? "" : "\r\x1b[K";
  text += line + "\n" + bar_;
  std::fputs(text.c_str(), stderr);
  std::fflush(stderr);
}

void Console::Show(const LogMessage& message) {
  static constexpr const char* kWords[] = {"debug: ", "", "warning: ", "error: "};
  static constexpr const char* kColors[] = {"\x1b[2m", "", "\x1b[33m", "\x1b[31m"};
  const MutexLock lock(mutex_);
  const auto [level, module, text] = message;
  const int k = static_cast<int>(level);
  if (level == LogLevel::kWarning) {
    ++warning_count_;
    if (std::find(warnings_.begin(), warnings_.end(), text) == warnings_.end()) {
      warnings_.emplace_back(text);
    } else if (once_) {
      return;
    }
  }
  const bool paint = color_ && *kColors[k];
  const std::string from = level == LogLevel::kDebug ? format("{}: ", module) : follower_;
  Write(
      format("{}{}{}{}{}", paint ? kColors[k] : "", kWords[k], paint ? "\x1b[0m" : "", from, text));
}

void Console::ShowBar(const std::string& text) {
  const MutexLock lock(mutex_);
  if (progress_ != Progress::kBar || (text.empty() && bar_.empty())) return;
  bar_ = text.substr(0, static_cast<size_t>(std::max(width() - 1, 0)));
  std::fputs(("\r\x1b[K" + bar_).c_str(), stderr);
  std::fflush(stderr);
}

int Console::width() const {
  return static_cast<int>(report::ColumnsOf(STDERR_FILENO).value_or(report::kUsualColumns));
}

void Console::LogTo(const std::string& path) {
  if (path.empty()) return log_->CloseFile();
  try {
    log_->OpenFile(path, {.max_bytes = log_bytes_});
  } catch (const Error& e) {
    Message(LogLevel::kWarning, format("no log is written: {}", e.what()));
  }
}

void Console::RepeatWarnings() {
  const MutexLock lock(mutex_);
  if (warning_count_ == 0 || quiet_) return;
  Write(Counted(warning_count_, "warning") + ":");
  for (const std::string& text : warnings_) Write("  " + text);
}

void Console::ShowWarningsOnce() {
  const MutexLock lock(mutex_);
  once_ = true;
}

std::vector<std::string> Console::Warnings() {
  const MutexLock lock(mutex_);
  return warnings_;
}

void ConsoleListener::OnStart(const RunStart& s) {
  auto say = [this](const std::string& text) { console_.Message(LogLevel::kInfo, text); };
  say(format("data: {} training examples, {} for validation; {} steps per epoch, {} in total",
             s.train_examples, s.val_examples, s.steps_per_epoch, s.total_steps));
  say(format(
      "net: {} parameters{}", s.parameters,
      s.learning_parameters < s.parameters ? format(", {} trainable", s.learning_parameters) : ""));
  say(format("memory: parameters {}, gradients {}, optimizer {},{} activations and workspaces {}",
             FormatBytes(s.parameter_bytes), FormatBytes(s.gradient_bytes),
             FormatBytes(s.optimizer_bytes),
             s.average_bytes > 0 ? format(" averages {},", FormatBytes(s.average_bytes)) : "",
             FormatBytes(s.arena_bytes)));
  say(format("gradient scale: {} (factor of the gradients in an update: {})",
             report::FormatNumber(s.rescale_grad), s.rescale_reason));
  if (s.first_step > 0) say(format("resuming after step {}", s.first_step));
  trained_ = s.train_examples;
  epoch_lines_.emplace(s.train_examples, s.val_examples);
  last_line_ = Clock::now();
}

void ConsoleListener::OnStep(const StepEvent& e) {
  Report(static_cast<double>(e.step) / static_cast<double>(std::max<int64_t>(e.total_steps, 1)),
         PartsOf(e, examples_, trained_));
}

void ConsoleListener::OnValidation(const ValidationEvent& e) {
  Report(e.done, PartsOf(e, examples_));
}

void ConsoleListener::Report(double done, const std::vector<std::string>& parts) {
  if (console_.bar()) {
    console_.ShowBar(
        BarOfWidth(done, parts, static_cast<size_t>(std::max(console_.width() - 1, 0))));
    return;
  }
  constexpr double kFirstSeconds = 2, kLineSeconds = 30;
  const double seconds = std::chrono::duration<double>(Clock::now() - last_line_).count();
  const bool due = any_line_ ? seconds >= kLineSeconds : done >= 0.01 || seconds >= kFirstSeconds;
  if (!console_.lines() || !due) return;
  any_line_ = true;
  last_line_ = Clock::now();
  console_.Message(LogLevel::kInfo, format("{}", join(parts, "  ")));
}

void ConsoleListener::OnEpoch(const EpochEvent& e) {
  for (const std::string& line : epoch_lines_->Of(e)) console_.Message(LogLevel::kInfo, line);
}

void ConsoleListener::OnSave(const SaveEvent& e) {
  console_.Message(LogLevel::kDebug,
                   format("saved {} after step {} in {:.3f} s", e.file, e.step, e.seconds));
}

void ConsoleListener::OnWarning(const std::string& text) {
  console_.Message(LogLevel::kWarning, text);
}

}  // namespace mxtrain::console

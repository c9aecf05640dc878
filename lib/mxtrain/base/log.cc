// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/base/log.h"

#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/dist_sink.h>
#include <spdlog/sinks/ringbuffer_sink.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/mutex.h"
#include "mxtrain/base/suggest.h"

namespace mxtrain {
namespace {

constexpr const char* kPattern = "%Y-%m-%d %H:%M:%S.%e%z %l %n: %v";

const std::array<std::string, 5> kLevelNames = {"debug", "info", "warning", "error", "off"};

spdlog::level::level_enum ToSpdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
    case LogLevel::kOff:
      break;
  }
  return spdlog::level::off;
}

LogLevel FromSpdlog(spdlog::level::level_enum level) {
  if (level <= spdlog::level::debug) return LogLevel::kDebug;
  if (level == spdlog::level::info) return LogLevel::kInfo;
  return level == spdlog::level::warn ? LogLevel::kWarning : LogLevel::kError;
}

std::string_view ViewOf(spdlog::string_view_t text) {
  return {text.data(), text.size()};
}

// The sinks below are only called by a DistributingSink, under its lock.
using UnlockedSink = spdlog::sinks::base_sink<spdlog::details::null_mutex>;
using EarlySink = spdlog::sinks::ringbuffer_sink<std::mutex>;
using DistributingSink = spdlog::sinks::dist_sink<std::mutex>;

class FunctionSink final : public UnlockedSink {
 public:
  explicit FunctionSink(LogSink function) : function_(std::move(function)) {}

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    function_({FromSpdlog(message.level), ViewOf(message.logger_name), ViewOf(message.payload)});
  }
  void flush_() override {}
  const LogSink function_;
};

// spdlog's own file sinks follow symbolic links; FileAppender does not.
class FileSink final : public UnlockedSink {
 public:
  // `fails` is told why the log ends.
  FileSink(std::string path, const LogFileOptions& options,
           std::function<void(const std::string&)> fails)
      : path_(std::move(path)), options_(options), fails_(std::move(fails)), file_(path_) {
    set_pattern(kPattern);
  }

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    if (!file_) return;
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    OrEnd([&] {
      const auto size = static_cast<int64_t>(line.size());
      if (options_.max_bytes > 0 && file_->size() > 0 && file_->size() + size > options_.max_bytes)
        Rotate();
      file_->Append({line.data(), line.size()});
    });
  }

  void flush_() override {
    if (file_) OrEnd([&] { file_->Sync(); });
  }

  void Rotate() {
    file_.reset();
    for (int number = options_.kept; number >= 1; --number) {
      const std::string from = number == 1 ? path_ : Log::RotatedName(path_, number - 1);
      if (std::filesystem::is_regular_file(std::filesystem::symlink_status(from)))
        RenameFile(from, Log::RotatedName(path_, number));
    }
    file_.emplace(path_, FileAppender::Begin::kNew);
  }

  template <typename Step>
  void OrEnd(const Step& step) {
    try {
      step();
    } catch (const std::exception& e) {
      file_.reset();
      fails_(e.what());
    }
  }

  const std::string path_;
  const LogFileOptions options_;
  const std::function<void(const std::string&)> fails_;
  std::optional<FileAppender> file_;
};

}  // namespace

struct Logger::Channel {
  std::shared_ptr<spdlog::logger> logger;
  std::function<std::string(std::string_view)> rewrite;
};

bool Logger::Enabled(LogLevel level) const {
  return channel_ && channel_->logger->should_log(ToSpdlog(level));
}

void Logger::Write(LogLevel level, std::string_view text) const {
  if (!Enabled(level)) return;
  const std::string rewritten = channel_->rewrite ? channel_->rewrite(text) : std::string(text);
  channel_->logger->log(ToSpdlog(level), spdlog::string_view_t(rewritten));
}

std::span<const std::string> LogModules() {
  static const std::array<std::string, 8> modules = {"engine",  "executor", "io",    "kvstore",
                                                     "ndarray", "storage",  "train", "program"};
  return modules;
}

LogLevels LogLevels::Parse(const std::string& text) {
  LogLevels levels;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string part = text.substr(begin, end - begin);
    begin = end + 1;
    const size_t equals = part.find('=');
    const std::string word = equals == std::string::npos ? part : part.substr(equals + 1);
    const auto found = std::find(kLevelNames.begin(), kLevelNames.end(), word);
    if (found == kLevelNames.end()) {
      Throw(ErrorKind::kUsage, "log level '{}': '{}' is not one of {}{}", text, word,
            join(kLevelNames, ", "), DidYouMean(word, kLevelNames));
    }
    const auto level = static_cast<LogLevel>(found - kLevelNames.begin());
    if (equals == std::string::npos) {
      levels.level = level;
      continue;
    }
    const std::string module = part.substr(0, equals);
    const std::span<const std::string> modules = LogModules();
    if (std::find(modules.begin(), modules.end(), module) == modules.end()) {
      Throw(ErrorKind::kUsage, "log level '{}': there is no log module '{}'; modules are {}{}",
            text, module, join(modules, ", "), DidYouMean(module, modules));
    }
    levels.modules[module] = level;
  }
  return levels;
}

LogLevel LogLevels::Of(std::string_view module) const {
  const auto found = modules.find(module);
  return found == modules.end() ? level : found->second;
}

struct Log::Impl {
  LogOptions options;
  std::shared_ptr<DistributingSink> sinks = std::make_shared<DistributingSink>();

  Mutex mutex;
  std::map<std::string, std::shared_ptr<const Logger::Channel>, std::less<>> channels
      MXTRAIN_GUARDED_BY(mutex);
  std::shared_ptr<FileSink> file MXTRAIN_GUARDED_BY(mutex);
  std::shared_ptr<EarlySink> early MXTRAIN_GUARDED_BY(mutex);  // until the first file
  // Shared with the file sink, which may outlive the Log.
  std::shared_ptr<std::vector<LogSink>> functions = std::make_shared<std::vector<LogSink>>();
};

Log::Log(LogOptions options) : impl_(std::make_unique<Impl>()) {
  impl_->options = std::move(options);
  if (impl_->options.early_messages == 0) return;
  impl_->early = std::make_shared<EarlySink>(impl_->options.early_messages);
  impl_->sinks->add_sink(impl_->early);
}

Log::~Log() {
  CloseFile();
}

Logger Log::For(std::string_view module) {
  const MutexLock lock(impl_->mutex);
  auto found = impl_->channels.find(module);
  if (found == impl_->channels.end()) {
    auto logger = std::make_shared<spdlog::logger>(std::string(module), impl_->sinks);
    logger->set_level(ToSpdlog(impl_->options.levels.Of(module)));
    logger->flush_on(spdlog::level::err);
    // By default spdlog prints what a sink throws; ours report themselves.
    logger->set_error_handler([](const std::string&) {});
    auto channel = std::make_shared<const Logger::Channel>(
        Logger::Channel{std::move(logger), impl_->options.rewrite});
    found = impl_->channels.emplace(std::string(module), std::move(channel)).first;
  }
  return Logger(found->second);
}

void Log::AddSink(LogSink sink, LogLevel least) {
  const MutexLock lock(impl_->mutex);
  auto added = std::make_shared<FunctionSink>(sink);
  added->set_level(ToSpdlog(least));
  impl_->functions->push_back(std::move(sink));
  impl_->sinks->add_sink(std::move(added));
}

void Log::OpenFile(const std::string& path, const LogFileOptions& options) {
  CloseFile();
  const MutexLock lock(impl_->mutex);
  impl_->file = std::make_shared<FileSink>(
      path, options, [functions = impl_->functions](const std::string& why) {
        const std::string text = format("the log stops here: {}", why);
        for (const LogSink& function : *functions) function({LogLevel::kWarning, "program", text});
      });
  if (impl_->early) {
    impl_->sinks->remove_sink(impl_->early);
    for (const auto& message : impl_->early->last_raw()) impl_->file->log(message);
    impl_->early.reset();
  }
  impl_->sinks->add_sink(impl_->file);
}

void Log::CloseFile() {
  const MutexLock lock(impl_->mutex);
  if (impl_->file) impl_->sinks->remove_sink(impl_->file);
  impl_->file.reset();
}

std::string Log::RotatedName(const std::string& path, int number) {
  std::filesystem::path name(path);
  const std::string extension = name.extension().string();
  return name.replace_extension("." + std::to_string(number) + extension).string();
}

}  // namespace mxtrain

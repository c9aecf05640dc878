// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/base/log.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <regex>
#include <thread>
#include <vector>

#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "tests/support/temp_dir.h"

namespace mxtrain {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> LinesOf(const std::string& path) {
  std::vector<std::string> lines;
  const std::string text = ReadFile(path);
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

std::string ParseError(const std::string& text) {
  try {
    LogLevels::Parse(text);
  } catch (const Error& e) {
    CHECK(e.kind() == ErrorKind::kUsage);
    return e.what();
  }
  return "";
}

TEST_CASE("levels: one for all modules, others for single ones") {
  const LogLevels plain = LogLevels::Parse("debug");
  CHECK(plain.Of("io") == LogLevel::kDebug);
  const LogLevels mixed = LogLevels::Parse("warning,engine=debug,io=off");
  CHECK(mixed.Of("train") == LogLevel::kWarning);
  CHECK(mixed.Of("engine") == LogLevel::kDebug);
  CHECK(mixed.Of("io") == LogLevel::kOff);
  CHECK(LogLevels::Parse("io=error").Of("train") == LogLevel::kInfo);
  CHECK(ParseError("inof").find("did you mean 'info'") != std::string::npos);
  CHECK(ParseError("enigne=debug").find("did you mean 'engine'") != std::string::npos);
  CHECK(ParseError("") != "");
  CHECK(ParseError("info,") != "");
  CHECK(ParseError("engine=") != "");
}

TEST_CASE("a message reaches the sinks from its module's level on") {
  std::vector<std::string> all, warnings;
  Log log({.levels = LogLevels::Parse("info,io=debug,train=error"),
           .rewrite = {},
           .early_messages = 0});
  log.AddSink([&](const LogMessage& m) { all.push_back(format("{}: {}", m.module, m.text)); });
  log.AddSink([&](const LogMessage& m) { warnings.emplace_back(m.text); }, LogLevel::kWarning);
  const Logger engine = log.For("engine"), io = log.For("io"), train = log.For("train");
  engine.Debug("no");
  engine.Info("starts with {} threads", 4);
  io.Debug("reads");
  train.Warning("no");
  train.Error("ends");
  io.Warning("slow");
  CHECK(all == std::vector<std::string>{"engine: starts with 4 threads", "io: reads", "train: ends",
                                        "io: slow"});
  CHECK(warnings == std::vector<std::string>{"ends", "slow"});
  CHECK(io.Enabled(LogLevel::kDebug));
  CHECK_FALSE(engine.Enabled(LogLevel::kDebug));
  CHECK_FALSE(Logger().Enabled(LogLevel::kError));
  Logger().Error("goes nowhere");
}

TEST_CASE("the rewriting comes before every sink, and braces are no format") {
  const test::TempDir dir;
  std::string said;
  Log log({.levels = {},
           .rewrite =
               [](std::string_view text) {
                 return text == "{}\x1b" ? std::string("{}\\x1b") : std::string(text);
               },
           .early_messages = 0});
  log.AddSink([&](const LogMessage& m) { said = m.text; });
  log.OpenFile(dir.path("x.log"));
  log.For("io").Write(LogLevel::kInfo, "{}\x1b");
  CHECK(said == "{}\\x1b");
  const std::vector<std::string> lines = LinesOf(dir.path("x.log"));
  REQUIRE(lines.size() == 1);
  const std::regex form(R"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d info io: \{\}\\x1b)");
  CHECK_MESSAGE(std::regex_match(lines[0], form), lines[0]);
}

TEST_CASE("a file is continued, and renamed before it grows beyond its limit") {
  const test::TempDir dir;
  const std::string path = dir.path("x.log");
  CHECK(Log::RotatedName(path, 2) == dir.path("x.2.log"));
  constexpr int kMessages = 100;
  {
    Log log;
    log.OpenFile(path, {.max_bytes = 300, .kept = 2});
    for (int i = 0; i < kMessages / 2; ++i) log.For("io").Info("message {:03}", i);
  }
  Log log;
  log.OpenFile(path, {.max_bytes = 300, .kept = 2});
  for (int i = kMessages / 2; i < kMessages; ++i) log.For("io").Info("message {:03}", i);
  // The last messages, in order and without a gap.
  std::vector<std::string> lines;
  for (const std::string& name : {dir.path("x.2.log"), dir.path("x.1.log"), path}) {
    CHECK(fs::file_size(name) <= 300);
    for (const std::string& line : LinesOf(name)) lines.push_back(line.substr(line.size() - 3));
  }
  CHECK_FALSE(fs::exists(dir.path("x.3.log")));
  REQUIRE(lines.size() >= 10);
  for (size_t i = 0; i < lines.size(); ++i)
    CHECK(std::stoi(lines[i]) == kMessages - static_cast<int>(lines.size() - i));
}

TEST_CASE("a log that cannot go on ends with a warning, and a link is never written through") {
  const test::TempDir dir;
  dir.Write("target", "kept");
  fs::create_symlink(dir.path("target"), dir.path("x.log"));
  Log log;
  std::vector<std::string> said;
  log.AddSink([&](const LogMessage& m) { said.emplace_back(m.text); });
  CHECK_THROWS_AS(log.OpenFile(dir.path("x.log")), Error);
  fs::remove(dir.path("x.log"));
  log.OpenFile(dir.path("x.log"), {.max_bytes = 1, .kept = 1});
  dir.MakeFolder("x.1.log/occupied");  // no name to rename the file to
  log.For("io").Info("first");
  log.For("io").Info("second");
  log.For("io").Info("third");
  CHECK(ReadFile(dir.path("target")) == "kept");
  REQUIRE(said.size() == 4);
  CHECK(said[2].starts_with("the log stops here: cannot rename "));
  CHECK(said[3] == "third");
}

TEST_CASE("messages from before the file is opened are its first ones, the last of them") {
  const test::TempDir dir;
  Log log({.levels = {}, .rewrite = {}, .early_messages = 2});
  for (int i = 0; i < 4; ++i) log.For("io").Info("early {}", i);
  log.OpenFile(dir.path("x.log"));
  log.For("io").Info("late");
  log.OpenFile(dir.path("y.log"));
  const std::vector<std::string> lines = LinesOf(dir.path("x.log"));
  REQUIRE(lines.size() == 3);
  CHECK(lines[0].ends_with("early 2"));
  CHECK(lines[1].ends_with("early 3"));
  CHECK(lines[2].ends_with("late"));
  CHECK(LinesOf(dir.path("y.log")).empty());
}

TEST_CASE("threads write whole lines") {
  const test::TempDir dir;
  constexpr int kThreads = 4, kEach = 200;
  {
    Log log;
    log.OpenFile(dir.path("x.log"), {.max_bytes = 4096, .kept = 100});
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&log, t] {
        for (int i = 0; i < kEach; ++i) log.For(t % 2 ? "io" : "engine").Info("{} {} end", t, i);
      });
    }
  }
  int lines = 0;
  for (const auto& entry : fs::directory_iterator(dir.path())) {
    for (const std::string& line : LinesOf(entry.path().string())) {
      CHECK(line.ends_with(" end"));
      ++lines;
    }
  }
  CHECK(lines == kThreads * kEach);
}

}  // namespace
}  // namespace mxtrain

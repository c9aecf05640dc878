// SPDX-License-Identifier: Apache-2.0
// The trace: valid JSON in Chrome's format, one track per worker and lane, nothing outside the
// traced time.
#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/json.h"
#include "mxtrain/engine/engine.h"

namespace mxtrain::engine {
namespace {

int64_t NowInNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::string TracePath(const std::string& name) {
  return (std::filesystem::temp_directory_path() / ("mxtrain_" + name + ".json")).string();
}

Json StopAndRead(Engine& engine, const std::string& path) {
  engine.StopProfile(path);
  Json trace = Json::parse(ReadFile(path));
  std::filesystem::remove(path);
  return trace.at("traceEvents");
}

// Spans by name, each with the name of its track.
struct Span {
  std::string row;
  double begin_us = 0, end_us = 0;
  int priority = 0;
};

std::map<std::string, Span> SpansOf(const Json& events) {
  std::map<int, std::string> rows;
  std::map<std::string, Span> spans;
  for (const Json& event : events) {
    if (event.at("ph") == "M" && event.at("name") == "thread_name")
      rows[event.at("tid")] = event.at("args").at("name");
  }
  for (const Json& event : events) {
    if (event.at("ph") != "X") continue;
    const double begin = event.at("ts");
    spans[event.at("name")] = {rows.at(event.at("tid")), begin,
                               begin + event.at("dur").get<double>(),
                               event.at("args").at("priority")};
  }
  return spans;
}

}  // namespace

TEST_CASE("a trace shows what ran, where, when and with which priority") {
  for (const char* type : {"naive", "threaded"}) {
    EngineOptions options;
    options.type = type;
    auto engine = Create(std::move(options));
    VarHandle var = engine->NewVar();
    const std::vector<VarHandle> vars{var};
    engine->PushSync([](RunContext) {}, {}, vars, {.name = "before"});
    engine->WaitForAll();
    engine->StartProfile();
    const auto nap = [](RunContext) { std::this_thread::sleep_for(std::chrono::milliseconds(2)); };
    engine->PushSync(nap, {}, vars,
                     {.property = FnProperty::kIO, .priority = 7, .name = "read \"x\"\n"});
    engine->PushSync(nap, {}, vars, {.name = "conv"});
    const int64_t now = NowInNs();
    engine->ProfileSpan("decode 0", "image", now, now + 5000);
    engine->ProfileSpan("decode 0", "long ago", 0, 5000);
    const std::string path = TracePath(std::string("trace_") + type);
    const std::map<std::string, Span> spans = SpansOf(StopAndRead(*engine, path));
    CHECK(spans.size() == 3);
    const bool naive = std::string(type) == "naive";
    CHECK(spans.at("read \"x\"\n").row == (naive ? "caller" : "cpu io 0"));
    CHECK(spans.at("read \"x\"\n").priority == 7);
    CHECK(spans.at("conv").row == (naive ? "caller" : "cpu compute 0"));
    CHECK(spans.at("conv").begin_us >= spans.at("read \"x\"\n").end_us);
    CHECK(spans.at("conv").end_us - spans.at("conv").begin_us >= 2000);
    CHECK(spans.at("image").row == "decode 0");
    CHECK(spans.at("image").end_us - spans.at("image").begin_us ==
          doctest::Approx(5).epsilon(0.01));
  }
}

TEST_CASE("an asynchronous function is traced from its start to its callback") {
  auto engine = Create();
  engine->StartProfile();
  std::thread outside;
  engine->PushAsync(
      [&](RunContext, Callback callback) {
        outside = std::thread([callback = std::move(callback)]() mutable {
          std::this_thread::sleep_for(std::chrono::milliseconds(2));
          callback();
        });
      },
      {}, {}, {.name = "batch"});
  engine->WaitForAll();
  outside.join();
  double begin = -1, end = -1;
  for (const Json& event : StopAndRead(*engine, TracePath("trace_async"))) {
    if (event.at("ph") == "b" && event.at("name") == "batch") begin = event.at("ts");
    if (event.at("ph") == "e" && event.at("name") == "batch") end = event.at("ts");
  }
  CHECK(begin >= 0);
  CHECK(end - begin >= 2000);
}

TEST_CASE("a counter has the value and the time of each call") {
  for (const char* type : {"naive", "threaded"}) {
    EngineOptions options;
    options.type = type;
    auto engine = Create(std::move(options));
    engine->ProfileCounter("bytes", 1);  // no trace is running
    engine->StartProfile();
    engine->ProfileCounter("bytes", 2);
    engine->ProfileCounter("bytes", int64_t{1} << 40);
    std::vector<int64_t> values;
    double last = 0;
    for (const Json& event : StopAndRead(*engine, TracePath(std::string("counter_") + type))) {
      if (event.at("ph") != "C") continue;
      CHECK(event.at("name") == "bytes");
      CHECK(event.at("ts").get<double>() >= last);
      last = event.at("ts");
      values.push_back(event.at("args").at("value"));
    }
    CHECK(values == std::vector<int64_t>{2, int64_t{1} << 40});
    for (const Json& event : StopAndRead(*engine, TracePath(std::string("counter_again_") + type)))
      CHECK(event.at("ph") != "C");  // they were of the trace before
  }
}

TEST_CASE("a trace that cannot be written says so") {
  auto engine = Create();
  engine->StartProfile();
  try {
    engine->StopProfile("/nonexistent/folder/trace.json");
    FAIL("nothing was thrown");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kFileSystem);
  }
}

}  // namespace mxtrain::engine

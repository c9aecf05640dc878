// SPDX-License-Identifier: Apache-2.0
// Resources of calls on arrays: random numbers, and temporary space from the pool.
#include <doctest/doctest.h>

#include <future>
#include <map>

#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/json.h"
#include "mxtrain/operator/kernel.h"
#include "mxtrain/operator/simple_op.h"
#include "tests/support/imperative_calls.h"
#include "tests/support/temp_dir.h"
#include "tests/support/vectors.h"

namespace mxtrain {
namespace {

using test::Floats;
using test::FloatVector;
using test::One;

// y = x through scratch; negative elements are an error.
void ByScratch(const TBlob& src, const EnvArguments& env, TBlob* ret, OpReqType req, RunContext) {
  float* scratch = env.resource[0].GetSpace<float>(src.Size());
  std::copy_n(src.dptr<float>(), src.Size(), scratch);
  for (int64_t i = 0; i < src.Size(); ++i) {
    if (scratch[i] < 0) Throw(ErrorKind::kData, "element {} is negative", i);
    Assign(req, ret->dptr<float>(), i, scratch[i]);
  }
}

// y = x by two spaces of unknown size at once.
void ByTwoSpaces(const TBlob& src, const EnvArguments& env, TBlob* ret, OpReqType req, RunContext) {
  const int64_t n = src.Size();
  float* a = env.resource[0].GetSpace<float>(n);
  float* b = env.resource[1].GetSpace<float>(2 * n);
  for (int64_t i = 0; i < n; ++i) a[i] = src.dptr<float>()[i];
  for (int64_t i = 0; i < 2 * n; ++i) b[i] = -1;
  for (int64_t i = 0; i < n; ++i) Assign(req, ret->dptr<float>(), i, a[i]);
}

int64_t BytesOfInput(const std::vector<TShape>& in, const EnvArguments&) {
  return in[0].Size() * static_cast<int64_t>(sizeof(float));
}

std::unique_ptr<Runtime> ScratchRuntime(const std::string& engine, uint64_t seed = 5) {
  auto registry = BuiltinOperators();
  SimpleOp(*registry, "by_scratch")
      .set_function(DeviceType::kCPU, ByScratch, kNoInplace)
      .set_resource_request(ResourceRequest::kTempSpace, BytesOfInput);
  SimpleOp(*registry, "by_unsized")
      .set_function(DeviceType::kCPU, ByScratch, kNoInplace)
      .set_resource_request(ResourceRequest::kTempSpace);
  SimpleOp(*registry, "by_two_spaces")
      .set_function(DeviceType::kCPU, ByTwoSpaces, kNoInplace)
      .set_resource_request(ResourceRequest::kTempSpace)
      .set_resource_request(ResourceRequest::kTempSpace);
  RuntimeOptions options;
  options.engine = engine;
  options.threads = 1;
  options.seed = seed;
  return std::make_unique<Runtime>(options, registry);
}

FloatVector Draw(Runtime& runtime) {
  const NDArray out(runtime, {6});
  InvokeInto("uniform", {}, {&out, 1});
  return out.ToVector();
}

TEST_CASE("a seed repeats the draws of calls, and a saved state continues them") {
  for (const char* engine : {"naive", "threaded"}) {
    CAPTURE(engine);
    const auto runtime = ScratchRuntime(engine);
    const FloatVector first = Draw(*runtime), second = Draw(*runtime);
    const RandomState saved = runtime->resources().State();
    const FloatVector third = Draw(*runtime);
    CHECK(first != second);
    runtime->resources().Seed(5);
    CHECK(Draw(*runtime) == first);
    CHECK(Draw(*runtime) == second);
    runtime->resources().Seed(6);
    const FloatVector other = Draw(*runtime);
    CHECK(other != first);
    CHECK(other == Draw(*ScratchRuntime(engine, 6)));
    runtime->resources().Restore(saved);
    CHECK(Draw(*runtime) == third);
    CHECK(runtime->resources().GetStats(Context::cpu()).random_runs == 7);
  }
}

TEST_CASE("calls share a pool that grows to the largest of them") {
  for (const char* engine : {"naive", "threaded"}) {
    for (const char* op : {"by_scratch", "by_unsized"}) {
      CAPTURE(engine);
      CAPTURE(op);
      const auto runtime = ScratchRuntime(engine);
      for (const int64_t n : {64, 1024, 16}) {
        const FloatVector values(static_cast<size_t>(n), 3);
        CHECK(One(op, {Floats(*runtime, values)}).ToVector() == values);
      }
      const ResourceStats stats = runtime->resources().GetStats(Context::cpu());
      CHECK(stats.spaces.size() == 1);
      CHECK(stats.bytes == 4096);
      CHECK(stats.peak == 4096);
      CHECK(stats.taken == 3);
      CHECK(stats.growths == 2);
    }
  }
}

TEST_CASE("two requests of unknown size are two spaces") {
  const auto runtime = ScratchRuntime("threaded");
  CHECK(One("by_two_spaces", {Floats(*runtime, {1, 2, 3})}).ToVector() == FloatVector{1, 2, 3});
  CHECK(runtime->resources().GetStats(Context::cpu()).spaces.size() == 2);
  CHECK(runtime->resources().GetStats(Context::cpu()).bytes == 12 + 24);
}

TEST_CASE("calls that share temporary space share nothing else: neither errors nor their order") {
  const auto runtime = ScratchRuntime("threaded");
  const NDArray bad = One("by_scratch", {Floats(*runtime, {1, -1})});
  const NDArray good = One("by_scratch", {Floats(*runtime, {4, 5})});
  CHECK(good.ToVector() == FloatVector{4, 5});
  CHECK_THROWS_WITH_AS(bad.WaitToRead(), "by_scratch: element 1 is negative", Error);

  // A call that cannot run yet does not keep a later one from running.
  const NDArray late = Floats(*runtime, {7});
  std::promise<void> gate;
  const engine::VarHandle writes[] = {late.var()};
  runtime->engine().PushSync([opened = gate.get_future().share()](RunContext) { opened.wait(); },
                             {}, writes, {.property = engine::FnProperty::kIO, .name = "gate"});
  const NDArray waiting = One("by_scratch", {late});
  CHECK(One("by_scratch", {Floats(*runtime, {8})}).ToVector() == FloatVector{8});
  gate.set_value();
  CHECK(waiting.ToVector() == FloatVector{7});
}

TEST_CASE("a trace shows what the resources count") {
  const auto runtime = ScratchRuntime("threaded");
  runtime->engine().StartProfile();
  One("by_scratch", {Floats(*runtime, {1, 2})}).WaitToRead();
  Draw(*runtime);
  runtime->ProfileResources();
  const test::TempDir dir;
  runtime->engine().StopProfile(dir.path("trace.json"));
  const Json trace = Json::parse(ReadFile(dir.path("trace.json")));
  std::map<std::string, int64_t> counters;
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("ph") == "C") counters[event.at("name")] = event.at("args").at("value");
  }
  CHECK(counters == std::map<std::string, int64_t>{
                        {"cpu(0) temporary space, bytes", 64},
                        {"cpu(0) temporary space, peak bytes", 64},
                        {"cpu(0) temporary space, times taken", 1},
                        {"cpu(0) temporary space, times grown", 1},
                        {"cpu(0) runs of operators that request random numbers", 1},
                    });
}

}  // namespace
}  // namespace mxtrain

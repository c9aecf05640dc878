// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <chrono>
#include <future>
#include <set>

#include "mxtrain/base/mutex.h"
#include "mxtrain/engine/engine.h"

namespace mxtrain::engine {
namespace {

TEST_CASE("logical CPU devices compute at once, on workers of their own") {
  Mutex mutex;
  std::vector<Context> started;
  EngineOptions options;
  options.on_worker_start = [&](Context ctx, FnProperty property) {
    MutexLock lock(mutex);
    if (property == FnProperty::kNormal) started.push_back(ctx);
  };
  const auto engine = Create(std::move(options));
  std::promise<void> here[2];
  std::future<void> other[2] = {here[1].get_future(), here[0].get_future()};
  bool met[2] = {};
  for (const int id : {0, 1}) {
    engine->PushSync(
        [&, id](RunContext ctx) {
          CHECK(ctx.ctx == Context::cpu(id));
          here[id].set_value();
          met[id] = other[id].wait_for(std::chrono::seconds(20)) == std::future_status::ready;
        },
        {}, {}, {.ctx = Context::cpu(id)});
  }
  engine->WaitForAll();
  CHECK(met[0]);
  CHECK(met[1]);
  engine->PushSync([](RunContext) {}, {}, {}, {.ctx = Context::cpu(1)});         // the same worker
  engine->PushSync([](RunContext) {}, {}, {}, {.ctx = Context::cpu_pinned(1)});  // the host's
  engine->WaitForAll();
  MutexLock lock(mutex);
  CHECK(started.size() == 2);
  CHECK(std::set<Context>(started.begin(), started.end()) ==
        std::set<Context>{Context::cpu(0), Context::cpu(1)});
}

}  // namespace
}  // namespace mxtrain::engine

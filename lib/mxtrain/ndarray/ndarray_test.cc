// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/ndarray/ndarray.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <new>
#include <numeric>
#include <thread>

#include "mxtrain/base/error.h"
#include "mxtrain/device/blocked_layout.h"
#include "tests/support/allocation_count.h"

namespace mxtrain {
namespace {

const Context kCpu = Context::cpu();

RuntimeOptions With(const std::string& engine) {
  RuntimeOptions options;
  options.engine = engine;
  options.threads = 2;
  return options;
}

std::vector<float> Iota(int64_t n) {
  std::vector<float> values(static_cast<size_t>(n));
  std::iota(values.begin(), values.end(), 1.0f);
  return values;
}

Layout Blocked(Runtime& runtime, const char* name) {
  return runtime.backend(kCpu).Intern(BlockedLayout::FromName(name));
}

// Runs a test under both engines.
template <typename F>
void OnBothEngines(F&& f) {
  for (const char* engine : {"naive", "threaded"}) {
    CAPTURE(engine);
    Runtime runtime(With(engine), nullptr);
    f(runtime);
  }
}

TEST_CASE("host values go in and come out") {
  OnBothEngines([](Runtime& runtime) {
    const NDArray a = NDArray::FromVector(runtime, {2, 3}, Iota(6));
    CHECK(a.ToVector() == Iota(6));
    CHECK(a.shape() == TShape{2, 3});
    CHECK(a.ctx() == kCpu);
    CHECK(NDArray::Zeros(runtime, {3}).ToVector() == std::vector<float>(3));
    CHECK_THROWS_WITH_AS(NDArray::FromVector(runtime, {2, 3}, Iota(5)),
                         "5 values for an array of shape [2, 3]", Error);
    float one;
    CHECK_THROWS_AS(a.CopyToHost(&one, 4), Error);
  });
}

TEST_CASE("slices and reshapes share the bytes") {
  OnBothEngines([](Runtime& runtime) {
    const NDArray a = NDArray::FromVector(runtime, {4, 3}, Iota(12));
    NDArray middle = a.Slice(1, 3);
    CHECK(middle.shape() == TShape{2, 3});
    CHECK(middle.SharesMemory(a));
    CHECK(middle.ToVector() == std::vector<float>{4, 5, 6, 7, 8, 9});
    middle.Slice(1, 2).Fill(0);
    CHECK(a.ToVector() == std::vector<float>{1, 2, 3, 4, 5, 6, 0, 0, 0, 10, 11, 12});
    CHECK(a.Reshape({2, 6}).Slice(1, 2).Reshape({2, 3}).ToVector() ==
          std::vector<float>{0, 0, 0, 10, 11, 12});
    CHECK(a.Slice(4, 4).shape() == TShape{0, 3});
    CHECK(a.Slice(4, 4).ToVector().empty());
    for (auto [begin, end] : {std::pair{-1, 2}, {3, 2}, {0, 5}})
      CHECK_THROWS_AS(a.Slice(begin, end), Error);
    CHECK_THROWS_WITH_AS(
        a.Reshape({5, 2}),
        "Reshape of array 'array' from [4, 3] to [5, 2]: the numbers of elements differ", Error);
    CHECK_THROWS_AS(a.Reshape({-1, 12}), Error);
  });
}

TEST_CASE("overlapping parts of one array copy like memmove") {
  OnBothEngines([](Runtime& runtime) {
    const NDArray a = NDArray::FromVector(runtime, {5}, Iota(5));
    a.Slice(1, 5).CopyFrom(a.Slice(0, 4));
    CHECK(a.ToVector() == std::vector<float>{1, 1, 2, 3, 4});
  });
}

TEST_CASE("layouts: conversion there and back, padding zero, views rejected") {
  OnBothEngines([](Runtime& runtime) {
    const TShape shape = {2, 11, 3, 5};
    const NDArray plain = NDArray::FromVector(runtime, shape, Iota(shape.Size()));
    const Layout layout = Blocked(runtime, "aBcd8b");
    NDArray blocked = plain.ToLayout(layout);
    CHECK(blocked.layout() == layout);
    CHECK(blocked.ToVector() == Iota(shape.Size()));
    CHECK(blocked.ToPlain().ToVector() == Iota(shape.Size()));
    CHECK(blocked.ToLayout(Blocked(runtime, "aBcd16b")).ToVector() == Iota(shape.Size()));
    CHECK(plain.ToPlain().SharesMemory(plain));
    CHECK(blocked.Copy(kCpu).layout() == layout);

    auto stored_sum = [](const NDArray& array) {
      array.WaitToRead();
      const TBlob blob = array.data();
      return std::accumulate(blob.dptr<float>(), blob.dptr<float>() + blob.StoredSize(), 0.0);
    };
    blocked.Fill(2);
    CHECK(blocked.data().StoredSize() == 2 * 16 * 15);
    CHECK(stored_sum(blocked) == 2.0 * static_cast<double>(shape.Size()));
    CHECK(blocked.ToVector() == std::vector<float>(static_cast<size_t>(shape.Size()), 2.0f));
    blocked.CopyFromHost(Iota(shape.Size()).data(), shape.Size() * 4);
    CHECK(blocked.ToVector() == Iota(shape.Size()));
    {
      NDArray dirty(runtime, {2 * 16 * 15});  // the next array gets these bytes
      dirty.Fill(9);
      dirty.WaitToRead();
    }
    runtime.engine().WaitForAll();
    CHECK(stored_sum(NDArray(runtime, shape, DType::kFloat32, kCpu, layout)) == 0);

    CHECK_THROWS_WITH_AS(blocked.Slice(0, 1),
                         "Slice of array 'array': its layout is aBcd8b; call ToPlain() first",
                         Error);
    CHECK_THROWS_WITH_AS(blocked.Reshape({330}),
                         "Reshape of array 'array': its layout is aBcd8b; call ToPlain() first",
                         Error);
  });
}

TEST_CASE("every element type is filled, copied and read") {
  OnBothEngines([](Runtime& runtime) {
    for (DType type : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBfloat16,
                       DType::kUint8, DType::kInt32, DType::kInt64}) {
      CAPTURE(NameOf(type));
      NDArray a(runtime, {2, 9, 2, 1}, type);
      a.Fill(3);
      CHECK(a.ToLayout(Blocked(runtime, "aBcd8b")).Copy(kCpu).ToVector() ==
            std::vector<float>(36, 3.0f));
      CHECK(a.data().StoredSize() == 36);
    }
    NDArray bytes(runtime, {1}, DType::kUint8), wide(runtime, {1}, DType::kInt64);
    bytes.Fill(255);
    CHECK(bytes.ToVector()[0] == 255);
    for (double value : {-1.0, 256.0, double(NAN)}) CHECK_THROWS_AS(bytes.Fill(value), Error);
    wide.Fill(-0x1p63);
    CHECK(wide.ToVector()[0] == -0x1p63f);
    CHECK_THROWS_WITH_AS(wide.Fill(0x1p63), "9.223372036854776e+18 is not a value of int64", Error);
  });
}

TEST_CASE("arrays without elements and scalars are arrays") {
  OnBothEngines([](Runtime& runtime) {
    NDArray none(runtime, {3, 0, 2});
    none.Fill(1);
    CHECK(none.data().data == nullptr);
    CHECK(none.ToVector().empty());
    CHECK(none.Copy(kCpu).shape() == TShape{3, 0, 2});
    CHECK(none.Reshape({0}).ToVector().empty());
    NDArray padded(runtime, {1, 0, 2, 2}, DType::kFloat32, kCpu, Blocked(runtime, "aBcd8b"));
    padded.Fill(1);
    CHECK(padded.ToVector().empty());
    NDArray scalar(runtime, TShape::Parse("()"));
    scalar.Fill(7);
    CHECK(scalar.ToVector() == std::vector<float>{7});
    CHECK(scalar.Reshape({1, 1}).ToVector() == std::vector<float>{7});
  });
}

TEST_CASE("copies check shape and type") {
  Runtime runtime(With("naive"), nullptr);
  NDArray a(runtime, {2, 3}, DType::kFloat32, kCpu, {}, "a");
  const NDArray b = NDArray(runtime, {3, 2}, DType::kFloat32, kCpu, {}, "b");
  CHECK_THROWS_WITH_AS(
      a.CopyFrom(b),
      "copy from 'b' (float32 [3, 2]) to 'a' (float32 [2, 3]): shape and type must agree", Error);
  CHECK_THROWS_AS(a.CopyFrom(NDArray(runtime, {2, 3}, DType::kInt32)), Error);
}

TEST_CASE("copies between logical devices and pinned memory") {
  OnBothEngines([](Runtime& runtime) {
    const NDArray a = NDArray::FromVector(runtime, {6}, Iota(6), Context::cpu(1));
    CHECK(a.Copy(Context::cpu_pinned()).Copy(kCpu).ToVector() == Iota(6));
    CHECK(a.Copy(Context::cpu_pinned()).ctx() == Context::cpu_pinned());
    const NDArray blocked =
        NDArray::FromVector(runtime, {1, 6, 1, 1}, Iota(6)).ToLayout(Blocked(runtime, "aBcd8b"));
    for (const Context host : {Context::cpu(1), Context::cpu_pinned()}) {
      CHECK(blocked.Copy(host).layout() == blocked.layout());
      CHECK(blocked.Copy(host).ToVector() == Iota(6));
    }
  });
}

TEST_CASE("misuse says what to do") {
  Runtime runtime(With("threaded"), nullptr);
  CHECK_THROWS_WITH_AS(NDArray().var(), "an empty NDArray was used; give it a shape first", Error);
  CHECK_THROWS_AS(NDArray(runtime, {2, -1}), Error);
  CHECK_THROWS_AS(NDArray(runtime, {2}, DType::kUnknown), Error);
  if (Backend& gpu = runtime.backend(Context::gpu()); gpu.DeviceCount() == 0) {
    try {
      const NDArray impossible(runtime, {2}, DType::kFloat32, Context::gpu());
      FAIL("an array was made on a device that does not exist");
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::kDevice);
      CHECK(std::string(error.what()) == "gpu(0) is not available: " + gpu.WhyAbsent());
    }
  }
}

TEST_CASE("views of one array: the same, overlapping, apart") {
  OnBothEngines([](Runtime& runtime) {
    const NDArray a = NDArray::FromVector(runtime, {5, 2}, Iota(10));
    NDArray low = a.Slice(0, 3), high = a.Slice(2, 5);
    CHECK(low.SameView(a.Slice(0, 3)));
    CHECK_FALSE(low.SameView(high));
    CHECK_FALSE(low.SameView(low.Reshape({6})));
    CHECK(low.Overlaps(high));
    CHECK(low.SharesMemory(a.Slice(3, 5)));
    CHECK_FALSE(low.Overlaps(a.Slice(3, 5)));
    CHECK_FALSE(a.Slice(3, 5).Overlaps(low));
    CHECK_FALSE(low.Overlaps(low.Copy(low.ctx())));
    high.CopyFrom(low);
    CHECK(a.ToVector() == std::vector<float>{1, 2, 3, 4, 1, 2, 3, 4, 5, 6});
    low.CopyFrom(high);
    CHECK(a.ToVector() == std::vector<float>{1, 2, 3, 4, 5, 6, 3, 4, 5, 6});
  });
}

TEST_CASE("arrays that no memory can hold are rejected with their shape") {
  Runtime runtime(With("naive"), nullptr);
  for (const TShape& shape :
       {TShape{int64_t{1} << 62, 4}, TShape{int64_t{1} << 32, int64_t{1} << 32},
        TShape{0, int64_t{1} << 62, 16}}) {
    CHECK_THROWS_WITH_AS(NDArray(runtime, shape), doctest::Contains(shape.ToString().c_str()),
                         Error);
  }
  const NDArray a(runtime, {4});
  CHECK_THROWS_AS(a.Reshape({int64_t{1} << 62, 4, 4}), Error);
}

TEST_CASE("an arena is divided into arrays that share its variable") {
  OnBothEngines([](Runtime& runtime) {
    const NDArray arena(runtime, {1000}, DType::kUint8);
    NDArray a(arena, 0, {4}, DType::kFloat32, {}), b(arena, 64, {2, 2}, DType::kFloat64, {});
    CHECK(a.var() == b.var());
    a.Fill(1);
    b.Fill(2);
    CHECK(a.ToVector() == std::vector<float>(4, 1.0f));
    CHECK(b.ToVector() == std::vector<float>(4, 2.0f));
    CHECK_NOTHROW(NDArray(arena, 984, {4}, DType::kFloat32, {}));
    CHECK_THROWS_AS(NDArray(arena, 988, {4}, DType::kFloat32, {}), Error);
    CHECK_THROWS_AS(NDArray(arena, 2, {4}, DType::kFloat32, {}), Error);
    CHECK_THROWS_AS(NDArray(arena, -4, {1}, DType::kFloat32, {}), Error);
  });
}

TEST_CASE("an array may be destroyed while functions on it are pending") {
  Runtime runtime(With("threaded"), nullptr);
  std::atomic<bool> go = false;
  NDArray result(runtime, {1000});
  result.data();  // takes its memory
  {
    NDArray input(runtime, {1000});
    const engine::VarHandle writes[] = {input.var()};
    runtime.engine().PushSync(
        [&go, data = input.data()](RunContext) {
          while (!go) std::this_thread::sleep_for(std::chrono::milliseconds(1));
          std::fill_n(data.dptr<float>(), 1000, 5.0f);
        },
        {}, writes, {.name = "slow"});
    result.CopyFrom(input);
  }
  NDArray next(runtime, {1000});
  next.data();  // must not get the bytes that are still in use
  const int64_t in_use = runtime.storage().GetStats(kCpu).in_use;
  CHECK(in_use == 3 * 4032);
  go = true;
  CHECK(result.ToVector() == std::vector<float>(1000, 5.0f));
  runtime.engine().WaitForAll();
  CHECK(runtime.storage().GetStats(kCpu).in_use == 2 * 4032);
}

TEST_CASE("an error reaches any reader of the array, once") {
  OnBothEngines([](Runtime& runtime) {
    NDArray a(runtime, {2}), b(runtime, {2});
    const engine::VarHandle writes[] = {a.var()};
    runtime.engine().PushSync([](RunContext) { Throw(ErrorKind::kData, "no such image"); }, {},
                              writes, {.name = "load"});
    b.CopyFrom(a);
    CHECK_THROWS_WITH_AS(b.ToVector(), "load: no such image", Error);
    a.Slice(0, 1).Fill(1);  // the rest of it stays wrong
    CHECK_THROWS_AS(a.WaitToRead(), Error);
    a.Fill(1);
    b.CopyFrom(a);
    CHECK(b.ToVector() == std::vector<float>(2, 1.0f));
  });
}

TEST_CASE(
    "host values are not copied inside an engine function, and the call leaves nothing behind") {
  for (const char* engine : {"naive", "threaded"}) {
    CAPTURE(engine);
    Runtime runtime(With(engine), nullptr);
    NDArray plain = NDArray::FromVector(runtime, {3}, {1, 2, 3});
    NDArray blocked(runtime, {1, 3, 1, 1}, DType::kFloat32, kCpu, Blocked(runtime, "aBcd8b"));
    blocked.Fill(4);
    for (NDArray* target : {&plain, &blocked}) {
      const std::vector<float> before = target->ToVector();
      std::vector<float> values = {7, 8, 9};
      runtime.engine().PushSync([&](RunContext) { target->CopyFromHost(values.data(), 12); }, {},
                                {}, {.name = "inside"});
      CHECK_THROWS_WITH_AS(
          runtime.engine().WaitForAll(),
          doctest::Contains("inside: CopyFromHost was called inside an engine function"), Error);
      CHECK(target->ToVector() == before);
    }
  }
}

TEST_CASE("many small operations from several threads") {
  Runtime runtime(With("threaded"), nullptr);
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        NDArray a(runtime, {16});
        a.Fill(t * 1000 + i);
        NDArray b = a.Copy(kCpu);
        a.Fill(-1);
        if (b.ToVector() != std::vector<float>(16, static_cast<float>(t * 1000 + i))) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("what a runtime carries lives until the engine is idle") {
  bool array_freed_in_order = false;
  struct Kept {
    NDArray array;
    bool* flag;
    ~Kept() { *flag = true; }
  };
  {
    Runtime runtime(With("threaded"), nullptr);
    auto make = [&] {
      auto kept = std::make_shared<Kept>();
      kept->array = NDArray::Zeros(runtime, {100});
      kept->flag = &array_freed_in_order;
      return kept;
    };
    CHECK(runtime.Extension("plans", make) == runtime.Extension("plans", make));
    CHECK(runtime.Extension("other", make) != runtime.Extension("plans", make));
  }
  CHECK(array_freed_in_order);
}

TEST_CASE("an error that nobody waited for is reported when the runtime ends") {
  std::string said;
  {
    RuntimeOptions options = With("threaded");
    options.log = std::make_shared<Log>();
    options.log->AddSink([&](const LogMessage& message) { said += message.text; });
    Runtime runtime(std::move(options), nullptr);
    runtime.engine().PushSync([](RunContext) { Throw(ErrorKind::kData, "lost"); }, {}, {},
                              {.name = "load"});
  }
  CHECK(said == "an error that no wait has reported: load: lost");
}

TEST_CASE("an unknown engine is rejected") {
  CHECK_THROWS_AS(Runtime(With("turbo"), nullptr), Error);
}

TEST_CASE("temporary space is bounded by the request") {
  float space[4];
  Resource resource;
  resource.space = space;
  resource.bytes = sizeof space;
  resource.who = "conv1";
  CHECK(resource.GetSpace<float>(4) == space);
  CHECK_THROWS_WITH_AS(resource.GetSpace<float>(5),
                       "conv1: GetSpace of 20 bytes, but 16 were requested; request as many as are "
                       "used, or kUnknownSize",
                       Error);
  resource.type = ResourceRequest::kRandom;
  CHECK_THROWS_WITH_AS(resource.GetSpace<float>(1),
                       "conv1: GetSpace of a resource that was requested for random numbers; "
                       "request kTempSpace too",
                       Error);
}

TEST_CASE("space of unknown size is there while the operator runs") {
  Runtime runtime(With("naive"), nullptr);
  Resource resources[2];
  resources[0].bytes = ResourceRequest::kUnknownSize;
  resources[0].who = "conv1";
  resources[1].type = ResourceRequest::kRandom;
  CHECK_THROWS_WITH_AS(resources[0].GetSpace<float>(1),
                       "conv1: GetSpace outside of Forward and Backward; call it there", Error);
  {
    const ResourceGrant grant(runtime.resources(), {kCpu, nullptr}, resources);
    CHECK(resources[0].GetSpace<float>(1000) != nullptr);
    CHECK(resources[1].growing == nullptr);
  }
  CHECK_THROWS_AS(resources[0].GetSpace<float>(1), Error);
  CHECK(runtime.resources().GetStats(kCpu).bytes == 4000);
}

TEST_CASE("a grant that fails takes no space from the pool") {
  int failures = 0;
  for (int64_t allocations = 0; allocations < 8; ++allocations) {
    Runtime runtime(With("naive"), nullptr);
    Resource resources[2];
    for (Resource& resource : resources) resource.bytes = ResourceRequest::kUnknownSize;
    const auto grant = [&] { ResourceGrant(runtime.resources(), {kCpu, nullptr}, resources); };
    try {
      const test::FailingAllocation fails(allocations);
      grant();
    } catch (const std::bad_alloc&) {
      ++failures;
    }
    grant();
    CHECK(runtime.resources().GetStats(kCpu).spaces.size() == 2);
  }
  CHECK(failures > 2);
}

TEST_CASE("a grant for copies of granted resources leaves the others their spaces") {
  Runtime runtime(With("naive"), nullptr);
  Resource resource;
  resource.bytes = ResourceRequest::kUnknownSize;
  const ResourceGrant grant(runtime.resources(), {kCpu, nullptr}, {&resource, 1});
  Resource copy = resource;
  { const ResourceGrant other(runtime.resources(), {kCpu, nullptr}, {&copy, 1}); }
  CHECK(copy.growing == nullptr);
  CHECK(resource.GetSpace<float>(4) != nullptr);
}

}  // namespace
}  // namespace mxtrain

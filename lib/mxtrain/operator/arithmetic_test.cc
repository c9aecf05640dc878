// SPDX-License-Identifier: Apache-2.0
// Arithmetic of arrays against the same expressions on plain numbers, on the CPU and on a fake GPU.
#include "mxtrain/operator/arithmetic.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <future>
#include <numeric>

#include "mxtrain/base/error.h"
#include "mxtrain/device/blocked_layout.h"
#include "mxtrain/operator/imperative.h"
#include "tests/support/error_message.h"
#include "tests/support/fake_gpu.h"
#include "tests/support/gpus.h"
#include "tests/support/vectors.h"

namespace mxtrain::test {
namespace {

using test::FloatVector;

template <typename T>
std::vector<T> ElementsOf(const NDArray& array) {
  std::vector<T> elements(static_cast<size_t>(array.shape().Size()));
  array.CopyToHost(elements.data(), static_cast<int64_t>(elements.size() * sizeof(T)));
  return elements;
}

// An array [3, 4] of the given numbers in turn: all of its allocation, or a view of some rows.
template <typename T>
struct Operand {
  Operand(Runtime& runtime, Context ctx, bool is_view, const std::vector<int>& numbers)
      : owner(runtime, is_view ? TShape{5, 6} : TShape{3, 4}, DTypeOf<T>::value, ctx),
        array(is_view ? owner.Slice(1, 3).Reshape({3, 4}) : owner),
        begin(is_view ? 6 : 0) {
    for (size_t i = 0; i < static_cast<size_t>(owner.shape().Size()); ++i)
      all.push_back(static_cast<T>(numbers[i % numbers.size()]));
    owner.CopyFromHost(all.data(), static_cast<int64_t>(all.size() * sizeof(T)));
  }
  T& operator[](size_t i) { return all[begin + i]; }

  NDArray owner, array;
  std::vector<T> all;  // expected contents of owner
  size_t begin;
};

constexpr size_t kSize = 12;

// Every pair of whole arrays and views. `test`: of two operands.
template <typename T, typename Test>
void ForOperands(Runtime& runtime, Context ctx, const Test& test) {
  for (const bool a_is_view : {false, true}) {
    for (const bool b_is_view : {false, true}) {
      CAPTURE(a_is_view);
      CAPTURE(b_is_view);
      Operand<T> a(runtime, ctx, a_is_view, {-3, 1, 2, -1, 4, 3, -2}),
          b(runtime, ctx, b_is_view, {1, 2, -3, 2, -1, 4, -2, 3});
      test(a, b);
      CHECK(ElementsOf<T>(a.owner) == a.all);
      CHECK(ElementsOf<T>(b.owner) == b.all);
    }
  }
}

// `f` is called with arrays, then with their elements.
template <typename T, typename F>
void CheckNew(Runtime& runtime, Context ctx, const F& f) {
  ForOperands<T>(runtime, ctx, [&](Operand<T>& a, Operand<T>& b) {
    const NDArray result = f(a.array, b.array);
    std::vector<T> wanted;
    for (size_t i = 0; i < kSize; ++i) wanted.push_back(static_cast<T>(f(a[i], b[i])));
    CHECK(result.shape() == TShape{3, 4});
    CHECK(result.dtype() == DTypeOf<T>::value);
    CHECK(ElementsOf<T>(result) == wanted);
  });
}

// `f` changes its first argument.
template <typename T, typename F>
void CheckInPlace(Runtime& runtime, Context ctx, const F& f) {
  ForOperands<T>(runtime, ctx, [&](Operand<T>& a, Operand<T>& b) {
    f(a.array, b.array);
    CHECK(a.array.SharesMemory(a.owner));
    for (size_t i = 0; i < kSize; ++i) f(a[i], b[i]);
  });
}

// Calls f with a runtime and a device, for both engines and both kinds of device.
template <typename F>
void OnEveryDevice(const F& f) {
  for (const char* engine : {"naive", "threaded"}) {
    const auto runtime = NewFakeGpuRuntime(engine);
    for (const Context ctx : {Context::cpu(), kGpu}) {
      CAPTURE(engine);
      CAPTURE(ctx.ToString());
      f(*runtime, ctx);
    }
  }
}

// The same for both types of elements.
template <typename F>
void OnFloatsAndIntegers(const F& f) {
  OnEveryDevice([&](Runtime& runtime, Context ctx) {
    f(runtime, ctx, float{});
    f(runtime, ctx, int32_t{});
  });
}

#define CHECK_NEW(...)      \
  CheckNew<T>(runtime, ctx, \
              [](const auto& a, const auto& b) { return (void)a, (void)b, __VA_ARGS__; })
#define CHECK_IN_PLACE(...) \
  CheckInPlace<T>(runtime, ctx, [](auto& a, const auto& b) { (void)b, __VA_ARGS__; })

TEST_CASE("arithmetic of two arrays, of an array and a number, and of a number and an array") {
  OnFloatsAndIntegers([](Runtime& runtime, Context ctx, auto tag) {
    using T = decltype(tag);
    CHECK_NEW(-a);
    CHECK_NEW(a + b);
    CHECK_NEW(a - b);
    CHECK_NEW(a * b);
    CHECK_NEW(a / b);
    CHECK_NEW(a + 5);
    CHECK_NEW(a - 5);
    CHECK_NEW(a * 5);
    CHECK_NEW(a / 2);
    CHECK_NEW(5 + a);
    CHECK_NEW(5 - a);
    CHECK_NEW(5 * a);
    CHECK_NEW(12 / a);
    CHECK_NEW(1 - (a + b) * 2 / -b);
  });
}

TEST_CASE("comparisons are 1 where they hold and 0 elsewhere") {
  OnFloatsAndIntegers([](Runtime& runtime, Context ctx, auto tag) {
    using T = decltype(tag);
    CHECK_NEW(a == b);
    CHECK_NEW(a != b);
    CHECK_NEW(a < b);
    CHECK_NEW(a <= b);
    CHECK_NEW(a > b);
    CHECK_NEW(a >= b);
    CHECK_NEW(a == 2);
    CHECK_NEW(a != 2);
    CHECK_NEW(a < 2);
    CHECK_NEW(a <= 2);
    CHECK_NEW(a > 2);
    CHECK_NEW(a >= 2);
    CHECK_NEW(2 == a);
    CHECK_NEW(2 != a);
    CHECK_NEW(2 < a);
    CHECK_NEW(2 <= a);
    CHECK_NEW(2 > a);
    CHECK_NEW(2 >= a);
  });
}

TEST_CASE("assignments write in place, also into a view, and read themselves") {
  OnFloatsAndIntegers([](Runtime& runtime, Context ctx, auto tag) {
    using T = decltype(tag);
    CHECK_IN_PLACE(a += b);
    CHECK_IN_PLACE(a -= b);
    CHECK_IN_PLACE(a *= b);
    CHECK_IN_PLACE(a /= b);
    CHECK_IN_PLACE(a += 3);
    CHECK_IN_PLACE(a -= 3);
    CHECK_IN_PLACE(a *= 3);
    CHECK_IN_PLACE(a /= 2);
    CHECK_IN_PLACE(a += a);
    CHECK_IN_PLACE(a -= a);
    CHECK_IN_PLACE(a *= a);
    CHECK_IN_PLACE(a /= a);
    CHECK_IN_PLACE(a = 7);
    CHECK_IN_PLACE((a += b) *= 2);
  });
}
#undef CHECK_NEW
#undef CHECK_IN_PLACE

TEST_CASE(
    "a temporary view is assigned to, and overlapping views are read before they are written") {
  OnEveryDevice([](Runtime& runtime, Context ctx) {
    const NDArray a = NDArray::FromVector(runtime, {5}, {1, 2, 3, 4, 5}, ctx);
    a.Slice(1, 5) += a.Slice(0, 4);
    CHECK(a.ToVector() == FloatVector{1, 3, 5, 7, 9});
    a.Slice(0, 4) -= a.Slice(1, 5);
    CHECK(a.ToVector() == FloatVector{-2, -2, -2, -2, 9});
    a.Slice(0, 1) *= a.Slice(4, 5);
    a.Slice(1, 2) /= a.Slice(4, 5) - 5;
    a.Slice(2, 3) += 0.5;
    a.Slice(3, 4) -= 0.5;
    CHECK(a.ToVector() == FloatVector{-18, -0.5, -1.5, -2.5, 9});
    a.Slice(0, 4).Reshape({2, 2}) *= 2;
    a.Slice(4, 5) /= 2;
    CHECK(a.ToVector() == FloatVector{-36, -1, -3, -5, 4.5});
  });
}

TEST_CASE("numbers keep all digits, infinity and NaN") {
  OnEveryDevice([](Runtime& runtime, Context ctx) {
    const NDArray zero = NDArray::Zeros(runtime, {1}, DType::kFloat64, ctx);
    for (const double value : {0.1, 1e-300, -1.7976931348623157e308, double(INFINITY)})
      CHECK(ElementsOf<double>(zero + value)[0] == value);
    CHECK(std::isnan((zero / 0).ToVector()[0]));
    CHECK((1 / zero).ToVector()[0] == INFINITY);
    CHECK((zero + NAN == zero).ToVector()[0] == 0);
  });
}

TEST_CASE("operands in an opaque layout, and of two layouts") {
  OnEveryDevice([](Runtime& runtime, Context ctx) {
    const TShape shape = {1, 3, 1, 2};
    const FloatVector numbers = {1, 2, 3, 4, 5, 6};
    const Layout blocked = runtime.backend(ctx).Intern(BlockedLayout::FromName("aBcd8b"));
    const NDArray plain = NDArray::FromVector(runtime, shape, numbers, ctx);
    const auto stored_sum = [](const NDArray& array) {  // with the padding
      array.WaitToRead();
      const TBlob blob = array.data();
      return std::accumulate(blob.dptr<float>(), blob.dptr<float>() + blob.StoredSize(), 0.0f);
    };
    for (const Layout& a_layout : {Layout(), blocked}) {
      for (const Layout& b_layout : {Layout(), blocked}) {
        NDArray a = plain.Copy(ctx).ToLayout(a_layout);
        const NDArray b = plain.ToLayout(b_layout);
        CHECK((a * b).ToVector() == FloatVector{1, 4, 9, 16, 25, 36});
        CHECK((7 - a).ToVector() == FloatVector{6, 5, 4, 3, 2, 1});
        CHECK((a >= 3).ToVector() == FloatVector{0, 0, 1, 1, 1, 1});
        a += b;
        a /= 2;
        a -= 1;
        CHECK(a.layout() == a_layout);
        CHECK(a.ToVector() == FloatVector{0, 1, 2, 3, 4, 5});
        if (ctx == Context::cpu()) CHECK(stored_sum(a) == 15);
        // Zero times infinity is NaN, and would be so in the padding.
        if (ctx == Context::cpu()) CHECK(stored_sum((a + 1) * INFINITY) == INFINITY);
        if (ctx == Context::cpu()) CHECK(stored_sum((a + 1) * 1e39) == INFINITY);
      }
    }
    CHECK(plain.ToVector() == numbers);
  });
}

TEST_CASE(
    "arrays that do not fit each other are refused with both named, and keep their contents") {
  const auto runtime = NewFakeGpuRuntime();
  NDArray a = NDArray::FromVector(*runtime, {3}, {1, 2, 3});
  const NDArray long_one = NDArray::Zeros(*runtime, {4}), one = NDArray::Zeros(*runtime, {1}),
                integers = NDArray::Zeros(*runtime, {3}, DType::kInt32),
                there = NDArray::Zeros(*runtime, {3}, DType::kFloat32, kGpu);
  const auto kind_of = [](const auto& call) {
    try {
      call();
    } catch (const Error& error) {
      return error.kind();
    }
    return ErrorKind::kBug;
  };
  CHECK(MessageOf([&] { (void)(a * long_one); }) ==
        "elemwise_mul: rhs has shape [4], but [3] was expected");
  CHECK(MessageOf([&] { a /= long_one; }) ==
        "elemwise_div: rhs has shape [4], but [3] was expected");
  CHECK(MessageOf([&] { (void)(a < one); }) == "_lesser: rhs has shape [1], but [3] was expected");
  CHECK(MessageOf([&] { a += integers; }) ==
        "elemwise_add takes arrays of one type, but got float32 and int32; insert a Cast");
  CHECK(MessageOf([&] { (void)(a - there); }) ==
        "_minus got arrays on cpu(0) and gpu(0); copy one of them first");
  CHECK(kind_of([&] { a *= long_one; }) == ErrorKind::kConfig);
  CHECK(kind_of([&] { a *= integers; }) == ErrorKind::kConfig);
  CHECK(kind_of([&] { a *= there; }) == ErrorKind::kConfig);
  NDArray none;
  CHECK(kind_of([&] { none += a; }) == ErrorKind::kConfig);
  CHECK(kind_of([&] { (void)(a == none); }) == ErrorKind::kConfig);
  CHECK(a.ToVector() == FloatVector{1, 2, 3});
}

// A function on an array's variable that runs until it is told to end.
class Gate {
 public:
  Gate(Runtime& runtime, const NDArray& array) {
    const engine::VarHandle writes[] = {array.var()};
    runtime.engine().PushSync([opened = open_.get_future().share()](RunContext) { opened.wait(); },
                              {}, writes,
                              {.ctx = array.ctx(), .property = engine::FnProperty::kIO});
  }
  void Open() { open_.set_value(); }

 private:
  std::promise<void> open_;
};

TEST_CASE("a thousand operations are pushed before the first has run, and hold no memory") {
  constexpr int64_t kMiB = int64_t{1} << 20;
  constexpr int64_t kElements = kMiB / 4;
  const auto runtime = NewFakeGpuRuntime();
  for (const Context ctx : {Context::cpu(), kGpu}) {
    CAPTURE(ctx.ToString());
    NDArray x(*runtime, {kElements}, DType::kFloat32, ctx);
    x = 1;
    x.WaitToRead();
    const auto stats = [&] { return runtime->storage().GetStats(ctx); };
    const int64_t before = stats().in_use;
    Gate gate(*runtime, x);
    auto caller = std::async(std::launch::async, [&] {
      for (int i = 0; i < 200; ++i) {  // 6 operations each
        x = 3 - x;
        x += x;
        NDArray part = x.Slice(0, kElements / 2);
        part -= 2;
        x /= 4;
        x = x * (x >= 0.125);
      }
    });
    CHECK(caller.wait_for(std::chrono::seconds(60)) == std::future_status::ready);
    CHECK(stats().in_use == before);
    gate.Open();
    caller.get();
    float front = 1, back = 1;
    for (int i = 0; i < 200; ++i) {
      front = ((3 - front) * 2 - 2) / 4;
      back = (3 - back) * 2 / 4;
      front = front * (front >= 0.125f ? 1.0f : 0.0f);
      back = back * (back >= 0.125f ? 1.0f : 0.0f);
    }
    FloatVector wanted(kElements, front);
    std::fill(wanted.begin() + kElements / 2, wanted.end(), back);
    CHECK(x.ToVector() == wanted);
    // On a GPU memory is freed when the device is done, so more of it may be retired.
    const int64_t retired = ctx == kGpu ? Storage::kMostRetired + 4 * kMiB : 0;
    CHECK(stats().peak <= before + retired + 4 * kMiB);
  }
}

}  // namespace
}  // namespace mxtrain::test

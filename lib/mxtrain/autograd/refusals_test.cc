// SPDX-License-Identifier: Apache-2.0
// What autograd refuses, and how it says so.
#include <doctest/doctest.h>

#include <functional>

#include "mxtrain/autograd/autograd.h"
#include "mxtrain/base/error.h"
#include "mxtrain/executor/executor.h"
#include "mxtrain/operator/arithmetic.h"
#include "tests/support/error_message.h"
#include "tests/support/fake_gpu.h"
#include "tests/support/imperative_calls.h"
#include "tests/support/small_nets.h"

namespace mxtrain::test {
namespace {

using autograd::Backward;
using autograd::GradientOf;
using autograd::GradReq;
using autograd::Pause;
using autograd::Recording;
using autograd::Variables;
using Doubles = std::vector<double>;
using Arrays = std::vector<NDArray>;
// Computes one array from others.
using Program = std::function<NDArray(const Arrays&)>;

// The message of Backward of what `program` computes while `between` runs before it.
std::string Refusal(
    const Program& program, const Arrays& in, const std::function<void()>& between = [] {}) {
  NDArray head;
  {
    const Recording recording;
    head = program(in);
  }
  between();
  return MessageOf([&] { Backward({head}); });
}

TEST_CASE("arrays that cannot be attached") {
  const auto runtime = NewRuntime();
  const NDArray w(*runtime, {4, 2}), counts(*runtime, {3}, DType::kInt32);
  CHECK(MessageOf([&] { Variables({counts}); }) ==
        "array 'array' (int32 [3]) cannot be attached: only floating types have gradients");
  CHECK(MessageOf([&] { Variables({NDArray()}); }) == "an empty array cannot be attached");
  CHECK(MessageOf([&] { Variables({w}, GradReq::kNull); }) ==
        "an attached array has a gradient: kWrite or kAdd, not kNull");
  CHECK(MessageOf([&] {
          Variables({w.Slice(0, 2), w.Slice(1, 3)});
        }) ==
        "array 'array' (float32 [2, 2]) overlaps array 'array' (float32 [2, 2]), which is already "
        "attached");
  const Variables parts({w.Slice(0, 2), w.Slice(2, 4)});  // the failed one has left nothing
  const Recording recording;
  CHECK(MessageOf([&] { Variables({NDArray(*runtime, {1})}); }) ==
        "arrays cannot be attached during a Recording; attach them before it");
}

TEST_CASE("heads that have no gradient") {
  const auto runtime = NewRuntime();
  const NDArray w = Floats(*runtime, {1, 2}), x = Floats(*runtime, {3, 4});
  const Variables variables({w});
  const auto message = [](const Arrays& heads, const Arrays& gradients = {}) {
    return MessageOf([&] { Backward(heads, gradients); });
  };
  const char* const none =
      "Backward: this thread has recorded no call that depends on an attached array; attach arrays "
      "with autograd::Variables, then compute the heads during an autograd::Recording";
  const char* const no_result =
      "Backward: head 0, 'array' (float32 [2]), is not a recorded result: it depends on no "
      "attached array, was computed outside of the Recording, or has been overwritten";
  NDArray outside = w * x, head;
  {
    const Recording recording;
    CHECK(message({x}) == none);
    head = x * x;
    CHECK(message({head}) == none);
    head = w * x;
  }
  CHECK(message({x}) == no_result);
  CHECK(message({w}) == no_result);
  CHECK(message({outside}).find("is not a recorded result") != std::string::npos);
  CHECK(message({}) == "Backward: no head was given");
  CHECK(message({NDArray()}) == "Backward: head 0 is an empty array");
  CHECK(message({head}, {x, x}) ==
        "Backward: 1 head and 2 head gradients were given; give one gradient per head, or none");
  CHECK(message({head}, {NDArray(*runtime, {3})}) ==
        "Backward: head gradient 0 is float32 [3], but head 0 is float32 [2]");
  Backward({head});  // errors have kept the tape
  CHECK(GetValues(GradientOf(w)) == Doubles{3, 4});
  CHECK(message({head}) ==
        "Backward: the Backward before has released the recording; pass retain = true to it, or "
        "record again");
  const Recording recording;
  CHECK(message({head}) == none);
}

TEST_CASE("arrays that are overwritten before Backward are refused") {
  const auto runtime = NewRuntime();
  NDArray w = Floats(*runtime, {1, 2}), x = Floats(*runtime, {3, 4});
  const Variables variables({w});
  const Program product = [](const Arrays& in) { return in[0] * in[1]; };
  CHECK(Refusal(product, {w, x},
                [&] {
                  x.CopyFrom(Floats(*runtime, {5, 6}));
                }) ==
        "Backward: the array 'array' (float32 [2]) was written after elemwise_mul read it; write "
        "to another array, or after Backward");
  CHECK(Refusal(product, {w, x}, [&] { w -= x; }) ==
        "Backward: the attached array 'array' (float32 [2]) was written after elemwise_mul read "
        "it; write it after Backward");
  // Also inside the Recording, by what it does not record.
  CHECK(Refusal(
            [](const Arrays& in) {
              NDArray buffer = in[1].Copy(Context::cpu()), sum = in[0] * buffer;
              buffer = 7;
              return sum + in[0] * buffer;
            },
            {w, x})
            .find("was written after elemwise_mul read it") != std::string::npos);
  CHECK(Refusal(
            [](const Arrays& in) {
              const NDArray before = in[0] * in[1];
              const Pause pause;
              NDArray(in[0]) += in[1];
              const Recording again;
              return before + in[0];
            },
            {w, x})
            .find("attached array 'array' (float32 [2]) was written after") != std::string::npos);
  // What Backward does not read may change: results, and arrays of other heads.
  CHECK(Refusal(
            [&](const Arrays& in) {
              const NDArray other = in[0] * Floats(*runtime, {1, 1});
              NDArray square = in[0] * in[0], head = square + in[0];
              square = 0;
              return head;
            },
            {w, x}) == "");
}

TEST_CASE("arrays that hold results only in part are refused") {
  const auto runtime = NewRuntime();
  const NDArray w = Floats(*runtime, {1, 2}), x = Floats(*runtime, {3, 4});
  const Variables variables({w});
  const char* const mixed =
      "Backward: elemwise_mul read the array 'array' (float32 [2]), which holds recorded results "
      "but is none: it was written in parts, or by what is not recorded (Fill, CopyFrom, a "
      "Pause); use a new array, or join parts with Concat";
  CHECK(Refusal(
            [](const Arrays& in) {
              const NDArray buffer = in[1].Copy(Context::cpu());
              const NDArray part = buffer.Slice(0, 1), of_w = in[0].Slice(0, 1);
              InvokeInto("_copy", {&of_w, 1}, {&part, 1});
              return in[0] * buffer;
            },
            {w, x}) == mixed);
  CHECK(Refusal(
            [](const Arrays& in) {
              const NDArray buffer = in[1].Copy(Context::cpu());
              InvokeInto("_copy", {&in[0], 1}, {&buffer, 1});
              buffer.Slice(0, 1).Fill(0);
              return in[0] * buffer;
            },
            {w, x}) == mixed);
}

TEST_CASE("a call that would write an attached array is refused before it runs") {
  const auto runtime = NewRuntime();
  NDArray w = Floats(*runtime, {1, 2});
  const Variables variables({w});
  const Recording recording;
  CHECK(MessageOf([&] { w += 1; }) ==
        "_plus_scalar would write the attached array 'array' (float32 [2]) during a Recording; "
        "write it after the Recording, or under an autograd::Pause");
  CHECK(GetValues(w) == Doubles{1, 2});
  {
    const Pause pause;
    w += 1;
  }
  const NDArray head = w * w;
  Backward({head});
  CHECK(GetValues(GradientOf(w)) == Doubles{4, 6});
}

TEST_CASE("arrays that are detached before Backward are refused") {
  const auto runtime = NewRuntime();
  const NDArray w = Floats(*runtime, {1, 2}), v = Floats(*runtime, {3, 4});
  const Variables kept({w});
  auto gone = std::make_unique<Variables>(Arrays{v});
  CHECK(Refusal([](const Arrays& in) { return in[0] * in[1]; }, {w, v}, [&] { gone.reset(); }) ==
        "Backward: the attached array 'array' (float32 [2]) was detached after elemwise_mul read "
        "it");
}

TEST_CASE("one Recording takes one Runtime") {
  const auto first = NewRuntime(), second = NewRuntime();
  const NDArray a = Floats(*first, {1, 2}), b = Floats(*second, {3, 4});
  const Variables variables({a, b});
  const Recording recording;
  const NDArray head = a * a;
  CHECK(MessageOf([&] {
          Invoke("elemwise_mul", Arrays{b, b});
        }) ==
        "elemwise_mul got an attached array of another Runtime than the calls before it in the "
        "Recording; use one Recording for each");
  CHECK_NOTHROW(Floats(*second, {1}) + 1);
  Backward({head});
  CHECK(GetValues(GradientOf(a)) == Doubles{2, 4});
}

}  // namespace
}  // namespace mxtrain::test

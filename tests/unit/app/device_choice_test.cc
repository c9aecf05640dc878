// SPDX-License-Identifier: Apache-2.0
#include "app/session/device_choice.h"

#include <doctest/doctest.h>

#include "mxtrain/base/error.h"

namespace mxtrain::session {
namespace {

TEST_CASE("--device auto is the first GPU if there is one, else the CPU") {
  CHECK(ParseDevices("auto", [] { return 2; }) == std::vector{Context::gpu(0)});
  CHECK(ParseDevices("auto", [] { return 0; }) == std::vector{Context::cpu()});
}

TEST_CASE("--device auto gives each process of a machine a GPU of its own, as far as there are") {
  const auto two = [] { return 2; };
  CHECK(ParseDevices("auto", two, 1) == std::vector{Context::gpu(1)});
  CHECK(ParseDevices("auto", two, 3) == std::vector{Context::gpu(1)});
  CHECK(ParseDevices(
            "auto", [] { return 0; }, 3) == std::vector{Context::cpu()});
  CHECK(ParseDevices("gpu", two, 1) == std::vector{Context::gpu(0)});
}

TEST_CASE("a named device is not probed") {
  const auto must_not = []() -> int { throw Error(ErrorKind::kBug, "it was asked"); };
  CHECK(ParseDevices("cpu", must_not) == std::vector{Context::cpu()});
  CHECK(ParseDevices("gpu:1", must_not) == std::vector{Context::gpu(1)});
  CHECK(ParseDevices("gpu:2,0", must_not) == std::vector{Context::gpu(2), Context::gpu(0)});
  CHECK_THROWS_WITH_AS(ParseDevices("gpu:1,1", must_not), doctest::Contains("lists gpu(1) twice"),
                       Error);
  CHECK_THROWS_WITH_AS(ParseDevices("cpu:0,1", must_not),
                       doctest::Contains("several devices must be"), Error);
  CHECK_THROWS_WITH_AS(ParseDevices("automatic", must_not), doctest::Contains("is not a device"),
                       Error);
}

TEST_CASE("--place gives groups of layers their devices") {
  using Places = std::map<std::string, Context>;
  CHECK(ParsePlaces({}).empty());
  CHECK(ParsePlaces({"encoder=cpu(1)", "a=b=gpu:2"}) ==
        Places{{"encoder", Context::cpu(1)}, {"a=b", Context::gpu(2)}});
  for (const char* wrong : {"encoder", "=cpu"}) {
    CHECK_THROWS_WITH_AS(ParsePlaces({wrong}), doctest::Contains("expected GROUP=DEVICE"), Error);
  }
  CHECK_THROWS_WITH_AS(ParsePlaces({"a=gpux"}),
                       doctest::Contains("--place a=gpux: 'gpux' is not a device"), Error);
  CHECK_THROWS_WITH_AS(ParsePlaces({"a=cpu", "a=cpu(1)"}),
                       "--place a=cpu(1): group 'a' has a device already", Error);
}

TEST_CASE("quick commands use a GPU only if it is named") {
  ComputeOptions flags;
  CHECK(WithoutAutoGpu(flags).device == "cpu");
  flags.device = "gpu:1";
  CHECK(WithoutAutoGpu(flags).device == "gpu:1");
}

}  // namespace
}  // namespace mxtrain::session

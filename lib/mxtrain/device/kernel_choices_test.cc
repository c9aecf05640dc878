// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/device/kernel_choices.h"

#include <doctest/doctest.h>

#include <atomic>
#include <set>
#include <thread>
#include <vector>

namespace mxtrain {
namespace {

using Names = std::vector<std::string>;

// Seconds by candidate; counts the calls. A negative number: it does not run.
struct Clock {
  std::vector<double> seconds;
  std::atomic<int> asked = 0;
  KernelChoices::Stopwatch watch() {
    return [this](size_t i) {
      return ++asked, seconds[i] < 0 ? std::nullopt : std::optional(seconds[i]);
    };
  }
};

TEST_CASE("the fastest is measured once if allowed, otherwise the library's default is used") {
  KernelChoices choices;
  const Names names{"direct", "winograd", "gemm"};
  Clock clock{{3, 1, 2}};
  CHECK(choices.Choose("a", names, clock.watch()) == 0);
  CHECK(clock.asked == 0);
  CHECK(choices.kept().empty());  // not found by measuring
  {
    const KernelChoices::Measuring allowed(&choices);
    CHECK(choices.Choose("a", names, {}) == 0);  // as with --deterministic
    CHECK(choices.Choose("a", names, clock.watch()) == 1);
    CHECK(clock.asked == 3);
    CHECK(choices.measuring_seconds() > 0);
    clock.seconds = {1, 2, 3};
    CHECK(choices.Choose("a", names, clock.watch()) == 1);
    CHECK(clock.asked == 3);
    CHECK(choices.Choose("b", names, clock.watch()) == 0);
    CHECK(choices.Choose("only one", Names{"direct"}, clock.watch()) == 0);
    CHECK(clock.asked == 6);
  }
  CHECK(choices.Choose("a", names, {}) == 1);  // stored, also for callers that do not measure
  CHECK(choices.Choose("c", names, clock.watch()) == 0);
  CHECK(clock.asked == 6);
  CHECK(choices.kept() == KernelChoices::Table{{"a", "winograd"}, {"b", "direct"}});
}

TEST_CASE("a kernel that does not run is not used; if none could be measured, none is chosen") {
  KernelChoices choices;
  const KernelChoices::Measuring allowed(&choices);
  Clock clock{{-1, 2, -1}};
  CHECK(choices.Choose("a", Names{"direct", "winograd", "gemm"}, clock.watch()) == 1);
  clock.seconds = {-1, -1};
  CHECK(choices.Choose("b", Names{"direct", "winograd"}, clock.watch()) == 0);
  CHECK(choices.kept() ==
        KernelChoices::Table{{"a", "winograd"}, {"b", KernelChoices::kNotMeasured}});

  // Neither this run, though it could measure later, nor one that continues it; another does.
  clock.seconds = {2, 1};
  CHECK(choices.Choose("b", Names{"direct", "winograd"}, clock.watch()) == 0);
  KernelChoices continued, other;
  continued.Keep(choices.kept());
  const KernelChoices::Measuring here(&continued), there(&other);
  CHECK(continued.Choose("b", Names{"direct", "winograd"}, clock.watch()) == 0);
  CHECK(continued.kept() == choices.kept());
  CHECK(other.Choose("b", Names{"direct", "winograd"}, clock.watch()) == 1);
}

TEST_CASE("a candidate that is not usable gives way to the first that is") {
  KernelChoices choices;
  choices.Keep({{"a", "gemm"}});
  const Names names{"direct", "winograd", "gemm"};
  std::vector<size_t> asked;
  const auto all_but = [&](std::set<size_t> not_usable) {
    asked.clear();
    return [&asked, not_usable](size_t i) {
      asked.push_back(i);
      return !not_usable.contains(i);
    };
  };
  CHECK(ChooseUsable(&choices, "a", names, {}, all_but({})) == 2);
  CHECK(ChooseUsable(&choices, "a", names, {}, all_but({2, 0})) == 1);
  CHECK(asked == std::vector<size_t>{2, 0, 1});
  CHECK(ChooseUsable(nullptr, "a", names, {}, all_but({0})) == 1);
  CHECK_FALSE(ChooseUsable(&choices, "a", names, {}, all_but({0, 1, 2})).has_value());
  CHECK(asked.size() == 3);
}

TEST_CASE("a small gain is noise: the earlier one stays") {
  KernelChoices choices;
  const KernelChoices::Measuring allowed(&choices);
  Clock clock{{1, 0.96, 0.97}};
  CHECK(choices.Choose("a", Names{"direct", "winograd", "gemm"}, clock.watch()) == 0);
  clock.seconds = {1, 0.94, 0.93};
  CHECK(choices.Choose("b", Names{"direct", "winograd", "gemm"}, clock.watch()) == 1);
}

TEST_CASE("a foreign table applies by its keys, if its kernels are possible here") {
  KernelChoices choices;
  choices.Keep({{"a", "gemm"}, {"b", "of another version"}});
  const KernelChoices::Measuring allowed(&choices);
  Clock clock{{1, 2}};
  CHECK(choices.Choose("a", Names{"direct", "gemm"}, clock.watch()) == 1);
  CHECK(clock.asked == 0);
  CHECK(choices.Choose("b", Names{"direct", "gemm"}, clock.watch()) == 0);
  CHECK(clock.asked == 2);
  CHECK(choices.kept() == KernelChoices::Table{{"a", "gemm"}, {"b", "direct"}});
}

TEST_CASE("concurrent requests for one key measure it once") {
  KernelChoices choices;
  const KernelChoices::Measuring allowed(&choices);
  Clock clock{{3, 1, 2}};
  std::atomic<int> agree = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      agree += choices.Choose("a", Names{"direct", "winograd", "gemm"}, clock.watch()) == 1;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(agree == 8);
  CHECK(clock.asked == 3);
}

TEST_CASE("the GPU backend has choices without being loaded; the CPU's has none") {
  CHECK(ChoicesOf(*NewCpuBackend(1)) == nullptr);
  const auto gpu = NewGpuBackend();
  KernelChoices* choices = ChoicesOf(*gpu);
  REQUIRE(choices != nullptr);
  choices->Keep({{"a", "gemm"}});
  CHECK(ChoicesOf(*gpu)->kept().size() == 1);
  const KernelChoices::Measuring of_none(nullptr);
}

}  // namespace
}  // namespace mxtrain

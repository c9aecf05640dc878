// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/optimizer/lr_schedule.h"

#include <doctest/doctest.h>

#include <cmath>
#include <numbers>
#include <utility>
#include <vector>

#include "mxtrain/base/error.h"
#include "mxtrain/base/format.h"

namespace mxtrain {
namespace {

constexpr int64_t kStepsPerEpoch = 10, kTotal = 100;

std::unique_ptr<LrSchedule> Make(std::string_view name, const Kwargs& kwargs) {
  return LrSchedule::Create(name, kwargs, kStepsPerEpoch, kTotal);
}

TEST_CASE("constant stays") {
  const auto schedule = Make("constant", {});
  for (int64_t step : {0, 1, 50, 99}) CHECK(schedule->Factor(step) == 1);
}

TEST_CASE("step reduces by its factor at every multiple") {
  const auto schedule = Make("step", {{"every", "3"}, {"factor", "0.5"}});
  for (int64_t step = 0; step < kTotal; ++step) {
    CAPTURE(step);
    CHECK(schedule->Factor(step) ==
          doctest::Approx(std::pow(0.5, static_cast<double>(step / 30))).epsilon(1e-15));
  }
  const auto by_steps = Make("step", {{"every", "7"}, {"factor", "0.5"}, {"unit", "steps"}});
  for (int64_t step = 0; step < kTotal; ++step) {
    CHECK(by_steps->Factor(step) ==
          doctest::Approx(std::pow(0.5, static_cast<double>(step / 7))).epsilon(1e-15));
  }
}

TEST_CASE("multistep reduces at its milestones") {
  const auto schedule = Make("multistep", {{"milestones", "[3, 6]"}, {"factor", "0.1"}});
  for (int64_t step = 0; step < kTotal; ++step) {
    CAPTURE(step);
    const int passed = (step >= 30) + (step >= 60);
    CHECK(schedule->Factor(step) == doctest::Approx(std::pow(0.1, passed)).epsilon(1e-15));
  }
  CHECK_THROWS_AS(Make("multistep", {{"milestones", "[6, 3]"}}), Error);
}

TEST_CASE("cosine falls from the base rate to the final one along half a cosine") {
  const auto schedule = Make("cosine", {{"final", "0.1"}});
  for (int64_t step = 0; step < kTotal; ++step) {
    const double t = static_cast<double>(step) / kTotal;
    CHECK(schedule->Factor(step) ==
          doctest::Approx(0.1 + 0.9 * (1 + std::cos(std::numbers::pi * t)) / 2).epsilon(1e-14));
  }
  CHECK(schedule->Factor(kTotal) == doctest::Approx(0.1));
  CHECK(schedule->Factor(kTotal + 1000) == doctest::Approx(0.1));
}

TEST_CASE("exponential falls by its factor in each epoch, after the warm-up") {
  const auto schedule = Make("exponential", {{"factor", "0.5"}});
  const auto by_steps =
      Make("exponential",
           {{"factor", "0.9"}, {"every", "4"}, {"unit", "steps"}, {"warmup_steps", "12"}});
  for (int64_t step = 0; step < kTotal; ++step) {
    CAPTURE(step);
    const double s = static_cast<double>(step);
    CHECK(schedule->Factor(step) == doctest::Approx(std::exp2(-s / 10)).epsilon(1e-14));
    if (step >= 12)
      CHECK(by_steps->Factor(step) == doctest::Approx(std::pow(0.9, (s - 12) / 4)).epsilon(1e-14));
  }
}

TEST_CASE(
    "plateau reduces after epochs without improvement, pauses in its cooldown, and stops at its "
    "minimum rate") {
  const Kwargs kwargs = {
      {"factor", "0.5"}, {"patience", "2"}, {"min_delta", "0"}, {"cooldown", "1"}, {"min", "0.2"}};
  const auto schedule = Make("plateau", kwargs);
  // Accuracies, and the factor after each. The seventh is in the cooldown; the last reduction is
  // limited by the minimum rate.
  const std::vector<std::pair<double, double>> epochs = {
      {0.5, 1},    {0.6, 1},    {0.6, 1},    {0.55, 0.5}, {0.5, 0.5}, {0.6, 0.5},
      {0.6, 0.25}, {0.7, 0.25}, {0.7, 0.25}, {0.7, 0.2},  {0.1, 0.2}, {0.1, 0.2}};
  for (size_t i = 0; i < epochs.size(); ++i) {
    CAPTURE(i);
    schedule->EndEpoch(epochs[i].first, true);
    CHECK(schedule->Factor(static_cast<int64_t>(i)) == epochs[i].second);
    // Another one restored from its state continues the same.
    const auto resumed = Make("plateau", kwargs);
    resumed->RestoreState(schedule->SaveState());
    CHECK(resumed->SaveState() == schedule->SaveState());
    CHECK(resumed->Factor(0) == epochs[i].second);
  }
  Make("cosine", {})->RestoreState(schedule->SaveState());
  CHECK_THROWS_AS(Make("plateau", {})->RestoreState("plateau much"), Error);
}

TEST_CASE("linear and poly fall to the final rate by a power of the remaining part") {
  for (const double final_factor : {0.0, 0.2}) {
    const auto linear = Make("linear", {{"final", format("{}", final_factor)}});
    const auto cubic = Make(
        "poly", {{"power", "3"}, {"final", format("{}", final_factor)}, {"warmup_steps", "25"}});
    for (int64_t step = 0; step <= kTotal + 5; ++step) {
      CAPTURE(step);
      const double left = step < kTotal ? static_cast<double>(kTotal - step) / kTotal : 0;
      CHECK(linear->Factor(step) ==
            doctest::Approx(final_factor + (1 - final_factor) * left).epsilon(1e-14));
      if (step < 25) continue;
      const double after = step < kTotal ? static_cast<double>(kTotal - step) / 75 : 0;
      CHECK(cubic->Factor(step) ==
            doctest::Approx(final_factor + (1 - final_factor) * after * after * after)
                .epsilon(1e-13));
    }
  }
  CHECK(Make("poly", {})->Factor(50) == doctest::Approx(0.25));
}

TEST_CASE("one_cycle rises to the base rate and falls to its final one") {
  // 100 steps: the top is step 29, the end step 99.
  const auto cosine = Make("one_cycle", {});
  const auto linear = Make(
      "one_cycle", {{"rise", "0.3"}, {"start", "0.1"}, {"final", "0.01"}, {"curve", "linear"}});
  for (int64_t step = 0; step < kTotal; ++step) {
    CAPTURE(step);
    const double s = static_cast<double>(step);
    const double up = (1 - std::cos(std::numbers::pi * s / 29)) / 2,
                 down = (1 - std::cos(std::numbers::pi * (s - 29) / 70)) / 2;
    CHECK(cosine->Factor(step) ==
          doctest::Approx(step <= 29 ? 0.04 + 0.96 * up : 1 + (4e-6 - 1) * down).epsilon(1e-12));
    CHECK(
        linear->Factor(step) ==
        doctest::Approx(step <= 29 ? 0.1 + 0.9 * s / 29 : 1 - 0.99 * (s - 29) / 70).epsilon(1e-12));
  }
  CHECK(cosine->Factor(29) == doctest::Approx(1));
  CHECK(cosine->Factor(99) == doctest::Approx(4e-6));
  CHECK(cosine->Factor(500) == doctest::Approx(4e-6));
  // All fall, all rise, a run of one step.
  CHECK(Make("one_cycle", {{"rise", "0"}})->Factor(0) == 1);
  CHECK(Make("one_cycle", {{"rise", "1"}})->Factor(99) == 1);
  CHECK(std::isfinite(LrSchedule::Create("one_cycle", {}, 1, 1)->Factor(0)));
  CHECK_THROWS_WITH(Make("one_cycle", {{"warmup_epochs", "1"}}),
                    doctest::Contains("warmup_epochs"));
}

TEST_CASE("warm-up rises in equal steps up to the schedule") {
  for (const Kwargs& warmup : {Kwargs{{"warmup_epochs", "2"}}, Kwargs{{"warmup_steps", "20"}}}) {
    Kwargs kwargs = warmup;
    kwargs.emplace_back("warmup_from", "0.2");
    const auto schedule = Make("cosine", kwargs);
    for (int64_t step = 0; step < 20; ++step) {
      CHECK(schedule->Factor(step) ==
            doctest::Approx(0.2 + 0.8 * static_cast<double>(step + 1) / 21).epsilon(1e-14));
    }
    CHECK(schedule->Factor(20) == doctest::Approx(1));
    for (int64_t step = 20; step < kTotal; ++step) {
      const double t = static_cast<double>(step - 20) / 80;
      CHECK(schedule->Factor(step) ==
            doctest::Approx((1 + std::cos(std::numbers::pi * t)) / 2).epsilon(1e-12));
    }
  }
  CHECK_THROWS_WITH(Make("constant", {{"warmup_epochs", "1"}, {"warmup_steps", "3"}}),
                    "schedule constant: give warmup_epochs or warmup_steps, not both");
}

TEST_CASE("unknown schedules and parameters are rejected with the nearest name") {
  CHECK_THROWS_WITH(Make("cosin", {}), doctest::Contains("did you mean 'cosine'?"));
  CHECK_THROWS_WITH(Make("step", {{"every", "3"}, {"facto", "1"}}), doctest::Contains("'factor'"));
  CHECK_THROWS_AS(Make("step", {}), Error);
  for (const std::string& name : LrSchedule::Names())
    CHECK_FALSE(LrSchedule::Describe(name).empty());
}

TEST_CASE("times are finite, not negative, and no longer than any run") {
  for (const char* time : {"inf", "nan", "1e300", "1e19", "-1"}) {
    CAPTURE(time);
    CHECK_THROWS_WITH(Make("step", {{"every", time}}), doctest::Contains("every = '"));
    CHECK_THROWS_WITH(Make("exponential", {{"every", time}}), doctest::Contains("every = '"));
    CHECK_THROWS_WITH(Make("multistep", {{"milestones", format("(1, {})", time)}}),
                      doctest::Contains("milestones = '"));
    CHECK_THROWS_WITH(Make("constant", {{"warmup_epochs", time}}),
                      doctest::Contains("warmup_epochs = '"));
  }
  CHECK_THROWS_AS(Make("constant", {{"warmup_steps", "9223372036854775807"}}), Error);
  CHECK(Make("step", {{"every", "1e9"}})->Factor(1000) == 1);
  CHECK(Make("multistep", {{"milestones", "(0, 1e9)"}})->Factor(0) == doctest::Approx(0.1));
}

}  // namespace
}  // namespace mxtrain

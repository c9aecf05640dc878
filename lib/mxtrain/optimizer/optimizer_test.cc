// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/optimizer/optimizer.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstring>

#include "mxtrain/base/error.h"
#include "tests/support/error_message.h"

namespace mxtrain {
namespace {

std::array<float, kNumScalars> Scalars(const Optimizer& optimizer, const UpdateValues& values) {
  std::array<float, kNumScalars> scalars{};
  REQUIRE(optimizer.NumScalars() == kNumScalars);
  optimizer.FillScalars(values, scalars.data());
  return scalars;
}

TEST_CASE("scalars of a step: rate, decay, scale, correction of the moments") {
  const UpdateValues values{.lr = 0.3, .weight_decay = 0.01, .rescale_grad = 0.125, .step = 7};
  for (const char* name : {"sgd", "nag"}) {
    const auto s = Scalars(*Optimizer::Create(name, {{"momentum", "0.9"}}), values);
    CHECK(s == std::array<float, 4>{0.3f, 0.01f, 0.125f, 1.f});
  }
  for (const char* name : {"adam", "adamw"}) {
    const auto s = Scalars(*Optimizer::Create(name, {{"beta1", "0.8"}, {"beta2", "0.95"}}), values);
    CHECK(s[kScalarLr] == 0.3f);
    CHECK(s[kScalarWeightDecay] == 0.01f);
    CHECK(s[kScalarRescale] == 0.125f);
    CHECK(s[kScalarCorrection] ==
          doctest::Approx(std::sqrt(1 - std::pow(0.95, 7)) / (1 - std::pow(0.8, 7))).epsilon(1e-6));
  }
}

TEST_CASE("scalars of a step: what some rules need besides") {
  const UpdateValues values{.lr = 0.3, .step = 7, .draw = 0xfedcba9876543210};
  for (const char* name : {"ftml", "nadam"})
    CHECK(Scalars(*Optimizer::Create(name, {}), values)[kScalarCorrection] == 7);
  CHECK(Scalars(*Optimizer::Create("adamax", {{"beta1", "0.8"}}), values)[kScalarCorrection] ==
        doctest::Approx(1 / (1 - std::pow(0.8, 7))).epsilon(1e-6));
  const float key = Scalars(*Optimizer::Create("sgld", {}), values)[kScalarCorrection];
  CHECK(std::isnormal(key));
  uint32_t bits = 0;
  std::memcpy(&bits, &key, sizeof(bits));
  CHECK(bits == 0x00800000 + (0x76543210 & 0x3fffffff));
}

TEST_CASE("optimizers select their operator and states") {
  CHECK(Optimizer::Create("sgd", {})->UpdateOperator() == "sgd_update");
  CHECK(Optimizer::Create("sgd", {})->NumStates() == 0);
  CHECK(Optimizer::Create("sgd", {{"momentum", "0.9"}})->UpdateOperator() == "sgd_mom_update");
  CHECK(Optimizer::Create("nag", {{"momentum", "0.9"}})->UpdateOperator() == "nag_mom_update");
  CHECK(Optimizer::Create("adam", {})->NumStates() == 2);
  CHECK(Optimizer::Create("adamw", {})->UpdateOperator() == "adamw_update");
  CHECK(Optimizer::Create("signum", {})->UpdateOperator() == "signum_update");
  CHECK(Optimizer::Create("signum", {{"momentum", "0"}})->UpdateOperator() == "signsgd_update");
  CHECK(Optimizer::Create("signum", {{"momentum", "0"}})->NumStates() == 0);
  CHECK(Optimizer::Create("ftml", {})->NumStates() == 3);
  const auto sgd = Optimizer::Create("sgd", {{"lr", "0.25"}, {"weight_decay", "0.5"}});
  CHECK(sgd->base_lr() == 0.25);
  CHECK(sgd->weight_decay() == 0.5);
}

TEST_CASE("signum without a mean of gradients has no decay outside of the sign") {
  CHECK(test::MessageOf([] {
          Optimizer::Create("signum", {{"momentum", "0"}, {"wd_lh", "0.1"}});
        }) ==
        "optimizer signum: wd_lh = 0.1 has no effect where momentum is 0; use weight_decay, or a "
        "momentum above 0");
  CHECK_NOTHROW(Optimizer::Create("signum", {{"wd_lh", "0.1"}}));
}

TEST_CASE("weight decay is for weights and scales; attributes decide otherwise") {
  CHECK(DefaultMultipliers("fc1_weight", {}).weight_decay == 1);
  CHECK(DefaultMultipliers("bn1_gamma", {}).weight_decay == 1);
  CHECK(DefaultMultipliers("fc1_bias", {}).weight_decay == 0);
  CHECK(DefaultMultipliers("bn1_beta", {}).weight_decay == 0);
  CHECK(DefaultMultipliers("fc1_bias", {{"wd_mult", "2"}}).weight_decay == 2);
  CHECK(DefaultMultipliers("fc1_weight", {{"__wd_mult__", "0"}}).weight_decay == 0);
  CHECK(DefaultMultipliers("fc1_weight", {{"lr_mult", "0.5"}}).lr == 0.5);
  CHECK(DefaultMultipliers("fc1_weight", {}).lr == 1);
  CHECK_THROWS_WITH(DefaultMultipliers("fc1_weight", {{"lr_mult", "much"}}),
                    doctest::Contains("parameter 'fc1_weight': lr_mult = 'much'"));
  for (const char* text : {"inf", "nan", "-1e7"}) {
    CHECK_THROWS_WITH(DefaultMultipliers("fc1_weight", {{"lr_mult", text}}),
                      doctest::Contains("expected a number up to 1000000"));
  }
}

TEST_CASE("unknown optimizers and parameters are rejected with the nearest name") {
  CHECK_THROWS_WITH(Optimizer::Create("adm", {}), doctest::Contains("did you mean 'adam'?"));
  CHECK_THROWS_WITH(Optimizer::Create("sgd", {{"momentun", "0.9"}}),
                    doctest::Contains("'momentum'"));
  CHECK_THROWS_AS(Optimizer::Create("sgd", {{"lr", "-1"}}), Error);
}

// Outside of these ranges an update is NaN, infinite, or never comes to an end.
TEST_CASE("parameters are finite and within the ranges of their formulas") {
  const auto creates = [](const std::string& name, const std::string& key,
                          const std::string& value) {
    try {
      Optimizer::Create(name, {{key, value}});
      return true;
    } catch (const Error& e) {
      CHECK(std::string(e.what()).starts_with("optimizer " + name + ": " + key + " = '"));
      return false;
    }
  };
  for (const std::string& name : Optimizer::Names()) {
    for (const FieldInfo& field : Optimizer::Describe(name)) {
      if (field.type != "number") continue;
      CAPTURE(name);
      CAPTURE(field.name);
      CHECK(creates(name, field.name, field.default_text));
      for (const char* value : {"inf", "nan", "1e300"})
        CHECK_FALSE(creates(name, field.name, value));
      const bool fraction = field.name == "momentum" || field.name == "beta1" ||
                            field.name == "beta2" || field.name == "rho";
      const bool divisor = field.name == "epsilon" && name != "lars";
      CHECK(creates(name, field.name, "1") == !fraction);
      CHECK(creates(name, field.name, "0") == !(divisor || (name == "ftrl" && field.name == "lr")));
      CHECK(creates(name, field.name, "-1") == (field.name == "clip_gradient"));
    }
    CHECK_FALSE(creates(name, "lr", "1e38"));
    CHECK_FALSE(creates(name, "weight_decay", "1e38"));
  }
}

}  // namespace
}  // namespace mxtrain

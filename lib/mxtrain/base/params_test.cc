// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/base/params.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <climits>

namespace mxtrain {
namespace {

enum { kMax, kAvg };

struct LayerParam : Parameter<LayerParam> {
  TShape kernel;
  int num_filter;
  int pool_type;
  float eps;
  bool no_bias;
  std::optional<double> clip;
  std::optional<int> axis;
  DType dtype;
  std::vector<double> ratios;
  std::vector<std::string> names;
  std::string mode;
  double decay, divisor, operand;
  static void Declare(Fields<LayerParam>& f) {
    f.Add("kernel", &LayerParam::kernel).Default(TShape{1, 1}).Help("window, (h, w)");
    f.Add("num_filter", &LayerParam::num_filter)
        .Required()
        .Range(1, INT_MAX)
        .Help("number of output channels");
    f.Add("pool_type", &LayerParam::pool_type).Enum({{"max", kMax}, {"avg", kAvg}}).Default(kMax);
    f.Add("eps", &LayerParam::eps).Default(0.001f).Range(0, 1);
    f.Add("no_bias", &LayerParam::no_bias).Default(false);
    f.Add("clip", &LayerParam::clip).Default(std::nullopt).Range(0);
    f.Add("axis", &LayerParam::axis).Default(std::nullopt);
    f.Add("dtype", &LayerParam::dtype).Default(DType::kFloat32);
    f.Add("ratios", &LayerParam::ratios).Default({1, 0.5}).Range(0, 10);
    f.Add("names", &LayerParam::names).Default({});
    f.Add("mode", &LayerParam::mode).Default("fast");
    f.Add("decay", &LayerParam::decay).Default(0.9).RangeBelow(0, 1);
    f.Add("divisor", &LayerParam::divisor).Default(1).RangeAbove(0);
    f.Add("operand", &LayerParam::operand).Default(1).AnyNumber();
    f.Ignored("workspace", "scratch size of MXNet");
  }
};

LayerParam Read(Kwargs kwargs) {
  LayerParam param;
  param.Init(kwargs, "Layer");
  return param;
}

TEST_CASE("every type parses, and defaults fill the rest") {
  const LayerParam p = Read({{"num_filter", " 8 "},
                             {"kernel", "(3, 5)"},
                             {"pool_type", "avg"},
                             {"eps", "2e-5"},
                             {"no_bias", "True"},
                             {"clip", "5"},
                             {"dtype", "float16"},
                             {"ratios", "(1, 2, .5)"},
                             {"names", "[a, b]"}});
  CHECK(p.num_filter == 8);
  CHECK(p.kernel == TShape{3, 5});
  CHECK(p.pool_type == kAvg);
  CHECK(p.eps == 2e-5f);
  CHECK(p.no_bias);
  CHECK(p.clip == 5.0);
  CHECK_FALSE(p.axis.has_value());
  CHECK(p.dtype == DType::kFloat16);
  CHECK(p.ratios == std::vector<double>{1, 2, 0.5});
  CHECK(p.names == std::vector<std::string>{"a", "b"});
  CHECK(p.mode == "fast");
  CHECK_FALSE(Read({{"num_filter", "1"}, {"clip", "None"}}).clip.has_value());
  CHECK(Read({{"num_filter", "1"}, {"kernel", "3"}}).kernel == TShape{3});
  CHECK(Read({{"num_filter", "1"}, {"no_bias", "0"}}).no_bias == false);
}

TEST_CASE("errors name the owner, the key, the value and what was expected") {
  CHECK_THROWS_WITH_AS(
      Read({}), "Layer needs the parameter 'num_filter' (integer >= 1: number of output channels)",
      Error);
  CHECK_THROWS_WITH_AS(Read({{"num_filters", "8"}}),
                       "Layer has no parameter 'num_filters'; did you mean 'num_filter'?", Error);
  CHECK_THROWS_WITH_AS(Read({{"num_filter", "8.5"}}),
                       "Layer: num_filter = '8.5': expected an integer, got '8.5'", Error);
  CHECK_THROWS_WITH_AS(Read({{"num_filter", "0"}}),
                       "Layer: num_filter = '0': 0 is out of range (>= 1)", Error);
  CHECK_THROWS_WITH_AS(Read({{"num_filter", "1"}, {"eps", "2"}}),
                       "Layer: eps = '2': 2 is out of range (0 .. 1)", Error);
  CHECK_THROWS_WITH_AS(
      Read({{"num_filter", "1"}, {"pool_type", "avrg"}}),
      "Layer: pool_type = 'avrg': 'avrg' is not one of max, avg; did you mean 'avg'?", Error);
  CHECK_THROWS_WITH_AS(Read({{"num_filter", "1"}, {"no_bias", "yes"}}),
                       "Layer: no_bias = 'yes': expected True or False, got 'yes'", Error);
  CHECK_THROWS_AS(Read({{"num_filter", "99999999999"}}), Error);
  NoParam none;
  CHECK_THROWS_WITH_AS(none.Init({{"x", "1"}}, "Flatten"),
                       "Flatten has no parameter 'x'; it takes none", Error);
  try {
    Read({});
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kConfig);
  }
}

TEST_CASE("numbers are finite, within float32 and within their bounds") {
  const auto refusal = [](const std::string& key, const std::string& text) -> std::string {
    try {
      Read({{"num_filter", "1"}, {key, text}});
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const std::pair<std::string, std::vector<std::string>> refused[] = {
      {"eps", {"nan", "inf", "1e300", "1e39", "1e400", "-1e-9"}},
      {"clip", {"inf", "1e39", "nan"}},
      {"ratios", {"(1, inf)", "(nan,)", "(1, 10.5)", "(1e300, 1)", "(-1,)"}},
      {"decay", {"1", "-0.1", "inf", "nan"}},
      {"divisor", {"0", "-1", "1e-60", "inf", "1e300"}}};
  for (const auto& [key, texts] : refused) {
    for (const std::string& text : texts) {
      CAPTURE(text);
      CHECK(refusal(key, text).starts_with(format("Layer: {} = '{}': ", key, text)));
    }
  }
  CHECK(refusal("eps", "1e39") ==
        "Layer: eps = '1e39': expected a finite number of at most 3.4e+38 (float32), got '1e39'");
  CHECK(refusal("decay", "1") == "Layer: decay = '1': 1 is out of range (>= 0, < 1)");
  CHECK(refusal("divisor", "0") == "Layer: divisor = '0': 0 is out of range (> 0)");
  CHECK(Read({{"num_filter", "1"}, {"eps", "1e-60"}}).eps == 0);
  CHECK(Read({{"num_filter", "1"}, {"decay", "1e-400"}}).decay == 0);
  CHECK(Read({{"num_filter", "1"}, {"decay", "0.999999999"}}).decay == 0.999999999);
  CHECK(Read({{"num_filter", "1"}, {"divisor", "1e-37"}}).divisor == 1e-37);
  CHECK(Read({{"num_filter", "1"}, {"clip", "3.4e38"}}).clip == 3.4e38);
  CHECK(Read({{"num_filter", "1"}, {"operand", "-inf"}}).operand < -3.5e38);
}

TEST_CASE("attributes are skipped, ignored keys are accepted and reported") {
  const Kwargs kwargs = {
      {"num_filter", "1"}, {"__lr_mult__", "2"}, {"workspace", "not even a number"}};
  CHECK(Read(kwargs).num_filter == 1);
  CHECK(LayerParam::IgnoredKeys(kwargs) == std::vector<std::string>{"workspace"});
}

// Class names are folder names; "ring, thin" was once read back as two classes.
TEST_CASE("lists of strings round-trip, whatever the strings contain") {
  for (const std::vector<std::string>& texts :
       std::vector<std::vector<std::string>>{{"a", "b"},
                                             {"ring, thin"},
                                             {"ring, thin", "disc"},
                                             {"say \"no\"", "a\\b", "(old)", "[x]"},
                                             {"", " padded ", "\"", ","},
                                             {}}) {
    std::vector<std::string> back;
    params::Parse(params::Print(texts), &back);
    CHECK(back == texts);
  }
  CHECK(params::Print(std::vector<std::string>{"a", "b c"}) == "(a, b c)");
  std::vector<std::string> as_written;
  params::Parse("[a, b,c]", &as_written);
  CHECK(as_written == std::vector<std::string>{"a", "b", "c"});
}

TEST_CASE("parameters print in MXNet's syntax and parse back") {
  const LayerParam p = Read({{"num_filter", "8"}, {"eps", "0.1"}, {"axis", "2"}});
  const Kwargs text = p.ToKwargs();
  CHECK(text == Kwargs{{"kernel", "(1, 1)"},
                       {"num_filter", "8"},
                       {"pool_type", "max"},
                       {"eps", "0.1"},
                       {"no_bias", "False"},
                       {"clip", "None"},
                       {"axis", "2"},
                       {"dtype", "float32"},
                       {"ratios", "(1, 0.5)"},
                       {"names", "()"},
                       {"mode", "fast"},
                       {"decay", "0.9"},
                       {"divisor", "1"},
                       {"operand", "1"}});
  CHECK(Read(text).ToKwargs() == text);
}

TEST_CASE("the description is complete") {
  const std::vector<FieldInfo> infos = LayerParam::Describe();
  REQUIRE(infos.size() == 15);
  CHECK(infos[1].required);
  CHECK(infos[1].range == ">= 1");
  CHECK(infos[2].type == "max | avg");
  CHECK(infos[2].default_text == "max");
  CHECK(infos[3].range == "0 .. 1");
  CHECK(infos[11].range == ">= 0, < 1");
  CHECK(infos[12].range == "> 0");
  CHECK(infos[14].ignored);
}

struct GroupsParam : Parameter<GroupsParam> {
  uint32_t groups;
  static void Declare(Fields<GroupsParam>& f) {
    f.Add("groups", &GroupsParam::groups).Default(1).Range(1);
  }
};

TEST_CASE("an unsigned integer has its range, its default and its text") {
  GroupsParam p;
  p.Init({}, "Layer");
  CHECK(p.groups == 1);
  p.Init({{"groups", "4294967295"}}, "Layer");
  CHECK(p.groups == 4294967295U);
  CHECK(p.ToKwargs() == Kwargs{{"groups", "4294967295"}});
  CHECK(GroupsParam::Describe()[0].type == "integer");
  for (const char* wrong : {"-1", "0", "4294967296", "1.5", "x"})
    CHECK_THROWS_WITH_AS(p.Init({{"groups", wrong}}, "Layer"), doctest::Contains("groups"), Error);
}

}  // namespace
}  // namespace mxtrain

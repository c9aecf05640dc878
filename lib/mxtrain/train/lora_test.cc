// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/train/lora.h"

#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <functional>

#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/initializer/initializer.h"
#include "mxtrain/train/checkpoint.h"
#include "mxtrain/train/model.h"
#include "tests/support/operator_case.h"
#include "tests/support/small_nets.h"
#include "tests/support/temp_dir.h"

namespace mxtrain {
namespace {

constexpr int64_t kBatchOfLora = 3;

Symbol LayerOf(const std::string& op, const std::string& name, const Kwargs& kwargs,
               const Symbol& input) {
  return Symbol::Create(test::TestRegistry(), op, name, kwargs, std::vector{input});
}

// Images [2, 7, 6]: a convolution with strides and dilation, one of 1 x 1, and two layers.
Symbol AdaptedNet() {
  const Symbol conv1 = LayerOf("Convolution", "conv1",
                               {{"num_filter", "5"},
                                {"kernel", "(3, 2)"},
                                {"stride", "(2, 1)"},
                                {"pad", "(1, 2)"},
                                {"dilate", "(1, 2)"}},
                               Symbol::Variable("data"));
  const Symbol conv2 = LayerOf("Convolution", "conv2",
                               {{"num_filter", "4"}, {"kernel", "(1, 1)"}, {"no_bias", "True"}},
                               LayerOf("Activation", "bent", {{"act_type", "tanh"}}, conv1));
  const Symbol fc1 = LayerOf("FullyConnected", "fc1", {{"num_hidden", "6"}}, conv2);
  const Symbol fc2 = LayerOf("FullyConnected", "fc2", {{"num_hidden", "3"}, {"flatten", "False"}},
                             LayerOf("Activation", "bent2", {{"act_type", "tanh"}}, fc1));
  return LayerOf("SoftmaxOutput", "softmax", {}, fc2);
}

LoraOptions AllLayers() {
  return {.layers = {"conv*", "fc*"}, .rank = 2, .alpha = 3};
}

// A run of it, as far as files are concerned.
struct AdaptedRun {
  std::unique_ptr<Runtime> runtime = test::NewRuntime();
  test::TempDir folder;
  Symbol plain = AdaptedNet(), adapted = WithLora(test::TestRegistry(), plain, AllLayers());
  std::map<std::string, NDArray> args;  // of the adapted net
  std::string base = folder.path("base.params"), file = folder.path("run/checkpoints/last");

  AdaptedRun() {
    for (const auto& [name, shape] : Shapes(adapted)) {
      if (name == "data" || name == "softmax_label") continue;
      args[name] = NDArray(*runtime, shape);
      std::vector<double> values = test::ValuesFor(name, shape.Size());
      for (double& value : values) value *= 0.4;
      test::SetValues(args[name], values);
    }
    WriteBase();
    std::filesystem::create_directories(folder.path("run/checkpoints"));
  }

  static std::map<std::string, TShape> Shapes(const Symbol& net) {
    const Symbol::Shapes found = net.InferShape({{"data", {kBatchOfLora, 2, 7, 6}}});
    std::map<std::string, TShape> shapes;
    for (size_t i = 0; i < found.arguments.size(); ++i)
      shapes[net.ListArguments()[i]] = found.arguments[i];
    return shapes;
  }
  static bool IsFactor(const std::string& name) { return name.find("_lora_") != std::string::npos; }

  // With the names of another program; one matrix is [in, out] there.
  void WriteBase(double factor = 1) {
    NamedArrays arrays;
    for (const auto& [name, array] : args) {
      if (IsFactor(name) || name == "fc2_bias") continue;
      std::vector<double> values = test::GetValues(array);
      for (double& value : values) value *= factor;
      NDArray written(*runtime, array.shape());
      test::SetValues(written, values);
      arrays.names.push_back("theirs." + name);
      arrays.arrays.push_back(name == "fc1_weight" ? TransposedMatrix(written) : written);
    }
    SaveArrays(base, arrays);
  }

  BaseFile Base() {
    BaseFile of{base,
                "",
                "",
                {{"^theirs\\.fc1_weight$", "theirs.fc1_weight", true}, {"^theirs\\.", "", false}},
                ""};
    of.checksum = BaseChecksum(LoadWeights(*runtime, base, NameMap(of.rules)), FrozenNames());
    return of;
  }
  std::vector<std::string> FrozenNames() const {
    std::vector<std::string> names;
    for (const auto& [name, array] : args) {
      if (!IsFactor(name) && name != "fc2_bias") names.push_back(name);
    }
    return names;
  }

  // fc2_bias learns itself.
  Checkpoint Saved() {
    Checkpoint c;
    c.model.symbol_json = plain.ToJson();
    c.model.inputs = {{"data", {2, 7, 6}}};
    c.model.labels = {{"softmax_label", TShape(std::vector<int64_t>{})}};
    c.model.batch_size = kBatchOfLora;
    c.model.lora = LoraInfo{LoraFactorsOf(plain, AllLayers()), AllLayers().scale(), Base()};
    for (const auto& [name, array] : args) {
      if (IsFactor(name) || name == "fc2_bias") c.args[name] = array;
    }
    return c;
  }

  std::vector<double> Forward(const Symbol& net, const std::map<std::string, NDArray>& values) {
    executor::BindRequest request;
    request.is_train = false;
    request.inputs = {"data", "softmax_label"};
    request.shapes = {{"data", {kBatchOfLora, 2, 7, 6}}};
    const auto executor = Executor::SimpleBind(*runtime, net, request);
    for (const auto& [name, array] : executor->args()) NDArray(array).CopyFrom(values.at(name));
    NDArray data(*runtime, {kBatchOfLora, 2, 7, 6}), label(*runtime, {kBatchOfLora});
    test::SetValues(data, test::ValuesFor("data", data.shape().Size()));
    label.Fill(0);
    executor->Forward(std::vector{data, label});
    return test::GetValues(executor->outputs()[0]);
  }
};

double LargestGap(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

TEST_CASE_FIXTURE(AdaptedRun, "LoRA: a merged model gives the outputs of the net with factors") {
  SaveCheckpoint(file, Saved());
  CHECK(std::filesystem::file_size(file) < 20000);
  const Model model = LoadModel(*runtime, folder.path("run"));
  CHECK(model.symbol.ListArguments() == plain.ListArguments());
  CHECK_FALSE(model.info.lora.has_value());
  const std::vector<double> with_factors = Forward(adapted, args),
                            merged = Forward(model.symbol, model.args);
  CHECK(LargestGap(with_factors, merged) < 1e-6);
  CHECK(LargestGap(with_factors, Forward(plain, args)) > 1e-2);
  // Weights of another net are merged too.
  CHECK(ReadWeights(*runtime, file).arrays.at("fc1_weight").ToVector() ==
        model.args.at("fc1_weight").ToVector());

  // One weight by its definition, in double.
  const std::vector<double> w = test::GetValues(args.at("conv1_weight")),
                            a = test::GetValues(args.at("conv1_lora_a_weight")),
                            b = test::GetValues(args.at("conv1_lora_b_weight")),
                            found = test::GetValues(model.args.at("conv1_weight"));
  const size_t inputs = w.size() / 5;
  double largest = 0;
  for (size_t o = 0; o < 5; ++o) {
    for (size_t i = 0; i < inputs; ++i) {
      const double expected =
          w[o * inputs + i] + 1.5 * (b[o * 2] * a[i] + b[o * 2 + 1] * a[inputs + i]);
      largest = std::max(largest, std::abs(expected - found[o * inputs + i]));
    }
  }
  CHECK(largest < 1e-7);
}

TEST_CASE_FIXTURE(AdaptedRun, "LoRA: factors begin with B = 0, and A has the variance 1 / (3 in)") {
  const Symbol net =
      WithLora(test::TestRegistry(),
               LayerOf("FullyConnected", "wide", {{"num_hidden", "40"}}, Symbol::Variable("data")),
               {.layers = {"wide"}, .rank = 16, .alpha = 16, .dropout = 0.25});
  const auto attrs = net.ListAttrs();
  NDArray a(*runtime, {16, 500}), b(*runtime, {40, 16});
  const auto any = Initializer::Create("one", {});
  InitializeByName("wide_lora_a_weight", attrs.at("wide_lora_a_weight").at("__init__"), *any, 1,
                   &a);
  InitializeByName("wide_lora_b_weight", attrs.at("wide_lora_b_weight").at("__init__"), *any, 1,
                   &b);
  double squares = 0, sum = 0;
  for (const double value : test::GetValues(a)) squares += value * value, sum += value;
  CHECK(std::abs(squares / 8000 * 3 * 500 - 1) < 0.05);
  CHECK(std::abs(sum / 8000) < 0.001);
  CHECK(test::GetValues(b) == std::vector<double>(640));
  CHECK(net.ListOutputs() == std::vector<std::string>{"wide_output"});
  const std::string json = net.ToJson();
  CHECK(json.find("wide_lora_dropout") != std::string::npos);
}

TEST_CASE_FIXTURE(
    AdaptedRun,
    "LoRA: a base that is gone or has changed is an error; a copy beside the run will do") {
  SaveCheckpoint(file, Saved());
  const std::vector<double> expected = Forward(adapted, args);
  const auto why = [&] {
    try {
      LoadModel(*runtime, file);
    } catch (const Error& e) {
      return format("{} {}", static_cast<int>(e.kind()), e.what());
    }
    return std::string();
  };
  WriteBase(1.25);
  CHECK(why().find("whose weights have changed since (checksum ") != std::string::npos);
  CHECK(why().starts_with(format("{} ", static_cast<int>(ErrorKind::kData))));
  WriteBase();
  for (const char* place : {"run/base.params", "run/checkpoints/base.params"}) {
    std::filesystem::rename(base, folder.path("hidden"));
    CHECK(why().find(format("{} holds what LoRA added to {}, which is not there any more", file,
                            base)) != std::string::npos);
    CHECK(why().starts_with(format("{} ", static_cast<int>(ErrorKind::kFileSystem))));
    std::filesystem::rename(folder.path("hidden"), folder.path(place));
    const Model model = LoadModel(*runtime, file);
    CHECK(LargestGap(expected, Forward(model.symbol, model.args)) < 1e-6);
    std::filesystem::rename(folder.path(place), base);
  }
}

TEST_CASE_FIXTURE(AdaptedRun, "LoRA: damaged factors and endless bases are refused") {
  const auto refuses = [&](const std::function<void(Checkpoint*)>& damage,
                           const std::string& text) {
    Checkpoint c = Saved();
    damage(&c);
    SaveCheckpoint(file, c);
    CHECK_THROWS_WITH_AS(LoadModel(*runtime, file), doctest::Contains(text.c_str()), Error);
  };
  refuses([](Checkpoint* c) { c->args.erase("fc1_lora_b_weight"); },
          "'fc1_lora_b_weight' is missing");
  refuses(
      [this](Checkpoint* c) {
        c->args["fc1_lora_b_weight"] = NDArray(*runtime, {2, 6, 2});
      },
      "do not fit 'fc1_weight'");
  refuses([](Checkpoint* c) { c->model.lora->factors[0].weight = "nothing"; },
          "'nothing' is missing");
  refuses([](Checkpoint* c) { c->model.lora->base.rules[0].pattern = "("; },
          "is not a valid regular expression");
  refuses([this](Checkpoint* c) { c->model.lora->base.file = file; },
          "checkpoints, each the base of the next");
}

TEST_CASE("LoRA: layers that cannot have factors are named") {
  const auto refuses = [](const Symbol& net, const std::string& layers, const std::string& text) {
    CHECK_THROWS_WITH_AS(LoraFactorsOf(net, {.layers = {layers}}), doctest::Contains(text.c_str()),
                         Error);
  };
  refuses(AdaptedNet(), "fc3", "fc3");
  refuses(AdaptedNet(), "bent*", "FullyConnected or Convolution");
  const Symbol data = Symbol::Variable("data");
  refuses(LayerOf("Convolution", "deep",
                  {{"num_filter", "4"}, {"kernel", "(3, 3)"}, {"num_group", "2"}}, data),
          "deep", "Convolution 'deep' has 2 groups of channels");
  const Symbol shared = Symbol::Variable("shared");
  const auto reader = [&](const std::string& name, const Symbol& input) {
    return Symbol::Create(test::TestRegistry(), "FullyConnected", name,
                          {{"num_hidden", "4"}, {"no_bias", "True"}}, std::vector{input, shared});
  };
  refuses(reader("second", reader("first", data)), "sec*",
          "shares its weight 'shared' with 'first'");
  CHECK(LoraFactorsOf(AdaptedNet(), {.layers = {"fc*"}}).size() == 2);
  CHECK(LoraFactorsOf(AdaptedNet(), {}).empty());
}

}  // namespace
}  // namespace mxtrain

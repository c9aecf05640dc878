// SPDX-License-Identifier: Apache-2.0
#include "app/config/zoo.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "app/config/name_list.h"
#include "config_test.h"
#include "mxtrain/base/error.h"
#include "tests/support/build_paths.h"

namespace mxtrain::test {
namespace {

const std::string kData = "data: {train: {source: image_folder, path: images}}\n";

Outcome Use(const std::string& text, std::vector<std::string> overrides = {}) {
  TemporaryFolder folder;
  folder.Write("net.yaml", text + kData);
  config::LoadRequest request;
  request.files = {"net.yaml"};
  request.overrides = std::move(overrides);
  request.working_folder = folder.path();
  static const auto registry = BuiltinOperators();  // composite operators of a net refer to it
  return LoadAndBuild(request, *registry);
}

int64_t Classes(const Outcome& o) {
  const Symbol::Shapes shapes = o.net.symbol.InferShape(config::BatchShapes(o.net, 2));
  return shapes.complete ? shapes.outputs[0][1] : -1;
}

TEST_CASE("nets are found beside the program, whatever the working folder") {
  const std::vector<std::string> names = config::NetNames();
  CHECK(std::find(names.begin(), names.end(), "resnet18") != names.end());
  CHECK(names.size() >= 30);
  CHECK(std::filesystem::equivalent(config::NetFile("resnet18"),
                                    SourceDir() / "configs/imagenet/resnet18.yaml"));
  CHECK(std::find(names.begin(), names.end(), "yolox_nano") != names.end());
  CHECK(std::filesystem::equivalent(config::NetFile("yolox_nano"),
                                    SourceDir() / "configs/detection/yolox_nano.yaml"));
  CHECK_THROWS_WITH_AS(config::NetFile("resnet81"),
                       doctest::Contains("there is no net 'resnet81'; did you mean"), Error);
}

TEST_CASE("a net by name: classes, size, variables; what the file says wins") {
  CHECK(Classes(Use("net: {use: squeezenet1_1, classes: 12}\n")) == 12);
  CHECK(Classes(Use("net: {use: squeezenet1_1}\n")) == 1000);  // of the data, in these tests
  CHECK(Classes(Use("net: {use: squeezenet1_1, classes: 12}\n", {"net.classes=5"})) == 5);
  CHECK(Classes(Use("net: {use: squeezenet1_1, classes: 12}\n", {"vars.classes=6"})) == 6);
  CHECK(Classes(Use("net: {input: [3, 64, 64]}\n", {"net.use=squeezenet1_1"})) == 1000);
  const Outcome o =
      Use("net: {use: resnet18, input: [3, 64, 64], classes: 3}\nvars: {units1: 1}\n");
  CHECK(o.text == "");
  CHECK(o.net.inputs[0].shape == TShape{3, 64, 64});
  const std::vector<std::string> names = o.net.symbol.ListArguments();
  CHECK(std::find(names.begin(), names.end(), "stage1_unit1_a_conv_weight") == names.end());
  CHECK(std::find(names.begin(), names.end(), "stage2_unit1_a_conv_weight") != names.end());
}

TEST_CASE("a net by name brings its list of names and initializer, and no recipe") {
  const config::TrainConfig plain = Use("net: {use: resnet18}\n").loaded.config.train;
  CHECK(plain.weights.map.ends_with("imagenet/names/resnet.yaml"));
  CHECK(plain.initializer.params.size() == 3);
  CHECK(plain.epochs == 10);
  CHECK_FALSE(plain.metrics.has_value());
  const config::TrainConfig own =
      Use("net: {use: resnet18}\ntrain: {weights: a.pth, initializer: {normal: 0.1}}\n")
          .loaded.config.train;
  CHECK(own.weights.file.ends_with("/a.pth"));
  CHECK(own.weights.map.ends_with("imagenet/names/resnet.yaml"));
  CHECK(own.initializer.name == "normal");
  CHECK(own.initializer.params.size() == 1);
}

TEST_CASE("wrong uses of a net by name are errors at their places") {
  const auto says = [](const std::string& text, const std::string& part) {
    const Outcome o = Use(text);
    CAPTURE(o.text);
    CHECK(o.text.find(part) != std::string::npos);
    CHECK(o.text.find("net.yaml:1:") != std::string::npos);
  };
  says("net: {use: resnet81}\n", "there is no net 'resnet81'");
  says("net: {use: [resnet18]}\n", "net.use: expected a name, got the list");
  says("net: {use: resnet18, layers: [Flatten]}\n", "none takes a layer of resnet18 by its name");
  says("net: {use: resnet18, decoder: piramid}\n",
       "there is no decoder 'piramid'; did you mean 'pyramid'?");
  says("net: {decoder: pyramid, input: [4], layers: [SoftmaxOutput]}\n",
       "net.decoder needs net.use");
  says("net: {use: alexnet, decoder: pyramid}\n",
       "alexnet does not say which of its layers is stride32");
  says("net: {classes: 3, input: [4], layers: [SoftmaxOutput]}\n", "net.classes needs net.use");
  says("net: {use: resnet18, clases: 3}\n", "net has no key 'clases'");
  says("net: {use: resnet18, until: feature}\n",
       "net.until: resnet18 has no stage or layer 'feature'; did you mean 'features'?");
  says("net: {use: resnet18, until: feature}\n",
       "its stages are stride2, stride4, stride8, stride16, stride32; its layers are stem, "
       "stem_relu, "
       "stage1, stage2, stage3, stage4, features, fc, softmax");
  says("net: {use: resnet18, until: [stage1]}\n", "net.until: expected a name, got the list");
  says("net: {use: resnet18, until: units1}\n", "has no stage or layer 'units1'");
  says("net: {until: features, input: [4], layers: [SoftmaxOutput]}\n", "net.until needs net.use");
  says("net: {use: resnet18, until: stage3, decoder: pyramid}\n", "net.until next to net.decoder");
  says("net: {use: resnet18, until: stage3, layers: [{Flatten: {inputs: stage4}}]}\n",
       "'stage4' is a layer of resnet18 behind 'stage3', where net.until ends it");
  says(
      "net: {use: resnet18, until: features, inputs: {image: [3, 64, 64], size: [2]}, layers: "
      "[SoftmaxOutput]}\n",
      "net.inputs: resnet18 reads an input 'data', which is not among them");
  says("net: {use: ssdlite320_mobilenet_v3_large, inputs: {data: [3, 64, 64], size: [2]}}\n",
       "net.inputs: the layers of ssdlite320_mobilenet_v3_large say the size of images");
}

TEST_CASE("layers and decoders continue a net by name behind the last layer that they take") {
  const Outcome own = Use(
      "net: {use: resnet18, classes: 7, input: [3, 64, 96], layers: [{Convolution: {name: mine, "
      "inputs: stage3, num_filter: \"${classes}\", kernel: 1}}, {SoftmaxOutput: {multi_output: "
      "true}}]}\n");
  REQUIRE(own.text == "");
  const std::vector<std::string> names = own.net.symbol.ListArguments();
  const auto has = [&names](const std::string& name) {
    return std::ranges::find(names, name) != names.end();
  };
  CHECK(has("stage3_unit1_b_conv_weight"));
  CHECK_FALSE(has("stage4_unit0_a_conv_weight"));
  CHECK_FALSE(has("fc_weight"));
  const Symbol::Shapes shapes = own.net.symbol.InferShape({{"data", {2, 3, 64, 96}}});
  CHECK(shapes.outputs.at(0) == TShape{2, 7, 4, 6});
  for (const char* trunk :
       {"efficientnet_b0", "efficientnet_lite0", "mobilenet_v2", "mobilenet_v3_large",
        "mobilenet_v3_small", "resnet18", "resnet34", "resnet50"}) {
    CAPTURE(trunk);
    for (const char* decoder : {"pyramid", "deeplab", "unet"}) {
      CAPTURE(decoder);
      const Outcome o = Use(format(
          "net: {{use: {}, classes: 5, decoder: {}, input: [3, 64, 96]}}\n", trunk, decoder));
      REQUIRE(o.text == "");
      const Symbol::Shapes known = o.net.symbol.InferShape({{"data", {2, 3, 64, 96}}});
      CHECK(known.complete);
      CHECK(known.outputs.at(0).ToString() == "[2, 5, 64, 96]");
    }
    const Outcome boxes =
        Use(format("net: {{use: {}, classes: 5, decoder: boxes, input: [3, 64, 96]}}\n", trunk));
    REQUIRE(boxes.text == "");
    const std::vector<TShape> outputs =
        boxes.net.symbol.InferShape({{"data", {2, 3, 64, 96}}}).outputs;
    CHECK(outputs.at(0) == TShape{2});
    CHECK(outputs.at(1) == TShape{2, 100, 6});
  }
}

TEST_CASE("every net for ImageNet ends at its features, beside other inputs, with other heads") {
  for (const std::string& net : config::NetNames()) {
    if (net.starts_with("yolox") || net.starts_with("ssdlite") || net.starts_with("fasterrcnn"))
      continue;  // detectors
    CAPTURE(net);
    const bool sized = net.starts_with("vit") || net == "efficientnet_v2_s";
    const std::string side = sized ? "'${size}'" : net == "inception_v3" ? "299" : "224";
    // The last layer of squeezenet is a convolution.
    const std::string row = net == "squeezenet1_1" ? "{Flatten: {name: row}}, " : "";
    const Outcome o = Use(format(
        "net: {{use: {0}, until: features, inputs: {{data: [3, {1}, {1}], size: [2]}}, layers: "
        "[{2}{{FullyConnected: {{name: kinds, num_hidden: 4}}}}, {{SoftmaxOutput: {{name: "
        "kind}}}}, {{FullyConnected: {{name: price_of, inputs: size, num_hidden: 1}}}}, "
        "{{LinearRegressionOutput: {{name: price}}}}]}}\n",
        net, side, row));
    REQUIRE(o.text == "");
    const Symbol::Shapes shapes = o.net.symbol.InferShape(config::BatchShapes(o.net, 2));
    REQUIRE(shapes.complete);
    CHECK(shapes.outputs == std::vector<TShape>{TShape{2, 4}, TShape{2, 1}});
    for (const std::string& name : o.net.symbol.ListArguments())
      CHECK_MESSAGE(!name.starts_with("fc_"), name);
    // Chosen for a last layer of many outputs.
    CHECK(o.loaded.config.train.initializer.name == "xavier");
    CHECK(o.loaded.config.train.initializer.params.empty());
  }
}

TEST_CASE("net.until: a stage, a layer, alone or with layers") {
  const auto width = [](const std::string& more) {
    const Outcome o =
        Use("net: {use: resnet18, input: [3, 64, 96], " + more + "}\nvars: {smoothing: 0}\n");
    CAPTURE(o.text);
    REQUIRE(o.text == "");
    return o.net.symbol.InferShape({{"data", {2, 3, 64, 96}}}).outputs.at(0);
  };
  CHECK(width("until: features") == TShape{2, 512});
  CHECK(width("until: stride8") == TShape{2, 128, 8, 12});
  CHECK(width("until: stage2") == TShape{2, 128, 8, 12});
  // Layers take those before the end by their names, too.
  CHECK(
      width("until: stage3, layers: [{Convolution: {num_filter: 5, kernel: 1}}, {Pooling: {name: "
            "half, inputs: stage2, kernel: 2, stride: 2}}, {Concat: {inputs: [convolution0, half], "
            "dim: 1}}]") == TShape{2, 133, 4, 6});
  CHECK(width("until: stage4, layers: [Flatten]").ndim() == 2);
}

// The size of what the layer of this stride gives for images of 64 x 96.
TShape SizeAt(const std::string& trunk, const std::string& stride, const std::string& vars) {
  const Outcome o = Use(
      format("net: {{use: {}, input: [3, 64, 96], layers: [{{Convolution: {{inputs: \"${{{}}}\", "
             "num_filter: 1, kernel: 1}}}}, {{MakeLoss: {{name: loss}}}}]}}\nvars: {{{}}}\n",
             trunk, stride, vars));
  if (o.text != "") return TShape();
  const TShape shape = o.net.symbol.InferShape({{"data", {2, 3, 64, 96}}}).outputs.at(0);
  return {shape[2], shape[3]};
}

TEST_CASE("layers have the strides that a net says; output_stride dilates its last stages") {
  for (const char* trunk : {"efficientnet_b0", "mobilenet_v2", "mobilenet_v3_large",
                            "mobilenet_v3_small", "resnet18", "resnet50"}) {
    CAPTURE(trunk);
    for (const int64_t stride : {2, 4, 8, 16, 32})
      CHECK(SizeAt(trunk, format("stride{}", stride), "") == TShape{64 / stride, 96 / stride});
  }
  for (const char* trunk : {"mobilenet_v3_large", "mobilenet_v3_small", "resnet50"}) {
    CAPTURE(trunk);
    CHECK(SizeAt(trunk, "stride32", "output_stride: 16") == TShape{4, 6});
    CHECK(SizeAt(trunk, "stride16", "output_stride: 16") == TShape{4, 6});
  }
  CHECK(SizeAt("resnet101", "stride32", "output_stride: 8") == TShape{8, 12});
  const Outcome wrong = Use("net: {use: mobilenet_v3_large}\nvars: {output_stride: 8}\n");
  CHECK(wrong.text.find("stride") != std::string::npos);
}

TEST_CASE("a pinned file of weights is one text") {
  const std::string sum(64, 'a');
  const auto file = [&](const std::string& weights) {
    const Outcome o = Use("net: {use: resnet18}\ntrain: {weights: " + weights + "}\n");
    return o.text.empty() ? o.loaded.config.train.weights.file : o.text;
  };
  CHECK(file("{file: 'https://example.org/a.pth', sha256: " + sum + "}") ==
        "https://example.org/a.pth#sha256=" + sum);
  CHECK(file("'hf://a/b/c.pth#sha256=" + sum + "'") == "hf://a/b/c.pth#sha256=" + sum);
  CHECK(file("{file: a.pth, sha256: " + sum + "}").ends_with("/a.pth#sha256=" + sum));
  CHECK(file("{sha256: " + sum + "}").find("train.weights.sha256 needs train.weights.file") !=
        std::string::npos);
  CHECK(file("{file: a.pth, sha256: abc}").find("expected 64 hexadecimal digits") !=
        std::string::npos);
  CHECK(file("'http://example.org/a'").find("use https") != std::string::npos);
}

struct Lists {
  TemporaryFolder folder;
  config::NameList Read(const std::string& text, const std::string& net = "") {
    folder.Write("names.yaml", text);
    return config::ReadNameList((folder.path() / "names.yaml").string(), net);
  }
  std::string ErrorOf(const std::string& text) {
    try {
      Read(text);
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::kConfig);
      return error.what();
    }
    return "";
  }
};

TEST_CASE_FIXTURE(Lists, "lists of names: rules alone, or with families") {
  const config::NameList plain = Read("- [a, b]\n- [c, null]\n");
  CHECK(plain.rules.Apply("a") == "b");
  CHECK_FALSE(plain.rules.Apply("c").has_value());
  REQUIRE(plain.families.size() == 1);
  CHECK(plain.families[0].name == "torchvision");
  CHECK(plain.families[0].Owns({"anything"}));

  const std::string text =
      "families:\n  one: {has: '^a'}\n"
      "  two: {has: '^b', interpolation: bicubic, vars: {bn_eps: 0.001}, nets: {n: {mean: [0, 0, "
      "0.5], std: [1, 1, 2]}}}\nrules:\n- [a, b]\n";
  const config::NameList list = Read(text, "n");
  REQUIRE(list.families.size() == 2);
  const config::WeightsFamily &one = list.families[0], &two = list.families[1];
  CHECK(one.Owns({"x", "ab"}));
  CHECK_FALSE(one.Owns({"x", "ba"}));
  CHECK(one.mean == std::vector<double>{0.485, 0.456, 0.406});
  CHECK(two.mean == std::vector<double>{0, 0, 0.5});
  CHECK(two.interpolation == "bicubic");
  CHECK(two.vars[0] == std::pair<std::string, std::string>("bn_eps", "0.001"));
  CHECK(two.DiffersFrom(one));
  CHECK_FALSE(one.DiffersFrom(one));
  CHECK(Read(text, "other").families[1].mean == one.mean);
}

TEST_CASE_FIXTURE(Lists, "lists of names that are none") {
  const auto says = [this](const std::string& text, const std::string& part) {
    const std::string error = ErrorOf(text);
    CAPTURE(error);
    CHECK(error.find(part) != std::string::npos);
  };
  says("{}", "a name map must be a list");
  says("rule: []", "a name map has no key 'rule'");
  says("rules: [[a]]", "is not a rule");
  says("{rules: [], families: [a]}", "families: expected a map");
  says("{rules: [], families: {a: b}}", "expected a map, got 'b'");
  says("{rules: [], families: {a: {had: b}}}", "a family has no key 'had'");
  says("{rules: [], families: {a: {mean: [1, 2]}}}", "mean: not the list");
  says("{rules: [], families: {a: {vars: 2}}}", "vars: not '2'");
  says("{rules: [], families: {a: {has: '('}}}", "is not a valid regular expression");
}

TEST_CASE("every family of the shipped lists is read, and they tell one another apart") {
  for (const auto& entry :
       std::filesystem::directory_iterator(SourceDir() / "configs/imagenet/names")) {
    CAPTURE(entry.path().string());
    CHECK(config::ReadNameList(entry.path().string()).families.size() >= 1);
  }
  const config::NameList list = config::ReadNameList(
      (SourceDir() / "configs/imagenet/names/efficientnet.yaml").string(), "efficientnet_lite0");
  const auto owners = [&list](const std::string& array) {
    std::vector<std::string> names;
    for (const config::WeightsFamily& f : list.families) {
      if (f.Owns({array})) names.push_back(f.name);
    }
    return names;
  };
  CHECK(owners("features.0.0.weight") == std::vector<std::string>{"torchvision"});
  CHECK(owners("_conv_stem.weight") == std::vector<std::string>{"lukemelas"});
  CHECK(owners("conv_stem.weight") == std::vector<std::string>{"timm", "timm_tf"});
  CHECK(list.rules.Apply("_blocks.10._bn1.running_var") == "stage5_unit2_depthwise_bn_moving_var");
  CHECK(list.rules.Apply("_blocks.0._project_conv.weight") == "stage1_unit0_project_conv_weight");
  CHECK(list.rules.Apply("_bn1.bias") == "head_bn_beta");
  CHECK(list.rules.Apply("_fc.weight") == "fc_weight");
}

}  // namespace
}  // namespace mxtrain::test

// SPDX-License-Identifier: Apache-2.0
// Every shipped configuration loads without diagnostics, and the nets have the published numbers of
// parameters.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "app/config/net_shapes.h"
#include "config_test.h"
#include "shape_operators.h"
#include "tests/support/build_paths.h"
#include "tests/support/configs.h"

namespace mxtrain::test {
namespace {

namespace fs = std::filesystem;

Outcome Load(const fs::path& file) {
  // Operators that this build lacks are represented by their shapes.
  static const std::shared_ptr<OperatorRegistry> registry = [] {
    auto operators = BuiltinOperators();
    AddShapeOperators(*operators);
    return operators;
  }();
  config::LoadRequest request;
  request.files = {file.string()};
  return LoadAndBuild(request, *registry);
}

int64_t CountParameters(const config::Net& net) {
  const std::map<std::string, TShape> known = config::BatchShapes(net, 2);
  const Symbol::Shapes shapes = net.symbol.InferShape(known);
  const std::vector<std::string> names = net.symbol.ListArguments();
  int64_t count = 0;
  for (size_t i = 0; i < names.size(); ++i) {
    const bool label = std::any_of(net.labels.begin(), net.labels.end(),
                                   [&](const config::NetInput& l) { return l.name == names[i]; });
    if (!known.contains(names[i]) && !label) count += shapes.arguments[i].Size();
  }
  return count;
}

TEST_CASE("the numbers of parameters are the published ones") {
  // By torchvision, without auxiliary heads; EfficientNet-Lite0, ViT-Ti and ViT-S by timm.
  const std::map<std::string, int64_t> published = {
      {"alexnet", 61100840},
      {"convnext_tiny", 28589128},
      {"densenet121", 7978856},
      {"efficientnet_b0", 5288548},
      {"efficientnet_lite0", 4652008},
      {"efficientnet_v2_s", 21458488},
      {"googlenet", 6624904},
      {"inception_v3", 23834568},
      {"mnasnet1_0", 4383312},
      {"mobilenet_v2", 3504872},
      {"mobilenet_v3_large", 5483032},
      {"mobilenet_v3_small", 2542856},
      {"regnet_y_400mf", 4344144},
      {"resnet101", 44549160},
      {"resnet152", 60192808},
      {"resnet18", 11689512},
      {"resnet34", 21797672},
      {"resnet50", 25557032},
      {"resnext50_32x4d", 25028904},
      {"shufflenet_v2_x1_0", 2278604},
      {"squeezenet1_1", 1235496},
      {"swin_t", 28288354},
      {"vgg11", 132863336},
      {"vgg11_bn", 132868840},
      {"vgg13", 133047848},
      {"vgg13_bn", 133053736},
      {"vgg16", 138357544},
      {"vgg16_bn", 138365992},
      {"vgg19", 143667240},
      {"vgg19_bn", 143678248},
      {"vit_b_16", 86567656},
      {"vit_small_patch16_224", 22050664},
      {"vit_tiny_patch16_224", 5717416},
      {"wide_resnet50_2", 68883240},
  };
  for (const auto& [name, count] : published) {
    CAPTURE(name);
    const Outcome o = Load(SourceDir() / "configs" / "imagenet" / (name + ".yaml"));
    REQUIRE(o.text == "");
    CHECK(CountParameters(o.net) == count);
    const Symbol::Shapes shapes = o.net.symbol.InferShape(config::BatchShapes(o.net, 2));
    CHECK(shapes.complete);
    CHECK(shapes.outputs[0] == TShape{2, 1000});
  }
  for (const fs::path& file : WholeConfigs()) {
    if (file.parent_path().filename() != "imagenet") continue;
    CAPTURE(file.string());
    CHECK(published.contains(file.stem().string()));
  }
}

TEST_CASE("nets for masks have torchvision's numbers of parameters, and scores for each pixel") {
  const std::map<std::string, int64_t> published = {{"lraspp_mobilenet_v3_large", 3221538},
                                                    {"deeplabv3_mobilenet_v3_large", 11029328},
                                                    {"deeplabv3_resnet50", 42004074},
                                                    {"fcn_resnet50", 35322218}};
  for (const auto& [name, count] : published) {
    CAPTURE(name);
    const Outcome o = Load(SourceDir() / "configs" / "segmentation" / (name + ".yaml"));
    REQUIRE(o.text == "");
    CHECK(CountParameters(o.net) == count);
    CHECK(o.net.labels.size() == 1);  // which both losses read
    const Symbol::Shapes shapes = o.net.symbol.InferShape({{"data", {2, 3, 75, 130}}});
    CHECK(shapes.complete);
    for (const TShape& output : shapes.outputs) CHECK(output == TShape{2, 21, 75, 130});
  }
}

TEST_CASE("every file of configs/ that is a whole configuration builds, with all shapes known") {
  int count = 0;
  for (const fs::path& file : test::WholeConfigs()) {
    CAPTURE(file.string());
    ++count;
    const Outcome o = Load(file);
    REQUIRE(o.text == "");
    const int64_t batch = std::max(o.loaded.config.data.batch_size, 1);
    CHECK(o.net.symbol.InferShape(config::PlannedShapes(o.net, batch)).complete);
    // Batches of every size fit.
    config::Diagnostics diagnostics(o.sources);
    config::CheckNetShapes(o.net, batch, {}, {}, &diagnostics);
    CHECK(config::Render(diagnostics.Sorted(), *o.sources) == "");
  }
  CHECK(count >= 10);
}

TEST_CASE("a layer that takes no input needs no inputs: the places of swin_t") {
  const Outcome o = Load(SourceDir() / "configs" / "imagenet" / "swin_t.yaml");
  int constants = 0;
  for (const Node& node : o.net.symbol.graph().nodes) {
    if (!node.op || node.op->TypeString() != "_arange") continue;
    ++constants;
    CHECK(node.inputs.empty());
  }
  CHECK(constants == 4);  // places in a window, and rows of the images of three stages
}

TEST_CASE("the siamese net shares its weights") {
  const Outcome o = Load(SourceDir() / "configs" / "siamese" / "pairs.yaml");
  CHECK(CountParameters(o.net) == (32 * 2 + 32) + (8 * 32 + 8) + (2 * 8 + 2) + (8 + 1));
}

}  // namespace
}  // namespace mxtrain::test

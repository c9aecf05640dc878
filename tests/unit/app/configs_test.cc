// SPDX-License-Identifier: Apache-2.0
// Every shipped configuration loads without diagnostics, and the nets have the published numbers of
// parameters.
#include <doctest/doctest.h>

#include <map>

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
  const std::map<std::string, int64_t> published = {
      {"alexnet", 61100840},  {"vgg16", 138357544},      {"resnet18", 11689512},
      {"resnet50", 25557032}, {"mobilenet_v2", 3504872}, {"googlenet", 6624904}};
  for (const auto& [name, count] : published) {
    CAPTURE(name);
    const Outcome o = Load(SourceDir() / "configs" / "imagenet" / (name + ".yaml"));
    REQUIRE(o.text == "");
    CHECK(CountParameters(o.net) == count);
    const Symbol::Shapes shapes = o.net.symbol.InferShape(config::BatchShapes(o.net, 2));
    CHECK(shapes.complete);
    CHECK(shapes.outputs[0] == TShape{2, 1000});
  }
}

TEST_CASE("every file of configs/ that is a whole configuration builds, with all shapes known") {
  int count = 0;
  for (const fs::path& file : test::WholeConfigs()) {
    CAPTURE(file.string());
    ++count;
    const Outcome o = Load(file);
    REQUIRE(o.text == "");
    CHECK(o.net.symbol.InferShape(config::BatchShapes(o.net, o.loaded.config.data.batch_size))
              .complete);
  }
  CHECK(count >= 10);
}

TEST_CASE("the siamese net shares its weights") {
  const Outcome o = Load(SourceDir() / "configs" / "siamese" / "pairs.yaml");
  CHECK(CountParameters(o.net) == (32 * 2 + 32) + (8 * 32 + 8) + (2 * 8 + 2) + (8 + 1));
}

}  // namespace
}  // namespace mxtrain::test

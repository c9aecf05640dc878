// SPDX-License-Identifier: Apache-2.0
#include "app/session/code_columns.h"

#include <doctest/doctest.h>

#include <set>

#include "app/config/schema.h"
#include "config_test.h"
#include "mxtrain/operator/registry.h"

namespace mxtrain::test {
namespace {

using Rows = std::vector<int64_t>;

// Of a net with an input `x` of these sizes.
session::CodeColumns CodesOf(const std::string& input, const std::string& layers) {
  static const std::shared_ptr<OperatorRegistry> registry = BuiltinOperators();
  TemporaryFolder folder;
  folder.Write("net.yaml", "net:\n  inputs: {x: " + input + ", z: [4]}\n  layers:\n" + layers +
                               "data: {train: {source: mnist, path: .}}\n");
  config::LoadRequest request;
  request.files = {"net.yaml"};
  request.working_folder = folder.path();
  const Outcome o = LoadAndBuild(request, *registry);
  REQUIRE(o.text == "");
  return session::FindCodeColumns(o.net).at("x");
}

// `layers` end with `codes`; a net from there.
std::string To(const std::string& layers) {
  return layers +
         "    - Flatten: {name: flat}\n    - Concat: {name: both, inputs: [flat, z], dim: 1}\n"
         "    - FullyConnected: {num_hidden: 2}\n    - SoftmaxOutput: {name: softmax}\n";
}

TEST_CASE("code columns: those that an Embedding reads, past layers that move numbers") {
  const auto embedding = [](const char* inputs) {
    return format("    - Embedding: {{name: e, inputs: {}, input_dim: 7, output_dim: 2}}\n",
                  inputs);
  };
  CHECK(CodesOf("[3]", To(embedding("x"))).rows == Rows{7, 7, 7});
  CHECK(CodesOf("[1]", To("    - one_hot: {name: e, inputs: x, depth: 5}\n")).rows == Rows{5});
  CHECK(CodesOf("[3]", To("    - Flatten: {name: f, inputs: z}\n")).rows == Rows{0, 0, 0});
  const std::string part = "    - slice_axis: {name: part, inputs: x, axis: 1, begin: 1, end: 3}\n";
  CHECK(CodesOf("[4]", To(part + embedding("part"))).rows == Rows{0, 7, 7, 0});
  CHECK(
      CodesOf("[4]", To("    - slice_axis: {name: part, inputs: x, axis: 1, begin: -1, end: 4}\n" +
                        embedding("part")))
          .rows == Rows{0, 0, 0, 7});
  CHECK(CodesOf("[4]", To("    - SliceChannel: {name: part, inputs: x, num_outputs: 2}\n" +
                          embedding("part.output1")))
            .rows == Rows{0, 0, 7, 7});
  CHECK(CodesOf("[4]",
                To(part + "    - Reshape: {name: moved, shape: [-1, 2]}\n" + embedding("moved")))
            .rows == Rows{0, 7, 7, 0});
  // Read by two layers: the fewest rows.
  CHECK(CodesOf("[1]", To("    - Embedding: {name: e5, inputs: x, input_dim: 5, output_dim: 2}\n" +
                          embedding("x") + "    - elemwise_add: {inputs: [e5, e]}\n"))
            .rows == Rows{5});
}

TEST_CASE("code columns: where a net computes its codes, they are not known") {
  const session::CodeColumns codes =
      CodesOf("[2]", To("    - _plus_scalar: {name: moved, inputs: x, scalar: 1}\n"
                        "    - Embedding: {name: e, input_dim: 7, output_dim: 2}\n"));
  CHECK(codes.rows == Rows{0, 0});
  CHECK(codes.unclear == "e");
  CHECK_FALSE(codes.any());
}

// Paths through a residual net double at every unit: each input is followed once.
TEST_CASE("code columns: many ways through a net take no time") {
  std::string layers = "    - FullyConnected: {name: s0, inputs: x, num_hidden: 4}\n";
  for (int i = 0; i < 40; ++i)
    layers += format("    - elemwise_add: {{name: s{}, inputs: [s{}, s{}]}}\n", i + 1, i, i);
  CHECK(CodesOf("[4]", To(layers)).rows == Rows{0, 0, 0, 0});
}

TEST_CASE("each choice of a key has a sentence of its own") {
  for (const config::Key& section : config::Schema()) {
    if (section.info.name != "train") continue;
    for (const config::Key& key : section.keys) {
      std::set<std::string> texts;
      for (const config::NamedKind& kind : key.kinds) {
        const std::string where = key.info.name + ": " + kind.name;
        CHECK_MESSAGE(kind.help.size() > 15, where);
        CHECK_MESSAGE(texts.insert(kind.help).second, where);
      }
    }
  }
}

}  // namespace
}  // namespace mxtrain::test

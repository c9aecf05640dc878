// SPDX-License-Identifier: Apache-2.0
// Groups of layers from input to head, for rates that decay with depth.
#include "mxtrain/train/layer_groups.h"

#include <doctest/doctest.h>

#include "tests/support/layers.h"
#include "tests/support/operator_case.h"
#include "tests/support/small_nets.h"
#include "tests/support/vectors.h"

namespace mxtrain::test {
namespace {

Symbol Linear(const std::string& name, const Symbol& input) {
  return Layer("FullyConnected", name, {input}, {{"num_hidden", "4"}, {"no_bias", "True"}});
}

Symbol Added(const std::string& name, const Symbol& a, const Symbol& b) {
  return Symbol::Create(TestRegistry(), "elemwise_add", name, {}, std::vector{a, b});
}

std::vector<std::string> NamesOf(const Symbol& net) {
  std::vector<std::string> names;
  for (const LayerGroup& group : LayerGroups(net, {"data"}, {"softmax_label"}))
    names.push_back(group.name);
  return names;
}

TEST_CASE("the branches of a residual unit are one group, and so are the units of one number") {
  Symbol net = Linear("stem", Symbol::Variable("data"));
  net = Layer("LayerNorm", "stem_ln", {net});
  for (const std::string unit : {"unit0", "unit1"}) {
    const Symbol attention =
        Linear(unit + "_attention_fc", Layer("LayerNorm", unit + "_norm1_ln", {net}));
    net = Added(unit + "_first", attention, net);
    const Symbol mlp = Linear(unit + "_mlp_b_fc", Linear(unit + "_mlp_a_fc", net));
    net = Added(unit + "_second", mlp, net);
  }
  net = Layer("LayerNorm", "last_ln", {net});
  net = Layer("SoftmaxOutput", "softmax", {Linear("fc", net)});
  CHECK(NamesOf(net) == Strings{"stem", "unit0", "unit1", "fc"});
  const std::vector<LayerGroup> groups = LayerGroups(net, {"data"}, {"softmax_label"});
  CHECK(groups[0].parameters == Strings{"stem_weight", "stem_ln_gamma", "stem_ln_beta"});
  CHECK(groups[1].parameters == Strings{"unit0_norm1_ln_gamma", "unit0_norm1_ln_beta",
                                        "unit0_attention_fc_weight", "unit0_mlp_a_fc_weight",
                                        "unit0_mlp_b_fc_weight"});
  CHECK(groups[2].parameters.back() == "last_ln_beta");
  CHECK(groups[3].parameters == Strings{"fc_weight"});
}

TEST_CASE("layers of a chain are groups, parallel layers are one; names need not have numbers") {
  Symbol net = Linear("first", Symbol::Variable("data"));
  net = Layer("Activation", "act", {Linear("second", net)}, {{"act_type", "relu"}});
  net = Added("sum", Linear("left", net), Linear("right", net));
  net = Layer("SoftmaxOutput", "softmax", {Linear("head", net)});
  const std::vector<LayerGroup> groups = LayerGroups(net, {"data"}, {"softmax_label"});
  REQUIRE(groups.size() == 4);
  CHECK(groups[2].parameters == Strings{"left_weight", "right_weight"});
  CHECK(groups[3].name == "head");
}

TEST_CASE("every parameter is in one group, also one that several layers or only small ones read") {
  for (const SmallNet& net : SmallNets(TestRegistry())) {
    CAPTURE(net.name);
    std::set<std::string> inputs, labels;
    for (const auto& [name, shape] : net.data) inputs.insert(name);
    for (const auto& [name, shape] : net.labels) labels.insert(name);
    std::vector<std::string> grouped, wanted = net.losses.ListArguments();
    for (const LayerGroup& group : LayerGroups(net.losses, inputs, labels))
      grouped.insert(grouped.end(), group.parameters.begin(), group.parameters.end());
    std::erase_if(wanted, [&](const std::string& name) {
      return inputs.contains(name) || labels.contains(name);
    });
    std::sort(grouped.begin(), grouped.end());
    std::sort(wanted.begin(), wanted.end());
    CHECK(grouped == wanted);
  }
}

}  // namespace
}  // namespace mxtrain::test

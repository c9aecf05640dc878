// SPDX-License-Identifier: Apache-2.0
// Configurations: YAML to the net written out, with shapes.
#include <cstdlib>

#include "app/config/load.h"
#include "app/config/net.h"
#include "mxtrain/operator/registry.h"
#include "tests/fuzz/fuzz_target.h"

namespace mxtrain::fuzz {
namespace {

std::string Repeated(int count, const char* begin, fmt::format_string<const int&> item,
                     const char* end) {
  std::string text = begin;
  for (int i = 0; i < count; ++i) fmt::format_to(std::back_inserter(text), item, std::as_const(i));
  return text + end;
}

}  // namespace

std::vector<std::string> LargeInputs() {
  const std::string rest =
      "net: {input: [4], layers: [SoftmaxOutput]}\ndata: {train: {source: mnist, path: digits}}\n";
  return {
      Repeated(49'000, "vars:\n", "  key{}: 1\n", "") + rest,
      Repeated(90'000, "train: {metrics: [", "a{},", "]}\n"),
      Repeated(20'000, "vars:\n", "  key{0}: ${{key{0}}}\n", "") + rest,
      Repeated(20'000, "vars:\n  key: 1\n", "  key{0}: ${{key}}\n", "net: {input: [4], layers: [") +
          Repeated(400, "", "{{FullyConnected: {{num_hidden: '${{key{}}}'}}}},", "]}\n"),
      Repeated(50'000, "", "key{}: 1\n", ""),
      Repeated(90'000, "a: ", "${{", ""),
      "a: " + std::string(400'000, '_') + "\n" + std::string(90'000, '\n') + "b: c: d"};
}

}  // namespace mxtrain::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace mxtrain;
  using namespace mxtrain::fuzz;
  static const std::shared_ptr<OperatorRegistry> operators = BuiltinOperators();
  Scratch().Write("net.yaml", TextOf(data, size));
  MayRefuse([&] {
    config::LoadRequest request;
    request.files = {"net.yaml"};
    request.working_folder = Scratch().path();
    request.environment = [](const std::string&) { return std::nullopt; };
    config::Diagnostics diagnostics(std::make_shared<config::SourceMap>());
    const config::LoadedConfig loaded = config::LoadConfig(request, &diagnostics);
    const config::Net net = config::BuildNet(
        loaded.config, *operators,
        [](std::string_view name) {
          return name == "classes" ? std::optional<int64_t>(10) : std::nullopt;
        },
        &diagnostics);
    diagnostics.ThrowIfErrors();
    net.symbol.InferShape(config::BatchShapes(net, 2));
    config::ToYaml(loaded.resolved);
    config::OriginText(loaded.origins, diagnostics.sources());
  });
  return 0;
}

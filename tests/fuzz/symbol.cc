// SPDX-License-Identifier: Apache-2.0
// Symbol files (JSON) of every version: read, written, read again; and the shapes of what they
// compute.
#include "mxtrain/symbol/symbol.h"

#include <cstdlib>

#include "mxtrain/operator/registry.h"
#include "tests/fuzz/fuzz_target.h"

namespace mxtrain::fuzz {

std::vector<std::string> LargeInputs() {
  std::string nodes = R"({"op":"null","name":"x0","inputs":[]})";
  for (int i = 1; i < 5000; ++i)
    nodes += format(R"(,{{"op":"Flatten","name":"x{}","inputs":[[{},0,0]]}})", i, i - 1);
  return {R"({"nodes":[)" + nodes + R"(],"arg_nodes":[0],"heads":[[4999,0,0]]})"};
}

}  // namespace mxtrain::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace mxtrain;
  using namespace mxtrain::fuzz;
  static const std::shared_ptr<OperatorRegistry> operators = BuiltinOperators();
  MayRefuse([&] {
    const Symbol symbol = Symbol::FromJson(*operators, TextOf(data, size));
    MayRefuse([&] {
      std::map<std::string, TShape> known;
      for (const std::string& name : symbol.ListArguments()) {
        if (name == "data") known[name] = TShape{2, 3, 8, 8};
      }
      symbol.InferShape(known);
    });
    const std::string written = symbol.ToJson();
    if (Symbol::FromJson(*operators, written).ToJson() != written) std::abort();
  });
  return 0;
}

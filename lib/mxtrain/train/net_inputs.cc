#include "mxtrain/train/net_inputs.h"

#include <algorithm>

namespace mxtrain {

Symbol OnBatchesOf(const DataIter& iter, const OperatorRegistry& operators, const Symbol& net) {
  const std::vector<std::string> arguments = net.ListArguments();
  std::map<std::string, Symbol> replaced;
  for (const DataDesc& desc : iter.provide_data()) {
    if (!desc.pixels || std::find(arguments.begin(), arguments.end(), desc.name) == arguments.end()) continue;
    const Symbol pixels[] = {Symbol::Variable(desc.name)};
    const Kwargs kwargs = {{"mean", params::Print(desc.pixels->mean)}, {"std", params::Print(desc.pixels->std)}};
    replaced[desc.name] = Symbol::Create(operators, "image_normalize", desc.name + "_normalize", kwargs, pixels);
  }
  return replaced.empty() ? net : net.Compose(replaced);
}

void RequestInputs(const DataIter& iter, const Symbol& net, int parts, Executor::BindRequest* request) {
  const std::vector<std::string> arguments = net.ListArguments();
  for (const auto& descs : {iter.provide_data(), iter.provide_label()}) {
    for (const DataDesc& desc : descs) {
      if (std::find(arguments.begin(), arguments.end(), desc.name) == arguments.end()) continue;
      request->inputs.insert(desc.name);
      TShape& shape = request->shapes[desc.name] = desc.array_shape();
      shape[0] /= parts;
      request->types[desc.name] = desc.array_type();
    }
  }
}

}  // namespace mxtrain

// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/train/lora.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/glob.h"
#include "mxtrain/operator/param_of.h"
#include "mxtrain/train/checkpoint.h"
#include "mxtrain/train/internal/rebuilding.h"
#include "mxtrain/train/lora_bases.h"
#include "mxtrain/train/model.h"

namespace mxtrain {
namespace {

namespace fs = std::filesystem;
constexpr size_t kWeightInput = 1;
// Normal, of the variance 1 / (3 in) that PyTorch's usual initialization of a layer has.
constexpr const char* kInitOfA =
    R"(["xavier", {"rnd_type": "gaussian", "factor_type": "in", "magnitude": 0.33333333333333331}])";
constexpr const char* kInitOfB = R"(["zero", {}])";

bool CanHaveFactors(const Node& node) {
  return node.kind == Node::Kind::kForward &&
         (node.op->TypeString() == "FullyConnected" || node.op->TypeString() == "Convolution");
}

bool IsChosen(const std::string& layer, const LoraOptions& options) {
  return std::ranges::any_of(
      options.layers, [&](const std::string& pattern) { return GlobMatches(pattern, layer); });
}

LoraFactors FactorsOf(const std::string& layer, const std::string& weight) {
  return {weight, layer + "_lora_a_weight", layer + "_lora_b_weight"};
}

// Nodes that read the output, by their ids.
std::vector<size_t> ReadersOf(const Graph& graph, const NodeEntry& entry) {
  std::vector<size_t> readers;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (std::ranges::count(graph.nodes[i].inputs, entry) > 0) readers.push_back(i);
  }
  return readers;
}

// The name of the weight.
std::string RequireOwnWeight(const Graph& graph, const Node& node) {
  const NodeEntry entry = node.inputs[kWeightInput];
  const Node& weight = graph.nodes[static_cast<size_t>(entry.node)];
  if (!weight.is_variable())
    Throw(ErrorKind::kConfig, "{} has a weight that is computed; leave the layer out",
          DescribeNode(node));
  for (const size_t reader : ReadersOf(graph, entry)) {
    if (graph.nodes[reader].name == node.name) continue;
    Throw(ErrorKind::kConfig,
          "{} shares its weight '{}' with '{}', which would change too; leave the layer out",
          DescribeNode(node), weight.name, graph.nodes[reader].name);
  }
  const std::string groups = ParamOf(*node.op, "num_group");
  if (!groups.empty() && groups != "1")
    Throw(ErrorKind::kConfig,
          "{} has {} groups of channels, each with a weight of its own; leave the layer out",
          DescribeNode(node), groups);
  return weight.name;
}

Kwargs With(Kwargs params, const std::string& key, const std::string& value) {
  std::erase_if(params, [&](const auto& param) { return param.first == key; });
  params.emplace_back(key, value);
  return params;
}

class LoraLayer {
 public:
  LoraLayer(const OperatorRegistry& operators, const Node& node, const LoraOptions& options)
      : operators_(operators), node_(node), options_(options) {}

  Symbol Of(std::span<const Symbol> inputs) const {
    Node base = node_;
    base.name += "_base";
    const Symbol of_base = Rebuilding::Create(operators_, base, node_.op->GetParams(), inputs);
    Symbol x = inputs[0];
    if (options_.dropout > 0)
      x = Add("Dropout", "_lora_dropout", {{"p", params::Print(options_.dropout)}}, {x});
    const LoraFactors names = FactorsOf(node_.name, "");
    const std::string width = is_convolution() ? "num_filter" : "num_hidden";
    const Kwargs no_bias = With(node_.op->GetParams(), "no_bias", params::Print(true));
    const Symbol a =
        Add(node_.op->TypeString(), "_lora_a", With(no_bias, width, params::Print(options_.rank)),
            {x, Factor(names.a, kInitOfA)});
    const Symbol scaled =
        Add("_mul_scalar", "_lora_scaled", {{"scalar", params::Print(options_.scale())}}, {a});
    const Symbol b =
        Add(node_.op->TypeString(), "_lora_b", is_convolution() ? OfWindowOne(no_bias) : no_bias,
            {scaled, Factor(names.b, kInitOfB)});
    return Add("elemwise_add", "", {}, {of_base, b});
  }

 private:
  bool is_convolution() const { return node_.op->TypeString() == "Convolution"; }

  Symbol Add(const std::string& op, const std::string& suffix, const Kwargs& params,
             const std::vector<Symbol>& inputs) const {
    return Symbol::Create(operators_, op, node_.name + suffix, params, inputs, {}, node_.attrs,
                          node_.where);
  }
  Symbol Factor(const std::string& name, const std::string& init) const {
    Attrs attrs{{"__init__", init}};
    if (const auto group = node_.attrs.find("ctx_group"); group != node_.attrs.end())
      attrs.insert(*group);
    return Symbol::Variable(name, attrs, node_.where);
  }
  // Convolutions of a window of one cell.
  static Kwargs OfWindowOne(Kwargs params) {
    for (auto& [key, value] : params) {
      if (key != "kernel" && key != "stride" && key != "dilate" && key != "pad") continue;
      TShape window = TShape::Parse(value);
      for (int axis = 0; axis < window.ndim(); ++axis) window[axis] = key == "pad" ? 0 : 1;
      value = window.ToTuple();
    }
    return params;
  }

  const OperatorRegistry& operators_;
  const Node& node_;
  const LoraOptions& options_;
};

// The arrays of a file, by their names in the net.
std::map<std::string, NDArray> ReadBase(Runtime& runtime, const std::string& file,
                                        const BaseFile& base, const std::vector<std::string>& names,
                                        int depth) {
  const NameMap map(base.rules);
  WeightsFile read = ReadWeights(runtime, file, base.state, depth);
  const std::string prefix = WrapperPrefix(read.arrays, map, {names.begin(), names.end()});
  return Renamed(WithoutPrefix(std::move(read.arrays), prefix), map, file);
}

bool IsThere(const std::string& file) {
  if (fs::exists(file)) return true;
  return file.find('@') != std::string::npos && CheckpointOf(file).empty() &&
         fs::exists(ReferenceParamsFile(file));
}

std::string FindBase(const BaseFile& base, const std::string& path) {
  const fs::path name = fs::path(base.file).filename(), folder = fs::path(path).parent_path();
  for (const fs::path& file : {fs::path(base.file), folder / name, folder / ".." / name}) {
    if (IsThere(file.string())) return file.lexically_normal().string();
  }
  const std::string origin =
      base.address.empty() ? "" : format(" (downloaded from {})", base.address);
  Throw(ErrorKind::kFileSystem,
        "{} holds what LoRA added to {}{}, which is not there any more; put it back, or a copy of "
        "it beside the "
        "checkpoint",
        path, base.file, origin);
}

// Of the arguments of a model, as far as they follow from its inputs.
std::map<std::string, TShape> ShapesOfArguments(const Symbol& net, const ModelInfo& model) {
  std::map<std::string, TShape> known;
  for (const auto* infos : {&model.inputs, &model.labels}) {
    for (const InputInfo& info : *infos) {
      std::vector<int64_t> dims{std::max<int64_t>(model.batch_size, 1)};
      dims.insert(dims.end(), info.shape.begin(), info.shape.end());
      known[info.name] = TShape(dims);
    }
  }
  const std::vector<std::string> names = net.ListArguments();
  std::erase_if(known, [&](const auto& one) { return std::ranges::count(names, one.first) == 0; });
  const Symbol::Shapes found = net.InferShape(known);
  std::map<std::string, TShape> shapes;
  for (size_t i = 0; i < names.size(); ++i) shapes[names[i]] = found.arguments[i];
  return shapes;
}

// As the net has it: float32, in its shape.
NDArray AsParameter(Runtime& runtime, const std::string& name, const NDArray& array,
                    const TShape& shape) {
  if (shape.known() && shape.Size() != array.shape().Size())
    Throw(ErrorKind::kData, "'{}' has the shape {}, the net needs {}", name,
          array.shape().ToString(), shape.ToString());
  const TShape target = shape.known() ? shape : array.shape();
  if (array.dtype() == DType::kFloat32 && array.shape() == target) return array;
  return NDArray::FromVector(runtime, target, array.ToVector(), Context::cpu());
}

// W + scale B A; each number is rounded once.
NDArray Merged(Runtime& runtime, const LoraFactors& names, const NDArray& weight, const NDArray& a,
               const NDArray& b, double scale) {
  const int64_t outputs = weight.shape().ndim() > 0 ? weight.shape()[0] : 0;
  const int64_t inputs = outputs > 0 ? weight.shape().Size() / outputs : 0;
  const int64_t rank = a.shape().ndim() > 0 ? a.shape()[0] : 0;
  if (a.shape().Size() != rank * inputs || b.shape().Size() != outputs * rank) {
    Throw(ErrorKind::kData, "the factors {} {} and {} {} do not fit '{}' {}", names.a,
          a.shape().ToString(), names.b, b.shape().ToString(), names.weight,
          weight.shape().ToString());
  }
  std::vector<float> w = weight.ToVector();
  const std::vector<float> of_a = a.ToVector(), of_b = b.ToVector();
  std::vector<double> row(static_cast<size_t>(inputs));
  for (int64_t o = 0; o < outputs; ++o) {
    std::ranges::fill(row, 0);
    for (int64_t r = 0; r < rank; ++r) {
      const double factor = scale * of_b[static_cast<size_t>(o * rank + r)];
      const float* const from = of_a.data() + r * inputs;
      for (int64_t i = 0; i < inputs; ++i) row[static_cast<size_t>(i)] += factor * from[i];
    }
    float* const to = w.data() + o * inputs;
    for (int64_t i = 0; i < inputs; ++i)
      to[i] = static_cast<float>(to[i] + row[static_cast<size_t>(i)]);
  }
  return NDArray::FromVector(runtime, weight.shape(), w, Context::cpu());
}

}  // namespace

std::vector<LoraFactors> LoraFactorsOf(const Symbol& net, const LoraOptions& options) {
  const Graph& graph = net.graph();
  std::vector<std::string> layers;
  for (const Node& node : graph.nodes) {
    if (CanHaveFactors(node)) layers.push_back(node.name);
  }
  for (const std::string& pattern : options.layers)
    RequireMatch(pattern, layers, "FullyConnected or Convolution");
  std::vector<LoraFactors> factors;
  for (const Node& node : graph.nodes) {
    if (CanHaveFactors(node) && IsChosen(node.name, options))
      factors.push_back(FactorsOf(node.name, RequireOwnWeight(graph, node)));
  }
  return factors;
}

Symbol WithLora(const OperatorRegistry& operators, const Symbol& net, const LoraOptions& options) {
  LoraFactorsOf(net, options);  // validates
  const Graph& graph = net.graph();
  const auto build = [&](const Node& node, std::span<const Symbol> inputs) {
    if (CanHaveFactors(node) && IsChosen(node.name, options))
      return LoraLayer(operators, node, options).Of(inputs);
    return Rebuilding::Create(operators, node, node.op->GetParams(), inputs);
  };
  return Rebuilding(graph, {}, build).Of(graph.heads);
}

std::string BaseChecksum(const std::map<std::string, NDArray>& arrays,
                         const std::vector<std::string>& names) {
  RunningChecksum sum;
  for (const std::string& name : std::set<std::string>(names.begin(), names.end())) {
    const auto found = arrays.find(name);
    if (found == arrays.end()) continue;
    const NDArray& array = found->second;
    sum.Add(format("{} {} {}\n", name, array.shape().ToString(), NameOf(array.dtype())));
    array.WaitToRead();
    sum.Add({static_cast<const char*>(array.data().data),
             static_cast<size_t>(array.shape().Size() * SizeOf(array.dtype()))});
  }
  return format("{:016x}", sum.value());
}

std::vector<std::string> BaseFilesOf(const std::string& checkpoint) {
  std::vector<std::string> files;
  std::string file = checkpoint;
  while (std::ssize(files) < kMostBases && IsCheckpoint(file)) {
    const std::optional<LoraInfo> lora = PeekModel(file).lora;
    if (!lora) break;
    files.push_back(FindBase(lora->base, file));
    file = CheckpointOf(files.back());
  }
  return files;
}

void MergeLora(Runtime& runtime, const std::string& path, Checkpoint* checkpoint, int depth) {
  if (!checkpoint->model.lora) return;
  if (depth == kMostBases)
    Throw(ErrorKind::kData, "{} is the last of {} checkpoints, each the base of the next", path,
          kMostBases + 1);
  Checkpoint& c = *checkpoint;
  const LoraInfo lora = std::move(*c.model.lora);
  c.model.lora.reset();
  for (auto& [name, average] : c.averages)
    (c.args.contains(name) ? c.args : c.auxs)[name] = average;
  c.averages.clear();
  const Symbol net = Symbol::FromJson(runtime.operators(), c.model.symbol_json);
  const std::map<std::string, TShape> shapes = ShapesOfArguments(net, c.model);
  std::vector<std::string> frozen;
  for (const std::string& name : net.ListArguments()) {
    const auto is_name = [&name](const InputInfo& info) { return info.name == name; };
    if (!c.args.contains(name) && std::ranges::none_of(c.model.inputs, is_name) &&
        std::ranges::none_of(c.model.labels, is_name))
      frozen.push_back(name);
  }
  const std::string file = FindBase(lora.base, path);
  const std::map<std::string, NDArray> arrays =
      ReadBase(runtime, file, lora.base, frozen, depth + 1);
  if (const std::string now = BaseChecksum(arrays, frozen); now != lora.base.checksum) {
    Throw(ErrorKind::kData,
          "{} holds what LoRA added to {}, whose weights have changed since (checksum {} then, {} "
          "now); put the old "
          "file back, or a copy of it beside the checkpoint",
          path, file, lora.base.checksum, now);
  }
  try {
    for (const std::string& name : frozen) {
      const auto found = arrays.find(name);
      if (found == arrays.end()) Throw(ErrorKind::kData, "'{}' is missing", name);
      c.args[name] = AsParameter(runtime, name, found->second, shapes.at(name));
    }
    for (const LoraFactors& names : lora.factors) {
      for (const std::string* name : {&names.weight, &names.a, &names.b}) {
        if (!c.args.contains(*name)) Throw(ErrorKind::kData, "'{}' is missing", *name);
      }
      c.args[names.weight] = Merged(runtime, names, c.args.at(names.weight), c.args.at(names.a),
                                    c.args.at(names.b), lora.scale);
      c.args.erase(names.a);
      c.args.erase(names.b);
    }
  } catch (const Error&) {
    RethrowWithPrefix(std::current_exception(), format("{}, with its base {}", path, file));
  }
}

}  // namespace mxtrain

// SPDX-License-Identifier: Apache-2.0
#include "app/commands/zoo_choice.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <set>

#include "app/config/differences.h"
#include "app/config/document.h"
#include "app/config/load.h"
#include "app/config/net.h"
#include "app/config/zoo.h"
#include "app/session/open_runtime.h"
#include "app/session/pipeline_spec.h"
#include "app/tasks/head.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/suggest.h"
#include "mxtrain/io/augmenter.h"
#include "mxtrain/train/model.h"
#include "mxtrain/train/weights.h"

namespace mxtrain::commands {
namespace {

constexpr int kStep = 32;  // sizes are multiples of it: nets halve the size five times

int Rounded(double size) {
  return std::max(kStep, static_cast<int>(std::lround(size / kStep)) * kStep);
}

struct BuiltNet {
  config::LoadedConfig loaded;
  config::Net net;
};

// A net that comes with the program, as its configuration with these overrides has it.
BuiltNet Build(const std::string& name, const std::vector<std::string>& overrides,
               const OperatorRegistry& operators) {
  config::LoadRequest request;
  request.files = {config::NetFile(name).string()};
  request.overrides = overrides;
  config::Diagnostics diagnostics(std::make_shared<config::SourceMap>());
  BuiltNet built;
  built.loaded = config::LoadConfig(request, &diagnostics);
  built.net = config::BuildNet(
      built.loaded.config, operators, [](std::string_view) { return std::optional<int64_t>(); },
      &diagnostics);
  diagnostics.ThrowIfErrors();
  return built;
}

// Parameters and auxiliary states by name.
std::map<std::string, TShape> ShapesOf(const config::Net& net) {
  const std::map<std::string, TShape> known = config::BatchShapes(net, 2);
  const Symbol::Shapes shapes = net.symbol.InferShape(known);
  std::map<std::string, TShape> all;
  const auto add = [&all](const std::vector<std::string>& names, const std::vector<TShape>& of) {
    for (size_t i = 0; i < names.size(); ++i) all[names[i]] = of[i];
  };
  add(net.symbol.ListArguments(), shapes.arguments);
  add(net.symbol.ListAuxiliaryStates(), shapes.auxiliaries);
  for (const auto* own : {&net.inputs, &net.labels}) {
    for (const config::NetInput& input : *own) all.erase(input.name);
  }
  return all;
}

std::string InputOf(int size) {
  return format("net.input=[3, {0}, {0}]", size);
}

bool HasVariable(const config::LoadedConfig& loaded, const std::string& name) {
  return loaded.config.vars.is_map() && loaded.config.vars.Find(name) != nullptr;
}

// "fc_*" for fc_weight and fc_bias.
std::string PatternOf(const std::string& parameter) {
  return parameter.substr(0, parameter.rfind('_')) + "_*";
}

// Whether the net has the same parameters for images of this size.
bool FitsSize(const std::string& name, int size, const std::map<std::string, TShape>& shapes,
              const OperatorRegistry& operators) {
  try {
    return ShapesOf(Build(name, {InputOf(size)}, operators).net) == shapes;
  } catch (const Error&) {
    return false;  // no such image passes through its layers
  }
}

// Whether an output is boxes of objects.
bool FindsBoxes(const config::Net& net) {
  const std::vector<tasks::Head> heads = tasks::HeadsOf(
      net.symbol, net.symbol.InferShape(config::BatchShapes(net, 2)), {net.inputs[0].name});
  return std::ranges::any_of(heads, &tasks::Head::gives_boxes);
}

// "resize: {size: [320, 320]}"
std::string InYaml(const config::Named& transform) {
  std::string parameters;
  for (const auto& [key, value] : transform.params) {
    std::string text = value;
    std::ranges::replace(text, '(', '[');
    std::ranges::replace(text, ')', ']');
    if (key.empty()) return format("{}: {}", transform.name, text);
    parameters += format("{}{}: {}", parameters.empty() ? "" : ", ", key, text);
  }
  return parameters.empty() ? transform.name : format("{}: {{{}}}", transform.name, parameters);
}

// Of a whole detector, for images of this size, rounded to what it takes; 0: of its own.
ZooNet DetectorOf(const std::string& name, int size, ZooNet found,
                  const OperatorRegistry& operators) {
  std::vector<std::string> overrides;
  if (size > 0) overrides = {format("vars.size={}", Rounded(size))};
  const BuiltNet built = Build(name, overrides, operators);
  found.train_size = found.val_size = static_cast<int>(built.net.inputs[0].shape[1]);
  found.has_strides = false;  // which are those of its trunk
  found.any_size = true;
  for (const config::Named& transform : built.loaded.config.data.val.transforms)
    found.transforms.push_back(InYaml(transform));
  return found;
}

// Variables of a run's configuration, as text.
std::map<std::string, std::string> VarsIn(const std::string& config) {
  constexpr std::string_view kVars = "vars.";
  std::map<std::string, std::string> vars;
  for (const auto& [name, value] : config::FlattenText("the run's configuration", config)) {
    if (name.starts_with(kVars)) vars[name.substr(kVars.size())] = value;
  }
  return vars;
}

// The mean or deviation of three channels.
std::vector<double> OfThree(const std::string& text) {
  std::vector<double> numbers;
  params::Parse(text, &numbers);
  if (numbers.size() == 1) numbers.resize(3, numbers[0]);
  return numbers;
}

// How a run of this program prepared its images, and its variables that this net has with other
// values; nothing if the file is neither a run nor a checkpoint of one.
std::optional<config::WeightsFamily> FamilyOfRun(const std::string& file, const std::string& net) {
  if (!std::filesystem::is_directory(file) && !IsCheckpoint(file)) return std::nullopt;
  const ModelInfo model = PeekModel(CheckpointOf(file));
  if (model.config.empty()) return std::nullopt;
  config::WeightsFamily family;
  family.name = FollowLink(file);
  family.mean = {0, 0, 0};
  family.std = {1, 1, 1};
  for (const io::TransformSpec& transform :
       session::PipelineSpec::FromJson(model.pipeline).transforms) {
    for (const auto& [key, value] : io::WithNumbers(transform).kwargs) {
      if (transform.name == "normalize" && key == "mean") family.mean = OfThree(value);
      if (transform.name == "normalize" && key == "std") family.std = OfThree(value);
      if (transform.name == "resize" && key == "interpolation") family.interpolation = value;
    }
  }
  const std::shared_ptr<OperatorRegistry> operators = session::MakeRegistry({});
  const std::map<std::string, std::string> vars = VarsIn(model.config);
  for (const auto& [name, usual] :
       VarsIn(config::ToYaml(Build(net, {}, *operators).loaded.resolved))) {
    static const std::set<std::string> kOfRecipe = {"classes",  "smoothing", "size",
                                                    "val_size", "l1_weight", "mosaic"};
    const bool of_recipe = kOfRecipe.contains(name);
    const auto own = vars.find(name);
    // A head alone is trained without it.
    const bool of_head = name == "stochastic_depth" && own != vars.end() && own->second == "0";
    if (!of_recipe && !of_head && own != vars.end() && own->second != usual)
      family.vars.emplace_back(name, own->second);
  }
  return family;
}

}  // namespace

ZooNet LookAtNet(const std::string& name, int size) {
  const std::shared_ptr<OperatorRegistry> operators = session::MakeRegistry({});
  const BuiltNet built = Build(name, {}, *operators);
  if (built.net.inputs.size() != 1 || built.net.inputs[0].shape.ndim() != 3)
    Throw(ErrorKind::kConfig, "the net {} does not take images", name);
  ZooNet found;
  found.name = name;
  found.native = static_cast<int>(built.net.inputs[0].shape[1]);
  found.smooths = HasVariable(built.loaded, "smoothing");
  found.has_strides = HasVariable(built.loaded, "stride32");
  found.drops_paths = HasVariable(built.loaded, "stochastic_depth");
  found.names = built.loaded.config.train.weights.map;
  const std::vector<Node>& nodes = built.net.symbol.graph().nodes;
  found.has_batch_norm = std::any_of(nodes.begin(), nodes.end(), [](const Node& node) {
    return node.op && node.op->TypeString() == "BatchNorm";
  });
  const std::map<std::string, TShape> shapes = ShapesOf(built.net),
                                      fewer =
                                          ShapesOf(Build(name, {"vars.classes=7"}, *operators).net);
  for (const auto& [parameter, shape] : shapes) {
    const auto other = fewer.find(parameter);
    const std::string pattern = PatternOf(parameter);
    if ((other == fewer.end() || other->second != shape) &&
        std::find(found.head.begin(), found.head.end(), pattern) == found.head.end())
      found.head.push_back(pattern);
  }
  found.has_features = std::ranges::any_of(shapes, [&](const auto& parameter) {
    constexpr int kOfRows = 2;
    return parameter.second.ndim() == kOfRows &&
           std::ranges::find(found.head, PatternOf(parameter.first)) != found.head.end();
  });
  const bool of_training = HasVariable(built.loaded, "size");
  if (FindsBoxes(built.net)) return DetectorOf(name, size, std::move(found), *operators);
  const int wanted = size > 0 ? size : of_training ? found.native : Rounded(found.native * 5.0 / 7);
  const std::optional<double> published = size == 0 && HasVariable(built.loaded, "val_size")
                                              ? built.loaded.config.vars.Get("val_size")->AsNumber()
                                              : std::nullopt;
  const int larger = published ? static_cast<int>(*published) : Rounded(wanted * 7.0 / 6);
  found.any_size =
      FitsSize(name, wanted, shapes, *operators) && FitsSize(name, larger, shapes, *operators);
  if (!found.any_size && size > 0 && size != found.native) {
    Throw(ErrorKind::kUsage,
          "{} has other parameters for images of {} pixels than for the {} that it is made for; "
          "remove --size, or choose another net (`mxtrain nets`)",
          name, size, found.native);
  }
  found.train_size = found.any_size ? wanted : found.native;
  found.val_size = found.any_size ? larger : found.native;
  return found;
}

ZooWeights LookAtWeights(Runtime& runtime, const ZooNet& net, const std::string& file,
                         const std::string& family, const std::string& state) {
  const config::NameList list =
      net.names.empty() ? config::NameList() : config::ReadNameList(net.names, net.name);
  std::vector<std::string> families;
  for (const config::WeightsFamily& f : list.families) families.push_back(f.name);
  if (!family.empty() && std::find(families.begin(), families.end(), family) == families.end()) {
    Throw(ErrorKind::kUsage, "--weights-family {}: the names of {} are known for {}", family,
          net.name, join(families, ", "));
  }

  const std::map<std::string, TShape> shapes =
      ShapesOf(Build(net.name, {}, *session::MakeRegistry({})).net);
  std::set<std::string> wanted;
  for (const auto& [name, shape] : shapes) wanted.insert(name);
  std::map<std::string, NDArray> in_file = ReadWeights(runtime, file, state).arrays;
  const std::string prefix = WrapperPrefix(in_file, list.rules, wanted);
  std::vector<std::string> arrays;
  std::map<std::string, TShape> mapped;
  bool own = true;
  for (const auto& [name, array] : WithoutPrefix(std::move(in_file), prefix)) {
    arrays.push_back(name);
    const std::optional<std::string> becomes = list.rules.Apply(name);
    own = own && becomes == name;
    if (becomes) mapped[*becomes] = array.shape();
  }
  ZooWeights found;
  found.own_names = own;
  for (const auto& [name, shape] : shapes) {
    if (std::find(net.head.begin(), net.head.end(), PatternOf(name)) != net.head.end()) continue;
    ++found.wanted;
    const auto array = mapped.find(name);
    if (array != mapped.end() && array->second.Size() == shape.Size()) {
      ++found.fits;
    } else {
      found.missing.push_back(name);
    }
  }
  constexpr size_t kMostMissing = 10;  // as GapOf (pretrained.h)
  if (found.missing.size() * kMostMissing > found.wanted) {
    Throw(
        ErrorKind::kConfig,
        "{} does not fit {}: it has {} of the {} arrays before the head of the net (it lacks {}); "
        "is it of another net? `mxtrain nets` lists them",
        file, net.name, found.fits, found.wanted, FirstOf(found.missing, 3));
  }
  if (own && family.empty()) {
    found.family = FamilyOfRun(file, net.name);
    found.of_run = found.family.has_value();
  }

  for (const config::WeightsFamily& f : list.families) {
    if (own || !f.Owns(arrays) || (!family.empty() && f.name != family)) continue;
    if (!found.family) {
      found.family = f;
    } else if (f.DiffersFrom(*found.family)) {
      Throw(ErrorKind::kUsage,
            "the names in {} are those of {} and {}, which want images prepared differently; say "
            "which it is: --weights-family {}, or --weights-family {}",
            file, found.family->name, f.name, found.family->name, f.name);
    } else {
      found.candidates.push_back(f.name);
    }
  }
  if (!found.family && !family.empty()) {
    Throw(ErrorKind::kUsage,
          "--weights-family {}: the arrays of {} have other names than that "
          "family's",
          family, file);
  }
  return found;
}

}  // namespace mxtrain::commands

// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/train/model.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <set>

#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/read_json.h"
#include "mxtrain/train/loss_report.h"

namespace mxtrain {
namespace {

namespace fs = std::filesystem;

Model FromCheckpoint(Runtime& runtime, const std::string& file) {
  Checkpoint c = LoadCheckpoint(runtime, file);
  MergeLora(runtime, file, &c);
  Model model;
  model.file = file;
  model.symbol = Symbol::FromJson(runtime.operators(), c.model.symbol_json);
  model.info = std::move(c.model);
  model.args = std::move(c.args);
  model.auxs = std::move(c.auxs);
  for (const auto& [name, average] : c.averages)
    (model.args.contains(name) ? model.args : model.auxs)[name] = average;
  return model;
}

// Attribute of an input in the symbol: the model's metadata.
constexpr const char* kInfoAttr = "__mxtrain_model__";

Json TuplesToJson(const std::vector<InputInfo>& inputs) {
  Json list = Json::array();
  for (const InputInfo& input : inputs) {
    list.push_back({{"name", input.name},
                    {"shape", input.shape.known() ? input.shape.ToTuple() : ""},
                    {"type", NameOf(input.type)}});
  }
  return list;
}

std::vector<InputInfo> InputsOf(const Json& list) {
  std::vector<InputInfo> inputs;
  for (const Json& item : list) {
    const auto text = [&item](const char* key) { return item.at(key).get<std::string>(); };
    inputs.push_back({text("name"), text("shape").empty() ? TShape() : TShape::Parse(text("shape")),
                      ParseDType(text("type"))});
  }
  return inputs;
}

std::string TextOf(const ModelInfo& info) {
  const Json json = {{"inputs", TuplesToJson(info.inputs)},
                     {"labels", TuplesToJson(info.labels)},
                     {"classes", info.class_names},
                     {"pipeline", info.pipeline},
                     {"modes", info.modes}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Throws kData.
ModelInfo InfoOf(const std::string& text) {
  ModelInfo info;
  try {
    const Json json = ReadJsonOf<Json>("JSON", text);
    info.inputs = InputsOf(json.at("inputs"));
    info.labels = InputsOf(json.at("labels"));
    info.class_names = json.at("classes").get<std::vector<std::string>>();
    info.pipeline = json.at("pipeline").get<std::string>();
    info.modes = json.value("modes", "");
  } catch (const std::exception& e) {
    Throw(ErrorKind::kData, "the attribute {} is damaged: {}", kInfoAttr, e.what());
  }
  return info;
}

// Without loss parameters that MXNet rejects and predictions do not need; with the model's
// description of its inputs.
std::string ForMxnet(const Model& model) {
  Json json = Json::parse(model.symbol.ToJson());
  for (Json& node : json.at("nodes")) {
    if (node.at("op") == "SoftmaxOutput") {
      for (const char* key : {"class_weights", "focal_gamma"}) node.at("attrs").erase(key);
    }
    // Of the files that this model came from.
    if (node.contains("attrs")) node["attrs"].erase(kInfoAttr);
    const bool says = node.at("op") == "null" && !model.info.inputs.empty() &&
                      node.at("name") == model.info.inputs[0].name;
    if (says) node["attrs"][kInfoAttr] = TextOf(model.info);
  }
  return json.dump(2) + "\n";
}

// "prefix@7" -> "prefix", 7.
bool SplitReference(const std::string& where, std::string* prefix, int* epoch) {
  const size_t at = where.rfind('@');
  if (at == std::string::npos || at + 1 == where.size()) return false;
  const char* end = where.data() + where.size();
  const auto [stop, status] = std::from_chars(where.data() + at + 1, end, *epoch);
  *prefix = where.substr(0, at);
  return status == std::errc() && stop == end;
}

std::string ReferenceSymbolFile(const std::string& where) {
  return where.substr(0, where.rfind('@')) + "-symbol.json";
}

// The metadata in the symbol's inputs; none in files written by others.
ModelInfo InfoIn(const Symbol& symbol) {
  for (const auto& [name, attrs] : symbol.ListAttrs()) {
    if (const auto found = attrs.find(kInfoAttr); found != attrs.end())
      return InfoOf(found->second);
  }
  return {};
}

// Info of an input or label of this name, with its shape as far as known.
InputInfo Described(const ModelInfo& known, const std::string& name) {
  for (const std::vector<InputInfo>* list : {&known.inputs, &known.labels}) {
    for (const InputInfo& input : *list) {
      if (input.name == name) return input;
    }
  }
  return {name, TShape(), DType::kFloat32};
}

// Throws kConfig unless the variable without an array is a label: one of a loss, named like one or
// described as one by the symbol.
void CheckIsLabel(const Model& model, const ModelInfo& known, const std::string& name) {
  const auto is_name = [&name](const auto& of) { return of == name; };
  const LossReport losses(model.symbol);
  const bool label = name.ends_with("label") || !VariablesRead(model.symbol).contains(name) ||
                     std::ranges::any_of(losses.heads(), is_name, &LossReport::Head::label) ||
                     std::ranges::any_of(known.labels, is_name, &InputInfo::name);
  if (!label)
    Throw(ErrorKind::kConfig,
          "{}: the parameter '{}' of the net is missing; a label of a loss without a layer of its "
          "own needs a name that ends in 'label'",
          model.file, name);
}

// Splits the variables without arrays into inputs and labels: as named by the caller, else as in
// the symbol, else by their names. Throws kConfig for those that are parameters.
void FindInputs(const std::vector<std::string>& open, const std::vector<std::string>& named,
                Model* model) {
  const ModelInfo known = model->info;
  model->info.inputs.clear();
  model->info.labels.clear();
  for (const std::string& name : named) {
    if (std::find(open.begin(), open.end(), name) != open.end()) continue;
    Throw(ErrorKind::kUsage, "'{}' is not an input of {}: the variables without an array are {}",
          name, model->file, join(open, ", "));
  }
  const auto holds = [](const std::vector<InputInfo>& list, const std::string& name) {
    return std::any_of(list.begin(), list.end(),
                       [&](const InputInfo& input) { return input.name == name; });
  };
  for (const std::string& name : open) {
    const bool label = !named.empty() ? std::find(named.begin(), named.end(), name) == named.end()
                       : !known.inputs.empty() ? !holds(known.inputs, name)
                                               : name.ends_with("_label") || name == "label";
    if (label) CheckIsLabel(*model, known, name);
    (label ? model->info.labels : model->info.inputs).push_back(Described(known, name));
  }
  if (model->info.inputs.size() > 1 && named.empty() && known.inputs.empty()) {
    Throw(ErrorKind::kConfig,
          "{} lacks arrays for {}; name those that are inputs (--input NAME), or labels and "
          "missing arrays cannot be told apart",
          model->file, join(open, ", "));
  }
}

Model FromReference(Runtime& runtime, const std::string& where,
                    const std::vector<std::string>& named) {
  Model model;
  model.file = ReferenceParamsFile(where);
  const std::string symbol_file = ReferenceSymbolFile(where);
  try {
    model.symbol = Symbol::FromJson(runtime.operators(), ReadFile(symbol_file));
    model.info = InfoIn(model.symbol);
  } catch (const Error& e) {
    if (e.kind() == ErrorKind::kFileSystem) throw;
    RethrowWithPrefix(std::current_exception(), symbol_file);
  }
  const NamedArrays arrays = LoadArrays(runtime, model.file);
  std::vector<std::string> unknown;
  const auto arguments = model.symbol.ListArguments(),
             auxiliaries = model.symbol.ListAuxiliaryStates();
  for (size_t i = 0; i < arrays.names.size(); ++i) {
    const std::string& name = arrays.names[i];
    const bool is_arg = name.starts_with("arg:"), is_aux = name.starts_with("aux:");
    const std::string bare = is_arg || is_aux ? name.substr(4) : name;
    if (!is_aux && std::find(arguments.begin(), arguments.end(), bare) != arguments.end()) {
      model.args[bare] = arrays.arrays[i];
    } else if (!is_arg &&
               std::find(auxiliaries.begin(), auxiliaries.end(), bare) != auxiliaries.end()) {
      model.auxs[bare] = arrays.arrays[i];
    } else {
      unknown.push_back(bare);
    }
  }
  if (!unknown.empty())
    runtime.log("train").Warning("{} holds {} arrays that the net does not have: {}", model.file,
                                 unknown.size(), join(unknown, ", "));
  std::vector<std::string> open;
  for (const std::string& name : arguments) {
    if (!model.args.contains(name)) open.push_back(name);
  }
  FindInputs(open, named, &model);
  return model;
}

}  // namespace

Model LoadModel(Runtime& runtime, const std::string& where,
                const std::vector<std::string>& inputs) {
  const std::string file = CheckpointOf(where);
  if (file.empty()) return FromReference(runtime, where, inputs);
  if (!inputs.empty())
    Throw(ErrorKind::kUsage,
          "{} declares its own inputs; name inputs only for MXNet's files, PREFIX@N", file);
  return FromCheckpoint(runtime, file);
}

std::string FollowLink(const std::string& where) {
  fs::path link = where;
  if (!link.has_filename()) link = link.parent_path();  // "runs/latest/"
  std::error_code none;
  if (!fs::is_symlink(link, none)) return where;
  return (link.parent_path() / fs::read_symlink(link)).lexically_normal().string();
}

std::string CheckpointOf(const std::string& where) {
  std::string prefix;
  int epoch = 0;
  if (!fs::exists(where) && SplitReference(where, &prefix, &epoch)) return "";
  if (!fs::is_directory(where)) return where;
  const fs::path run = FollowLink(where),
                 folder = fs::is_directory(run / "checkpoints") ? run / "checkpoints" : run;
  for (const char* name : {"best", "last", "previous"}) {
    if (fs::exists(folder / name)) return (folder / name).string();
  }
  Throw(ErrorKind::kFileSystem,
        "{} holds no checkpoint (best or last); train first, or name a checkpoint file", where);
}

std::string ReferenceParamsFile(const std::string& where) {
  std::string prefix;
  int epoch = 0;
  if (!SplitReference(where, &prefix, &epoch))
    Throw(ErrorKind::kUsage, "'{}' is not of the form PREFIX@NUMBER", where);
  return format("{}-{:04}.params", prefix, epoch);
}

std::vector<std::string> SaveMxnetModel(const std::string& where, const Model& model) {
  const std::vector<std::string> files = {ReferenceSymbolFile(where), ReferenceParamsFile(where)};
  NamedArrays arrays;
  auto add = [&arrays](const char* kind, const std::map<std::string, NDArray>& from) {
    for (const auto& [name, array] : from) {
      arrays.names.push_back(kind + name);
      arrays.arrays.push_back(array);
    }
  };
  add("arg:", model.args);
  add("aux:", model.auxs);
  SaveArrays(files[1], arrays);
  WriteFileAtomically(files[0], ForMxnet(model));
  return files;
}

void SetParameters(const Model& model, Executor* executor,
                   const std::vector<std::string>& not_parameters) {
  auto copy = [&](const std::map<std::string, NDArray>& from,
                  const std::map<std::string, NDArray>& to, const char* what) {
    for (const auto& [name, target] : to) {
      if (std::find(not_parameters.begin(), not_parameters.end(), name) != not_parameters.end())
        continue;
      const auto found = from.find(name);
      if (found == from.end())
        Throw(ErrorKind::kConfig, "{}: the {} '{}' of the net is missing", model.file, what, name);
      if (!(found->second.shape() == target.shape())) {
        Throw(ErrorKind::kConfig, "{}: {} '{}' has shape {}, the net needs {}", model.file, what,
              name, found->second.shape().ToString(), target.shape().ToString());
      }
      NDArray(target).CopyFrom(found->second);
    }
  };
  copy(model.args, executor->args(), "parameter");
  copy(model.auxs, executor->auxs(), "auxiliary state");
}

}  // namespace mxtrain

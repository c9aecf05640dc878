#include "mxtrain/train/model.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <set>

#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/json.h"

namespace mxtrain {
namespace {

namespace fs = std::filesystem;

Model FromCheckpoint(Runtime& runtime, const std::string& file) {
  Checkpoint c = LoadCheckpoint(runtime, file);
  Model model;
  model.file = file;
  model.symbol = Symbol::FromJson(runtime.operators(), c.model.symbol_json);
  model.info = std::move(c.model);
  model.args = std::move(c.args);
  model.auxs = std::move(c.auxs);
  for (const auto& [name, average] : c.averages) (model.args.contains(name) ? model.args : model.auxs)[name] = average;
  return model;
}

// Without parameters of losses that the reference system refuses to read, and predictions do not need.
std::string ForReferenceSystem(const std::string& symbol_json) {
  bool changed = false;
  Json json = Json::parse(symbol_json);
  for (Json& node : json.at("nodes")) {
    if (node.at("op") != "SoftmaxOutput") continue;
    for (const char* key : {"class_weights", "focal_gamma"}) changed = node.at("attrs").erase(key) > 0 || changed;
  }
  return changed ? json.dump(2) + "\n" : symbol_json;
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

std::string ReferenceSymbolFile(const std::string& where) { return where.substr(0, where.rfind('@')) + "-symbol.json"; }

Model FromReference(Runtime& runtime, const std::string& where) {
  Model model;
  model.file = ReferenceParamsFile(where);
  const std::string symbol_file = ReferenceSymbolFile(where);
  try {
    model.symbol = Symbol::FromJson(runtime.operators(), ReadFile(symbol_file));
  } catch (const Error& e) {
    if (e.kind() == ErrorKind::kFileSystem) throw;
    RethrowWithPrefix(std::current_exception(), symbol_file);
  }
  const NamedArrays arrays = LoadArrays(runtime, model.file);
  std::vector<std::string> unknown;
  const auto arguments = model.symbol.ListArguments(), auxiliaries = model.symbol.ListAuxiliaryStates();
  for (size_t i = 0; i < arrays.names.size(); ++i) {
    const std::string& name = arrays.names[i];
    const bool is_arg = name.starts_with("arg:"), is_aux = name.starts_with("aux:");
    const std::string bare = is_arg || is_aux ? name.substr(4) : name;
    if (!is_aux && std::find(arguments.begin(), arguments.end(), bare) != arguments.end()) {
      model.args[bare] = arrays.arrays[i];
    } else if (!is_arg && std::find(auxiliaries.begin(), auxiliaries.end(), bare) != auxiliaries.end()) {
      model.auxs[bare] = arrays.arrays[i];
    } else {
      unknown.push_back(bare);
    }
  }
  if (!unknown.empty()) runtime.log().Warning("{} holds {} arrays that the net does not have: {}", model.file, unknown.size(), join(unknown, ", "));
  for (const std::string& name : arguments) {
    if (model.args.contains(name)) continue;
    (name.ends_with("_label") || name == "label" ? model.info.labels : model.info.inputs).push_back({name, TShape(), DType::kFloat32});
  }
  if (model.info.inputs.size() > 1) {
    std::vector<std::string> names;
    for (const InputInfo& input : model.info.inputs) names.push_back(input.name);
    Throw(ErrorKind::kConfig, "{} lacks arrays for {}; one of them may be the input, the others are missing", model.file, join(names, ", "));
  }
  return model;
}

}  // namespace

Model LoadModel(Runtime& runtime, const std::string& where) {
  const std::string file = CheckpointOf(where);
  return file.empty() ? FromReference(runtime, where) : FromCheckpoint(runtime, file);
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
  const fs::path run = FollowLink(where), folder = fs::is_directory(run / "checkpoints") ? run / "checkpoints" : run;
  for (const char* name : {"best", "last", "previous"}) {
    if (fs::exists(folder / name)) return (folder / name).string();
  }
  Throw(ErrorKind::kFileSystem, "{} holds no checkpoint (best or last); train first, or name a checkpoint file", where);
}

std::string ReferenceParamsFile(const std::string& where) {
  std::string prefix;
  int epoch = 0;
  if (!SplitReference(where, &prefix, &epoch)) Throw(ErrorKind::kUsage, "'{}' is no PREFIX@NUMBER", where);
  return format("{}-{:04}.params", prefix, epoch);
}

std::vector<std::string> SaveReferenceModel(const std::string& where, const Symbol& symbol, const std::map<std::string, NDArray>& args,
                                            const std::map<std::string, NDArray>& auxs) {
  const std::vector<std::string> files = {ReferenceSymbolFile(where), ReferenceParamsFile(where)};
  NamedArrays arrays;
  auto add = [&arrays](const char* kind, const std::map<std::string, NDArray>& from) {
    for (const auto& [name, array] : from) {
      arrays.names.push_back(kind + name);
      arrays.arrays.push_back(array);
    }
  };
  add("arg:", args);
  add("aux:", auxs);
  SaveArrays(files[1], arrays);
  WriteFileAtomically(files[0], ForReferenceSystem(symbol.ToJson()));
  return files;
}

void SetParameters(const Model& model, Executor* executor, const std::vector<std::string>& not_parameters) {
  auto copy = [&](const std::map<std::string, NDArray>& from, const std::map<std::string, NDArray>& to, const char* what) {
    for (const auto& [name, target] : to) {
      if (std::find(not_parameters.begin(), not_parameters.end(), name) != not_parameters.end()) continue;
      const auto found = from.find(name);
      if (found == from.end()) Throw(ErrorKind::kConfig, "{}: the {} '{}' of the net is missing", model.file, what, name);
      if (!(found->second.shape() == target.shape())) {
        Throw(ErrorKind::kConfig, "{}: {} '{}' has shape {}, the net needs {}", model.file, what, name, found->second.shape().ToString(),
              target.shape().ToString());
      }
      NDArray(target).CopyFrom(found->second);
    }
  };
  copy(model.args, executor->args(), "parameter");
  copy(model.auxs, executor->auxs(), "auxiliary state");
}

}  // namespace mxtrain

// SPDX-License-Identifier: Apache-2.0
#include "app/commands/pretrained.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <set>

#include "app/commands/command.h"
#include "app/config/address.h"
#include "app/config/document.h"
#include "app/config/name_list.h"
#include "app/config/near_file.h"
#include "app/config/net_onnx.h"
#include "app/fetch/remote_file.h"
#include "app/inference/bert_form.h"
#include "app/inference/gpt2_form.h"
#include "app/inference/llama_form.h"
#include "app/report/output.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/format.h"
#include "mxtrain/base/json.h"
#include "mxtrain/base/params.h"
#include "mxtrain/base/text.h"
#include "mxtrain/io/augmenter.h"
#include "mxtrain/ndarray/safetensors_shards.h"

namespace mxtrain::commands {
namespace {

constexpr size_t kMostIndexBytes = size_t{64} << 20;

NameMap ReadMap(const std::string& path) {
  return path.empty() ? NameMap() : config::ReadNameList(path).rules;
}

// Means and deviations that differ by less are the same in effect: 0.5, and 127 / 255.
constexpr double kSameColour = 0.003;

// The nets of which a list of names says something of its own; "" for the others.
std::set<std::string> NetsIn(const std::string& path) {
  auto sources = std::make_shared<config::SourceMap>();
  config::Diagnostics ignored(sources);
  const config::Value root = config::ParseYaml(
      sources->AddFile(path, ReadFile(path), std::filesystem::path(path).parent_path()), &ignored);
  std::set<std::string> nets{""};
  const config::Value* families = root.is_map() ? root.Get("families") : nullptr;
  if (!families || !families->is_map()) return nets;
  for (const config::Member& family : families->members) {
    const config::Value* own = family.value.is_map() ? family.value.Get("nets") : nullptr;
    if (!own || !own->is_map()) continue;
    for (const config::Member& net : own->members) nets.insert(net.key);
  }
  return nets;
}

// Whether two values of a variable are the same; what is computed is not compared.
bool SameValue(const config::Value& value, const std::string& wanted) {
  if (!value.is_scalar() || value.text.find("${") != std::string::npos) return true;
  const config::Value other = config::Value::Scalar(wanted);
  if (const auto number = value.AsNumber(), expected = other.AsNumber(); number && expected)
    return std::abs(*number - *expected) <= 1e-6 * std::abs(*expected);
  if (const auto truth = value.AsBool(), expected = other.AsBool(); truth && expected)
    return *truth == *expected;
  return value.text == wanted;
}

// The mean or the deviation that images are normalized with, of each of three channels.
std::vector<double> ColoursOf(const std::vector<io::TransformSpec>& transforms,
                              std::string_view which, double without) {
  std::vector<double> numbers;
  if (!transforms.empty() && transforms.back().name == "normalize") {
    for (const auto& [key, value] : io::WithNumbers(transforms.back()).kwargs) {
      if (key == which) params::Parse(value, &numbers);
    }
  }
  if (numbers.empty()) numbers = {without};
  if (numbers.size() == 1) numbers.resize(3, numbers[0]);
  return numbers;
}

bool SameColours(const std::vector<double>& a, const std::vector<double>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](double x, double y) { return std::abs(x - y) <= kSameColour; });
}

// What the configuration has otherwise than weights of a family rely on: settings to make.
std::vector<std::string> DifferencesFrom(const config::WeightsFamily& family,
                                         const session::Session& session) {
  std::vector<std::string> settings;
  const config::Value& vars = session.config().vars;
  for (const auto& [name, wanted] : family.vars) {
    const config::Value* value = vars.is_map() ? vars.Get(name) : nullptr;
    if (value && !SameValue(*value, wanted)) settings.push_back(format("vars.{}={}", name, wanted));
  }
  const std::vector<config::NetInput>& inputs = session.net().inputs;
  const bool of_colours =
      inputs.size() == 1 && inputs[0].shape.ndim() == 3 && inputs[0].shape[0] == 3;
  if (!of_colours) return settings;
  const std::vector<io::TransformSpec> transforms = session.TrainTransforms();
  if (!SameColours(ColoursOf(transforms, "mean", 0), family.mean) ||
      !SameColours(ColoursOf(transforms, "std", 1), family.std)) {
    settings.push_back(format("the transform normalize: {{mean: [{:.9g}], std: [{:.9g}]}}",
                              fmt::join(family.mean, ", "), fmt::join(family.std, ", ")));
  }
  return settings;
}

// Which of these nets the configuration has: the one of its name, or with a variable from the file
// of that name; "" if that is not told.
std::string NetOf(session::Session& session, const std::set<std::string>& nets) {
  const config::Config& c = session.config();
  if (nets.count(c.name) != 0) return c.name;
  if (!c.vars.is_map()) return "";
  for (const config::Member& var : c.vars.members) {
    for (const config::Place& place : {var.place, var.value.place}) {
      if (!place) continue;
      const std::string file =
          std::filesystem::path(session.diagnostics().sources().Name(place.file)).stem().string();
      if (nets.count(file) != 0) return file;
    }
  }
  return "";
}

// Weights of other programs rely on how their nets and images were; with another padding, epsilon
// or mean they still fit, and only accuracy is lost. Files of a run have the net's own names.
// `arrays`: their names in the file.
void WarnIfOtherwise(const std::vector<std::string>& arrays, const std::string& called,
                     session::Session& session, console::Console& console) {
  const std::string& list = session.config().train.weights.map;
  if (list.empty()) return;
  std::set<std::string> nets = NetsIn(list);
  if (const std::string net = NetOf(session, nets); !net.empty()) nets = {net};
  const NameMap rules = config::ReadNameList(list).rules;
  const auto is_own = [&rules](const std::string& name) { return rules.Apply(name) == name; };
  if (std::ranges::all_of(arrays, is_own)) return;
  std::vector<std::string> fewest;
  std::string nearest;
  for (const std::string& net : nets) {
    for (const config::WeightsFamily& family : config::ReadNameList(list, net).families) {
      if (!family.has || !family.Owns(arrays)) continue;
      const std::vector<std::string> settings = DifferencesFrom(family, session);
      if (settings.empty()) return;
      if (nearest.empty() || settings.size() < fewest.size()) {
        fewest = settings;
        nearest = family.name;
      }
    }
  }
  if (nearest.empty()) return;
  console.Message(
      LogLevel::kWarning,
      format(
          "{} has the names of {}, whose weights rely on {}; the configuration has it otherwise, "
          "which costs accuracy (`mxtrain init --net NAME --weights FILE` writes what they need)",
          called, nearest, join(fewest, ", ")));
}

// That the arrays were read from, by these rules.
BaseFile BaseOf(const std::string& file, const config::WeightsConfig& weights) {
  BaseFile base;
  base.file = std::filesystem::absolute(FollowLink(file)).lexically_normal().string();
  if (config::IsAddress(weights.file)) base.address = config::SplitPin(weights.file).file;
  base.state = weights.state;
  base.rules = ReadMap(weights.map).rules();
  return base;
}

struct Loaded {
  std::map<std::string, NDArray> arrays;       // by their names in the net
  std::vector<std::string> bare;               // names in the file, without what a wrapper adds
  std::map<std::string, std::string> in_file;  // names in the file, by those in the net
  std::string prefix;                          // that a wrapper of the net added
  TorchStates states;
  std::vector<std::string> skipped;  // names in the file, of arrays that cannot be read
};

// Parameters and auxiliary states in the order of the layers.
std::vector<std::string> NamesInOrder(const Symbol& net) {
  std::vector<std::string> names;
  for (const Node& node : net.graph().nodes) {
    if (node.is_variable()) names.push_back(node.name);
  }
  return names;
}

Loaded Load(session::Session& session, const std::string& file, const std::string& called) {
  const config::WeightsConfig& weights = session.config().train.weights;
  const NameMap rules = ReadMap(weights.map);
  const std::vector<std::string> in_net = NamesInOrder(session.net().symbol);
  Loaded loaded;
  try {
    WeightsFile read = ReadWeights(session.runtime(), file, weights.state);
    loaded.states = std::move(read.states);
    const std::set<std::string> wanted(in_net.begin(), in_net.end());
    loaded.prefix = WrapperPrefix(read.arrays, rules, wanted);
    RequireRead(read.unread, loaded.prefix, rules, wanted, file);
    for (const auto& [name, why] : read.unread) loaded.skipped.push_back(name);
    const auto arrays = WithoutPrefix(std::move(read.arrays), loaded.prefix);
    for (const auto& [name, array] : arrays) {
      loaded.bare.push_back(name);
      if (const std::optional<std::string> becomes = rules.Apply(name))
        loaded.in_file[*becomes] = name;
    }
    loaded.arrays = Renamed(arrays, rules, file);
    return loaded;
  } catch (const Error& error) {
    if (!config::IsAddress(called)) throw;
    Throw(error.kind(), "{} (in the cache, from {}; remove it there to download it again)",
          error.what(), called);
  }
}

// The config.json that Hugging Face has beside a file of weights; null without one.
Json ConfigBeside(const std::string& file, const std::string& called, console::Console& console,
                  bool offline) {
  constexpr size_t kMostBytes = size_t{1} << 20;
  if (!file.ends_with(".safetensors") && !IsSafetensorsIndex(file)) return Json();
  const std::string name = "config.json";
  std::string path;
  if (config::IsAddress(called)) {
    path = LocalWeights(config::SiblingOf(called, name), console, offline);
  } else {
    path = (std::filesystem::path(file).parent_path() / name).string();
    if (!std::filesystem::exists(path)) return Json();
  }
  Json json = Json::parse(ReadFile(path, kMostBytes), nullptr, /*allow_exceptions=*/false);
  return json.is_object() && json.contains("model_type") ? json : Json();
}

// What a config.json says otherwise than a net that is built as it can say; nothing for other nets.
std::optional<std::vector<std::string>> DifferencesFrom(const Symbol& net,
                                                        const config::NetInput& input,
                                                        const Json& config) {
  if (const auto form = inference::LlamaFormOf(net, input.name, input.shape[0]))
    return form->DifferencesFrom(config);
  if (const auto form = inference::BertFormOf(net, input.name, input.shape[0]))
    return form->DifferencesFrom(config);
  if (const auto form = inference::Gpt2FormOf(net, input.name, input.shape[0]))
    return form->DifferencesFrom(config);
  return std::nullopt;
}

// Shapes of arrays do not tell how many heads there are, or how queries are turned: a net built
// like GPT-2, Llama or BERT must be what the config.json beside its weights says, unless it takes a
// part of them.
void RequireSameForm(const Loaded& loaded, const std::string& file, const std::string& called,
                     session::Session& session, console::Console& console, bool offline) {
  const Symbol& net = session.net().symbol;
  const std::vector<config::NetInput>& inputs = session.net().inputs;
  if (inputs.size() != 1 || !inputs[0].shape.known() || inputs[0].shape.ndim() != 1) return;
  if (!DifferencesFrom(net, inputs[0], Json::object())) return;
  const bool llama =
      static_cast<bool>(inference::LlamaFormOf(net, inputs[0].name, inputs[0].shape[0]));
  for (const std::string& name : loaded.bare) {
    if (llama && name.ends_with("_proj.bias"))
      Throw(ErrorKind::kConfig, "{} has biases of products, such as '{}', which are not covered",
            called, name);
  }
  const Json config = ConfigBeside(file, called, console, offline);
  if (config.is_null()) return;
  const std::vector<std::string> differences = *DifferencesFrom(net, inputs[0], config);
  if (differences.empty()) return;
  const std::string text = format("{} is of another net, as config.json beside it says: {}", called,
                                  join(differences, "; "));
  if (!session.config().train.weights.partial) Throw(ErrorKind::kConfig, "{}", text);
  console.Message(LogLevel::kWarning, text);
}

// What was chosen in reading them.
void SayHowRead(const Loaded& loaded, const std::string& called, console::Console& console) {
  if (const TorchStates& states = loaded.states; !states.others.empty()) {
    const std::string taken =
        states.taken.empty() ? "the outermost dict" : "'" + states.taken + "'";
    std::vector<std::string> others(states.others.begin() + 1, states.others.end());
    console.Message(
        LogLevel::kInfo,
        format("weights of {}: {} is read; train.weights.state={} reads '{}' instead{}", called,
               taken, report::QuoteShell(states.others[0]), states.others[0],
               others.empty() ? "" : format(" (there are also: {})", join(others, ", "))));
  }
  if (!loaded.skipped.empty()) {
    console.Message(
        LogLevel::kInfo,
        format("weights of {}: {} of a type that cannot be read, which the net does "
               "not use: {}",
               called, Counted(loaded.skipped.size(), "array"), FirstOf(loaded.skipped, 4)));
  }
  if (!loaded.prefix.empty()) {
    console.Message(LogLevel::kInfo,
                    format("weights of {}: the names begin with '{}' there, which is removed",
                           called, loaded.prefix));
  }
}

// Without training, the arrays that are not taken would be saved with their random values.
void RequireWhole(const WeightsAccount& account, session::Session& session) {
  if (account.reset.empty()) return;
  session.diagnostics().Error(
      session.loaded().PlaceOf("train.epochs"),
      format("train.epochs = 0 saves the model of train.weights unchanged, but not all of the net "
             "is in it: {}",
             account.Text()),
      "train at least one epoch, or map names in the file to names of the net with "
      "train.weights.map");
  session.diagnostics().ThrowIfErrors();
}

std::map<std::string, NDArray> ArraysOfOnnx(session::Session& session, console::Console& console) {
  const onnx::ImportedNet net =
      config::ImportOnnx(session.config().net, session.runtime().operators());
  for (const std::string& note : net.notes) console.Message(LogLevel::kWarning, note);
  return onnx::ArraysOf(net, session.runtime());
}

// The net of a file has the file's arrays, in their shapes.
void RequireShapes(const WeightsAccount& account, const std::string& file) {
  for (const WeightsAccount::Reset& reset : account.reset) {
    if (!reset.in_file) continue;
    Throw(ErrorKind::kConfig, "{}: its array '{}' is {}, but the net takes {}", file, reset.name,
          reset.in_file->ToString(), reset.shape.ToString());
  }
}

// Whether the file's arrays in another shape are all of one other number of classes than the
// `classes` of the data: of so many outputs instead, of the same inputs. `background`: of classes
// and the background, for each of several anchors.
bool DifferByClassesAlone(const std::vector<WeightsAccount::Reset>& reset, int64_t classes,
                          bool background) {
  const int64_t more = background ? 1 : 0, own = classes + more;
  std::optional<int64_t> in_file;
  for (const WeightsAccount::Reset& array : reset) {
    if (!array.in_file) continue;
    const TShape &ours = array.shape, &theirs = *array.in_file;
    if (ours.ndim() < 1 || ours.ndim() != theirs.ndim() || own == 0 || ours[0] % own != 0)
      return false;
    if (!std::equal(ours.begin() + 1, ours.end(), theirs.begin() + 1)) return false;
    const int64_t anchors = ours[0] / own;
    if (anchors < 1 || (anchors > 1 && !background) || theirs[0] % anchors != 0) return false;
    if (in_file && *in_file != theirs[0] / anchors) return false;
    in_file = theirs[0] / anchors;
  }
  return true;
}

}  // namespace

std::string LocalWeights(const std::string& file, console::Console& console, bool offline) {
  const config::PinnedFile pinned = config::SplitPin(file);
  if (!config::IsAddress(file)) {
    if (!std::filesystem::exists(pinned.file) && pinned.file.find('@') == std::string::npos) {
      Throw(ErrorKind::kFileSystem, "there are no weights {}{}", pinned.file,
            config::DidYouMeanFile(pinned.file));
    }
    if (!pinned.sha256.empty()) fetch::CheckSha256(pinned.file, pinned.sha256);
    return pinned.file;
  }
  fetch::FetchOptions options = fetch::OptionsOfEnvironment();
  options.sha256 = pinned.sha256;
  options.offline = options.offline || offline;
  options.stops = [] { return StopFlag() == 1; };
  std::string local = fetch::FetchFile(pinned.file, options, console);
  if (IsSafetensorsIndex(local)) {
    options.sha256.clear();  // that of the index
    for (const std::string& shard : ShardsOf(ReadFile(local, kMostIndexBytes), pinned.file))
      fetch::FetchFile(config::SiblingOf(pinned.file, shard), options, console);
  }
  return local;
}

WeightsGap GapOf(const WeightsAccount& account, const std::vector<std::string>& names,
                 int64_t classes) {
  constexpr size_t kFew = 4;           // arrays: of one layer, or of two
  constexpr size_t kMostMissing = 10;  // a gap of more than a tenth is another net
  const std::set<std::string> taken(account.taken.begin(), account.taken.end());
  // New classes are learnt wherever in the net they are: a detector has them at every scale.
  const bool new_classes = DifferByClassesAlone(account.reset, classes, false) ||
                           DifferByClassesAlone(account.reset, classes, true);
  std::map<std::string, bool> reset;  // whether the file has the name
  for (const WeightsAccount::Reset& r : account.reset) {
    if (!r.in_file || !new_classes) reset[r.name] = r.in_file.has_value();
  }
  std::vector<std::string> missing, pending;
  size_t renamed = 0;
  for (const std::string& name : names) {
    if (taken.contains(name)) {
      missing.insert(missing.end(), pending.begin(), pending.end());
      pending.clear();
    } else if (const auto found = reset.find(name); found != reset.end()) {
      pending.push_back(name);
      renamed += !found->second;
    }
  }
  WeightsGap gap;
  const size_t before = taken.size() + missing.size(), all = taken.size() + account.reset.size();
  const size_t other_names = std::min(renamed, account.unused.size());
  gap.is_other = (missing.size() > kFew && missing.size() * kMostMissing > before) ||
                 (other_names > kFew && 2 * taken.size() < all);
  if (!missing.empty()) {
    gap.text = format(
        "{} of the {} arrays before the net's last layers are not in the file, or in "
        "another shape ({})",
        missing.size(), before, FirstOf(missing, 3));
  } else if (gap.is_other) {
    gap.text = format("{} of the {} arrays of the net are not in the file, which has {} others",
                      account.reset.size(), all, account.unused.size());
  }
  return gap;
}

std::string TakePretrained(session::Session& session, Trainer* trainer, console::Console& console,
                           bool offline) {
  // train.weights, else the file of net.onnx
  const config::WeightsConfig& weights = session.config().train.weights;
  const bool is_onnx = weights.file.empty();
  const std::string name =
      is_onnx ? session.config().net.onnx : config::SplitPin(weights.file).file;
  if (name.empty()) return "";
  const std::string file = is_onnx ? "" : LocalWeights(weights.file, console, offline);
  Loaded loaded;
  if (is_onnx) {
    loaded.arrays = ArraysOfOnnx(session, console);
  } else {
    loaded = Load(session, file, name);
    SayHowRead(loaded, name, console);
    RequireSameForm(loaded, file, name, session, console, offline);
  }
  WeightsAccount account =
      trainer->Begin(loaded.arrays, is_onnx ? BaseFile() : BaseOf(file, weights));
  for (std::string& unused : account.unused) {
    if (const auto found = loaded.in_file.find(unused); found != loaded.in_file.end())
      unused = found->second;
  }
  if (account.taken.empty()) {
    Throw(ErrorKind::kConfig,
          "no array of {} fits the net: {}; are they of another net? If only the names differ, use "
          "train.weights.map to map those in the file to those of the net",
          name, account.Text());
  }
  if (!is_onnx) WarnIfOtherwise(loaded.bare, name, session, console);
  if (is_onnx) RequireShapes(account, name);
  if (session.config().train.epochs == 0) RequireWhole(account, session);
  const WeightsGap gap = is_onnx ? WeightsGap()
                                 : GapOf(account, NamesInOrder(session.net().symbol),
                                         std::ssize(session.class_names()));
  if (gap.is_other && !weights.partial) {
    Throw(ErrorKind::kConfig,
          "weights of {}: {}: they are of another net, or under other names (train.weights.map); "
          "if the rest of the net should start from random values, set train.weights.partial=true",
          name, gap.text);
  }
  console.Message(LogLevel::kInfo, format("weights of {}: {}", name, account.Text()));
  if (gap.text.empty() || weights.partial) return "";
  const std::string warning =
      format("weights of {}: {}; they start from random values", name, gap.text);
  console.Message(LogLevel::kWarning, warning);
  return warning;
}

}  // namespace mxtrain::commands

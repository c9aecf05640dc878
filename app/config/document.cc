// SPDX-License-Identifier: Apache-2.0
#include "app/config/document.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <set>
#include <utility>

#include "app/config/address.h"
#include "app/config/bare_expressions.h"
#include "app/config/expression.h"
#include "app/config/near_file.h"
#include "app/config/schema.h"
#include "app/config/trunk.h"
#include "app/config/unread_vars.h"
#include "app/config/zoo.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/train/checkpoint.h"

namespace mxtrain::config {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxIncludeDepth = 20;
constexpr size_t kMostDocument = size_t{64} << 20;  // of a configuration
constexpr size_t kMostIncluded = size_t{4} << 20;   // bytes, each time that a file is read
constexpr std::string_view kSize = "${size}";
constexpr int kMaxIncludes = 1000;  // of all files, each time that one is read

std::string WithoutByteOrderMark(std::string text) {
  return text.starts_with("\xEF\xBB\xBF") ? text.substr(3) : text;
}

// Merges `from` over `into`.
void Merge(Value from, Value* into) {
  if (!from.is_map() || !into->is_map()) {
    *into = std::move(from);
    return;
  }
  MemberIndex members(into);
  for (Member& member : from.members) {
    if (Member* present = members.Find(member.key)) {
      present->place = member.place;
      Merge(std::move(member.value), &present->value);
    } else {
      members.Add(std::move(member));
    }
  }
}

// A whole file over others. Of the two keys for the inputs of a net it has its own alone.
void MergeFile(Value from, Value* into) {
  Member* const over = from.is_map() ? from.Find("net") : nullptr;
  Member* const under = into->is_map() ? into->Find("net") : nullptr;
  if (over && under && over->value.is_map() && under->value.is_map()) {
    const bool one = over->value.Find("input"), several = over->value.Find("inputs");
    if (one != several) {
      const std::string other = one ? "inputs" : "input";
      std::erase_if(under->value.members, [&](const Member& m) { return m.key == other; });
    }
  }
  Merge(std::move(from), into);
}

class DocumentLoader {
 public:
  DocumentLoader(const LoadRequest& request, Diagnostics* diagnostics)
      : request_(request), diagnostics_(*diagnostics) {}

  Value Run() {
    Value root = Value::Map({});
    for (const std::string& given : request_.files) {
      const std::string file = FileOf(given);
      const fs::path path = request_.working_folder / file;
      own_files_.insert(file);
      NoteVars(root);
      MergeFile(LoadFile(file, path, ReadNamed(file, path)), &root);
    }
    if (!request_.overrides.empty()) {
      own_vars_ = VarsOf(root);
      ApplyOverrides(&root);
    }
    if (const Member* net = root.Find("net"); net && net->value.is_map()) UseNet(&root);
    if (Member* train = root.Find("train"); train && train->value.is_map())
      PinWeights(&train->value);
    ReportUnread(root);
    return root;
  }

 private:
  static std::set<std::string> VarsOf(const Value& root) {
    std::set<std::string> names;
    if (const Value* vars = root.Get("vars"); vars && vars->is_map()) {
      for (const Member& member : vars->members) names.insert(member.key);
    }
    return names;
  }
  // That a file declares which others cover.
  void NoteVars(const Value& root) { covered_vars_.merge(VarsOf(root)); }

  void ReportUnread(const Value& root) {
    const auto is_own = [this](const Place& place) {
      return place && own_files_.contains(diagnostics_.sources().Name(place.file));
    };
    std::set<std::string> declared = covered_vars_;
    // Of the files alone, for what the command line sets.
    for (const std::string& name : own_vars_) {
      const Member* member = root.Get("vars") ? root.Get("vars")->Find(name) : nullptr;
      if (member && diagnostics_.sources().IsCommandLine(member->place)) declared.insert(name);
    }
    ReportUnreadVars(root, declared, is_own, &diagnostics_);
  }

  // A run folder means its configuration.
  std::string FileOf(const std::string& given) const {
    const fs::path inside = fs::path(given) / "config.yaml";
    return fs::exists(request_.working_folder / inside) ? inside.string() : given;
  }

  static std::string ReadNamed(const std::string& file, const fs::path& path) {
    if (!fs::exists(path)) {
      const std::string guess = DidYouMeanFile(file);
      const bool is_yaml = path.extension() == ".yaml" || path.extension() == ".yml";
      Throw(ErrorKind::kConfig, "there is no configuration {}{}{}", is_yaml ? "" : "or run folder ",
            file,
            guess.empty()
                ? "; relative paths on the command line are relative to the working folder"
                : guess);
    }
    if (fs::is_directory(path))
      Throw(ErrorKind::kConfig,
            "{} is a folder without config.yaml; give a configuration file (YAML) or a run folder, "
            "or "
            "let `mxtrain init` write a configuration for the data in it",
            file);
    if (IsCheckpoint(path.string())) {
      const std::string run = RunOfCheckpoint(file);
      Throw(ErrorKind::kConfig, "{} is a checkpoint, not a configuration; give its run folder{}",
            file, run.empty() ? "" : format(": '{}'", run));
    }
    return ReadFile(path.string(), kMostDocument, Readable::kFileOrPipe);
  }

  Value LoadFile(const std::string& name, const fs::path& path, std::string text) {
    const int file = diagnostics_.sources().AddFile(name, WithoutByteOrderMark(std::move(text)),
                                                    path.parent_path());
    Value root = ParseYaml(file, &diagnostics_);
    if (!root.is_map()) {
      diagnostics_.Error(root.place,
                         format("a configuration is a map of keys, got {}", root.Describe()),
                         "its main keys are net, data and train");
      diagnostics_.ThrowIfErrors();
    }
    ExpandEnvironment(&root);
    return WithIncludes(std::move(root), name, path);
  }

  Value WithIncludes(Value root, const std::string& name, const fs::path& path) {
    const Member* include = root.Find("include");
    if (!include) return root;
    open_.push_back(path.lexically_normal());
    const std::vector<Value> files =
        include->value.is_list() ? include->value.list : std::vector<Value>{include->value};
    Value merged = Value::Map({}, root.place);
    for (const Value& file : files) Include(file, name, path.parent_path(), &merged);
    open_.pop_back();
    std::erase_if(root.members, [](const Member& m) { return m.key == "include"; });
    NoteVars(merged);
    Merge(std::move(root), &merged);
    return merged;
  }

  void Include(const Value& file, const std::string& includer, const fs::path& folder,
               Value* merged) {
    if (!file.is_scalar()) {
      diagnostics_.Error(
          file.place, format("include takes a file or a list of files, got {}", file.Describe()));
      return;
    }
    const fs::path path = (folder / file.text).lexically_normal();
    if (std::find(open_.begin(), open_.end(), path) != open_.end()) {
      diagnostics_.Error(file.place, format("'{}' includes itself", file.text));
      return;
    }
    if (open_.size() > kMaxIncludeDepth) {
      diagnostics_.Error(file.place,
                         format("files include one another more than {} deep, down to '{}'",
                                kMaxIncludeDepth, file.text),
                         "include fewer files from one another, or list them in one `include`");
      return;
    }
    const auto require = [&](bool fits, const std::string& what) {
      if (fits) return;
      diagnostics_.Error(file.place, what,
                         "an included file may include others; each is read every time");
      diagnostics_.ThrowIfErrors();
    };
    require(++num_includes_ <= kMaxIncludes,
            format("more than {} files are included", kMaxIncludes));
    std::string text;
    try {
      text = ReadFile(path.string(), kMostDocument);
    } catch (const Error&) {
      diagnostics_.Error(file.place, format("cannot read the included file '{}'", file.text),
                         format("paths are relative to the file that names them; looked for {}{}",
                                path.string(), DidYouMeanFile(path.string())));
      return;
    }
    included_bytes_ += text.size();
    require(included_bytes_ <= kMostIncluded,
            format("included files have more than {} bytes together", kMostIncluded));
    MergeFile(LoadFile((fs::path(includer).parent_path() / file.text).lexically_normal().string(),
                       path, std::move(text)),
              merged);
  }

  // Replaces `net: {use: NAME, classes: N}` by the net of that name, below all that is written.
  // Layers that are written, or those of `decoder: NAME`, follow the last one of the net that they
  // take.
  void UseNet(Value* root) {
    Value& net = root->Find("net")->value;
    const Member* use = net.Find("use");
    const Member* classes = net.Find("classes");
    if (!use || use->value.is_null()) {
      if (classes && !classes->value.is_null())
        diagnostics_.Error(classes->place, "net.classes needs net.use",
                           "it is the number of classes of a net that is used by name");
      for (const char* key : {"decoder", "until"}) {
        const Member* const member = net.Find(key);
        if (!member || member->value.is_null()) continue;
        diagnostics_.Error(member->place, format("net.{} needs net.use", key),
                           key == std::string_view("decoder")
                               ? "it continues a net that is used by name"
                               : "it says where a net that is used by name ends");
      }
      return RemoveKeys(&net);
    }
    if (!use->value.is_scalar())
      diagnostics_.Error(use->value.place,
                         format("net.use: expected a name, got {}", use->value.Describe()),
                         "`mxtrain nets` lists them");
    diagnostics_.ThrowIfErrors();
    Value parts = NetWithoutRecipe(LoadNet(use->value));
    CheckInput(net, use->value, parts);
    if (classes) SetClasses(*classes, &parts);
    const Member* until = net.Find("until");
    if (until && until->value.is_null()) until = nullptr;
    if (Value layers = OwnLayers(net, until, &parts); until || layers.is_list())
      ContinueTrunk({use->value, until, root->Get("vars")}, std::move(layers), &parts,
                    &diagnostics_);
    if (const Member* inputs = net.Find("inputs"); inputs && !inputs->value.is_null())
      ReadTrunkInput(use->value, *inputs, &parts, &diagnostics_);
    diagnostics_.ThrowIfErrors();
    RemoveKeys(&net);
    std::erase_if(net.members, [](const Member& m) { return m.key == "layers"; });
    PrepareToCover(root, &parts);
    NoteVars(parts);
    MergeFile(std::move(*root), &parts);
    *root = std::move(parts);
  }

  // Layers that say the size of images in pixels would be wrong for those of another input.
  void CheckInput(const Value& net, const Value& use, const Value& parts) {
    const Value* const used = parts.Get("net");
    const Value* const layers = used && used->is_map() ? used->Get("layers") : nullptr;
    if (!layers || !Holds(*layers, kSize)) return;
    if (const Member* input = net.Find("input"); input && !input->value.is_null()) {
      diagnostics_.Error(input->place,
                         format("net.input: the layers of {} say the size of images", use.text),
                         "remove it and set vars.size, which is that of the input too");
    }
    if (const Value* images = ImagesAmong(net); images && !Holds(*images, kSize)) {
      diagnostics_.Error(images->place,
                         format("net.inputs: the layers of {} say the size of images", use.text),
                         format("write [3, \"{0}\", \"{0}\"] and set vars.size", kSize));
    }
  }
  // The shape of the input that the net used by name reads, among several; null without.
  static const Value* ImagesAmong(const Value& net) {
    const Value* const inputs = net.Get("inputs");
    const Value* const images = inputs && inputs->is_map() ? inputs->Get(kTrunkInput) : nullptr;
    const Value* const shape = images && images->is_map() ? images->Get("shape") : nullptr;
    return shape ? shape : images;
  }
  static bool Holds(const Value& value, std::string_view text) {
    return value.text == text ||
           std::ranges::any_of(value.list, [&](const Value& item) { return Holds(item, text); }) ||
           std::ranges::any_of(value.members,
                               [&](const Member& member) { return Holds(member.value, text); });
  }

  // The layers of the decoder, whose blocks and variables come into *parts, and those that are
  // written; null if there are none.
  Value OwnLayers(const Value& net, const Member* until, Value* parts) {
    const auto list_of = [](const Value* map) {
      const Value* const layers = map && map->is_map() ? map->Get("layers") : nullptr;
      return layers && layers->is_list() ? layers : nullptr;
    };
    const Value* const written = list_of(&net);
    if (const Value* layers = net.Get("layers"); layers && !written && !layers->is_null())
      diagnostics_.Error(layers->place,
                         format("layers: expected a list, got {}", layers->Describe()));
    const Value* const name = net.Get("decoder");
    if (!name || name->is_null()) return written ? *written : Value();
    if (until) {
      diagnostics_.Error(
          until->place, "net.until next to net.decoder",
          format("remove it: decoder: {} takes the layers that it needs", name->text));
      return Value();
    }
    Value decoder = LoadDecoder(*name);
    Value layers = *list_of(decoder.Get("net"));
    CheckSides(net, *name, LargestStride(layers));
    if (written) layers.list.insert(layers.list.end(), written->list.begin(), written->list.end());
    std::erase_if(decoder.members,
                  [](const Member& m) { return m.key != "blocks" && m.key != "vars"; });
    Merge(std::move(decoder), parts);
    return layers;
  }

  // The sides of the net's input [channels, height, width] must be multiples of the largest stride
  // of a layer that the decoder takes. Expressions are not looked at.
  void CheckSides(const Value& net, const Value& decoder, int64_t multiple) {
    const Value* const images = ImagesAmong(net);
    const Value* const input = images ? images : net.Get("input");
    if (multiple < 1 || !input || !input->is_list() || input->list.size() != 3) return;
    std::string fitting = input->list[0].text;
    bool fits = true;
    for (const Value& side : {input->list[1], input->list[2]}) {
      const std::optional<int64_t> length = IntegerOf(side.text);
      if (!length) return;
      fits = fits && *length % multiple == 0;
      fitting += format(", {}", std::max<int64_t>(*length / multiple, 1) * multiple);
    }
    if (fits) return;
    diagnostics_.Error(input->place,
                       format("net.{}: the sides must be multiples of {} for decoder: {}",
                              images ? "inputs.data" : "input", multiple, decoder.text),
                       format("for example [{}], and the transforms to that size", fitting));
  }

  static std::optional<int64_t> IntegerOf(const std::string& text) {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
  }

  // train.weights: {file, sha256} is one text, FILE#sha256=DIGITS (address.h).
  void PinWeights(Value* train) {
    Member* weights = train->Find("weights");
    const Member* sum =
        weights && weights->value.is_map() ? weights->value.Find("sha256") : nullptr;
    if (!sum) return;
    Member* file = weights->value.Find("file");
    if (!sum->value.is_null()) {
      if (!file || !file->value.is_scalar()) {
        diagnostics_.Error(sum->place, "train.weights.sha256 needs train.weights.file",
                           "it is the SHA-256 of that file");
      } else {
        try {
          file->value.text = WithPin(file->value.text, sum->value.text);
        } catch (const Error& error) {
          diagnostics_.Error(sum->value.place, format("train.weights.sha256: {}", error.what()));
        }
      }
    }
    std::erase_if(weights->value.members, [](const Member& m) { return m.key == "sha256"; });
  }

  static void RemoveKeys(Value* net) {
    std::erase_if(net->members, [](const Member& m) {
      return m.key == "use" || m.key == "classes" || m.key == "decoder" || m.key == "until";
    });
  }

  // A net may continue another one.
  Value LoadNet(const Value& name) {
    Value config = LoadShipped(name, NetFile);
    if (const Member* net = config.Find("net"); net && net->value.is_map()) UseNet(&config);
    return config;
  }
  Value LoadDecoder(const Value& name) { return LoadShipped(name, DecoderFile); }

  Value LoadShipped(const Value& name, fs::path (*file_of)(const std::string& name)) {
    try {
      const fs::path file = file_of(name.text);
      return LoadFile(file.string(), file, ReadFile(file.string(), kMostDocument));
    } catch (const DiagnosticError&) {
      throw;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kConfig) throw;
      diagnostics_.Error(name.place, error.what());
      diagnostics_.ThrowIfErrors();
      throw;
    }
  }

  static void SetClasses(const Member& classes, Value* parts) {
    if (!parts->Find("vars")) parts->members.push_back({"vars", classes.place, Value::Map({})});
    Value& vars = parts->Find("vars")->value;
    if (!vars.Find("classes")) vars.members.insert(vars.members.begin(), {"classes", {}, Value{}});
    *vars.Find("classes") = classes;
  }

  // Where merging key by key would mix two kinds: an initializer of the configuration replaces that
  // of the net, and `weights: FILE` stands for {file: FILE}.
  static void PrepareToCover(Value* root, Value* parts) {
    Member* train = root->Find("train");
    Member* below = parts->Find("train");
    if (!train || !train->value.is_map() || !below) return;
    std::erase_if(below->value.members, [&](const Member& m) {
      return m.key == "initializer" && train->value.Find(m.key) != nullptr;
    });
    if (Member* weights = train->value.Find("weights"); weights && weights->value.is_scalar()) {
      Value file = std::move(weights->value);
      const Place place = file.place;
      weights->value = Value::Map({{"file", place, std::move(file)}}, place);
    }
  }

  // Replaces ${VAR} and ${VAR:-default} in every scalar below `value`. Quotes around one reference
  // are for YAML: its value is typed as if it were written there.
  void ExpandEnvironment(Value* value) {
    for (Value& item : value->list) ExpandEnvironment(&item);
    for (Member& member : value->members) ExpandEnvironment(&member.value);
    if (!HasExpression(*value)) return;
    const std::string text = std::exchange(value->text, "");
    size_t done = 0;
    for (size_t open = text.find("${"); open != std::string::npos; open = text.find("${", done)) {
      if (IsEscaped(text, open)) {  // for Expand
        value->text += text.substr(done, open + 2 - done);
        done = open + 2;
        continue;
      }
      const size_t close = text.find('}', open);
      if (close == std::string::npos) break;
      const std::string inside = text.substr(open + 2, close - open - 2);
      const bool reference = IsEnvironmentReference(inside);
      value->text += text.substr(done, open - done);
      value->text += reference ? Environment(inside, *value) : text.substr(open, close + 1 - open);
      if (reference && open == 0 && close + 1 == text.size()) value->quoted = false;
      done = close + 1;
    }
    value->text += text.substr(done);
    if (!value->quoted && (value->text.empty() || value->text == "null" || value->text == "~"))
      value->kind = Value::Kind::kNull;
  }

  std::string Environment(const std::string& inside, const Value& value) {
    const size_t split = inside.find(":-");
    const std::string name = inside.substr(0, split);
    std::optional<std::string> found;
    if (request_.environment) {
      found = request_.environment(name);
    } else if (const char* text = std::getenv(name.c_str())) {
      found = text;
    }
    if (split != std::string::npos)
      return found && !found->empty() ? *found : inside.substr(split + 2);
    if (found) return *found;
    diagnostics_.Error(value.place, format("the environment variable {} is not set", name),
                       format("set it, or give a default: ${{{}:-value}}", name));
    return "";
  }

  void ApplyOverrides(Value* root) {
    std::string text;
    for (const std::string& item : request_.overrides) {
      text += item + "\n";
      std::replace(text.end() - static_cast<ptrdiff_t>(item.size()) - 1, text.end() - 1, '\n', ' ');
    }
    const int file = diagnostics_.sources().AddCommandLine(text, request_.working_folder);
    int line = 0;
    for (const std::string& item : request_.overrides)
      ApplyOverride(item, {file, ++line, 1, static_cast<int>(item.size())}, root);
  }

  // What may follow an override's key: null, too, unless the key is required or not in the table.
  static std::string FormsOf(const std::string& path) {
    std::string forms = format("write {}=VALUE", path);
    const std::vector<KeyInfo> keys = DescribeKeys();
    const auto key = std::find_if(keys.begin(), keys.end(),
                                  [&](const KeyInfo& info) { return info.path == path; });
    if (key != keys.end() && !key->required && key->type != "map")
      forms += format(", or {}=null {}", path,
                      key->default_text.empty() ? "to unset it" : "for the default");
    return forms;
  }

  void ApplyOverride(const std::string& item, const Place& place, Value* root) {
    const size_t equals = item.find('=');
    if (equals == std::string::npos || equals == 0) {
      diagnostics_.Error(place, format("'{}' does not have the form key.path=value", item),
                         "write, for example, train.epochs=5");
      return;
    }
    if (item.find_first_not_of(" \t", equals + 1) == std::string::npos) {
      diagnostics_.Error(place, format("'{}' gives no value", item),
                         FormsOf(item.substr(0, equals)));
      return;
    }
    Value value = ParseOverride(item, equals, place);
    ExpandEnvironment(&value);
    Value* at = root;
    for (size_t start = 0; start <= equals;) {
      const size_t end = std::min(item.find('.', start), equals);
      const std::string key = item.substr(start, end - start);
      Place key_place = place;
      key_place.column = static_cast<int>(start) + 1;
      key_place.length = static_cast<int>(key.size());
      // train.weights.sha256=SUM over `weights: FILE`, which stands for {file: FILE}.
      if (start > 0 && at->is_scalar() && !at->text.empty()) {
        if (const std::string member = ShortFormOf(item.substr(0, start - 1)); !member.empty()) {
          Value file = std::move(*at);
          const Place old = file.place;
          *at = Value::Map({{member, old, std::move(file)}}, old);
        }
      }
      at = Step(at, key, key_place);
      if (!at) return;
      start = end + 1;
    }
    // train.weights=FILE over {file, map} sets the file alone.
    const std::string short_form = at->is_map() && (value.is_scalar() || value.is_list())
                                       ? ShortFormOf(item.substr(0, equals))
                                       : "";
    if (!short_form.empty()) at = Step(at, short_form, place);
    *at = std::move(value);
  }

  // The member or element `key` of `at`; created if a map lacks it.
  Value* Step(Value* at, const std::string& key, const Place& place) {
    if (at->is_list()) {
      const std::optional<int64_t> index = Value::Scalar(key).AsInteger();
      if (index && *index >= 0 && *index < static_cast<int64_t>(at->list.size()))
        return &at->list[static_cast<size_t>(*index)];
      diagnostics_.Error(place, format("a list of {} has no element '{}'", at->list.size(), key),
                         "elements count from 0");
      return nullptr;
    }
    if (at->is_scalar() && !at->text.empty()) {
      diagnostics_.Error(place, format("the value '{1}' has no key '{0}'", key, at->text));
      return nullptr;
    }
    if (!at->is_map()) *at = Value::Map({}, place);
    if (!at->Find(key)) at->members.push_back({key, place, Value{}});
    Member* member = at->Find(key);
    member->place = place;
    return &member->value;
  }

  // The value is parsed as a separate source; its places are then moved to the command line.
  Value ParseOverride(const std::string& item, size_t equals, const Place& place) {
    auto own_sources = std::make_shared<SourceMap>();
    Diagnostics own(own_sources);
    Value value;
    try {
      value = ParseYaml(
          own_sources->AddCommandLine(item.substr(equals + 1), request_.working_folder), &own);
      if (value.is_map() && value.members.empty() && item.find('{', equals) == std::string::npos)
        value = Value{};
    } catch (const DiagnosticError& error) {
      for (Diagnostic found : error.diagnostics()) {
        Relocate(&found.place, place, equals);
        diagnostics_.Add(std::move(found));
      }
      diagnostics_.ThrowIfErrors();
    }
    for (Diagnostic found : own.Sorted()) {
      Relocate(&found.place, place, equals);
      diagnostics_.Add(std::move(found));
    }
    RelocateAll(&value, place, equals);
    return value;
  }
  static void Relocate(Place* inner, const Place& outer, size_t equals) {
    *inner = {outer.file, outer.line, inner->column + static_cast<int>(equals) + 1,
              std::max(1, inner->length)};
  }
  static void RelocateAll(Value* value, const Place& outer, size_t equals) {
    Relocate(&value->place, outer, equals);
    for (Value& item : value->list) RelocateAll(&item, outer, equals);
    for (Member& member : value->members) {
      Relocate(&member.place, outer, equals);
      RelocateAll(&member.value, outer, equals);
    }
  }

  const LoadRequest& request_;
  Diagnostics& diagnostics_;
  std::vector<fs::path> open_;  // files whose includes are being read
  int num_includes_ = 0;
  size_t included_bytes_ = 0;
  // For ReportUnreadVars: the files of the command line, the variables of what they include or use,
  // and those of all files.
  std::set<std::string> own_files_, covered_vars_, own_vars_;
};

}  // namespace

std::string RunOfCheckpoint(const std::string& file) {
  const fs::path folder = fs::path(file).parent_path();
  return folder.filename() == "checkpoints" ? folder.parent_path().string() : "";
}

Value LoadDocument(const LoadRequest& request, Diagnostics* diagnostics) {
  return DocumentLoader(request, diagnostics).Run();
}

Value ParseResolved(const std::string& name, const std::string& text) {
  auto sources = std::make_shared<SourceMap>();
  const int file = sources->AddFile(name, QuoteBareExpressions(text), fs::path(name).parent_path());
  Diagnostics diagnostics(sources);
  return ParseYaml(file, &diagnostics);
}

}  // namespace mxtrain::config

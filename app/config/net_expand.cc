// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>
#include <utility>

#include "app/config/load.h"
#include "app/config/net_layers.h"
#include "app/config/other_tools.h"
#include "app/config/schema.h"
#include "mxtrain/base/json.h"
#include "mxtrain/base/suggest.h"

namespace mxtrain::config {
namespace {

constexpr size_t kMaxLayers = 5'000;
constexpr int64_t kMaxValues = 1'000'000;  // of layers, uses of blocks and iterations of repeats; a
                                           // net of kMaxLayers never reaches it
constexpr size_t kMaxOpenBlocks = 100;

std::string Lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return text;
}

class Expander {
 public:
  Expander(const Config& config, const OperatorRegistry& registry, const BuiltinValues& builtins,
           Diagnostics* diagnostics)
      : config_(config), registry_(registry), builtins_(builtins), diagnostics_(*diagnostics) {}

  WrittenNet Run() {
    net_.scopes.emplace_back();
    net_.scopes[0].constants = EvaluateVars(config_.vars, &diagnostics_);
    CheckBlocks();
    ReadInputs();
    Entry before = net_.num_data == 1 ? net_.scopes[0].names[net_.inputs[0].name] : Entry{};
    if (net_.num_data == 0 && diagnostics_.num_errors() > 0) before.kind = Entry::Kind::kBroken;
    ExpandLayers(config_.net.layers, 0, &before);
    net_.scopes[0].last = before;
    net_.outputs = ReadReferences(config_.net.outputs, 0);
    return std::move(net_);
  }

 private:
  void Error(const Place& place, std::string message, std::string help = "") {
    diagnostics_.Error(place, std::move(message), std::move(help), notes_);
  }

  Names NamesOf(int scope) const {
    Names names;
    names.lookup = [this, scope](std::string_view name) -> std::optional<Constant> {
      const std::map<std::string, Constant>& own =
          net_.scopes[static_cast<size_t>(scope)].constants;
      if (const auto found = own.find(std::string(name)); found != own.end()) return found->second;
      const std::map<std::string, Constant>& vars = net_.scopes[0].constants;
      if (const auto found = vars.find(std::string(name)); found != vars.end())
        return found->second;
      const std::optional<int64_t> builtin = builtins_ ? builtins_(name) : std::nullopt;
      return builtin ? std::optional<Constant>(*builtin) : std::nullopt;
    };
    names.known = [this, scope] {
      std::vector<std::string> known;
      for (const auto& [name, value] : net_.scopes[static_cast<size_t>(scope)].constants)
        known.push_back(name);
      for (const auto& [name, value] : net_.scopes[0].constants) known.push_back(name);
      known.push_back("classes");
      return known;
    };
    names.without_value = [](std::string_view name) -> std::string {
      if (name != "classes") return "";
      return "the training data provide 'classes' if they name their classes: folders of images, "
             "lists, labels that are words; integer labels do not: write the number, such as "
             "num_hidden: 10";
    };
    return names;
  }
  // Nested repeats expand a small text into a large net: count the expanded values.
  void Count(const Place& place) {
    if (++num_values_ <= kMaxValues) return;
    Error(place,
          format("the net has more than {} values after expanding blocks and repeats", kMaxValues),
          "reduce the repeat counts");
    diagnostics_.ThrowIfErrors();
  }
  // Evaluates every expression in `value`. False after an error.
  bool ExpandAll(Value* value, int scope) {
    Count(value->place);
    bool good = true;
    for (Value& item : value->list) good = ExpandAll(&item, scope) && good;
    for (Member& m : value->members) good = ExpandAll(&m.value, scope) && good;
    return HasExpression(*value) ? ExpandAt(value, NamesOf(scope), &diagnostics_, notes_) : good;
  }

  // --- inputs ---
  void ReadInputs() {
    const NetConfig& net = config_.net;
    if (!net.input.is_null() && !net.inputs.is_null()) {
      Error(net.inputs.place, "net.input and net.inputs exclude each other",
            "net.input: S means net.inputs: {data: S}");
    } else if (!net.input.is_null()) {
      AddInput("data", net.input.place, net.input);
    } else if (net.inputs.is_map() && !net.inputs.members.empty()) {
      for (const Member& m : net.inputs.members) AddInput(m.key, m.place, m.value);
    } else if (!net.inputs.is_null()) {
      Error(
          net.inputs.place,
          format("net.inputs: expected a map from names to shapes, got {}", net.inputs.Describe()),
          "{left: [1, 28, 28], right: {shape: [4], dtype: float32}}");
    } else if (net.place) {
      Error(net.place, "the net has no input", "input: [channels, height, width]");
    }
    net_.num_data = static_cast<int>(net_.inputs.size());
    if (net.labels.is_map()) {
      for (const Member& m : net.labels.members) AddInput(m.key, m.place, m.value);
    } else if (!net.labels.is_null()) {
      Error(net.labels.place, format("net.labels: expected a map from names to shapes, got {}",
                                     net.labels.Describe()));
    }
  }

  void AddInput(const std::string& name, const Place& place, Value value) {
    NetInput input{name, TShape(), DType::kFloat32};
    const bool good = ExpandAll(&value, 0) && ReadInput(value, &input);
    Declare(0, name, place,
            good ? Entry{Entry::Kind::kInput, static_cast<int>(net_.inputs.size()), {}}
                 : Entry{Entry::Kind::kBroken, -1, {}});
    if (good) net_.inputs.push_back(std::move(input));
  }

  bool ReadInput(const Value& value, NetInput* input) {
    if (!value.is_map()) return ReadShape(value, &input->shape);
    const Value* shape = value.Get("shape");
    if (!shape) {
      Error(value.place, format("the input '{}' needs a shape", input->name),
            "{shape: [4], dtype: float32}");
      return false;
    }
    for (const Member& m : value.members) {
      if (m.key == "shape" || m.key == "dtype") continue;
      Error(m.place, format("an input has no key '{}'", m.key), "keys: shape, dtype");
      return false;
    }
    if (const Value* dtype = value.Get("dtype")) {
      try {
        input->dtype = ParseDType(dtype->text);
      } catch (const mxtrain::Error& error) {
        Error(dtype->place, error.what());
        return false;
      }
    }
    return ReadShape(*shape, &input->shape);
  }

  bool ReadShape(const Value& value, TShape* shape) {
    std::vector<int64_t> dims;
    const std::vector<Value> items = value.is_list() ? value.list : std::vector<Value>{value};
    for (const Value& item : items) {
      const std::optional<int64_t> dim = item.AsInteger();
      if (!dim || *dim < 1) {
        Error(item.place ? item.place : value.place,
              format("a size must be a positive integer, got {}", item.Describe()),
              "a shape is a list of sizes without the batch: [3, 224, 224]");
        return false;
      }
      dims.push_back(*dim);
    }
    if (static_cast<int>(dims.size()) > TShape::kMaxDims - 1) {
      Error(value.place, format("a shape has at most {} sizes, this one has {}",
                                TShape::kMaxDims - 1, dims.size()));
      return false;
    }
    *shape = TShape(std::span<const int64_t>(dims));
    return true;
  }

  // --- names ---
  bool Declare(int scope, const std::string& name, const Place& place, Entry entry) {
    Scope& s = net_.scopes[static_cast<size_t>(scope)];
    const auto [at, fresh] = s.names.emplace(name, std::move(entry));
    if (fresh) {
      s.places[name] = place;
      return true;
    }
    std::vector<std::string> notes = notes_;
    notes.push_back(format("the first is at {}", diagnostics_.sources().Where(s.places[name])));
    diagnostics_.Error(place, format("the name '{}' is taken", name),
                       in_repeat_ ? "inside a repeat, use the index in the name: name: conv${i}"
                                  : "names must be unique in the net and in each block",
                       notes);
    return false;
  }
  std::string AutoName(int scope, const std::string& op) {
    const Scope& s = net_.scopes[static_cast<size_t>(scope)];
    for (;;) {
      const std::string name = Lower(op) + std::to_string(counters_[{scope, op}]++);
      if (!s.names.contains(name)) return name;
    }
  }
  static bool IsName(const std::string& text) {
    return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
      return std::isalnum(c) || c == '_' || c == '-' || c == '/' || c >= 0x80;
    });
  }

  // --- layers ---
  void ExpandLayers(const Value& layers, int scope, Entry* before) {
    if (layers.is_null()) return;
    if (!layers.is_list())
      return Error(layers.place, format("layers: expected a list, got {}", layers.Describe()),
                   "- Convolution: {num_filter: 20, kernel: 5}");
    for (const Value& item : layers.list) {
      if (net_.layers.size() >= kMaxLayers) {
        if (!too_many_) Error(item.place, format("the net has more than {} layers", kMaxLayers));
        too_many_ = true;
        return;
      }
      ExpandItem(item, scope, before);
    }
  }

  void ExpandItem(const Value& item, int scope, Entry* before) {
    static const Value kNothing;
    Count(item.place);
    if (ReportTypeKey(item)) {
      *before = Entry{Entry::Kind::kBroken, -1, {}};
      return;
    }
    if (item.is_scalar()) return ExpandNamed(item.text, item.place, kNothing, scope, before);
    if (item.is_map() && item.members.size() == 1) {
      const Member& m = item.members[0];
      if (m.value.is_null() || m.value.is_map())
        return ExpandNamed(m.key, m.place, m.value, scope, before);
      ReportBareValue(m);
    } else if (item.is_map() && item.members.size() > 1 && item.members[0].value.is_null()) {
      Error(item.members[1].place,
            format("'{}' does not belong to the layer above it", item.members[1].key),
            format("indent the parameters of {0}, or write - {0}: {{{1}: ...}}",
                   item.members[0].key, item.members[1].key));
    } else if (item.is_map() && item.members.size() > 1) {
      Error(item.members[1].place,
            format("a layer is one operator, but '{}' follows '{}'", item.members[1].key,
                   item.members[0].key),
            "begin every layer with '- '");
    } else {
      Error(item.place, format("expected a layer, got {}", item.Describe()),
            "- Convolution: {num_filter: 20, kernel: 5}");
    }
    *before = Entry{Entry::Kind::kBroken, -1, {}};
  }

  // For "Dropout: 0.3": a guess at the intended line.
  void ReportBareValue(const Member& m) {
    const bool known = registry_.Has(m.key) || config_.blocks.Find(m.key);
    const std::string other = known ? "" : OperatorOfOtherTools(m.key);
    if (!known && other.empty()) return ReportUnknownOperator(m.key, m.place);
    const std::string line = LineWith(known ? m.key : other, m.value);
    if (!known)
      return Error(m.place, format("there is no operator or block '{}'", m.key),
                   format("did you mean '- {}'?", line));
    Error(m.value.place, format("{} takes a map of parameters, got {}", m.key, m.value.Describe()),
          "write - " + line);
  }
  // An operator with the value as its required parameter, else as its first one (for Pooling, the
  // stride is the window size); `written` may contain others: "Pooling: {pool_type: avg}".
  std::string LineWith(const std::string& written, const Value& value) const {
    const std::string op = written.substr(0, written.find(':'));
    std::vector<std::string> parameters;
    if (op == "Pooling") {
      parameters = {"kernel", "stride"};
    } else if (registry_.Has(op)) {
      const std::vector<FieldInfo> fields = registry_.CreateUninitialized(op)->DescribeParams();
      for (const FieldInfo& field : fields) {
        if (field.required) parameters.push_back(field.name);
      }
      if (parameters.empty() && !fields.empty()) parameters = {fields.front().name};
    }
    const std::string text = value.is_scalar() ? value.text : "...";
    std::string given;
    for (const std::string& parameter : parameters) {
      const bool known = given.empty() || op == "Pooling";
      given += format("{}{}: {}", given.empty() ? "" : ", ", parameter, known ? text : "...");
    }
    const size_t others = written.find('{');
    return others == std::string::npos
               ? format("{}: {{{}}}", op, given)
               : format("{}, {}}}", written.substr(0, written.rfind('}')), given);
  }

  // "{type: FullyConnected, num_hidden: 2}", as other tools write a layer.
  bool ReportTypeKey(const Value& item) {
    if (!item.is_map() || item.members.empty()) return false;
    const Member& first = item.members[0];
    const bool names_operator = first.key == "type" || first.key == "op" ||
                                first.key == "class_name" || first.key == "name";
    if (!names_operator || registry_.Has(first.key) || !first.value.is_scalar() ||
        config_.blocks.Find(first.key))
      return false;
    Error(first.place, format("a layer begins with its operator, not with '{}'", first.key),
          format("write - {}: {{parameter: value}}", first.value.text));
    return true;
  }

  void ExpandNamed(const std::string& key, const Place& place, const Value& params, int scope,
                   Entry* before) {
    if (const Value* when = params.Get("when")) {
      Value condition = *when;
      if (!ExpandAll(&condition, scope)) return;
      const std::optional<bool> truth = condition.AsBool();
      if (!truth)
        return Error(condition.place,
                     format("when: expected true or false, got {}", condition.Describe()),
                     "when: ${stride != 1}");
      if (!*truth) return;
    }
    if (key == "repeat" && (params.Get("layers") || params.Get("count")))
      return ExpandRepeat(place, params, scope, before);
    if (key == "Variable") return ExpandVariable(place, params, scope);
    if (const Member* block = config_.blocks.Find(key))
      return ExpandBlock(*block, place, params, scope, before);
    if (registry_.Has(key)) return ExpandLayer(key, place, params, scope, before);
    ReportUnknownOperator(key, place);
    if (const Value* name = params.Get("name");
        name && name->is_scalar() && !HasExpression(*name)) {
      net_.scopes[static_cast<size_t>(scope)].names[name->text] =
          Entry{Entry::Kind::kBroken, -1, {}};
    }
    *before = Entry{Entry::Kind::kBroken, -1, {}};
  }

  void ReportUnknownOperator(const std::string& key, const Place& place) {
    std::vector<std::string> names = registry_.Names();
    for (const Member& m : config_.blocks.members) names.push_back(m.key);
    names.insert(names.end(), {"repeat", "Variable"});
    const std::string other = OperatorOfOtherTools(key), advice = AdviceForOtherTools(key),
                      missing = MissingOperator(key);
    const std::string nearest = !other.empty() ? other : Nearest(key, names);
    Error(place, format("there is no operator or block '{}'", key),
          !advice.empty()    ? advice
          : !missing.empty() ? missing
          : nearest.empty()  ? "`mxtrain ops` lists the operators"
                             : format("did you mean '{}'?", nearest));
  }

  void ExpandLayer(const std::string& key, const Place& place, const Value& params, int scope,
                   Entry* before) {
    Layer layer;
    layer.written = key;
    layer.op = registry_.CanonicalName(key);
    layer.place = place;
    layer.notes = notes_;
    layer.scope = scope;
    const std::vector<FieldInfo> fields = registry_.CreateUninitialized(key)->DescribeParams();
    std::string name;
    Place name_place = place;
    bool good = true, has_inputs = false;
    for (const Member& member : params.members) {
      Member m = member;
      if (m.key == "when") continue;
      if (!ExpandAll(&m.value, scope)) {
        good = false;
      } else if (m.key == "name") {
        good = ReadName(m.value, &name) && good;
        name_place = m.value.place;
      } else if (m.key == "inputs") {
        has_inputs = true;
        for (Reference& reference : ReadReferences(m.value, scope))
          layer.inputs.push_back({{}, std::move(reference)});
        if (layer.inputs.empty()) good = false;
      } else if (m.key == "attrs") {
        good = ReadAttrs(m.value, &layer.attrs) && good;
        layer.attrs_place = m.value.place;
      } else if (std::any_of(fields.begin(), fields.end(),
                             [&](const FieldInfo& f) { return f.name == m.key; })) {
        layer.params.push_back(std::move(m));
      } else {
        layer.named.emplace_back(m.key, Reference{m.value.text, m.value.place, scope, notes_});
        layer.named_keys.push_back(m.place);
        layer.named_texts.push_back(m.value.is_scalar() && !m.value.AsNumber() &&
                                    !m.value.AsBool());
      }
    }
    if (!has_inputs) layer.inputs.push_back({*before, std::nullopt});
    if (name.empty()) name = AutoName(scope, layer.op);
    layer.name = net_.scopes[static_cast<size_t>(scope)].prefix + name;
    Entry entry = good ? Entry{Entry::Kind::kLayer, static_cast<int>(net_.layers.size()), {}}
                       : Entry{Entry::Kind::kBroken, -1, {}};
    if (!Declare(scope, name, name_place, entry)) entry.kind = Entry::Kind::kBroken;
    if (entry.kind == Entry::Kind::kLayer) net_.layers.push_back(std::move(layer));
    *before = entry;
  }

  bool ReadName(const Value& value, std::string* name) {
    if (value.is_scalar() && IsName(value.text)) {
      *name = value.text;
      return true;
    }
    Error(value.place,
          format("a name may contain letters, digits, '_' and '-', got {}", value.Describe()));
    return false;
  }

  bool ReadAttrs(const Value& value, Attrs* attrs) {
    if (!value.is_map()) {
      Error(value.place, format("attrs: expected a map, got {}", value.Describe()),
            "attrs: {lr_mult: 0}");
      return false;
    }
    static const std::vector<std::string> kKnown = {"lr_mult", "wd_mult", "ctx_group"};
    for (const Member& m : value.members) {
      const bool known = std::any_of(kKnown.begin(), kKnown.end(), [&](const std::string& k) {
        return m.key == k || m.key.ends_with("_" + k);
      });
      const bool number = m.key.ends_with("mult");
      if (!known) {
        const std::string nearest = Nearest(m.key, kKnown);
        Error(m.place, format("there is no attribute '{}'", m.key),
              nearest.empty()
                  ? "attributes: lr_mult, wd_mult, ctx_group; weight_lr_mult for one argument"
                  : format("did you mean '{}'?", nearest));
        return false;
      }
      if (!m.value.is_scalar() || (number && !m.value.AsNumber())) {
        Error(m.value.place, format("{}: expected {}, got {}", m.key,
                                    number ? "a number" : "a text", m.value.Describe()));
        return false;
      }
      (*attrs)[m.key] = m.value.text;
    }
    return true;
  }

  std::vector<Reference> ReadReferences(Value value, int scope) {
    std::vector<Reference> references;
    if (value.is_null() || !ExpandAll(&value, scope)) return references;
    const std::vector<Value> items = value.is_list() ? value.list : std::vector<Value>{value};
    for (const Value& item : items) {
      if (!item.is_scalar() || item.text.empty()) {
        Error(item.place, format("expected the name of a layer or input, got {}", item.Describe()),
              "inputs: [conv1, conv2]");
        return {};
      }
      references.push_back({item.text, item.place, scope, notes_});
    }
    if (references.empty())
      Error(value.place, "the list of inputs is empty", "remove it to use the previous layer");
    return references;
  }

  // --- Variable, repeat, block ---
  void ExpandVariable(const Place& place, const Value& params, int scope) {
    WrittenVariable variable;
    variable.place = place;
    variable.notes = notes_;
    std::string name;
    bool good = true;
    for (const Member& member : params.members) {
      Member m = member;
      if (m.key == "when") continue;
      good = ExpandAll(&m.value, scope) && ReadVariableKey(m, &name, &variable.attrs) && good;
    }
    if (name.empty() && good) {
      Error(place, "a Variable needs a name", "- Variable: {name: w, shape: [10, 4]}");
      return;
    }
    if (name.empty()) return;
    variable.name = net_.scopes[static_cast<size_t>(scope)].prefix + name;
    Declare(scope, name, place,
            good ? Entry{Entry::Kind::kVariable, static_cast<int>(net_.variables.size()), {}}
                 : Entry{Entry::Kind::kBroken, -1, {}});
    if (good) net_.variables.push_back(std::move(variable));
  }

  bool ReadVariableKey(const Member& m, std::string* name, Attrs* attrs) {
    if (m.key == "name") return ReadName(m.value, name);
    if (m.key == "lr_mult" || m.key == "wd_mult") {
      if (m.value.AsNumber()) return (*attrs)[m.key] = m.value.text, true;
      Error(m.value.place, format("{}: expected a number, got {}", m.key, m.value.Describe()));
      return false;
    }
    if (m.key == "shape") {
      TShape shape;
      if (!ReadShape(m.value, &shape)) return false;
      (*attrs)["__shape__"] = shape.ToTuple();
      return true;
    }
    if (m.key == "init") return ReadInit(m.value, attrs);
    const std::vector<std::string> known = {"name", "shape", "init", "lr_mult", "wd_mult"};
    const std::string nearest = Nearest(m.key, known);
    Error(m.place, format("Variable has no key '{}'", m.key),
          nearest.empty() ? format("keys: {}", join(known, ", "))
                          : format("did you mean '{}'?", nearest));
    return false;
  }

  bool ReadInit(const Value& value, Attrs* attrs) {
    Named init;
    if (value.AsNumber()) {
      init = {"constant", {{"value", value.text}}, value.place};
    } else {
      static const std::string kPath = "init";
      if (!Read(value, ReadContext{&diagnostics_, kPath, nullptr, InitializerKinds()}, &init))
        return false;
    }
    Json params = Json::object();
    for (const auto& [key, text] : init.params) {
      const std::optional<double> number = Value::Scalar(text).AsNumber();
      params[key] = number ? Json(*number) : Json(text);
    }
    (*attrs)["__init__"] = Json::array({init.name, params}).dump();
    return true;
  }

  void ExpandRepeat(const Place& place, const Value& params, int scope, Entry* before) {
    static const std::vector<std::string> kKeys = {"count", "index", "layers", "when"};
    for (const Member& m : params.members) {
      if (std::find(kKeys.begin(), kKeys.end(), m.key) == kKeys.end())
        Error(m.place, format("repeat has no key '{}'", m.key), "keys: count, index, layers, when");
    }
    const Value* layers = params.Get("layers");
    Value count = params.Get("count") ? *params.Get("count") : Value{};
    if (!layers || count.is_null())
      return Error(place, format("repeat needs the key '{}'", layers ? "count" : "layers"),
                   "- repeat: {count: 3, index: i, layers: [...]}");
    if (!ExpandAll(&count, scope)) return;
    const std::optional<int64_t> times = count.AsInteger();
    if (times && *times > static_cast<int64_t>(kMaxLayers))
      return Error(count.place,
                   format("count: {} exceeds the limit of {} layers per net", *times, kMaxLayers));
    if (!times || *times < 0)
      return Error(count.place, format("count: expected an integer that is not negative, got {}",
                                       count.Describe()));
    const Value* index = params.Get("index");
    const std::string name = index ? index->text : "i";
    std::map<std::string, Constant>& constants = net_.scopes[static_cast<size_t>(scope)].constants;
    const auto old = constants.find(name);
    const std::optional<Constant> hidden =
        old == constants.end() ? std::nullopt : std::optional(old->second);
    const bool outer = std::exchange(in_repeat_, true);
    const int errors = diagnostics_.num_errors();
    for (int64_t i = 0; i < *times && diagnostics_.num_errors() == errors; ++i) {
      Count(place);
      net_.scopes[static_cast<size_t>(scope)].constants[name] = i;
      ExpandLayers(*layers, scope, before);
    }
    in_repeat_ = outer;
    std::map<std::string, Constant>& after = net_.scopes[static_cast<size_t>(scope)].constants;
    if (hidden) {
      after[name] = *hidden;
    } else {
      after.erase(name);
    }
  }

  // Declarations are checked once, uses as they occur.
  void CheckBlocks() {
    if (!config_.blocks.is_null() && !config_.blocks.is_map())
      Error(config_.blocks.place,
            format("blocks: expected a map of named sub-nets, got {}", config_.blocks.Describe()));
    static const std::vector<std::string> kKeys = {"params", "inputs", "layers", "outputs"};
    for (const Member& block : config_.blocks.members) {
      if (registry_.Has(block.key))
        Error(block.place, format("the block '{}' has the name of an operator", block.key),
              "choose another name");
      if (!block.value.is_map() || !block.value.Get("layers")) {
        Error(block.place, format("the block '{}' has no layers", block.key),
              "{params: {width, stride: 1}, layers: [...]}");
        continue;
      }
      for (const Member& m : block.value.members) {
        if (std::find(kKeys.begin(), kKeys.end(), m.key) != kKeys.end()) continue;
        const std::string nearest = Nearest(m.key, kKeys);
        Error(m.place, format("a block has no key '{}'", m.key),
              nearest.empty() ? format("keys: {}", join(kKeys, ", "))
                              : format("did you mean '{}'?", nearest));
      }
    }
  }

  void ExpandBlock(const Member& block, const Place& place, const Value& use, int scope,
                   Entry* before) {
    const Entry broken{Entry::Kind::kBroken, -1, {}};
    const Value* layers = block.value.Get("layers");
    if (!layers) {
      *before = broken;
      return;
    }
    if (std::find(open_blocks_.begin(), open_blocks_.end(), block.key) != open_blocks_.end()) {
      Error(place, format("the block '{}' contains itself", block.key),
            "a block cannot be part of its own layers; use repeat");
      *before = broken;
      return;
    }
    if (open_blocks_.size() == kMaxOpenBlocks) {
      Error(place, format("the block '{}' is nested in {} others", block.key, kMaxOpenBlocks),
            "reduce the nesting of blocks");
      *before = broken;
      return;
    }
    const int inside = static_cast<int>(net_.scopes.size());
    Scope fresh;
    fresh.parent = scope;
    std::string name;
    Place name_place = place;
    std::vector<Reference> inputs;
    bool good = ReadBlockUse(block, place, use, scope, &fresh, &name, &name_place, &inputs);
    if (name.empty()) name = AutoName(scope, block.key);
    fresh.prefix = net_.scopes[static_cast<size_t>(scope)].prefix + name + "_";
    net_.scopes.push_back(std::move(fresh));
    notes_.push_back(
        format("in block '{}', used at {}", block.key, diagnostics_.sources().Where(place)));
    open_blocks_.push_back(block.key);
    Entry first;
    good = BindBlockInputs(block, place, inside, inputs, *before, &first) && good;
    good =
        Declare(scope, name, name_place, good ? Entry{Entry::Kind::kBlock, inside, {}} : broken) &&
        good;
    if (good) {
      const bool outer = std::exchange(in_repeat_, false);
      ExpandLayers(*layers, inside, &first);
      in_repeat_ = outer;
      net_.scopes[static_cast<size_t>(inside)].last = first;
      if (const Value* outputs = block.value.Get("outputs")) {
        std::vector<Reference> references = ReadReferences(*outputs, inside);
        net_.scopes[static_cast<size_t>(inside)].outputs = std::move(references);
      }
    }
    open_blocks_.pop_back();
    notes_.pop_back();
    *before = good ? Entry{Entry::Kind::kBlock, inside, {}} : broken;
  }

  // Parameters of the use, then defaults, which may refer to earlier parameters.
  bool ReadBlockUse(const Member& block, const Place& place, const Value& use, int scope,
                    Scope* fresh, std::string* name, Place* name_place,
                    std::vector<Reference>* inputs) {
    const Value* params = block.value.Get("params");
    bool good = true;
    std::vector<std::string> known;
    if (params) {
      for (const Member& m : params->members) {
        Count(place);
        known.push_back(m.key);
      }
    }
    for (const Member& member : use.members) {
      Member m = member;
      if (m.key == "when") continue;
      if (!ExpandAll(&m.value, scope)) {
        good = false;
      } else if (m.key == "name") {
        good = ReadName(m.value, name) && good;
        *name_place = m.value.place;
      } else if (m.key == "inputs") {
        *inputs = ReadReferences(m.value, scope);
        good = good && !inputs->empty();
      } else if (std::find(known.begin(), known.end(), m.key) == known.end()) {
        const std::string nearest = Nearest(m.key, known);
        Error(m.place, format("block '{}' has no parameter '{}'", block.key, m.key),
              !nearest.empty() ? format("did you mean '{}'?", nearest)
              : known.empty()  ? "it takes none"
                               : format("it takes {}", join(known, ", ")));
        good = false;
      } else if (!m.value.is_scalar()) {
        Error(m.value.place ? m.value.place : m.place,
              format("{}: expected a number, a text or a truth value, got {}", m.key,
                     m.value.Describe()));
        good = false;
      } else {
        fresh->constants[m.key] = ToConstant(m.value);
      }
    }
    return good && ReadBlockDefaults(block, place, params, fresh);
  }

  bool ReadBlockDefaults(const Member& block, const Place& place, const Value* params,
                         Scope* fresh) {
    bool good = true;
    if (!params) return good;
    Names names;
    names.lookup = [&](std::string_view name) -> std::optional<Constant> {
      const auto found = fresh->constants.find(std::string(name));
      return found != fresh->constants.end() ? std::optional(found->second)
                                             : NamesOf(0).lookup(name);
    };
    std::vector<std::string> known;
    names.known = [&known] { return known; };
    for (const Member& m : params->members) {
      if (fresh->constants.contains(m.key)) continue;
      Value value = m.value;
      if (value.is_null()) {
        Error(place, format("block '{}' needs the parameter '{}'", block.key, m.key),
              format("- {}: {{{}: ...}}", block.key, m.key));
        good = false;
      } else if (HasExpression(value) && !ExpandAt(&value, names, &diagnostics_, notes_)) {
        good = false;
      } else {
        fresh->constants[m.key] = ToConstant(value);
        known.push_back(m.key);
      }
    }
    return good;
  }

  // Names the block's inputs inside. `first` is the input of its first layer.
  bool BindBlockInputs(const Member& block, const Place& place, int inside,
                       const std::vector<Reference>& given, const Entry& before, Entry* first) {
    std::vector<std::string> names = {"input"};
    if (const Value* declared = block.value.Get("inputs")) {
      names.clear();
      const std::vector<Value> items =
          declared->is_list() ? declared->list : std::vector<Value>{*declared};
      for (const Value& item : items) names.push_back(item.text);
    }
    if (!given.empty() && given.size() != names.size()) {
      Error(
          given[0].place,
          format("block '{}' takes {} ({}), but {} given", block.key,
                 names.size() == 1 ? "one input" : format("{} inputs", names.size()),
                 join(names, ", "), given.size() == 1 ? "one is" : format("{} are", given.size())));
      return false;
    }
    if (given.empty() && names.size() > 1) {
      Error(place,
            format("block '{}' takes {} inputs ({}): specify them with `inputs`", block.key,
                   names.size(), join(names, ", ")),
            format("inputs: [{}]", join(names, ", ")));
      return false;
    }
    for (size_t i = 0; i < names.size(); ++i) {
      Entry entry{Entry::Kind::kOutside, -1, {}};
      if (given.empty()) {
        entry = before;
      } else {
        entry.outside.push_back(given[i]);
      }
      if (names.size() == 1) *first = entry;
      Declare(inside, names[i], place, std::move(entry));
    }
    return true;
  }

  const Config& config_;
  const OperatorRegistry& registry_;
  const BuiltinValues& builtins_;
  Diagnostics& diagnostics_;
  WrittenNet net_;
  std::vector<std::string> notes_;  // the blocks around the current position
  std::map<std::pair<int, std::string>, int> counters_;
  std::vector<std::string> open_blocks_;
  bool in_repeat_ = false, too_many_ = false;
  int64_t num_values_ = 0;
};

}  // namespace

WrittenNet ExpandNet(const Config& config, const OperatorRegistry& registry,
                     const BuiltinValues& builtins, Diagnostics* diagnostics) {
  return Expander(config, registry, builtins, diagnostics).Run();
}

const Entry* FindEntry(const WrittenNet& net, int scope, std::string_view name) {
  bool own = true;
  for (int s = scope; s >= 0; s = net.scopes[static_cast<size_t>(s)].parent, own = false) {
    const auto& names = net.scopes[static_cast<size_t>(s)].names;
    const auto found = names.find(name);
    if (found != names.end() && (own || found->second.kind == Entry::Kind::kVariable))
      return &found->second;
  }
  return nullptr;
}

std::vector<std::string> KnownNames(const WrittenNet& net, int scope) {
  std::vector<std::string> known;
  bool own = true;
  for (int s = scope; s >= 0; s = net.scopes[static_cast<size_t>(s)].parent, own = false) {
    for (const auto& [name, entry] : net.scopes[static_cast<size_t>(s)].names) {
      if (own || entry.kind == Entry::Kind::kVariable) known.push_back(name);
    }
  }
  return known;
}

}  // namespace mxtrain::config

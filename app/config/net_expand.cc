// SPDX-License-Identifier: Apache-2.0
// The walk over the layers of a net: each item of a list is an operator, a Variable, a repeat or a
// block, whose layers are walked in turn. What the walk reads is in net_declarations.h, net_keys.h
// and net_blocks.h; what it refuses in net_hints.h.
#include <algorithm>

#include "app/config/evaluate.h"
#include "app/config/net_blocks.h"
#include "app/config/net_declarations.h"
#include "app/config/net_expansion.h"
#include "app/config/net_hints.h"
#include "app/config/net_keys.h"

namespace mxtrain::config {
namespace {

constexpr size_t kMaxLayers = 5'000;
constexpr size_t kMaxOpenBlocks = 100;

// `before` is the output of the previous layer, updated by every step of the walk.
class Expander {
 public:
  Expander(const Config& config, const OperatorRegistry& registry, const BuiltinValues& builtins,
           Diagnostics* diagnostics)
      : at_(config, registry, builtins, diagnostics) {}

  WrittenNet Run() {
    const Config& config = at_.config();
    WrittenNet& net = at_.net();
    net.scopes.emplace_back();
    at_.ScopeAt(0).constants = EvaluateVars(config.vars, &at_.diagnostics());
    CheckBlocks(&at_);
    ReadInputs(&at_);
    Entry before = net.num_data == 1 ? at_.ScopeAt(0).names[net.inputs[0].name] : Entry{};
    if (net.num_data == 0 && at_.diagnostics().num_errors() > 0) before = BrokenEntry();
    ExpandLayers(config.net.layers, 0, &before);
    at_.ScopeAt(0).last = before;
    net.outputs = ReadReferences(config.net.outputs, 0, &at_);
    return std::move(net);
  }

 private:
  void ExpandLayers(const Value& layers, int scope, Entry* before) {
    if (layers.is_null()) return;
    if (!layers.is_list())
      return at_.Error(layers.place, format("layers: expected a list, got {}", layers.Describe()),
                       "- Convolution: {num_filter: 20, kernel: 5}");
    for (const Value& item : layers.list) {
      if (at_.net().layers.size() >= kMaxLayers) {
        if (!too_many_)
          at_.Error(item.place, format("the net has more than {} layers", kMaxLayers));
        too_many_ = true;
        return;
      }
      ExpandItem(item, scope, before);
    }
  }

  void ExpandItem(const Value& item, int scope, Entry* before) {
    static const Value kNothing;
    at_.Count(item.place);
    if (ReportTypeKey(item, &at_)) {
      *before = BrokenEntry();
      return;
    }
    if (item.is_scalar()) return ExpandNamed(item.text, item.place, kNothing, scope, before);
    if (item.is_map() && item.members.size() == 1) {
      const Member& m = item.members[0];
      if (m.value.is_null() || m.value.is_map())
        return ExpandNamed(m.key, m.place, m.value, scope, before);
    }
    ReportNoLayer(item, &at_);
    *before = BrokenEntry();
  }

  void ExpandNamed(const std::string& key, const Place& place, const Value& params, int scope,
                   Entry* before) {
    if (const Value* when = params.Get("when"); when && !IsTrue(*when, scope)) return;
    if (key == "repeat" && (params.Get("layers") || params.Get("count")))
      return ExpandRepeat(place, params, scope, before);
    if (key == "Variable") return ExpandVariable(place, params, scope, &at_);
    if (const Member* block = at_.config().blocks.Find(key))
      return ExpandBlock(*block, place, params, scope, before);
    if (at_.registry().Has(key)) return ExpandLayer(key, place, params, scope, before);
    ReportUnknownOperator(key, place, &at_);
    if (const Value* name = params.Get("name");
        name && name->is_scalar() && !HasExpression(*name)) {
      at_.ScopeAt(scope).names[name->text] = BrokenEntry();
    }
    *before = BrokenEntry();
  }

  // False also after an error.
  bool IsTrue(Value condition, int scope) {
    if (!at_.ExpandAll(&condition, scope)) return false;
    const std::optional<bool> truth = condition.AsBool();
    if (!truth)
      at_.Error(condition.place,
                format("when: expected true or false, got {}", condition.Describe()),
                "when: \"${stride != 1}\"");
    return truth.value_or(false);
  }

  void ExpandLayer(const std::string& key, const Place& place, const Value& params, int scope,
                   Entry* before) {
    Layer layer;
    layer.written = key;
    layer.op = at_.registry().CanonicalName(key);
    layer.place = place;
    layer.notes = at_.notes();
    layer.scope = scope;
    const std::vector<FieldInfo> fields = at_.registry().CreateUninitialized(key)->DescribeParams();
    std::string name;
    Place name_place = place;
    bool good = true, has_inputs = false;
    for (const Member& member : params.members) {
      Member m = member;
      if (m.key == "when") continue;
      if (!at_.ExpandAll(&m.value, scope)) {
        good = false;
      } else if (m.key == "name") {
        good = ReadName(m.value, &at_, &name) && good;
        name_place = m.value.place;
      } else if (m.key == "inputs") {
        has_inputs = true;
        for (Reference& reference : ReadReferences(m.value, scope, &at_))
          layer.inputs.push_back({{}, std::move(reference)});
        if (layer.inputs.empty()) good = false;
      } else if (m.key == "attrs") {
        good = ReadAttrs(m.value, &at_, &layer.attrs) && good;
        layer.attrs_place = m.value.place;
      } else if (std::any_of(fields.begin(), fields.end(),
                             [&](const FieldInfo& f) { return f.name == m.key; })) {
        layer.params.push_back(std::move(m));
      } else {
        layer.named.emplace_back(m.key, Reference{m.value.text, m.value.place, scope, at_.notes()});
        layer.named_keys.push_back(m.place);
        layer.named_texts.push_back(m.value.is_scalar() && !m.value.AsNumber() &&
                                    !m.value.AsBool());
      }
    }
    if (!has_inputs && !TakesNothing(layer)) layer.inputs.push_back({*before, std::nullopt});
    if (name.empty()) name = at_.AutoName(scope, layer.op);
    layer.name = at_.ScopeAt(scope).prefix + name;
    std::vector<Layer>& layers = at_.net().layers;
    Entry entry =
        good ? Entry{Entry::Kind::kLayer, static_cast<int>(layers.size()), {}} : BrokenEntry();
    if (!at_.Declare(scope, name, name_place, entry)) entry.kind = Entry::Kind::kBroken;
    if (entry.kind == Entry::Kind::kLayer) layers.push_back(std::move(layer));
    *before = entry;
  }

  // An array that follows from parameters alone, such as _arange. The names of such operators begin
  // with an underscore.
  bool TakesNothing(const Layer& layer) const {
    if (!layer.op.starts_with('_')) return false;
    try {
      Kwargs kwargs;
      for (const Member& m : layer.params) {
        if (m.value.is_scalar()) kwargs.emplace_back(m.key, m.value.text);
      }
      return at_.registry().Create(layer.op, kwargs)->ListArguments().empty();
    } catch (const Error&) {
      return false;  // reported when the layer is built
    }
  }

  void ExpandRepeat(const Place& place, const Value& params, int scope, Entry* before) {
    static const std::vector<std::string> kKeys = {"count", "index", "layers", "when"};
    for (const Member& m : params.members) {
      if (std::find(kKeys.begin(), kKeys.end(), m.key) == kKeys.end())
        at_.Error(m.place, format("repeat has no key '{}'", m.key),
                  "keys: count, index, layers, when");
    }
    const Value* layers = params.Get("layers");
    Value count = params.Get("count") ? *params.Get("count") : Value{};
    if (!layers || count.is_null())
      return at_.Error(place, format("repeat needs the key '{}'", layers ? "count" : "layers"),
                       "- repeat: {count: 3, index: i, layers: [...]}");
    if (!at_.ExpandAll(&count, scope)) return;
    const std::optional<int64_t> times = count.AsInteger();
    if (times && *times > static_cast<int64_t>(kMaxLayers))
      return at_.Error(count.place, format("count: {} exceeds the limit of {} layers per net",
                                           *times, kMaxLayers));
    if (!times || *times < 0)
      return at_.Error(
          count.place,
          format("count: expected an integer that is not negative, got {}", count.Describe()));
    const Value* index = params.Get("index");
    const std::string name = index ? index->text : "i";
    const std::map<std::string, Constant>& constants = at_.ScopeAt(scope).constants;
    const auto old = constants.find(name);
    const std::optional<Constant> hidden =
        old == constants.end() ? std::nullopt : std::optional(old->second);
    const bool outer = at_.SetInRepeat(true);
    const int errors = at_.diagnostics().num_errors();
    for (int64_t i = 0; i < *times && at_.diagnostics().num_errors() == errors; ++i) {
      at_.Count(place);
      at_.ScopeAt(scope).constants[name] = i;
      ExpandLayers(*layers, scope, before);
    }
    at_.SetInRepeat(outer);
    if (hidden) {
      at_.ScopeAt(scope).constants[name] = *hidden;
    } else {
      at_.ScopeAt(scope).constants.erase(name);
    }
  }

  void ExpandBlock(const Member& block, const Place& place, const Value& use, int scope,
                   Entry* before) {
    if (!MayOpen(block, place)) {
      *before = BrokenEntry();
      return;
    }
    const int inside = static_cast<int>(at_.net().scopes.size());
    BlockUse read;
    bool good = ReadBlockUse(block, place, use, scope, &at_, &read);
    if (read.name.empty()) read.name = at_.AutoName(scope, block.key);
    Scope fresh;
    fresh.parent = scope;
    fresh.prefix = at_.ScopeAt(scope).prefix + read.name + "_";
    fresh.constants = std::move(read.constants);
    at_.net().scopes.push_back(std::move(fresh));
    at_.EnterBlock(
        format("in block '{}', used at {}", block.key, at_.diagnostics().sources().Where(place)));
    open_blocks_.push_back(block.key);
    Entry first;
    good = BindBlockInputs(block, place, inside, read.inputs, *before, &at_, &first) && good;
    const Entry entry = good ? Entry{Entry::Kind::kBlock, inside, {}} : BrokenEntry();
    good = at_.Declare(scope, read.name, read.name_place, entry) && good;
    if (good) ExpandInside(block, inside, first);
    open_blocks_.pop_back();
    at_.LeaveBlock();
    *before = good ? entry : BrokenEntry();
  }

  // False, after an error, for a block without layers (which CheckBlocks has reported), one that
  // contains itself, and one nested too deeply.
  bool MayOpen(const Member& block, const Place& place) {
    if (!block.value.Get("layers")) return false;
    if (std::find(open_blocks_.begin(), open_blocks_.end(), block.key) != open_blocks_.end()) {
      at_.Error(place, format("the block '{}' contains itself", block.key),
                "a block cannot be part of its own layers; use repeat");
      return false;
    }
    if (open_blocks_.size() < kMaxOpenBlocks) return true;
    at_.Error(place, format("the block '{}' is nested in {} others", block.key, kMaxOpenBlocks),
              "reduce the nesting of blocks");
    return false;
  }

  // The layers and outputs of a block, in its scope. `before`: the input of its first layer.
  void ExpandInside(const Member& block, int inside, Entry before) {
    const bool outer = at_.SetInRepeat(false);
    ExpandLayers(*block.value.Get("layers"), inside, &before);
    at_.SetInRepeat(outer);
    at_.ScopeAt(inside).last = before;
    if (const Value* outputs = block.value.Get("outputs")) {
      std::vector<Reference> references = ReadReferences(*outputs, inside, &at_);
      at_.ScopeAt(inside).outputs = std::move(references);
    }
  }

  Expansion at_;
  std::vector<std::string> open_blocks_;
  bool too_many_ = false;
};

}  // namespace

WrittenNet ExpandNet(const Config& config, const OperatorRegistry& registry,
                     const BuiltinValues& builtins, Diagnostics* diagnostics) {
  return Expander(config, registry, builtins, diagnostics).Run();
}

}  // namespace mxtrain::config

// SPDX-License-Identifier: Apache-2.0
#pragma once
// The state of an expansion in progress, for the files that expand a net (net_expand.cc and those
// that it includes): the net so far with its scopes and names, the evaluation of expressions, and
// the limits on what a small text may become. Internal to app/config.
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "app/config/net_layers.h"

namespace mxtrain::config {

class Expansion {
 public:
  // The arguments must outlive it.
  Expansion(const Config& config, const OperatorRegistry& registry, const BuiltinValues& builtins,
            Diagnostics* diagnostics)
      : config_(config), registry_(registry), builtins_(builtins), diagnostics_(*diagnostics) {}

  const Config& config() const { return config_; }
  const OperatorRegistry& registry() const { return registry_; }
  Diagnostics& diagnostics() { return diagnostics_; }
  WrittenNet& net() { return net_; }
  // The reference is valid until a scope is added.
  Scope& ScopeAt(int index) { return net_.scopes[static_cast<size_t>(index)]; }
  const Scope& ScopeAt(int index) const { return net_.scopes[static_cast<size_t>(index)]; }

  // Reports an error with the blocks around the current position.
  void Error(const Place& place, std::string message, std::string help = "") {
    diagnostics_.Error(place, std::move(message), std::move(help), notes_);
  }
  const std::vector<std::string>& notes() const { return notes_; }  // those blocks, outermost first
  void EnterBlock(std::string note) { notes_.push_back(std::move(note)); }
  void LeaveBlock() { notes_.pop_back(); }
  // Whether the layers being expanded are those of a repeat; returns what was set before.
  bool SetInRepeat(bool inside) { return std::exchange(in_repeat_, inside); }

  // What expressions in a scope may name: its constants, `vars` and built-in values.
  Names NamesOf(int scope) const;
  // Evaluates every expression in `value`. False after an error.
  bool ExpandAll(Value* value, int scope);
  // To be called for each layer, use of a block and iteration of a repeat: nested repeats expand a
  // small text into a large net. Throws DiagnosticError beyond the limit.
  void Count(const Place& place);

  // Gives `name` a meaning in the scope. False, after an error, if it has one.
  bool Declare(int scope, const std::string& name, const Place& place, Entry entry);
  // The name of a layer or block without one: "convolution0".
  std::string AutoName(int scope, const std::string& op);

 private:
  const Config& config_;
  const OperatorRegistry& registry_;
  const BuiltinValues& builtins_;
  Diagnostics& diagnostics_;
  WrittenNet net_;
  std::vector<std::string> notes_;
  std::map<std::pair<int, std::string>, int> counters_;  // of AutoName, by scope and operator
  bool in_repeat_ = false;
  int64_t num_values_ = 0;
};

}  // namespace mxtrain::config

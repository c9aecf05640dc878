// SPDX-License-Identifier: Apache-2.0
#pragma once
// Attributes: what nodes have besides their parameters, and how files store them. In memory the
// five keys that MXNet once stored bare (ctx_group, lr_mult, wd_mult, force_mirroring,
// mirror_stage) are bare, all others as the user wrote them. MXNet files since 0.9 store them as
// __lr_mult__ and so on.
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "mxtrain/symbol/graph.h"

namespace mxtrain {

std::span<const std::string_view> BareKeys();
std::string BareKey(const std::string& key);    // "__lr_mult__" -> "lr_mult"; others unchanged
std::string HiddenKey(const std::string& key);  // "lr_mult" -> "__lr_mult__"; hidden ones unchanged
Attrs WithBareKeys(const Attrs& attrs);

// "weight_lr_mult" is lr_mult of the input "weight": {"weight", "lr_mult"}.
std::optional<std::pair<std::string, std::string>> SplitInputKey(const std::string& key);

// The attributes that a variable created for a missing input inherits from its operator: all except
// shape, type, initializer and keys for single inputs, plus the keys for this input.
Attrs AttrsForInput(const Attrs& node_attrs, const std::string& input);

// Shape and type from __shape__ (0 and -1: unknown) and __dtype__ (MXNet's number, or a name);
// unknown if absent. Throw kConfig.
TShape ShapeAttr(const Node& variable);
DType TypeAttr(const Node& variable);
// The text that MXNet reads.
std::string AttrForFile(const std::string& key, const std::string& value);

}  // namespace mxtrain

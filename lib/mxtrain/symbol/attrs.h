#pragma once
// Attributes: what nodes carry beside their parameters, and how files write them. In memory the five keys that the reference system once
// kept bare (ctx_group, lr_mult, wd_mult, force_mirroring, mirror_stage) are bare, all others as the user wrote them; its files since 0.9
// write them as __lr_mult__ and so on.
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "mxtrain/symbol/graph.h"

namespace mxtrain {

std::span<const std::string_view> BareKeys();
bool IsHiddenKey(std::string_view key);         // "__x__"
std::string BareKey(const std::string& key);    // "__lr_mult__" -> "lr_mult"; others unchanged
std::string HiddenKey(const std::string& key);  // "lr_mult" -> "__lr_mult__"; hidden ones unchanged
Attrs WithBareKeys(const Attrs& attrs);

// "weight_lr_mult" is lr_mult of the input "weight": {"weight", "lr_mult"}.
std::optional<std::pair<std::string, std::string>> SplitInputKey(const std::string& key);

// What a variable that stands in for a missing input takes over from its operator: everything but shape, type, initialiser and keys that
// speak of an input; of the latter those that name this one.
Attrs AttrsForInput(const Attrs& node_attrs, const std::string& input);

// Shape and type from __shape__ (0 and -1: unknown) and __dtype__ (a number of the files, or a name); unknown when absent. Throw kConfig.
TShape ShapeAttr(const Node& variable);
DType TypeAttr(const Node& variable);
// The text that the reference system reads.
std::string AttrForFile(const std::string& key, const std::string& value);

}  // namespace mxtrain

// SPDX-License-Identifier: Apache-2.0
#pragma once
// Names that have little room, on a terminal or in a figure.
#include <functional>
#include <string>
#include <string_view>

namespace mxtrain::plot {

// The name, or as much of its beginning and its end, which tells it apart, as fits around "…".
// `fits` is true of every shorter text, too; if not even "…" fits, it is that.
std::string NameThatFits(std::string_view name, const std::function<bool(std::string_view)>& fits);

}  // namespace mxtrain::plot

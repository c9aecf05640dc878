// SPDX-License-Identifier: Apache-2.0
#pragma once
// --tile and --overlap of `eval` and `infer`: large images are read in tiles.
#include <cstdint>
#include <optional>

#include "app/commands/arguments.h"
#include "mxtrain/io/tiles.h"

namespace mxtrain::commands {

class TileFlags {
 public:
  void Declare(Arguments& arguments);
  bool given() const { return side_.value_or(0) > 0; }
  // Without --tile those of the model's run, with --overlap if that is given. Throws kUsage for
  // --overlap where there are no tiles, and for numbers out of range.
  std::optional<io::TileOptions> Or(const std::optional<io::TileOptions>& of_run) const;

 private:
  std::optional<int64_t> side_, overlap_;
};

}  // namespace mxtrain::commands

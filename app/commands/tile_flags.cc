// SPDX-License-Identifier: Apache-2.0
#include "app/commands/tile_flags.h"

#include "mxtrain/base/error.h"

namespace mxtrain::commands {

void TileFlags::Declare(Arguments& arguments) {
  arguments
      .Option(
          "--tile", &side_,
          "for models of boxes or masks: read each image in tiles of N x N of its pixels, as if "
          "each were an image, and join what is found; with N near the input of the net small "
          "objects stay as large as they are; 0: whole images; default: as the model was "
          "trained (data.tiles)")
      .Takes("N")
      .Within(int64_t{0}, int64_t{io::kLongestEdge});
  arguments
      .Option("--overlap", &overlap_,
              "pixels that neighbouring tiles share, at least; as many as most objects are long; "
              "default: an eighth of --tile")
      .Takes("N")
      .NotNegative();
}

std::optional<io::TileOptions> TileFlags::Or(const std::optional<io::TileOptions>& of_run) const {
  const bool own = side_.has_value();
  if (overlap_ && !given() && (own || !of_run))
    Throw(ErrorKind::kUsage, "--overlap is of tiles: give --tile N, too");
  if (!own && !overlap_) return of_run;
  const int64_t side = side_.value_or(of_run ? of_run->side : 0);
  if (side == 0) return std::nullopt;
  try {
    return io::TilesOf(side, overlap_);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kConfig) throw;
    Throw(ErrorKind::kUsage, "--tile {}: {}", side, error.what());
  }
}

}  // namespace mxtrain::commands

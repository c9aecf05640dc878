// SPDX-License-Identifier: Apache-2.0
#pragma once
// The vectorized memory passes of batch normalization. Each works on a range of *pieces* of fixed
// size, so sums do not depend on how many threads share the pieces.
//
// Statistics take one pass: within a piece float sums of x - s and (x - s)^2, where s is the
// piece's first values; across pieces in double (Chan, Golub, LeVeque 1979). With n <= kPieceCells
// values per sum the relative error of a variance is about sqrt(n) 2^-24 (1 + (s - mean)^2 /
// variance), whatever the mean; that of the plain E[x^2] - E[x]^2 grows with mean^2 / variance.
//
// T is the storage type of the data, float or bfloat16; sums and coefficients are float.
#include <algorithm>
#include <cstdint>

#include "mxtrain/base/math.h"
#include "mxtrain/operators/activation/epilogue.h"

namespace mxtrain::batch_norm {

inline constexpr int64_t kPieceCells = 512;

// An array as lines, each an image's part of one group of channels, and lines as pieces of equal
// length. A cell is `width` adjacent elements: of as many channels if the layout stores them side
// by side, else of one channel (`broadcast`).
struct Lines {
  int64_t images = 0, groups = 0;
  // Elements from one image, group, cell to the next.
  int64_t image_stride = 0, group_stride = 0, stride = 0;
  int64_t cells = 0;       // whole cells of a line
  int width = 16;          // 16 or 8
  int rest = 0;            // broadcast: elements of a line beyond its whole cells
  int last_width = 16;     // valid elements of a cell of the last group
  bool broadcast = false;  // a group is one channel

  int64_t pieces_of_line() const { return cells == 0 ? 1 : CeilDivide(cells, kPieceCells); }
  int64_t pieces() const { return images * groups * pieces_of_line(); }
  int64_t cells_of_piece() const { return CeilDivide(cells, pieces_of_line()); }
  int64_t mask_bytes_of_piece() const { return (cells_of_piece() + (rest > 0)) * width / 8; }
  int64_t channels_of_group() const { return broadcast ? 1 : width; }
  int64_t coefficients() const { return groups * channels_of_group(); }  // channels with padding
  int64_t partials_of_piece() const { return 2 * channels_of_group(); }
};

struct Piece {
  int64_t group = 0, offset = 0;  // of its first element
  int64_t cells = 0;
  int width = 0;  // valid elements of a cell
  int rest = 0;   // elements after the last cell

  Piece(const Lines& lines, int64_t number) {
    const int64_t pieces = lines.pieces_of_line(), line = number / pieces,
                  first = number % pieces * lines.cells_of_piece();
    group = line % lines.groups;
    offset = line / lines.groups * lines.image_stride + group * lines.group_stride +
             first * lines.stride;
    cells = std::min(lines.cells_of_piece(), lines.cells - first);
    width = group + 1 == lines.groups ? lines.last_width : lines.width;
    rest = first + cells == lines.cells ? lines.rest : 0;
  }
};

// How the activation passes a gradient.
enum class Gate {
  kOpen,       // everywhere
  kRelu,       // where the recomputed value is above 0
  kRelu6,      // where it is within 0 .. 6
  kBits,       // where forward set a bit
  kSilu,       // times the slope at the recomputed value
  kHardSwish,  // likewise
};

// One value per channel; zero for padding.
struct Coefficients {
  const float *mean, *scale, *shift;  // value = (x - mean) * scale + shift
};

template <typename T>
struct Application {
  Coefficients of;
  const T *x, *sum;                     // sum: may be null
  T* y;                                 // may be x or sum
  uint8_t* bits;                        // of a clamp; null: not wanted
  Epilogue::Act act = Epilogue::kNone;  // with a sum: not self-gated
  bool stream = false;                  // write y around the caches
};

template <typename T>
struct Gradient {
  Coefficients of;
  Gate gate;
  const T *head, *x;
  const uint8_t* bits;                              // of Gate::kBits
  const float *offset = nullptr, *slope = nullptr;  // dx = scale * g + offset - (x - mean) * slope
  T *dx = nullptr, *dsum = nullptr;  // null: not wanted; either may be `head`, dx may be x
  bool add_dx = false, add_dsum = false;
  bool stream_dx = false, stream_dsum = false;
};

// The passes, over pieces [begin, end). Partial sums: two floats per channel of a piece's group,
// first all first sums, then all second sums.
template <typename T>
struct Kernels {
  // The mean, and the sum of squared deviations from it.
  void (*moments)(const Lines& lines, const T* x, float* partials, int64_t begin, int64_t end);
  void (*apply)(const Lines& lines, const Application<T>& a, int64_t begin, int64_t end);
  // Of the gradient g after the gate: its sum, and that of g * (x - mean).
  void (*gradient_sums)(const Lines& lines, const Gradient<T>& g, float* partials, int64_t begin,
                        int64_t end);
  // dx as above; dsum = g.
  void (*differentiate)(const Lines& lines, const Gradient<T>& g, int64_t begin, int64_t end);
};

// For the best instruction set of the machine.
template <typename T>
const Kernels<T>& KernelsOf();

}  // namespace mxtrain::batch_norm

// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/convolution/winograd.h"

#include <algorithm>

#include "mxtrain/base/math.h"
#include "mxtrain/device/blocked_layout.h"
#include "mxtrain/device/cpu/parallel.h"
#include "mxtrain/operators/convolution/winograd_kernels.h"

namespace mxtrain::winograd {
namespace {

constexpr int64_t kFloat = static_cast<int64_t>(sizeof(float));
// Tiles of a piece: enough to reuse a vector of weights often, few enough to keep the arrays of the
// 36 cells in the outer caches.
constexpr int64_t kPieceTiles = 112, kFewTiles = 42;

int64_t Blocks(int64_t channels) {
  return CeilDivide(channels, BlockSize());
}
int64_t PackedFloats(int64_t filter_blocks, int64_t channel_blocks) {
  return kCells * CellStride(filter_blocks * channel_blocks * BlockSize() * BlockSize());
}

// Weights [O, I, 3, 3] packed for the forward pass.
class Packed final : public DerivedLayout {
 public:
  std::string Name() const override { return "winograd4x3:" + std::to_string(BlockSize()); }
  int64_t Bytes(const TShape& shape, DType) const override {
    return PackedFloats(Blocks(shape[0]), Blocks(shape[1])) * kFloat;
  }
  bool Padded(const TShape&) const override { return true; }

  void Derive(const TensorSpec& from, const void* source, void* to) const override {
    const auto* weights = static_cast<const float*>(source);
    std::vector<int64_t> places[4];
    for (int axis = 0; axis < 4; ++axis) {
      const auto* blocked = static_cast<const BlockedLayout*>(from.layout.desc());
      places[axis] =
          blocked ? blocked->OffsetTable(from.shape, axis) : PlainOffsetTable(from.shape, axis);
    }
    const int64_t b = BlockSize(), filters = from.shape[0], channels = from.shape[1];
    const Packing packing{Blocks(filters), Blocks(channels), false};
    ParallelFor(packing.filter_blocks * packing.channel_blocks, 4, [&](int64_t begin, int64_t end) {
      alignas(64) float block[kTaps * kMaxBlock * kMaxBlock];
      for (int64_t at = begin; at < end; ++at) {
        const int64_t filter = at / packing.channel_blocks * b,
                      channel = at % packing.channel_blocks * b;
        const int64_t last_filter = std::min(b, filters - filter),
                      last_channel = std::min(b, channels - channel);
        std::fill_n(block, kTaps * b * b, 0.0f);
        for (int64_t tap = 0; tap < kTaps; ++tap) {
          for (int64_t i = 0; i < last_channel; ++i) {
            const int64_t place = places[1][static_cast<size_t>(channel + i)] +
                                  places[2][static_cast<size_t>(tap / kWindow)] +
                                  places[3][static_cast<size_t>(tap % kWindow)];
            for (int64_t o = 0; o < last_filter; ++o) {
              block[(tap * b + i) * b + o] =
                  weights[place + places[0][static_cast<size_t>(filter + o)]];
            }
          }
        }
        PackBlock(packing, block, filter / b, channel / b, static_cast<float*>(to));
      }
    });
  }
};

}  // namespace

std::string WhyNot(const ConvolutionGeometry& g) {
  if (BlockSize() == 0) return "vectors of at least eight floats only";
  if (g.groups != 1) return "one group only";
  for (int i = 0; i < 2; ++i) {
    if (g.kernel[i] != kWindow || g.stride[i] != 1 || g.dilate[i] != 1)
      return "3x3 windows with stride 1 and dilation 1 only";
    if (g.pad[i] >= kWindow) return "padding smaller than the window only";
  }
  return "";
}

std::unique_ptr<LayoutDesc> ImageLayout() {
  const std::vector<BlockedLayout::Block> blocks{{1, BlockSize()}};
  return std::make_unique<BlockedLayout>(std::vector<int>{0, 1, 2, 3}, blocks);
}
std::unique_ptr<LayoutDesc> WeightLayout() {
  const std::vector<BlockedLayout::Block> blocks{{1, BlockSize()}, {0, BlockSize()}};
  return std::make_unique<BlockedLayout>(std::vector<int>{0, 1, 2, 3}, blocks);
}
std::unique_ptr<LayoutDesc> PackedLayout() {
  return std::make_unique<Packed>();
}

Pass::Pass(const ConvolutionGeometry& g, bool turned, int threads)
    : batch_(g.batch),
      channels_(turned ? g.out_channels : g.in_channels),
      filters_(turned ? g.in_channels : g.out_channels),
      turned_(turned) {
  for (int i = 0; i < 2; ++i) {
    in_[i] = turned ? g.out[i] : g.in[i];
    out_[i] = turned ? g.in[i] : g.out[i];
    pad_[i] = turned ? kWindow - 1 - g.pad[i] : g.pad[i];
  }
  rows_ = CeilDivide(out_[0], kTile);
  columns_ = CeilDivide(out_[1], kTile);
  const int64_t tiles = batch_ * rows_ * columns_;
  team_ = tiles < kFewTiles * threads;
  slabs_ = team_ ? 1 : threads;
  pieces_ = CeilDivide(CeilDivide(tiles, kPieceTiles * (team_ ? threads : 1)), slabs_) * slabs_;
  capacity_ = CeilDivide(tiles, pieces_);
}

int64_t Pass::packed_bytes() const {
  return PackedFloats(Blocks(filters_), Blocks(channels_)) * kFloat;
}

int64_t Pass::workspace_bytes() const {
  const int64_t patches = CellStride(Blocks(channels_) * capacity_ * BlockSize()),
                products = CellStride(Blocks(filters_) * capacity_ * BlockSize());
  return slabs_ * kCells * (patches + products) * kFloat;
}

void Pass::Pack(const float* weights, float* packed) const {
  const Packing packing{Blocks(filters_), Blocks(channels_), turned_};
  const int64_t b = BlockSize(), inner = turned_ ? packing.filter_blocks : packing.channel_blocks;
  ParallelFor(packing.filter_blocks * packing.channel_blocks, 4, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; ++at) {
      const int64_t outer_block = at / inner, inner_block = at % inner;
      PackBlock(packing, weights + at * kTaps * b * b, turned_ ? inner_block : outer_block,
                turned_ ? outer_block : inner_block, packed);
    }
  });
}

void Pass::Run(const float* source, const float* packed, float* out, const Ending& ending,
               void* workspace) const {
  Correlation c{};
  c.source = source, c.packed = packed, c.out = out, c.ending = ending;
  c.channel_blocks = Blocks(channels_), c.height = in_[0], c.width = in_[1];
  c.filters = filters_, c.filter_blocks = Blocks(filters_), c.out_height = out_[0],
  c.out_width = out_[1];
  std::copy_n(pad_, 2, c.pad);
  c.rows = rows_, c.columns = columns_, c.capacity = capacity_;

  const int64_t tiles = batch_ * rows_ * columns_, groups = CeilDivide(c.filter_blocks, kGroup);
  const int64_t patch_floats = kCells * CellStride(c.channel_blocks * capacity_ * BlockSize());
  const int64_t slab_floats =
      patch_floats + kCells * CellStride(c.filter_blocks * capacity_ * BlockSize());
  const auto piece_of = [&](int64_t number, int64_t slab) {
    const int64_t first = number * tiles / pieces_;
    float* arrays = static_cast<float*>(workspace) + slab * slab_floats;
    return Piece{first, (number + 1) * tiles / pieces_ - first, arrays, arrays + patch_floats};
  };
  if (!team_) {
    ParallelFor(slabs_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t number = begin * pieces_ / slabs_; number < end * pieces_ / slabs_; ++number) {
        const Piece piece = piece_of(number, begin);
        for (int64_t block = 0; block < c.channel_blocks; ++block)
          TransformPatches(c, piece, block, 0, piece.count);
        for (int64_t at = 0; at < kCells * groups; ++at)
          Multiply(c, piece, at / groups, at % groups);
        for (int64_t block = 0; block < c.filter_blocks; ++block)
          TransformProducts(c, piece, block, 0, piece.count);
      }
    });
    return;
  }
  // f(block, begin, end) over the tiles of every block of channels.
  const auto for_tiles = [](const Piece& piece, int64_t blocks, auto f) {
    ParallelFor(blocks * piece.count, kTile, [&](int64_t begin, int64_t end) {
      for (int64_t at = begin, next; at < end; at = next) {
        const int64_t block = at / piece.count, first = block * piece.count;
        next = std::min(end, first + piece.count);
        f(block, at - first, next - first);
      }
    });
  };
  for (int64_t number = 0; number < pieces_; ++number) {
    const Piece piece = piece_of(number, 0);
    for_tiles(piece, c.channel_blocks, [&](int64_t block, int64_t begin, int64_t end) {
      TransformPatches(c, piece, block, begin, end);
    });
    ParallelFor(kCells * groups, 1, [&](int64_t begin, int64_t end) {
      for (int64_t at = begin; at < end; ++at) Multiply(c, piece, at / groups, at % groups);
    });
    for_tiles(piece, c.filter_blocks, [&](int64_t block, int64_t begin, int64_t end) {
      TransformProducts(c, piece, block, begin, end);
    });
  }
}

namespace {

// Measured constants of the model. Unit: one vector multiply-add.
constexpr double kNanosecond = 0.28;
constexpr double kTransform = 500;  // of a tile, per block of channels or filters
constexpr double kFetch = 6;        // of a vector of weights, once for all tiles
constexpr double kPack = 22;        // of a vector of packed weights

}  // namespace

double Pass::Cost(bool pack) const {
  const auto tiles = static_cast<double>(batch_ * rows_ * columns_);
  const auto channel_blocks = static_cast<double>(Blocks(channels_)),
             filter_blocks = static_cast<double>(Blocks(filters_));
  const double weights = kCells * channel_blocks * static_cast<double>(BlockSize()) * filter_blocks;
  // Of a multiply-add of tiles, including the run sums.
  const double product = BlockSize() == kMaxBlock ? 1.1 : 1.4;
  return kNanosecond * (weights * (tiles * product + kFetch + (pack ? kPack : 0)) +
                        tiles * (channel_blocks + filter_blocks) * kTransform);
}

double Pass::DirectCost() const {
  double cells = static_cast<double>(batch_),
         weights = static_cast<double>(channels_ * Blocks(filters_) * kTaps);
  for (int axis = 0; axis < 2; ++axis) {
    // Of the windows along an axis inside the image: direct kernels skip the others.
    double taps = 0;
    for (int64_t i = 0; i < kWindow; ++i)
      taps += static_cast<double>(std::min(out_[axis], in_[axis] + pad_[axis] - i) -
                                  std::max<int64_t>(0, pad_[axis] - i));
    cells *= taps / kWindow;
  }
  return kNanosecond * weights * (cells + kFetch);
}

}  // namespace mxtrain::winograd

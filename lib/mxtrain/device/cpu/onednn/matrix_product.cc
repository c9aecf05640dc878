// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "mxtrain/device/cpu/onednn/internal/call.h"

namespace mxtrain::onednn {
namespace {

// The library rejects a stride shorter than what it would step over, also along an axis of length
// one, where the stride does not matter.
Memory MemoryOf(const MatrixView& m, DType type) {
  const int64_t row =
      m.rows == 1 ? std::max(m.row_stride, m.columns * m.column_stride) : m.row_stride;
  const int64_t column =
      m.columns == 1 ? std::max(m.column_stride, m.rows * m.row_stride) : m.column_stride;
  if (m.batch == 1) return Memory({m.rows, m.columns}, TypeOf(type), {row, column});
  return Memory({m.batch, m.rows, m.columns}, TypeOf(type), {m.batch_stride, row, column});
}

}  // namespace

Result Multiply(Backend& backend, const MatrixProduct& p) {
  return Build(backend, [&](const dnnl::engine& engine) {
    const auto argument = [&](Arg arg, const MatrixView& m) {
      return ArrayArg{arg, {TShape{m.batch, m.rows, m.columns}, Layout(), p.type}};
    };
    return Describe(
        backend, engine,
        library::MatrixProduct(MemoryOf(p.src, p.type), MemoryOf(p.weights, p.type),
                               MemoryOf(p.dst, p.type), Attributes(p.accumulate), engine),
        std::vector<ArrayArg>{argument(Arg::kSrc, p.src), argument(Arg::kWeights, p.weights),
                              argument(Arg::kDst, p.dst)});
  });
}

}  // namespace mxtrain::onednn

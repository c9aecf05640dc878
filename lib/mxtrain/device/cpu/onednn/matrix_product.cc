// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/device/cpu/onednn/internal/call.h"

namespace mxtrain::onednn {
namespace {

// The stride of an axis of length one does not matter, but the library reads the order of the axes
// from it. A vector gets the one of a matrix with contiguous rows, or columns if it is strided.
Memory MemoryOf(const MatrixView& m, DType type) {
  const int64_t column = m.columns == 1 ? 1 : m.column_stride, row = m.rows > 1    ? m.row_stride
                                                                     : column == 1 ? m.columns
                                                                                   : 1;
  if (m.batch == 1) return Memory({m.rows, m.columns}, TypeOf(type), {row, column});
  return Memory({m.batch, m.rows, m.columns}, TypeOf(type), {m.batch_stride, row, column});
}

}  // namespace

Result Multiply(Backend& backend, const MatrixProduct& p) {
  return Build(backend, [&](const dnnl::engine& engine) {
    const DType dst_type = p.dst_type == DType::kUnknown ? p.type : p.dst_type;
    const auto argument = [&](Arg arg, const MatrixView& m, DType type) {
      return ArrayArg{arg, {TShape{m.batch, m.rows, m.columns}, Layout(), type}};
    };
    return Describe(
        backend, engine,
        library::MatrixProduct(MemoryOf(p.src, p.type), MemoryOf(p.weights, p.type),
                               MemoryOf(p.dst, dst_type), Attributes(p.accumulate), engine),
        std::vector<ArrayArg>{argument(Arg::kSrc, p.src, p.type),
                              argument(Arg::kWeights, p.weights, p.type),
                              argument(Arg::kDst, p.dst, dst_type)});
  });
}

}  // namespace mxtrain::onednn

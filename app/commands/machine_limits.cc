// SPDX-License-Identifier: Apache-2.0
#include "app/commands/machine_limits.h"

#include "mxtrain/operator/imperative.h"

namespace mxtrain::commands {
namespace {

// Use different numbers: on equal bits a GPU draws less power and is faster.
NDArray Varied(Runtime& runtime, const TShape& shape, Context ctx, DType type) {
  std::vector<float> values(static_cast<size_t>(shape.Size()));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(static_cast<uint32_t>(i) * 2654435761U >> 8) * 0x1p-24F - 0.5F;
  const NDArray made[] = {NDArray::FromVector(runtime, shape, values, ctx)};
  return type == DType::kFloat32 ? made[0] : Invoke("Cast", made, {{"dtype", NameOf(type)}})[0];
}

// A device with more units needs larger matrices to be fully used.
int64_t SideFor(Context ctx) {
  return ctx.type == DeviceType::kGPU ? 8192 : 2048;
}

}  // namespace

MatrixProduct::MatrixProduct(Runtime& runtime, Context ctx, Math math, DType type)
    : side_(SideFor(ctx)) {
  const Symbol product =
      Symbol::Create(runtime.operators(), "FullyConnected", "product",
                     {{"num_hidden", std::to_string(side_)}, {"no_bias", "True"}},
                     std::vector{Symbol::Variable("data")});
  const TShape shape{side_, side_};
  executor::BindRequest request;
  request.ctx = ctx;
  request.math = math;
  request.is_train = false;
  request.shapes["data"] = shape;
  request.types["data"] = type;
  executor_ = Executor::SimpleBind(runtime, product, std::move(request));
  const NDArray values = Varied(runtime, shape, ctx, type);
  for (const auto& [name, array] : executor_->args()) NDArray(array).CopyFrom(values);
}

double MatrixProduct::flops() const {
  return 2.0 * static_cast<double>(side_ * side_ * side_);
}

LargeCopy::LargeCopy(Runtime& runtime, Context ctx) {
  constexpr int64_t kElements = int64_t{64} << 20;  // 256 MiB
  from_ = NDArray::Zeros(runtime, {kElements}, DType::kFloat32, ctx);
  to_ = NDArray::Zeros(runtime, {kElements}, DType::kFloat32, ctx);
}

}  // namespace mxtrain::commands

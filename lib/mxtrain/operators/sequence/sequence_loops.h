// SPDX-License-Identifier: Apache-2.0
#pragma once
// SequenceMask, SequenceLast and SequenceReverse over rows: one step of one sequence.
#include <memory>

#include "mxtrain/operator/gather.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operators/sequence/sequence.h"

namespace mxtrain::sequence {

// The steps and the batch of an array, and the lengths of its sequences.
struct Batch {
  NumberReader lengths;
  bool given = false;  // else all have every step
  bool steps_first = true;
  int64_t steps = 0, size = 0, length = 0;  // size: of the batch; length: of a row

  // `in`: the arguments, of which the data may be absent.
  Batch(const TShape& data, int axis, std::span<const TBlob> in)
      : given(in.size() > 1),
        steps_first(axis == 0),
        steps(data[axis]),
        size(data[1 - axis]),
        length(data.Product(2, data.ndim())) {
    if (given) lengths = NumberReader(in[1]);
  }
  MXTRAIN_HD int64_t Steps(int64_t n) const {
    if (!given) return steps;
    const int64_t count = lengths.Index(n);
    return count < 0 ? 0 : count < steps ? count : steps;
  }
  MXTRAIN_HD int64_t Row(int64_t step, int64_t n) const {
    return steps_first ? step * size + n : n * steps + step;
  }
  RowGrid AllRows() const {
    return steps_first ? RowGrid{steps, size, length} : RowGrid{size, steps, length};
  }
};

struct LastPlaces {
  Batch batch;
  MXTRAIN_HD int64_t operator()(int64_t, int64_t n) const {
    const int64_t count = batch.Steps(n);
    return batch.Row(count > 0 ? count - 1 : 0, n);
  }
};
// Its own inverse.
struct ReversePlaces {
  Batch batch;
  MXTRAIN_HD int64_t operator()(int64_t step, int64_t n) const {
    const int64_t count = batch.Steps(n);
    return batch.Row(step < count ? count - 1 - step : step, n);
  }
};

template <typename T>
struct MaskRow {
  using V = ComputeOf<T>;
  Batch batch;
  const T* x;
  T* y;  // may be x
  V value;
  OpReqType req;
  template <typename Team>
  MXTRAIN_HD void operator()(const Team& team, int64_t row) const {
    const int64_t n = batch.steps_first ? row % batch.size : row / batch.steps,
                  step = batch.steps_first ? row / batch.size : row % batch.steps;
    const T* from = x + row * batch.length;
    T* to = y + row * batch.length;
    const bool kept = step < batch.Steps(n);
    for (int64_t k = team.rank(); k < batch.length; k += team.size())
      Assign(req, to, k, kept ? static_cast<V>(from[k]) : value);
  }
};

template <typename Device>
class Mask final : public Operator {
 public:
  explicit Mask(const SequenceMaskParam& param) : param_(param) {}
  void Forward(const ForwardArgs& args) override {
    Run(args.ctx, args.in_data, args.in_data[0], param_.value, args.req[0], args.out_data[0]);
  }
  void Backward(const BackwardArgs& args) override {
    Run(args.ctx, args.in_data, args.out_grad[0], 0, args.req[0], args.in_grad[0]);
  }

 private:
  void Run(const OpContext& ctx, std::span<const TBlob> in, const TBlob& from, double value,
           OpReqType req, const TBlob& to) const {
    if (req == OpReqType::kNullOp) return;
    const Batch batch(to.shape, param_.axis, in);
    const int64_t rows = batch.steps * batch.size;
    const Device device{ctx.run_ctx};
    SwitchType(to.type, "SequenceMask", [&](auto tag) {
      using T = typename decltype(tag)::type;
      ForRowsOfAnyLength(
          device, rows, batch.length,
          MaskRow<T>{batch, from.dptr<T>(), to.dptr<T>(), static_cast<ComputeOf<T>>(value), req});
    });
  }

  SequenceMaskParam param_;
};

template <typename Device>
class Last final : public Operator {
 public:
  explicit Last(const SequenceLastParam& param) : axis_(param.axis) {}
  void Forward(const ForwardArgs& args) override {
    const Batch batch(args.in_data[0].shape, axis_, args.in_data);
    GatherRows(Device{args.ctx.run_ctx}, {1, batch.size, batch.length}, LastPlaces{batch},
               args.in_data[0], args.req[0], args.out_data[0], "SequenceLast");
  }
  void Backward(const BackwardArgs& args) override {
    const Device device{args.ctx.run_ctx};
    const Batch batch(args.in_grad[0].shape, axis_, args.in_data);
    ZeroBlob(device, args.req[0], args.in_grad[0]);
    ScatterRows(device, {1, batch.size, batch.length}, LastPlaces{batch}, args.out_grad[0],
                args.req[0], args.in_grad[0], "SequenceLast");
  }

 private:
  int axis_;
};

template <typename Device>
class Reverse final : public Operator {
 public:
  explicit Reverse(const SequenceReverseParam&) {}
  void Forward(const ForwardArgs& args) override {
    Run(args.ctx, args.in_data, args.in_data[0], args.req[0], args.out_data[0]);
  }
  void Backward(const BackwardArgs& args) override {
    Run(args.ctx, args.in_data, args.out_grad[0], args.req[0], args.in_grad[0]);
  }

 private:
  static void Run(const OpContext& ctx, std::span<const TBlob> in, const TBlob& from, OpReqType req,
                  const TBlob& to) {
    const Batch batch(to.shape, 0, in);
    GatherRows(Device{ctx.run_ctx}, batch.AllRows(), ReversePlaces{batch}, from, req, to,
               "SequenceReverse");
  }
};

}  // namespace mxtrain::sequence

MXTRAIN_KERNELS(sequence, Device, registry) {
  using namespace mxtrain;
  using namespace mxtrain::sequence;
  registry.AddKernel(ReferenceKernel<SequenceMaskProperty, Mask<Device>, Device>(
      "SequenceMask", Takes::kEveryType));
  registry.AddKernel(ReferenceKernel<SequenceLastProperty, Last<Device>, Device>(
      "SequenceLast", Takes::kEveryType));
  registry.AddKernel(ReferenceKernel<SequenceReverseProperty, Reverse<Device>, Device>(
      "SequenceReverse", Takes::kEveryType));
}

// SPDX-License-Identifier: Apache-2.0
#pragma once
// The softmax family, written once for all devices.
#include <cmath>
#include <limits>
#include <memory>

#include "mxtrain/operator/plans.h"
#include "mxtrain/operators/softmax/softmax.h"
#include "mxtrain/operators/softmax_output/softmax_gradient.h"
#include "mxtrain/operators/softmax_output/softmax_row.h"

namespace mxtrain::softmax {

// How many elements of a softmax count.
struct Lengths {
  NumberReader lengths;  // without data: all elements count
  int64_t classes;
  MXTRAIN_HD int64_t operator()(int64_t row) const {
    if (!lengths.data) return classes;
    const double length = lengths.Number(row);
    if (!(length > 0)) return 0;
    return length < static_cast<double>(classes) ? static_cast<int64_t>(length) : classes;
  }
};

// What all rows of a call have in common.
struct Rows {
  SoftmaxPlaces places;
  bool log;
  double scale;  // the softmax is that of scale * x
  Lengths lengths;
};

// The elements of an array of T, as numbers in which the sums are computed.
template <typename T>
struct Elements {
  using Number = AccumulatorOf<T>;
  T* data;
  explicit Elements(const TBlob& array) : data(array.dptr<T>()) {}
  MXTRAIN_HD Number Get(int64_t i) const { return static_cast<Number>(data[i]); }
  MXTRAIN_HD void Put(OpReqType req, int64_t i, Number value) const { Assign(req, data, i, value); }
};
// The same for arrays of several types in one call. The type is examined for every element.
struct MixedElements {
  using Number = double;
  void* data;
  DType type;
  explicit MixedElements(const TBlob& array) : data(array.data), type(array.type) {}
  MXTRAIN_HD double Get(int64_t i) const {
    switch (type) {
      case DType::kFloat32:
        return static_cast<double>(static_cast<const float*>(data)[i]);
      case DType::kFloat16:
        return static_cast<double>(static_cast<const float16*>(data)[i]);
      case DType::kBfloat16:
        return static_cast<double>(static_cast<const bfloat16*>(data)[i]);
      default:
        return static_cast<const double*>(data)[i];
    }
  }
  MXTRAIN_HD void Put(OpReqType req, int64_t i, double value) const {
    switch (type) {
      case DType::kFloat32:
        return Assign(req, static_cast<float*>(data), i, value);
      case DType::kFloat16:
        return Assign(req, static_cast<float16*>(data), i, value);
      case DType::kBfloat16:
        return Assign(req, static_cast<bfloat16*>(data), i, value);
      default:
        return Assign(req, static_cast<double*>(data), i, value);
    }
  }
};

// y = the softmax or its logarithm, or += it. y may be x.
template <typename Array>
struct ForwardRow {
  Rows rows;
  Array x, y;
  OpReqType req;
  template <typename Team>
  MXTRAIN_HD void operator()(const Team& team, int64_t row) const {
    using A = typename Array::Number;
    const int64_t classes = rows.places.view.classes, step = rows.places.view.inner,
                  first = rows.places.First(row), count = rows.lengths(row);
    const A scale = static_cast<A>(rows.scale), sign = scale < 0 ? A(-1) : A(1),
            size = sign * scale;
    A largest = -std::numeric_limits<A>::infinity(), sum = 0;
    for (int64_t k = team.rank(); k < count; k += team.size())
      largest = LargerOf()(largest, sign * x.Get(first + k * step));
    largest = team.Fold(largest, LargerOf{});
    for (int64_t k = team.rank(); k < count; k += team.size())
      sum += std::exp((sign * x.Get(first + k * step) - largest) * size);
    sum = team.Fold(sum, AddBoth{});
    const A log_sum = std::log(sum);
    for (int64_t k = team.rank(); k < classes; k += team.size()) {
      const int64_t i = first + k * step;
      A value = 0;
      if (k < count) {
        const A shifted = (sign * x.Get(i) - largest) * size;
        value = rows.log ? shifted - log_sum : std::exp(shifted) / sum;
      }
      y.Put(req, i, value);
    }
  }
};

// With the head gradient g: dx = scale y (g - sum of g y), or scale (g - e^y sum of g) for the
// logarithm, or += it. dx may be g.
template <typename Array>
struct BackwardRow {
  Rows rows;
  Array head, y, dx;
  OpReqType req;
  template <typename Team>
  MXTRAIN_HD void operator()(const Team& team, int64_t row) const {
    using A = typename Array::Number;
    const int64_t classes = rows.places.view.classes, step = rows.places.view.inner,
                  first = rows.places.First(row), count = rows.lengths(row);
    const A scale = static_cast<A>(rows.scale);
    A sum = 0;
    for (int64_t k = team.rank(); k < count; k += team.size()) {
      const int64_t i = first + k * step;
      sum += rows.log ? head.Get(i) : head.Get(i) * y.Get(i);
    }
    sum = team.Fold(sum, AddBoth{});
    for (int64_t k = team.rank(); k < classes; k += team.size()) {
      const int64_t i = first + k * step;
      A value = 0;
      if (k < count) {
        const A g = head.Get(i), out = y.Get(i);
        value = scale * (rows.log ? g - std::exp(out) * sum : out * (g - sum));
      }
      dx.Put(req, i, value);
    }
  }
};

// The array behind `length`, or none.
inline Lengths LengthsOf(const SoftmaxView& view, std::span<const TBlob> in_data) {
  return {NumberReader(in_data.size() > 1 ? in_data[SoftmaxProperty::kLength] : TBlob()),
          view.classes};
}

// f(tag), where tag::type is Elements<T> if all arrays are of T.
template <typename F>
void SwitchElements(DType data, DType output, const char* who, F&& f) {
  if (data != output) return f(TypeTag<MixedElements>());
  SwitchFloating(data, who,
                 [&](auto tag) { f(TypeTag<Elements<typename decltype(tag)::type>>()); });
}

template <typename Device>
class Softmax final : public Operator {
 public:
  Softmax(bool log, double scale, const SoftmaxView& view)
      : log_(log), scale_(scale), view_(view) {}

  void Forward(const ForwardArgs& args) override {
    if (args.req[0] == OpReqType::kNullOp) return;
    const TBlob &data = args.in_data[0], &output = args.out_data[0];
    SwitchElements(data.type, output.type, "softmax", [&](auto tag) {
      using Array = typename decltype(tag)::type;
      ForEachSoftmax(
          Device{args.ctx.run_ctx}, view_,
          ForwardRow<Array>{RowsOf(args.in_data), Array(data), Array(output), args.req[0]});
    });
  }

  void Backward(const BackwardArgs& args) override {
    if (args.req[0] == OpReqType::kNullOp) return;
    const TBlob &output = args.out_data[0], &data_grad = args.in_grad[0];
    SwitchElements(data_grad.type, output.type, "softmax", [&](auto tag) {
      using Array = typename decltype(tag)::type;
      ForEachSoftmax(Device{args.ctx.run_ctx}, view_,
                     BackwardRow<Array>{RowsOf(args.in_data), Array(args.out_grad[0]),
                                        Array(output), Array(data_grad), args.req[0]});
    });
  }

 private:
  Rows RowsOf(std::span<const TBlob> in_data) const {
    return {{view_}, log_, scale_, LengthsOf(view_, in_data)};
  }

  bool log_;
  double scale_;
  SoftmaxView view_;
};

template <typename Device>
Expected<Plan, Refusal> MakePlan(const OperatorProperty& base, const PlanRequest& request,
                                 Backend&) {
  const auto& property = static_cast<const SoftmaxProperty&>(base);
  Plan plan = PlainPlan(property, request);
  plan.cost += 4.0 * static_cast<double>(request.in[0].shape.Size());  // two exponentials each
  plan.make = [log = property.log(), scale = property.scale(),
               view = property.View(request.in[0].shape)] {
    return std::make_unique<Softmax<Device>>(log, scale, view);
  };
  return plan;
}

}  // namespace mxtrain::softmax

MXTRAIN_KERNELS(softmax, Device, registry) {
  for (const char* name : {"softmax", "log_softmax", "softmin"})
    registry.AddKernel(mxtrain::LastKernel<Device>(name, mxtrain::softmax::MakePlan<Device>));
}

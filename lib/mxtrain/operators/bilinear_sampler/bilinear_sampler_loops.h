// SPDX-License-Identifier: Apache-2.0
#pragma once
// BilinearSampler, written once for all devices.
#include <cmath>
#include <memory>

#include "mxtrain/base/math.h"
#include "mxtrain/operator/plane_bands.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operator/rows.h"
#include "mxtrain/operators/bilinear_sampler/bilinear_sampler.h"

namespace mxtrain::bilinear_sampler {

// A position along an axis: between elements low and low + 1, either of which may be outside.
template <typename A>
struct Position {
  int64_t low;
  A fraction;

  // `at` from -1, the first element, to 1, the last one.
  MXTRAIN_HD Position(A at, int64_t length) : low(-2), fraction(0) {
    const A position = (at + 1) * static_cast<A>(length - 1) / 2;
    if (position != position) {
      low = 0;
      fraction = position;
    } else if (position > -1 && position < static_cast<A>(length)) {
      const A below = std::floor(position);
      low = static_cast<int64_t>(below);
      fraction = position - below;
    }
  }
};

// Data [images, channels, height, width]; `places` in the plane of an output.
struct Sampling {
  int64_t images, channels, height, width, places;

  Sampling(const TShape& data, const TShape& grid)
      : images(data[0]),
        channels(data[1]),
        height(data[2]),
        width(data[3]),
        places(grid[2] * grid[3]) {}

  MXTRAIN_HD int64_t cells() const { return height * width; }
  MXTRAIN_HD bool Inside(int64_t row, int64_t column) const {
    return row >= 0 && row < height && column >= 0 && column < width;
  }
  template <typename T>
  MXTRAIN_HD Position<AccumulatorOf<T>> X(const T* grid, int64_t image, int64_t place) const {
    return {AccumulatorOf<T>(grid[image * 2 * places + place]), width};
  }
  template <typename T>
  MXTRAIN_HD Position<AccumulatorOf<T>> Y(const T* grid, int64_t image, int64_t place) const {
    return {AccumulatorOf<T>(grid[(image * 2 + 1) * places + place]), height};
  }
};

inline constexpr int64_t kChannelsAtOnce = 8;  // that one thread reads at a place

// The outputs of a place, for some channels.
template <typename T>
struct Sample {
  using A = AccumulatorOf<T>;
  Sampling shape;
  int64_t parts;  // of the channels
  const T *data, *grid;
  T* out;
  OpReqType req;

  template <typename Team>
  MXTRAIN_HD void operator()(const Team&, int64_t at) const {
    const int64_t place = at % shape.places, part = at / shape.places % parts,
                  image = at / shape.places / parts;
    const Position<A> x = shape.X(grid, image, place), y = shape.Y(grid, image, place);
    int64_t cell[4] = {};
    A weight[4] = {};
    int corners = 0;
    for (int64_t down = 0; down < 2; ++down) {
      for (int64_t right = 0; right < 2; ++right) {
        const A share =
            (down ? y.fraction : 1 - y.fraction) * (right ? x.fraction : 1 - x.fraction);
        // What has no share may be infinite.
        if (share == 0 || !shape.Inside(y.low + down, x.low + right)) continue;
        cell[corners] = (y.low + down) * shape.width + x.low + right;
        weight[corners++] = share;
      }
    }
    const int64_t first = part * kChannelsAtOnce, last = first + kChannelsAtOnce;
    for (int64_t c = first; c < last && c < shape.channels; ++c) {
      const int64_t plane = image * shape.channels + c;
      const T* cells = data + plane * shape.cells();
      A sum = 0;
      for (int k = 0; k < corners; ++k) sum += weight[k] * A(cells[cell[k]]);
      Assign(req, out, plane * shape.places + place, sum);
    }
  }
};

// A band of a plane of the data's gradient.
template <typename T>
struct DataGradient {
  using A = AccumulatorOf<T>;
  Sampling shape;
  PlaneBands bands;
  const T *head, *grid;
  A* sums;

  template <typename Team>
  MXTRAIN_HD void operator()(const Team&, int64_t at) const {
    const PlaneBands::Band band = bands.Of(at);
    const int64_t image = band.plane / shape.channels;
    A* to = sums + band.plane * shape.cells();
    for (int64_t i = band.begin * shape.width; i < band.end * shape.width; ++i) to[i] = 0;
    for (int64_t place = 0; place < shape.places; ++place) {
      const Position<A> y = shape.Y(grid, image, place);
      if (!band.Has(y.low) && !band.Has(y.low + 1)) continue;
      const Position<A> x = shape.X(grid, image, place);
      const A slope(head[band.plane * shape.places + place]);
      for (int64_t down = 0; down < 2; ++down) {
        for (int64_t right = 0; right < 2; ++right) {
          const int64_t row = y.low + down, column = x.low + right;
          if (!band.Has(row) || !shape.Inside(row, column)) continue;
          to[row * shape.width + column] +=
              slope * (down ? y.fraction : 1 - y.fraction) * (right ? x.fraction : 1 - x.fraction);
        }
      }
    }
  }
};

// The gradient of a place, both coordinates.
template <typename T>
struct GridGradient {
  using A = AccumulatorOf<T>;
  Sampling shape;
  const T *head, *data, *grid;
  T* out;
  OpReqType req;

  template <typename Team>
  MXTRAIN_HD void operator()(const Team&, int64_t at) const {
    const int64_t place = at % shape.places, image = at / shape.places;
    const Position<A> x = shape.X(grid, image, place), y = shape.Y(grid, image, place);
    A along_x = 0, along_y = 0;
    for (int64_t c = 0; c < shape.channels; ++c) {
      const int64_t plane = image * shape.channels + c;
      const T* cells = data + plane * shape.cells();
      const A top_left = Value(cells, y.low, x.low), top_right = Value(cells, y.low, x.low + 1),
              bottom_left = Value(cells, y.low + 1, x.low),
              bottom_right = Value(cells, y.low + 1, x.low + 1);
      const A slope(head[plane * shape.places + place]);
      along_x += slope * ((1 - y.fraction) * (top_right - top_left) +
                          y.fraction * (bottom_right - bottom_left));
      along_y += slope * ((1 - x.fraction) * (bottom_left - top_left) +
                          x.fraction * (bottom_right - top_right));
    }
    Assign(req, out, image * 2 * shape.places + place,
           along_x * static_cast<A>(shape.width - 1) / 2);
    Assign(req, out, (image * 2 + 1) * shape.places + place,
           along_y * static_cast<A>(shape.height - 1) / 2);
  }
  MXTRAIN_HD A Value(const T* cells, int64_t row, int64_t column) const {
    return shape.Inside(row, column) ? A(cells[row * shape.width + column]) : A(0);
  }
};

template <typename Device>
class BilinearSampler final : public Operator {
 public:
  void Forward(const ForwardArgs& args) override {
    if (args.req[0] == OpReqType::kNullOp) return;
    const Sampling shape(args.in_data[0].shape, args.in_data[1].shape);
    const int64_t parts = CeilDivide(shape.channels, kChannelsAtOnce);
    SwitchFloating(args.in_data[0].type, "BilinearSampler", [&](auto tag) {
      using T = typename decltype(tag)::type;
      ForColumns(Device{args.ctx.run_ctx}, shape.images * parts * shape.places, 4 * kChannelsAtOnce,
                 Sample<T>{shape, parts, args.in_data[0].dptr<T>(), args.in_data[1].dptr<T>(),
                           args.out_data[0].dptr<T>(), args.req[0]});
    });
  }

  void Backward(const BackwardArgs& args) override {
    const Sampling shape(args.in_data[0].shape, args.in_data[1].shape);
    const Device device{args.ctx.run_ctx};
    SwitchFloating(args.in_data[0].type, "BilinearSampler", [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T *head = args.out_grad[0].dptr<T>(), *grid = args.in_data[1].dptr<T>();
      if (args.req[0] != OpReqType::kNullOp) {
        const PlaneBands bands = BandsOf<Device>(shape.images * shape.channels, shape.height);
        auto* sums = RoomForSums<T>(args.in_grad[0], args.req[0], args.ctx.workspace.data);
        ForColumns(device, bands.bands(), shape.cells() + shape.places,
                   DataGradient<T>{shape, bands, head, grid, sums});
        StoreSums<T>(device, sums, args.req[0], args.in_grad[0]);
      }
      if (args.req[1] != OpReqType::kNullOp) {
        ForColumns(device, shape.images * shape.places, 4 * shape.channels,
                   GridGradient<T>{shape, head, args.in_data[0].dptr<T>(), grid,
                                   args.in_grad[1].dptr<T>(), args.req[1]});
      }
    });
  }
};

template <typename Device>
Expected<Plan, Refusal> MakePlan(const OperatorProperty& base, const PlanRequest& request,
                                 Backend&) {
  Plan plan = PlainPlan(base, request);
  const int64_t width = request.in[0].type == DType::kFloat64 ? sizeof(double) : sizeof(float);
  if (request.needs_backward) plan.backward_workspace = request.in[0].shape.Size() * width;
  plan.make = [] { return std::make_unique<BilinearSampler<Device>>(); };
  return plan;
}

}  // namespace mxtrain::bilinear_sampler

MXTRAIN_KERNELS(bilinear_sampler, Device, registry) {
  using namespace mxtrain;
  registry.AddKernel(LastKernel<Device>("BilinearSampler", bilinear_sampler::MakePlan<Device>));
}

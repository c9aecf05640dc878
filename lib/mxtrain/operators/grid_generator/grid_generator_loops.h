// SPDX-License-Identifier: Apache-2.0
#pragma once
// GridGenerator, written once for all devices.
#include <memory>

#include "mxtrain/operator/plans.h"
#include "mxtrain/operator/rows.h"
#include "mxtrain/operators/grid_generator/grid_generator.h"

namespace mxtrain::grid_generator {

// Grids [N, 2, height, width].
struct Grid {
  int64_t height, width;

  explicit Grid(const TShape& shape) : height(shape[2]), width(shape[3]) {}

  // An element of an array of grids: which coordinate it is, of which place.
  struct Place {
    int64_t image, coordinate, row, column;
  };
  MXTRAIN_HD Place Of(int64_t at) const {
    const int64_t line = at / width, plane = line / height;
    return {plane / 2, plane % 2, line % height, at % width};
  }
  MXTRAIN_HD int64_t places() const { return height * width; }
  // Elements of the image per unit of the grid, along x (0) or y (1).
  template <typename A>
  MXTRAIN_HD A Unit(int64_t coordinate) const {
    const int64_t length = coordinate == 0 ? width : height;
    return static_cast<A>(length > 1 ? length - 1 : 1) / 2;
  }
  // The regular grid at this distance in elements from the first one.
  template <typename A>
  MXTRAIN_HD A Regular(int64_t coordinate, A elements) const {
    return elements / Unit<A>(coordinate) - 1;
  }
};

template <typename T>
struct AffineElement {
  using A = AccumulatorOf<T>;
  Grid grid;
  const T* data;
  MXTRAIN_HD A operator()(int64_t at) const {
    const Grid::Place place = grid.Of(at);
    const T* theta = data + place.image * 6 + place.coordinate * 3;
    return A(theta[0]) * grid.Regular(0, static_cast<A>(place.column)) +
           A(theta[1]) * grid.Regular(1, static_cast<A>(place.row)) + A(theta[2]);
  }
};

// A row is one element of theta. Its sum over all places is in double.
template <typename T>
struct ThetaGradient {
  Grid grid;
  const T* head;
  T* out;
  OpReqType req;

  template <typename Team>
  MXTRAIN_HD void operator()(const Team& team, int64_t at) const {
    const int64_t column_of_theta = at % 3;
    const T* heads = head + at / 3 * grid.places();
    double sum = 0;
    for (int64_t i = team.rank(); i < grid.places(); i += team.size()) {
      const double factor =
          column_of_theta == 0   ? grid.Regular(0, static_cast<double>(i % grid.width))
          : column_of_theta == 1 ? grid.Regular(1, static_cast<double>(i / grid.width))
                                 : 1.0;
      sum += static_cast<double>(static_cast<AccumulatorOf<T>>(heads[i])) * factor;
    }
    sum = team.Fold(sum, AddBoth{});
    if (team.rank() == 0) Assign(req, out, at, sum);
  }
};

template <typename T>
struct WarpElement {
  using A = AccumulatorOf<T>;
  Grid grid;
  const T* flow;
  MXTRAIN_HD A operator()(int64_t at) const {
    const Grid::Place place = grid.Of(at);
    const int64_t index = place.coordinate == 0 ? place.column : place.row;
    return grid.Regular(place.coordinate, A(flow[at]) + static_cast<A>(index));
  }
};
template <typename T>
struct WarpGradient {
  using A = AccumulatorOf<T>;
  Grid grid;
  const T* head;
  MXTRAIN_HD A operator()(int64_t at) const {
    return A(head[at]) / grid.Unit<A>(grid.Of(at).coordinate);
  }
};

template <typename Device>
class GridGenerator final : public Operator {
 public:
  explicit GridGenerator(const GridGeneratorParam& param)
      : warp_(param.transform_type == GridGeneratorParam::kWarp) {}

  void Forward(const ForwardArgs& args) override {
    const Device device{args.ctx.run_ctx};
    const TBlob& out = args.out_data[0];
    SwitchFloating(out.type, "GridGenerator", [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T* data = args.in_data[0].dptr<T>();
      if (warp_) {
        MapOn<T>(device, out, args.req[0], WarpElement<T>{Grid(out.shape), data});
      } else {
        MapOn<T>(device, out, args.req[0], AffineElement<T>{Grid(out.shape), data});
      }
    });
  }

  void Backward(const BackwardArgs& args) override {
    if (args.req[0] == OpReqType::kNullOp) return;
    const Device device{args.ctx.run_ctx};
    const TBlob &head = args.out_grad[0], &gradient = args.in_grad[0];
    const Grid grid(head.shape);
    SwitchFloating(head.type, "GridGenerator", [&](auto tag) {
      using T = typename decltype(tag)::type;
      if (warp_) {
        MapOn<T>(device, gradient, args.req[0], WarpGradient<T>{grid, head.dptr<T>()});
      } else {
        ForRows(device, gradient.Size(), grid.places(),
                ThetaGradient<T>{grid, head.dptr<T>(), gradient.dptr<T>(), args.req[0]});
      }
    });
  }

 private:
  bool warp_;
};

template <typename Device>
KernelEntry Kernel() {
  return ReferenceKernel<GridGeneratorProperty, GridGenerator<Device>, Device>("GridGenerator");
}

}  // namespace mxtrain::grid_generator

MXTRAIN_KERNELS(grid_generator, Device, registry) {
  registry.AddKernel(mxtrain::grid_generator::Kernel<Device>());
}

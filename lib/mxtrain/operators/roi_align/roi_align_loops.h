// SPDX-License-Identifier: Apache-2.0
#pragma once
// ROIAlign, written once for all devices. The mean over the samples of a cell is separable: a cell
// of row i and column j is the sum of H(i, y) W(j, x) data[y, x]. The weights H and W of all
// regions are computed first, into the workspace, and serve every channel, also in the backward
// pass.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "mxtrain/operator/plane_bands.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operator/rows.h"
#include "mxtrain/operators/roi_align/roi_align.h"
#include "mxtrain/operators/roi_pooling/regions.h"

namespace mxtrain::roi_align {

using roi_pooling::CheckRegions;
using roi_pooling::RoiStatus;
using roi_pooling::StatusOf;

struct Geometry {
  int64_t images, channels, height, width;  // of the data
  int64_t regions, rows, columns;           // of the output

  Geometry(const TShape& data, const TShape& output)
      : images(data[0]),
        channels(data[1]),
        height(data[2]),
        width(data[3]),
        regions(output[0]),
        rows(output[2]),
        columns(output[3]) {}

  MXTRAIN_HD int64_t plane() const { return height * width; }
  MXTRAIN_HD int64_t cells() const { return rows * columns; }
  MXTRAIN_HD int64_t lines() const { return rows + columns; }  // of cells
  MXTRAIN_HD int64_t line_weights() const { return rows * height + columns * width; }
  int64_t weights() const { return regions * line_weights(); }
};

// Where the weights are: of row i of a region, one for every row of the data, of which only those
// in the row's range are set; then the same for columns.
template <typename A>
struct Weights {
  Geometry shape;
  A* weights;       // [regions, line_weights]
  int32_t* ranges;  // [regions, lines, 2]: begin, end

  Weights(const Geometry& geometry, void* workspace)
      : shape(geometry),
        weights(static_cast<A*>(workspace)),
        ranges(reinterpret_cast<int32_t*>(weights + geometry.weights())) {}
  static int64_t Bytes(const Geometry& geometry, int64_t element) {
    return geometry.weights() * element +
           geometry.regions * geometry.lines() * 2 * static_cast<int64_t>(sizeof(int32_t));
  }

  // `line`: a row, or, after all rows, a column.
  MXTRAIN_HD A* Of(int64_t region, int64_t line) const {
    const int64_t before = line < shape.rows
                               ? line * shape.height
                               : shape.rows * shape.height + (line - shape.rows) * shape.width;
    return weights + region * shape.line_weights() + before;
  }
  MXTRAIN_HD int32_t* Range(int64_t region, int64_t line) const {
    return ranges + (region * shape.lines() + line) * 2;
  }
};

// How regions are sampled.
struct SamplingRule {
  double scale;
  int64_t samples;  // not positive: as many as a cell has elements
  bool aligned;
};

// A position along an axis of the data, between two elements.
struct Sample {
  int64_t low, high;
  double fraction;

  // Position is in [-1, length].
  MXTRAIN_HD Sample(double position, int64_t length) : low(0), high(0), fraction(0) {
    if (position > 0) {
      low = static_cast<int64_t>(position);
      fraction = position - static_cast<double>(low);
    }
    if (low >= length - 1) {
      low = length - 1;
      fraction = 0;
    }
    high = fraction > 0 ? low + 1 : low;
  }
};

// The samples of one cell along an axis: at first + s step, for s in [begin, end).
struct Samples {
  double first = 0, step = 0, count = 0;
  int64_t begin = 0, end = 0;  // only those that may be within reach of the data

  MXTRAIN_HD Samples(const SamplingRule& rule, double low, double high, int64_t cell, int64_t cells,
                     int64_t length) {
    const double offset = rule.aligned ? 0.5 : 0, start = Within(low * rule.scale - offset);
    double extent = Within(high * rule.scale - offset) - start;
    if (!rule.aligned && extent < 1) extent = 1;
    const double cell_length = extent / static_cast<double>(cells);
    count = rule.samples > 0 ? static_cast<double>(rule.samples) : std::ceil(cell_length);
    if (!(count > 0) || length == 0) return;
    step = cell_length / count;
    first = start + static_cast<double>(cell) * cell_length + step / 2;
    double from = 0, to = count;
    if (step > 0) {
      from = std::floor((-1 - first) / step);
      to = std::floor((static_cast<double>(length) - first) / step) + 2;
    }
    if (from < 0) from = 0;
    if (to > count) to = count;
    if (!(from < to)) return;
    begin = static_cast<int64_t>(from);
    end = static_cast<int64_t>(to);
  }
  // Far beyond every map, but such that samples can still be counted.
  MXTRAIN_HD static double Within(double at) {
    constexpr double kFarthest = int64_t{1} << 40;
    return at < -kFarthest ? -kFarthest : at > kFarthest ? kFarthest : at;
  }
  // f(Sample) for every sample within reach.
  template <typename F>
  MXTRAIN_HD void ForEach(int64_t length, F& f) const {
    for (int64_t s = begin; s < end; ++s) {
      const double position = first + static_cast<double>(s) * step;
      if (position >= -1 && position <= static_cast<double>(length)) f(Sample(position, length));
    }
  }
};

struct FindRange {
  int64_t begin, end = 0;
  MXTRAIN_HD void operator()(const Sample& sample) {
    if (sample.low < begin) begin = sample.low;
    if (sample.high >= end) end = sample.high + 1;
  }
};
template <typename A>
struct AddSample {
  A* weights;
  double share;
  MXTRAIN_HD void operator()(const Sample& sample) {
    weights[sample.low] += static_cast<A>((1 - sample.fraction) * share);
    weights[sample.high] += static_cast<A>(sample.fraction * share);
  }
};

// The weights of one row or column of a region.
template <typename R>
struct MakeWeights {
  Weights<R> to;
  SamplingRule rule;
  const R* rois;

  MXTRAIN_HD void operator()(int64_t at) const {
    const Geometry& shape = to.shape;
    const int64_t region = at / shape.lines(), line = at % shape.lines();
    const bool is_row = line < shape.rows;
    const int64_t length = is_row ? shape.height : shape.width;
    int32_t* range = to.Range(region, line);
    range[0] = range[1] = 0;
    const R* roi = rois + region * 5;
    if (StatusOf(roi, shape.images) != RoiStatus::kValid) return;
    const Samples samples(
        rule, static_cast<double>(roi[is_row ? 2 : 1]), static_cast<double>(roi[is_row ? 4 : 3]),
        is_row ? line : line - shape.rows, is_row ? shape.rows : shape.columns, length);
    FindRange found{length};
    samples.ForEach(length, found);
    if (found.begin >= found.end) return;
    range[0] = static_cast<int32_t>(found.begin);
    range[1] = static_cast<int32_t>(found.end);
    AddSample<R> add{to.Of(region, line), 1 / samples.count};
    for (int64_t i = found.begin; i < found.end; ++i) add.weights[i] = 0;
    samples.ForEach(length, add);
  }
};

// A row is one channel of a region.
template <typename T>
struct OutputCells {
  using R = AccumulatorOf<T>;
  Weights<R> by;
  const T* data;
  const R* rois;
  T* out;
  OpReqType req;

  template <typename Team>
  MXTRAIN_HD void operator()(const Team& team, int64_t row) const {
    const Geometry& shape = by.shape;
    const int64_t region = row / shape.channels, channel = row % shape.channels;
    const R* roi = rois + region * 5;
    const RoiStatus status = StatusOf(roi, shape.images);
    for (int64_t k = team.rank(); k < shape.cells(); k += team.size()) {
      R value = status == RoiStatus::kInvalid ? std::numeric_limits<R>::quiet_NaN() : R(0);
      if (status == RoiStatus::kValid) {
        const int64_t plane = static_cast<int64_t>(roi[0]) * shape.channels + channel;
        value = Cell(data + plane * shape.plane(), region, k / shape.columns,
                     shape.rows + k % shape.columns);
      }
      Assign(req, out, row * shape.cells() + k, value);
    }
  }
  MXTRAIN_HD R Cell(const T* plane, int64_t region, int64_t row, int64_t column) const {
    const R *down = by.Of(region, row), *across = by.Of(region, column);
    const int32_t *rows = by.Range(region, row), *columns = by.Range(region, column);
    R sum = 0;
    for (int64_t y = rows[0]; y < rows[1]; ++y) {
      if (down[y] == 0) continue;  // between samples; what is not read may be infinite
      const T* line = plane + y * by.shape.width;
      R part = 0;
      for (int64_t x = columns[0]; x < columns[1]; ++x) {
        if (across[x] != 0) part += across[x] * R(line[x]);
      }
      sum += down[y] * part;
    }
    return sum;
  }
};

// A band of a plane of the gradient: overlapping regions add in order.
template <typename T>
struct GradientBand {
  using R = AccumulatorOf<T>;
  Weights<R> by;
  PlaneBands bands;
  const T* head;
  const R* rois;
  R* sums;

  template <typename Team>
  MXTRAIN_HD void operator()(const Team&, int64_t at) const {
    const Geometry& shape = by.shape;
    const PlaneBands::Band band = bands.Of(at);
    const int64_t image = band.plane / shape.channels, channel = band.plane % shape.channels;
    R* to = sums + band.plane * shape.plane();
    for (int64_t i = band.begin * shape.width; i < band.end * shape.width; ++i) to[i] = 0;
    for (int64_t region = 0; region < shape.regions; ++region) {
      const R* roi = rois + region * 5;
      if (StatusOf(roi, shape.images) != RoiStatus::kValid || static_cast<int64_t>(roi[0]) != image)
        continue;
      const T* heads = head + (region * shape.channels + channel) * shape.cells();
      for (int64_t i = 0; i < shape.rows; ++i) {
        const int32_t* range = by.Range(region, i);
        const int64_t begin = range[0] > band.begin ? range[0] : band.begin,
                      end = range[1] < band.end ? range[1] : band.end;
        for (int64_t y = begin; y < end; ++y)
          AddLine(region, by.Of(region, i)[y], heads + i * shape.columns, to + y * shape.width);
      }
    }
  }
  MXTRAIN_HD void AddLine(int64_t region, R down, const T* heads, R* to) const {
    for (int64_t j = 0; j < by.shape.columns; ++j) {
      const R* across = by.Of(region, by.shape.rows + j);
      const int32_t* range = by.Range(region, by.shape.rows + j);
      const R slope = down * R(heads[j]);
      for (int64_t x = range[0]; x < range[1]; ++x) {
        if (down != 0 && across[x] != 0) to[x] += slope * across[x];
      }
    }
  }
};

template <typename Device>
class ROIAlign final : public Operator {
 public:
  explicit ROIAlign(const ROIAlignParam& param)
      : rule_{static_cast<double>(param.spatial_scale), param.sample_ratio, param.aligned} {}

  void Forward(const ForwardArgs& args) override {
    const Device device{args.ctx.run_ctx};
    const Geometry shape(args.in_data[0].shape, args.out_data[0].shape);
    SwitchFloating(args.in_data[0].type, "ROIAlign", [&](auto tag) {
      using T = typename decltype(tag)::type;
      using R = AccumulatorOf<T>;
      const R* rois = args.in_data[1].dptr<R>();
      CheckRegions(device, "ROIAlign", rois, shape.regions, shape.images);
      if (args.req[0] == OpReqType::kNullOp) return;
      const Weights<R> weights(shape, args.ctx.workspace.data);
      Launch(device, shape.regions * shape.lines(), MakeWeights<R>{weights, rule_, rois});
      ForRows(device, shape.regions * shape.channels, 4 * shape.cells(),
              OutputCells<T>{weights, args.in_data[0].dptr<T>(), rois, args.out_data[0].dptr<T>(),
                             args.req[0]});
    });
  }

  void Backward(const BackwardArgs& args) override {
    if (args.req[0] == OpReqType::kNullOp) return;
    const Device device{args.ctx.run_ctx};
    const Geometry shape(args.in_grad[0].shape, args.out_grad[0].shape);
    SwitchFloating(args.in_grad[0].type, "ROIAlign", [&](auto tag) {
      using T = typename decltype(tag)::type;
      using R = AccumulatorOf<T>;
      const R* rois = args.in_data[1].dptr<R>();
      R* scratch = args.ctx.workspace.dptr<R>();
      R* sums = RoomForSums<T>(args.in_grad[0], args.req[0], scratch);
      const Weights<R> weights(shape, scratch + args.in_grad[0].Size());
      const PlaneBands bands = BandsOf<Device>(shape.images * shape.channels, shape.height);
      Launch(device, shape.regions * shape.lines(), MakeWeights<R>{weights, rule_, rois});
      ForColumns(device, bands.bands(), shape.plane() + 4 * shape.regions * shape.cells(),
                 GradientBand<T>{weights, bands, args.out_grad[0].dptr<T>(), rois, sums});
      StoreSums<T>(device, sums, args.req[0], args.in_grad[0]);
    });
  }

 private:
  SamplingRule rule_;
};

template <typename Device>
Expected<Plan, Refusal> MakePlan(const OperatorProperty& base, const PlanRequest& request,
                                 Backend&) {
  const TShape& data = request.in[0].shape;
  if (std::max(data[2], data[3]) > std::numeric_limits<int32_t>::max())
    return Refusal{"an image longer than 2^31 - 1"};
  Plan plan = PlainPlan(base, request);
  const Geometry shape(request.in[0].shape, request.out[0].shape);
  const int64_t width = request.in[0].type == DType::kFloat64 ? sizeof(double) : sizeof(float);
  plan.forward_workspace = Weights<float>::Bytes(shape, width);
  if (request.needs_backward)
    plan.backward_workspace = plan.forward_workspace + request.in[0].shape.Size() * width;
  plan.make = [param = static_cast<const ROIAlignProperty&>(base).param()] {
    return std::make_unique<ROIAlign<Device>>(param);
  };
  return plan;
}

}  // namespace mxtrain::roi_align

MXTRAIN_KERNELS(roi_align, Device, registry) {
  using namespace mxtrain;
  registry.AddKernel(LastKernel<Device>("ROIAlign", roi_align::MakePlan<Device>));
}

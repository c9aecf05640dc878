// SPDX-License-Identifier: Apache-2.0
// Pooling of float32 by vector loops: max, avg and sum, over plain arrays, blocked channels or
// images, and channels last. All of them are planes [H, W, lanes], plain ones with one lane, and
// sequences have one row; sums of whole planes are taken in double. Also maxima of bfloat16,
// converted to float32 plane by plane.
//
// A maximum saves its cell within the window (row * kernel width + column), in a byte if the window
// has few enough cells. Every cell of a row of windows is visited in scan order, so the results of
// the forward pass match `ref` bit for bit.
#include <algorithm>
#include <limits>

#include "mxtrain/base/math.h"
#include "mxtrain/device/blocked_layout.h"
#include "mxtrain/operator/kernel.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operator/reduction.h"
#include "mxtrain/operators/pooling/pooling.h"

namespace mxtrain {
namespace {

// Planes of one array, each cell with `lanes` channels or images.
struct Planes {
  int64_t count = 0, lanes = 1;
};

std::optional<Planes> PlanesOf(const TShape& shape, Layout layout) {
  if (layout.plain()) return Planes{shape[0] * shape[1], 1};
  const auto* blocked = dynamic_cast<const BlockedLayout*>(layout.desc());
  if (!blocked || blocked->ndim() != shape.ndim()) return std::nullopt;
  if (ChannelsLast(layout)) return Planes{shape[0], shape[1]};
  if (!std::is_sorted(blocked->order().begin(), blocked->order().end()) ||
      blocked->blocks().size() != 1 || blocked->blocks()[0].axis > 1)
    return std::nullopt;
  const auto [axis, block] = blocked->blocks()[0];
  return Planes{shape[1 - axis] * CeilDivide(shape[axis], block), block};
}

// Windows [first, last) of an axis.
struct Range {
  int64_t first, last;
};

// The windows whose cell `offset` is a real one.
Range WindowsWith(const PoolingAxis& a, int64_t offset) {
  const int64_t shift = offset - a.pad;  // cell = window * stride + shift
  const int64_t first = shift >= 0 ? 0 : (-shift + a.stride - 1) / a.stride;
  return {first, shift >= a.in ? 0 : std::min(a.out, (a.in - 1 - shift) / a.stride + 1)};
}

// Operations on element `at` of a row of windows and one of its cells.
struct TakeMax {
  float* best;
  int32_t* place;
  int32_t here;
  void operator()(int64_t at, const float& cell) const {
    const bool wins = (place[at] < 0) | Beats(cell, best[at]);
    best[at] = wins ? cell : best[at];
    place[at] = wins ? here : place[at];
  }
};
struct TakeSum {
  float* sum;
  void operator()(int64_t at, const float& cell) const { sum[at] += cell; }
};
struct GiveToPlace {
  const float* head;
  const int32_t* place;
  int32_t here;
  void operator()(int64_t at, float& cell) const { cell += place[at] == here ? head[at] : 0.0f; }
};
struct GiveToAll {
  const float* head;
  void operator()(int64_t at, float& cell) const { cell += head[at]; }
};

struct AddShare {
  float share;
  void operator()(int64_t, float& cell) const { cell += share; }
};

// f(element, cell) for one cell of every window of `x` in a row: `cell` is that of window 0, `step`
// the distance in floats between windows. kStep and kLanes: the same as constants, or 0.
template <int kStep, int kLanes, typename F, typename T>
MXTRAIN_SIMD void CellLoop(Range x, int64_t step, int64_t lanes, T* cell, F f) {
  if constexpr (kStep != 0) step = kStep;
  if constexpr (kLanes != 0) lanes = kLanes;
  if (kLanes == 1) {
#pragma GCC ivdep
    for (int64_t i = x.first; i < x.last; ++i) f(i, cell[i * step]);
    return;
  }
  for (int64_t i = x.first; i < x.last; ++i) {
#pragma GCC ivdep
    for (int64_t v = 0; v < lanes; ++v) f(i * lanes + v, cell[i * step + v]);
  }
}

// A row of adjacent 2 x 2 windows: all four cells in registers. kLanes: as above.
template <int kLanes, typename Place>
MXTRAIN_SIMD void MaxOfFour(int64_t windows, int64_t lanes, const float* top, const float* bottom,
                            float* best, Place* place) {
  if constexpr (kLanes != 0) lanes = kLanes;
#pragma GCC ivdep
  for (int64_t x = 0; x < windows; ++x) {
#pragma GCC ivdep
    for (int64_t v = 0; v < lanes; ++v) {
      const float a = top[2 * x * lanes + v], b = top[(2 * x + 1) * lanes + v];
      const float c = bottom[2 * x * lanes + v], d = bottom[(2 * x + 1) * lanes + v];
      const bool second = Beats(b, a);
      const float upper = second ? b : a;
      const bool third = Beats(c, upper);
      const float three = third ? c : upper;
      const bool fourth = Beats(d, three);
      best[x * lanes + v] = fourth ? d : three;
      place[x * lanes + v] = static_cast<Place>(fourth ? 3 : third ? 2 : second ? 1 : 0);
    }
  }
}

template <int kLanes, typename Place>
MXTRAIN_SIMD void GiveToFour(int64_t windows, int64_t lanes, const float* head, const Place* place,
                             float* top, float* bottom) {
  if constexpr (kLanes != 0) lanes = kLanes;
#pragma GCC ivdep
  for (int64_t x = 0; x < windows; ++x) {
#pragma GCC ivdep
    for (int64_t v = 0; v < lanes; ++v) {
      const float h = head[x * lanes + v];
      const int32_t p = place[x * lanes + v];
      top[2 * x * lanes + v] = p == 0 ? h : 0.0f;
      top[(2 * x + 1) * lanes + v] = p == 1 ? h : 0.0f;
      bottom[2 * x * lanes + v] = p == 2 ? h : 0.0f;
      bottom[(2 * x + 1) * lanes + v] = p == 3 ? h : 0.0f;
    }
  }
}

// The same for an average or a sum: every cell gets its window's head gradient over `divisor`.
template <int kLanes>
MXTRAIN_SIMD void ShareAmongFour(int64_t windows, int64_t lanes, const float* head, float divisor,
                                 float* top, float* bottom) {
  if constexpr (kLanes != 0) lanes = kLanes;
#pragma GCC ivdep
  for (int64_t x = 0; x < windows; ++x) {
#pragma GCC ivdep
    for (int64_t v = 0; v < lanes; ++v) {
      const float share = head[x * lanes + v] / divisor;
      top[2 * x * lanes + v] = top[(2 * x + 1) * lanes + v] = share;
      bottom[2 * x * lanes + v] = bottom[(2 * x + 1) * lanes + v] = share;
    }
  }
}

MXTRAIN_SIMD void DivideLoop(int64_t n, const float* from, float divisor, float* to) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) to[i] = from[i] / divisor;
}

// f(lanes as a constant, or 0 for any number).
template <typename F>
void SwitchLanes(int64_t lanes, F f) {
  if (lanes == 1) return f(std::integral_constant<int, 1>());
  if (lanes == 8) return f(std::integral_constant<int, 8>());
  if (lanes == 16) return f(std::integral_constant<int, 16>());
  f(std::integral_constant<int, 0>());
}

template <typename From, typename To>
MXTRAIN_SIMD void Convert(int64_t n, const From* from, To* to) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<To>(from[i]);
}

struct Geometry : PoolingAxes {
  PoolingParam param;
  Planes planes;
  DType type;

  bool max() const { return param.pool_type == PoolingParam::kMax; }
  bool small_places() const { return h.kernel * w.kernel <= std::numeric_limits<uint8_t>::max(); }
  bool tiles() const {  // every cell belongs to exactly one 2 x 2 window
    const auto halves = [](const PoolingAxis& a) {
      return a.kernel == 2 && a.stride == 2 && a.pad == 0 && a.in == 2 * a.out;
    };
    return halves(h) && halves(w);
  }
  bool whole() const {  // the sum or the average of a plain plane
    const auto all = [](const PoolingAxis& a) {
      return a.out == 1 && a.pad == 0 && a.kernel == a.in;
    };
    return !max() && planes.lanes == 1 && all(h) && all(w);
  }
  int64_t row() const { return w.out * planes.lanes; }       // elements of a row of windows
  int64_t cell_row() const { return w.in * planes.lanes; }   // and of a row of cells
  int64_t plane_windows() const { return h.out * row(); }    // and of a plane of windows
  int64_t plane_cells() const { return h.in * cell_row(); }  // and of a plane of cells
  // Rows of windows processed at a time: their values and places stay in the first-level cache.
  int64_t band() const { return std::clamp<int64_t>(2048 / row(), 1, h.out); }
  int64_t loops_workspace() const {
    return RoundUp(band() * row() * static_cast<int64_t>(sizeof(float) + sizeof(int32_t)),
                   kBufferAlignment);
  }
  // Per thread: that of the loops and, for narrow types, a plane of cells and one of windows in
  // float32.
  int64_t workspace() const {
    const int64_t planes_in_float =
        type == DType::kFloat32
            ? 0
            : (plane_cells() + plane_windows()) * static_cast<int64_t>(sizeof(float));
    return RoundUp(loops_workspace() + planes_in_float, kBufferAlignment);
  }
};

// One plane; `Place` is the type of a saved maximum cell.
template <typename Place>
class PlaneLoops {
 public:
  PlaneLoops(const Geometry& g, void* workspace)
      : g_(g),
        values_(static_cast<float*>(workspace)),
        places_(reinterpret_cast<int32_t*>(values_ + g.band() * g.row())) {}

  void Forward(const float* plane, float* out, Place* saved, bool add) const {
    if (g_.max() && !add && g_.tiles()) return ForwardTiles(plane, out, saved);
    if (g_.whole()) {
      const auto sum = static_cast<float>(FoldRow<SumFold>(plane, g_.plane_cells()));
      *out = (add ? *out : 0.0f) + sum / Divisor(0, 0);
      return;
    }
    for (int64_t y = 0; y < g_.h.out; y += g_.band()) {
      const int64_t rows = std::min(g_.band(), g_.h.out - y), n = rows * g_.row();
      float* result = add ? values_ : out + y * g_.row();
      for (int64_t i = 0; i < rows; ++i)
        ForwardRow(y + i, plane, result + i * g_.row(), places_ + i * g_.row());
      if (add) CellLoop<1, 1>({0, n}, 1, 1, out + y * g_.row(), GiveToAll{result});
      if (saved) Convert(n, places_, saved + y * g_.row());
    }
  }

  void Backward(const float* head, const Place* saved, float* plane, bool add) const {
    if (!add && g_.tiles()) return BackwardTiles(head, saved, plane);
    if (g_.whole()) {
      const float share = *head / Divisor(0, 0);
      if (add)
        CellLoop<1, 1>({0, g_.plane_cells()}, 1, 1, plane, AddShare{share});
      else
        std::fill_n(plane, g_.plane_cells(), share);
      return;
    }
    if (!add) std::fill_n(plane, g_.h.in * g_.cell_row(), 0.0f);
    if constexpr (std::is_same_v<Place, uint8_t>) {
      if (g_.max() && g_.planes.lanes == 1) return GiveToPlaces(head, saved, plane);
    }
    for (int64_t y = 0; y < g_.h.out; y += g_.band()) {
      const int64_t rows = std::min(g_.band(), g_.h.out - y);
      if (saved) Convert(rows * g_.row(), saved + y * g_.row(), places_);
      for (int64_t i = 0; i < rows; ++i)
        BackwardRow(y + i, head + (y + i) * g_.row(), places_ + i * g_.row(), plane);
    }
  }

 private:
  // f(offset of the cell in the window, windows that contain it, the cell of window 0) in scan
  // order, for the windows of row y.
  template <typename T, typename F>
  void ForCells(int64_t y, T* plane, F f) const {
    for (int64_t row = g_.h.First(y); row < g_.h.Last(y); ++row) {
      for (int64_t j = 0; j < g_.w.kernel; ++j) {
        const Range x = WindowsWith(g_.w, j);
        if (x.first >= x.last) continue;
        f(static_cast<int32_t>((row - g_.h.Start(y)) * g_.w.kernel + j), x,
          plane + row * g_.cell_row() + (j - g_.w.pad) * g_.planes.lanes);
      }
    }
  }

  void ForwardRow(int64_t y, const float* plane, float* result, int32_t* places) const {
    std::fill_n(result, g_.row(), 0.0f);
    if (g_.max()) {
      std::fill_n(places, g_.row(), -1);
      ForCells(y, plane, [&](int32_t here, Range x, const float* cell) {
        Row(x, cell, TakeMax{result, places, here});
      });
    } else {
      ForCells(y, plane,
               [&](int32_t, Range x, const float* cell) { Row(x, cell, TakeSum{result}); });
      Divide(y, result, result);
    }
  }
  void ForwardTiles(const float* plane, float* out, Place* saved) const {
    Place* const spare = reinterpret_cast<Place*>(places_);  // without a backward pass
    SwitchLanes(g_.planes.lanes, [&](auto lanes) {
      for (int64_t y = 0; y < g_.h.out; ++y) {
        const float* top = plane + 2 * y * g_.cell_row();
        MaxOfFour<lanes()>(g_.w.out, g_.planes.lanes, top, top + g_.cell_row(), out + y * g_.row(),
                           saved ? saved + y * g_.row() : spare);
      }
    });
  }
  void BackwardTiles(const float* head, const Place* saved, float* plane) const {
    SwitchLanes(g_.planes.lanes, [&](auto lanes) {
      for (int64_t y = 0; y < g_.h.out; ++y) {
        float* top = plane + 2 * y * g_.cell_row();
        if (g_.max()) {
          GiveToFour<lanes()>(g_.w.out, g_.planes.lanes, head + y * g_.row(), saved + y * g_.row(),
                              top, top + g_.cell_row());
        } else {
          ShareAmongFour<lanes()>(g_.w.out, g_.planes.lanes, head + y * g_.row(), Divisor(y, 0),
                                  top, top + g_.cell_row());
        }
      }
    });
  }
  // Window by window: one addition for each, where the vectors of a loop over cells do not lie
  // together.
  void GiveToPlaces(const float* head, const Place* saved, float* plane) const {
    int64_t offsets[std::numeric_limits<uint8_t>::max() + 1] = {};  // of the cells of a window
    const auto cells = static_cast<uint64_t>(g_.h.in * g_.w.in);
    for (int64_t cell = 0; cell < g_.h.kernel * g_.w.kernel; ++cell)
      offsets[cell] = cell / g_.w.kernel * g_.w.in + cell % g_.w.kernel;
    for (int64_t y = 0; y < g_.h.out; ++y) {
      int64_t corner = g_.h.Start(y) * g_.w.in - g_.w.pad;
      for (int64_t x = 0; x < g_.w.out; ++x, corner += g_.w.stride, ++head, ++saved) {
        // Bytes that no forward pass wrote must not be followed out of the plane.
        const int64_t cell = corner + offsets[*saved];
        if (static_cast<uint64_t>(cell) < cells) plane[cell] += *head;
      }
    }
  }

  void BackwardRow(int64_t y, const float* head, const int32_t* places, float* plane) const {
    if (g_.max()) {
      ForCells(y, plane, [&](int32_t here, Range x, float* cell) {
        Row(x, cell, GiveToPlace{head, places, here});
      });
    } else {
      Divide(y, head, values_);
      ForCells(y, plane, [&](int32_t, Range x, float* cell) { Row(x, cell, GiveToAll{values_}); });
    }
  }

  float Divisor(int64_t y, int64_t x) const {
    return static_cast<float>(PoolingDivisor(g_.param, g_, y, x));
  }
  // Windows that have all their cells in the row share a divisor.
  void Divide(int64_t y, const float* from, float* to) const {
    const int64_t lanes = g_.planes.lanes, first = WindowsWith(g_.w, 0).first,
                  last = WindowsWith(g_.w, g_.w.kernel - 1).last;
    for (int64_t x = 0; x < g_.w.out;) {
      const int64_t end = x >= first && x < last ? last : x + 1;
      DivideLoop((end - x) * lanes, from + x * lanes, Divisor(y, x), to + x * lanes);
      x = end;
    }
  }

  template <typename F, typename T>
  void Row(Range x, T* cell, F f) const {
    const int64_t lanes = g_.planes.lanes, stride = g_.w.stride;
    if (lanes == 1 && stride == 1) return CellLoop<1, 1>(x, 1, 1, cell, f);
    if (lanes == 1 && stride == 2) return CellLoop<2, 1>(x, 2, 1, cell, f);
    SwitchLanes(lanes,
                [&](auto constant) { CellLoop<0, constant()>(x, stride * lanes, lanes, cell, f); });
  }

  const Geometry& g_;
  float* values_;
  int32_t* places_;
};

class PoolingSimd final : public Operator {
 public:
  explicit PoolingSimd(const Geometry& geometry) : g_(geometry) {}

  void Forward(const ForwardArgs& args) override {
    if (args.req[0] == OpReqType::kNullOp) return;
    const bool add = args.req[0] == OpReqType::kAddTo;
    ForPlanes(args.ctx, [&]<typename Place>(const PlaneLoops<Place>& loops, int64_t plane,
                                            Place* saved, float* room) {
      InFloat(args.in_data[0], plane, g_.plane_cells(), room, args.out_data[0], g_.plane_windows(),
              room + g_.plane_cells(), add,
              [&](const float* data, float* result) { loops.Forward(data, result, saved, add); });
    });
  }

  void Backward(const BackwardArgs& args) override {
    if (args.req[0] == OpReqType::kNullOp) return;
    const bool add = args.req[0] == OpReqType::kAddTo;
    ForPlanes(args.ctx, [&]<typename Place>(const PlaneLoops<Place>& loops, int64_t plane,
                                            const Place* saved, float* room) {
      InFloat(args.out_grad[0], plane, g_.plane_windows(), room, args.in_grad[0], g_.plane_cells(),
              room + g_.plane_windows(), add, [&](const float* head, float* gradient) {
                loops.Backward(head, saved, gradient, add);
              });
    });
  }

 private:
  // f(from, to): a plane of `in`, of `from_size` elements, and one of `out`, as floats; narrow
  // types are converted in the scratch rooms.
  template <typename F>
  static void InFloat(const TBlob& in, int64_t plane, int64_t from_size, float* from_room,
                      const TBlob& out, int64_t to_size, float* to_room, bool add, F f) {
    if (in.type == DType::kFloat32)
      return f(in.dptr<float>() + plane * from_size, out.dptr<float>() + plane * to_size);
    bfloat16* to = out.dptr<bfloat16>() + plane * to_size;
    Convert(from_size, in.dptr<bfloat16>() + plane * from_size, from_room);
    if (add) Convert(to_size, to, to_room);
    f(from_room, to_room);
    Convert(to_size, to_room, to);
  }

  // f(loops, plane, its saved places or null, float32 scratch) for every plane, in parallel.
  template <typename F>
  void ForPlanes(const OpContext& ctx, F f) const {
    if (g_.small_places()) return ForPlanesOf<uint8_t>(ctx, f);
    ForPlanesOf<int32_t>(ctx, f);
  }
  template <typename Place, typename F>
  void ForPlanesOf(const OpContext& ctx, F f) const {
    Place* saved = ctx.saved.empty() ? nullptr : static_cast<Place*>(ctx.saved[0].data);
    const int64_t grain = std::max<int64_t>(kParallelGrain / g_.plane_cells(), 1);
    ParallelForPieces(g_.planes.count, grain, [&](int64_t begin, int64_t end, int piece) {
      char* workspace = static_cast<char*>(ctx.workspace.data) + piece * g_.workspace();
      const PlaneLoops<Place> loops(g_, workspace);
      float* room = reinterpret_cast<float*>(workspace + g_.loops_workspace());
      for (int64_t plane = begin; plane < end; ++plane)
        f(loops, plane, saved ? saved + plane * g_.plane_windows() : nullptr, room);
    });
  }

  Geometry g_;
};

std::string WhyNot(const PlanRequest& request, const Geometry& g) {
  if (g.type != DType::kFloat32 && !(g.type == DType::kBfloat16 && g.max()))
    return "float32, and bfloat16 for max, only";
  if (request.in[0].shape.Size() == 0) return "empty array";
  if (g.param.pool_type == PoolingParam::kLp) return "max, avg and sum only";
  for (const PoolingAxis& axis : {g.h, g.w}) {
    if (axis.Start(axis.out - 1) >= axis.in) return "a window without a real cell";
  }
  if (g.row() < 4 && !g.max() && !g.whole()) return "rows of windows shorter than a vector";
  return "";
}

Expected<Plan, Refusal> PlanSimd(const OperatorProperty& base, const PlanRequest& request,
                                 Backend&) {
  const PoolingParam& param = static_cast<const PoolingProperty&>(base).param();
  const TShape &in = request.in[0].shape, &out = request.out[0].shape;
  if (in.ndim() > 4) return Refusal{"one or two spatial axes only"};
  const Layout layout = request.in_layout[0].value_or(Layout());
  const std::optional<Planes> planes = PlanesOf(in, layout);
  if (!planes) return Refusal{"layout " + layout.Name()};
  const Geometry geometry{AxesOf(param, in, out), param, *planes, request.in[0].type};
  if (std::string why = WhyNot(request, geometry); !why.empty()) return Refusal{why};

  Plan plan = PlainPlan(base, request);
  plan.in[0] = layout;
  plan.out[0] = Canonical(out, layout);
  plan.forward_workspace = std::max(request.threads, 1) * geometry.workspace();
  if (request.needs_backward) {
    plan.backward_workspace = plan.forward_workspace;
    plan.backward_reads = BackwardReads{{true}, {false}, {false}};
    if (geometry.max()) {
      const int64_t place = geometry.small_places() ? sizeof(uint8_t) : sizeof(int32_t);
      plan.saved = {planes->count * geometry.plane_windows() * place};
    }
  }
  plan.make = [geometry] { return std::make_unique<PoolingSimd>(geometry); };
  return plan;
}

}  // namespace
}  // namespace mxtrain

MXTRAIN_OPERATOR(pooling_simd, registry) {
  registry.AddKernel({"Pooling", mxtrain::DeviceType::kCPU, "simd", 50, mxtrain::PlanSimd});
}

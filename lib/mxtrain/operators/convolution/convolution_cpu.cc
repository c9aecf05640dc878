// The meaning of Convolution in loops, each output element by itself.
#include "mxtrain/operator/kernel.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operators/convolution/convolution.h"
#include "mxtrain/operators/convolution/weighted_types.h"

namespace mxtrain {
namespace {

using P = ConvolutionProperty;

// Places of an axis whose windows contain `in` cell `i`: the output index for tap `k`, or -1.
int64_t OutputOfTap(const ConvolutionGeometry& g, int axis, int64_t i, int64_t k) {
  const int64_t at = i + g.pad[axis] - k * g.dilate[axis];
  if (at < 0 || at % g.stride[axis] != 0 || at / g.stride[axis] >= g.out[axis]) return -1;
  return at / g.stride[axis];
}

// The input index under tap `k` of window `o`, or -1 in the padding.
int64_t InputOfTap(const ConvolutionGeometry& g, int axis, int64_t o, int64_t k) {
  const int64_t at = o * g.stride[axis] + k * g.dilate[axis] - g.pad[axis];
  return at < g.in[axis] ? at : -1;
}

template <typename T>
struct Loops {
  using A = AccumulatorOf<T>;
  ConvolutionGeometry g;

  int64_t DataAt(int64_t n, int64_t c, int64_t y, int64_t x) const { return ((n * g.in_channels + c) * g.in[0] + y) * g.in[1] + x; }
  int64_t OutAt(int64_t n, int64_t o, int64_t y, int64_t x) const { return ((n * g.out_channels + o) * g.out[0] + y) * g.out[1] + x; }
  int64_t WeightAt(int64_t o, int64_t c, int64_t i, int64_t j) const {
    return ((o * g.group_in() + c) * g.kernel[0] + i) * g.kernel[1] + j;
  }

  A Output(const T* data, const T* weight, int64_t n, int64_t o, int64_t y, int64_t x) const {
    const int64_t first = o / g.group_out() * g.group_in();
    A sum = 0;
    for (int64_t c = 0; c < g.group_in(); ++c) {
      for (int64_t i = 0; i < g.kernel[0]; ++i) {
        const int64_t iy = InputOfTap(g, 0, y, i);
        if (iy < 0) continue;
        for (int64_t j = 0; j < g.kernel[1]; ++j) {
          const int64_t ix = InputOfTap(g, 1, x, j);
          if (ix >= 0) sum += A(data[DataAt(n, first + c, iy, ix)]) * A(weight[WeightAt(o, c, i, j)]);
        }
      }
    }
    return sum;
  }

  A DataGradient(const T* head, const T* weight, int64_t n, int64_t c, int64_t iy, int64_t ix) const {
    const int64_t first = c / g.group_in() * g.group_out(), within = c % g.group_in();
    A sum = 0;
    for (int64_t i = 0; i < g.kernel[0]; ++i) {
      const int64_t y = OutputOfTap(g, 0, iy, i);
      if (y < 0) continue;
      for (int64_t j = 0; j < g.kernel[1]; ++j) {
        const int64_t x = OutputOfTap(g, 1, ix, j);
        if (x < 0) continue;
        for (int64_t o = first; o < first + g.group_out(); ++o) sum += A(head[OutAt(n, o, y, x)]) * A(weight[WeightAt(o, within, i, j)]);
      }
    }
    return sum;
  }

  A WeightGradient(const T* head, const T* data, int64_t o, int64_t c, int64_t i, int64_t j) const {
    const int64_t channel = o / g.group_out() * g.group_in() + c;
    A sum = 0;
    for (int64_t n = 0; n < g.batch; ++n) {
      for (int64_t y = 0; y < g.out[0]; ++y) {
        const int64_t iy = InputOfTap(g, 0, y, i);
        if (iy < 0) continue;
        for (int64_t x = 0; x < g.out[1]; ++x) {
          const int64_t ix = InputOfTap(g, 1, x, j);
          if (ix >= 0) sum += A(head[OutAt(n, o, y, x)]) * A(data[DataAt(n, channel, iy, ix)]);
        }
      }
    }
    return sum;
  }

  A BiasGradient(const T* head, int64_t o) const {
    A sum = 0;
    for (int64_t n = 0; n < g.batch; ++n) {
      for (int64_t i = 0; i < g.out[0] * g.out[1]; ++i) sum += A(head[OutAt(n, o, 0, i)]);
    }
    return sum;
  }
};

// f(a, b, c, d) for every index of a shape [_, count_b, count_c, count_d], with its place; written as `req` says.
template <typename T, typename F>
void ForEach4(const TBlob& array, OpReqType req, F f) {
  if (req == OpReqType::kNullOp) return;
  const TShape shape = array.shape;
  T* data = array.dptr<T>();
  ParallelFor(shape.Size(), 256, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; ++at) {
      const int64_t d = at % shape[3], c = at / shape[3] % shape[2], b = at / (shape[3] * shape[2]) % shape[1];
      Assign(req, data, at, f(at / shape.Product(1, 4), b, c, d));
    }
  });
}

class ConvolutionReference final : public Operator {
 public:
  explicit ConvolutionReference(const ConvolutionSettings& settings) : settings_(settings) {}

  void Forward(const OpContext&, std::span<const TBlob> in, std::span<const OpReqType> req, std::span<const TBlob> out,
               std::span<const TBlob>) override {
    SwitchFloating(in[0].type, "Convolution", [&](auto tag) {
      using T = typename decltype(tag)::type;
      const Loops<T> loops{{settings_, in[P::kData].shape, out[0].shape}};
      const T* data = in[P::kData].dptr<T>();
      const T* weight = in[P::kWeight].dptr<T>();
      const TBlob bias = settings_.no_bias ? TBlob() : in[P::kBias];
      const T* sum = settings_.with_sum ? in.back().dptr<T>() : nullptr;
      ForEach4<T>(out[0], req[0], [&](int64_t n, int64_t o, int64_t y, int64_t x) {
        using A = AccumulatorOf<T>;
        const A value = loops.Output(data, weight, n, o, y, x) + weighted::BiasAt<T, A>(bias, o) + (sum ? A(sum[loops.OutAt(n, o, y, x)]) : A(0));
        if (value < A(settings_.low())) return A(settings_.low());
        return value > A(settings_.high()) ? A(settings_.high()) : value;
      });
    });
  }

  void Backward(const OpContext&, std::span<const TBlob> out_grad, std::span<const TBlob> in, std::span<const TBlob>,
                std::span<const OpReqType> req, std::span<const TBlob> in_grad, std::span<const TBlob>) override {
    SwitchFloating(in_grad[0].type, "Convolution", [&](auto tag) {
      using T = typename decltype(tag)::type;
      const Loops<T> loops{{settings_, in[P::kData].shape, out_grad[0].shape}};
      const T* head = out_grad[0].dptr<T>();
      const T* data = in[P::kData].dptr<T>();
      const T* weight = in[P::kWeight].dptr<T>();
      ForEach4<T>(in_grad[P::kData], req[P::kData],
                  [&](int64_t n, int64_t c, int64_t y, int64_t x) { return loops.DataGradient(head, weight, n, c, y, x); });
      ForEach4<T>(in_grad[P::kWeight], req[P::kWeight],
                  [&](int64_t o, int64_t c, int64_t i, int64_t j) { return loops.WeightGradient(head, data, o, c, i, j); });
      if (settings_.no_bias || req[P::kBias] == OpReqType::kNullOp) return;
      SwitchFloating(in_grad[P::kBias].type, "Convolution", [&](auto bias_tag) {
        auto* bias = in_grad[P::kBias].template dptr<typename decltype(bias_tag)::type>();
        for (int64_t o = 0; o < loops.g.out_channels; ++o) Assign(req[P::kBias], bias, o, loops.BiasGradient(head, o));
      });
    });
  }

 private:
  ConvolutionSettings settings_;
};

Expected<Plan, Refusal> PlanReference(const OperatorProperty& base, const PlanRequest& request, Backend&) {
  const ConvolutionSettings& settings = static_cast<const ConvolutionProperty&>(base).settings();
  if (base.TypeString() != P::kOperators[0] && request.needs_backward) return Refusal{"has no gradient"};
  Plan plan = PlainPlan(base, request);
  plan.make = [settings] { return std::make_unique<ConvolutionReference>(settings); };
  return plan;
}

}  // namespace
}  // namespace mxtrain

MXTRAIN_OPERATOR(convolution_cpu, registry) {
  for (const char* op : mxtrain::ConvolutionProperty::kOperators) {
    registry.AddRow({op, mxtrain::DeviceType::kCPU, "ref", mxtrain::kRefRank, mxtrain::PlanReference});
  }
}

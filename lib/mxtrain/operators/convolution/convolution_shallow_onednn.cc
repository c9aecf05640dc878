// Convolution of images of one or two channels whose own gradient nobody wants: the first layer of a net on gray images. oneDNN has a good
// forward pass for it, but only a matrix product behind a rearrangement (or loops over elements) for the gradient of the weights; that one
// is a direct correlation here.
//
// Images are cut into a piece per thread. A piece sums into vectors of its own, an element of the gradient each, which are added up in the
// order of pieces and lanes: the same bits with the same number of threads.
#include <algorithm>

#include "mxtrain/operator/kernel.h"
#include "mxtrain/operators/convolution/convolution.h"
#include "mxtrain/operators/convolution/weighted_layer.h"

namespace mxtrain {
namespace {

using P = ConvolutionProperty;

constexpr int64_t kLanes = 8;
constexpr int64_t kMaxTaps = 5;  // of a row of the filter that are summed at a time; with two filters they fill the registers
using Vector = float __attribute__((vector_size(kLanes * sizeof(float)), aligned(alignof(float)), may_alias));

Vector* AsVectors(float* data) {
  return reinterpret_cast<Vector*>(data);
}
const Vector& VectorAt(const float* data) {
  return *reinterpret_cast<const Vector*>(data);
}

// Rows of a plane, `row` floats apart; `plane` floats to the next plane.
struct Rows {
  const float* data;
  int64_t row, plane;
};

// sums[filter * step + tap] += head[filter](y, x) * image(y, x + tap), over `rows` rows of `columns` (whole vectors of) cells.
template <int kFilters, int kTaps>
MXTRAIN_SIMD void Correlate(const Rows& head, const Rows& image, int64_t rows, int64_t columns, Vector* sums, int64_t step) {
  Vector total[kFilters][kTaps] = {};
  for (int64_t y = 0; y < rows; ++y) {
    const float* h = head.data + y * head.row;
    const float* cells = image.data + y * image.row;
    for (int64_t x = 0; x < columns; x += kLanes) {
#pragma GCC unroll 8
      for (int t = 0; t < kTaps; ++t) {
        const Vector cell = VectorAt(cells + x + t);
#pragma GCC unroll 8
        for (int f = 0; f < kFilters; ++f) total[f][t] += VectorAt(h + f * head.plane + x) * cell;
      }
    }
  }
  for (int f = 0; f < kFilters; ++f) {
    for (int t = 0; t < kTaps; ++t) sums[f * step + t] += total[f][t];
  }
}

template <int kFilters>
void CorrelateTaps(int64_t taps, const Rows& head, const Rows& image, int64_t rows, int64_t columns, Vector* sums, int64_t step) {
  switch (taps) {
    case 1:
      return Correlate<kFilters, 1>(head, image, rows, columns, sums, step);
    case 2:
      return Correlate<kFilters, 2>(head, image, rows, columns, sums, step);
    case 3:
      return Correlate<kFilters, 3>(head, image, rows, columns, sums, step);
    case 4:
      return Correlate<kFilters, 4>(head, image, rows, columns, sums, step);
    default:
      return Correlate<kFilters, kMaxTaps>(head, image, rows, columns, sums, step);
  }
}

MXTRAIN_SIMD void AddUp(const float* data, int64_t n, Vector* sum) {  // n: a multiple of kLanes
  Vector total = {};
  for (int64_t i = 0; i < n; i += kLanes) total += VectorAt(data + i);
  *sum += total;
}

// The gradient of the weights and the bias for a share of the images. Works on a copy of the image with its padding, and of output
// gradients whose rows are no whole vectors, both filled up with zeros.
class WeightGradient {
 public:
  WeightGradient(const ConvolutionGeometry& g, float* workspace)
      : g_(g), image_(workspace), head_(image_ + ImageFloats()), sums_(head_ + HeadFloats()) {}

  static int64_t Floats(const ConvolutionGeometry& g) {
    const WeightGradient w(g, nullptr);
    return (w.ImageFloats() + w.HeadFloats() + (w.Weights() + g.out_channels) * kLanes + 15) / 16 * 16;
  }

  int64_t Weights() const { return g_.out_channels * g_.in_channels * g_.kernel[0] * g_.kernel[1]; }
  void Clear() { std::fill_n(sums_, (Weights() + g_.out_channels) * kLanes, 0.0f); }

  void Add(const float* image, const float* head) {
    CopyImage(image);
    for (int64_t o = 0; o < g_.out_channels; o += 2) {
      const int64_t filters = std::min<int64_t>(2, g_.out_channels - o);
      const Rows rows = HeadRows(head + o * g_.out[0] * g_.out[1], filters);
      for (int64_t f = 0; f < filters; ++f) {
        AddUp(rows.data + f * rows.plane, g_.out[0] * Columns(), AsVectors(sums_) + Weights() + o + f);
      }
      for (int64_t c = 0; c < g_.in_channels; ++c) AddChannel(rows, filters, o, c);
    }
  }

  // Element i of the gradient: the weights, then the bias.
  float Sum(int64_t i) const {
    float sum = 0;
    for (int64_t lane = 0; lane < kLanes; ++lane) sum += sums_[i * kLanes + lane];
    return sum;
  }

 private:
  int64_t Columns() const { return (g_.out[1] + kLanes - 1) / kLanes * kLanes; }
  int64_t ImageRow() const { return Columns() + g_.kernel[1] - 1; }
  int64_t ImageRows() const { return g_.out[0] + g_.kernel[0] - 1; }
  int64_t ImageFloats() const { return g_.in_channels * ImageRows() * ImageRow(); }
  int64_t HeadFloats() const { return Columns() == g_.out[1] ? 0 : 2 * g_.out[0] * Columns(); }

  void CopyImage(const float* image) {
    std::fill_n(image_, ImageFloats(), 0.0f);
    for (int64_t c = 0; c < g_.in_channels; ++c) {
      for (int64_t y = 0; y < g_.in[0]; ++y) {
        std::copy_n(image + (c * g_.in[0] + y) * g_.in[1], g_.in[1], image_ + (c * ImageRows() + y + g_.pad[0]) * ImageRow() + g_.pad[1]);
      }
    }
  }

  Rows HeadRows(const float* head, int64_t filters) {
    if (HeadFloats() == 0) return {head, g_.out[1], g_.out[0] * g_.out[1]};
    for (int64_t row = 0; row < filters * g_.out[0]; ++row) {
      float* to = std::copy_n(head + row * g_.out[1], g_.out[1], head_ + row * Columns());
      std::fill_n(to, Columns() - g_.out[1], 0.0f);
    }
    return {head_, Columns(), g_.out[0] * Columns()};
  }

  void AddChannel(const Rows& head, int64_t filters, int64_t o, int64_t c) {
    const int64_t step = g_.in_channels * g_.kernel[0] * g_.kernel[1];
    for (int64_t i = 0; i < g_.kernel[0]; ++i) {
      for (int64_t j = 0; j < g_.kernel[1]; j += kMaxTaps) {
        const int64_t taps = std::min(kMaxTaps, g_.kernel[1] - j);
        const Rows image{image_ + (c * ImageRows() + i) * ImageRow() + j, ImageRow(), 0};
        Vector* sums = AsVectors(sums_) + o * step + (c * g_.kernel[0] + i) * g_.kernel[1] + j;
        if (filters == 2) {
          CorrelateTaps<2>(taps, head, image, g_.out[0], Columns(), sums, step);
        } else {
          CorrelateTaps<1>(taps, head, image, g_.out[0], Columns(), sums, step);
        }
      }
    }
  }

  const ConvolutionGeometry& g_;
  float *image_, *head_, *sums_;
};

class ShallowConvolution final : public Operator {
 public:
  ShallowConvolution(std::unique_ptr<Operator> forward, const ConvolutionGeometry& geometry, int pieces)
      : forward_(std::move(forward)), g_(geometry), pieces_(pieces) {}

  void Forward(const OpContext& ctx, std::span<const TBlob> in, std::span<const OpReqType> req, std::span<const TBlob> out,
               std::span<const TBlob> aux) override {
    forward_->Forward(ctx, in, req, out, aux);
  }

  void Backward(const OpContext& ctx, std::span<const TBlob> out_grad, std::span<const TBlob> in, std::span<const TBlob>,
                std::span<const OpReqType> req, std::span<const TBlob> in_grad, std::span<const TBlob>) override {
    const auto gradient = [&](int piece) {
      return WeightGradient(g_, static_cast<float*>(ctx.workspace.data) + piece * WeightGradient::Floats(g_));
    };
    const auto* images = static_cast<const float*>(in[P::kData].data);
    const auto* heads = static_cast<const float*>(out_grad[0].data);
    const int64_t image_size = g_.in_channels * g_.in[0] * g_.in[1], head_size = g_.out_channels * g_.out[0] * g_.out[1];
    for (int piece = 0; piece < pieces_; ++piece) gradient(piece).Clear();
    ParallelForPieces(g_.batch, 1, [&](int64_t begin, int64_t end, int piece) {
      WeightGradient share = gradient(piece);
      for (int64_t n = begin; n < end; ++n) share.Add(images + n * image_size, heads + n * head_size);
    });
    const auto write = [&](int argument, int64_t first) {
      float* to = static_cast<float*>(in_grad[argument].data);
      for (int64_t i = 0; i < in_grad[argument].Size(); ++i) {
        float sum = 0;
        for (int piece = 0; piece < pieces_; ++piece) sum += gradient(piece).Sum(first + i);
        Assign(req[argument], to, i, sum);
      }
    };
    if (req[P::kWeight] != OpReqType::kNullOp) write(P::kWeight, 0);
    if (req.size() > P::kBias && req[P::kBias] != OpReqType::kNullOp) write(P::kBias, gradient(0).Weights());
  }

 private:
  std::unique_ptr<Operator> forward_;
  ConvolutionGeometry g_;
  int pieces_;
};

std::string WhyNot(const ConvolutionParam& param, const ConvolutionGeometry& g, const PlanRequest& request) {
  if (std::string why = weighted::WhyNot(request); !why.empty()) return why;
  const weighted::Wanted wanted(request);
  if (!wanted.weights()) return "for the gradient of the weights";
  if (wanted.data) return "has no gradient of the data";
  if (g.in_channels > 2) return "for one or two channels; oneDNN has kernels of its own from three on";
  if (g.groups != 1) return "for one group";
  if (param.stride != TShape{1, 1} || param.dilate != TShape{1, 1}) return "for windows at every cell, without dilation";
  const std::optional<Layout>& weight = request.in_layout[P::kWeight];
  if (weight && !weight->plain()) return "a plain weight only";
  return "";
}

onednn::Convolution ForwardRecord(const ConvolutionParam& param, const PlanRequest& request) {
  onednn::Convolution c;
  c.src = {request.in[P::kData].shape, Layout()};
  c.weights = {request.in[P::kWeight].shape, Layout()};
  c.dst = {request.out[0].shape, Layout()};
  c.stride = param.stride;
  c.dilate = param.dilate;
  c.pad = param.pad;
  c.bias = !param.no_bias;
  c.training = request.is_train;
  c.accumulate = request.out_req[0] == OpReqType::kAddTo;
  return c;
}

Expected<Plan, Refusal> PlanShallow(const OperatorProperty& base, const PlanRequest& request, Backend& backend) {
  const ConvolutionParam& param = static_cast<const ConvolutionProperty&>(base).param();
  const ConvolutionGeometry geometry(param, request.in[P::kData].shape, request.out[0].shape);
  if (std::string why = WhyNot(param, geometry, request); !why.empty()) return Refusal{why};
  const onednn::Result forward = ConvolutionForward(backend, ForwardRecord(param, request));
  if (!forward) return forward.error();
  if (weighted::Penalty(*forward) >= weighted::kReferencePenalty) return Refusal{"oneDNN has only loops over elements for this shape"};

  PlanRequest forward_request = request;
  forward_request.needs_backward = false;
  forward_request.grad_req = {};
  Plan plan = weighted::PlanOf(base, forward_request, {*forward, {}, {}, 0}, weighted::Wanted(forward_request));
  const int pieces = std::max(request.threads, 1);
  plan.backward_workspace = pieces * WeightGradient::Floats(geometry) * static_cast<int64_t>(sizeof(float));
  std::vector<bool> reads(request.in.size(), false);
  reads[P::kData] = true;
  plan.backward_reads = BackwardReads{{true}, reads, {false}};
  plan.make = [make = plan.make, geometry, pieces] { return std::make_unique<ShallowConvolution>(make(), geometry, pieces); };
  return plan;
}

}  // namespace
}  // namespace mxtrain

MXTRAIN_OPERATOR(convolution_shallow_onednn, registry) {
  registry.AddRow({"Convolution", mxtrain::DeviceType::kCPU, "shallow", 50, mxtrain::PlanShallow});
}

// SPDX-License-Identifier: Apache-2.0
#include "library_convolution.h"

#include <doctest/doctest.h>

#include <cstring>
#include <numeric>

#include "mxtrain/operators/convolution/convolution_by_library.h"
#include "tests/support/team_device.h"

namespace mxtrain::test {
namespace {

// An array [outer, channels, h, w], plain or channels last.
struct Images {
  int64_t channels, h, w;
  bool channels_last;
  int64_t At(int64_t outer, int64_t c, int64_t y, int64_t x) const {
    return channels_last ? ((outer * h + y) * w + x) * channels + c
                         : ((outer * channels + c) * h + y) * w + x;
  }
};

// `fuses`: epilogues too.
template <bool fuses>
class HostLibrary {
 public:
  static constexpr const char* kName = "the host's library";
  static constexpr int64_t kAlignment = 256;

  static std::shared_ptr<const HostLibrary> Make(Backend&, int, const ConvolutionShape& shape,
                                                 const ConvolutionOptions& options) {
    return std::make_shared<HostLibrary>(shape, options);
  }
  HostLibrary(const ConvolutionShape& shape, const ConvolutionOptions& options)
      : s_(shape),
        options_(options),
        data_{s_.in_channels, s_.in[0], s_.in[1], options.channels_last},
        weight_{s_.in_channels / s_.groups, s_.kernel[0], s_.kernel[1], options.channels_last},
        out_{s_.out_channels, s_.out[0], s_.out[1], options.channels_last} {}

  // Odd numbers of bytes, which every call uses up.
  int64_t forward_workspace() const { return 777; }
  int64_t backward_workspace() const { return 1233; }
  bool deterministic() const { return true; }
  bool fused() const { return fuses && options_.epilogue.any(); }
  bool sums() const { return fuses && options_.sums && options_.type == DType::kFloat16; }
  bool gated() const { return fuses && options_.gated && options_.type == DType::kFloat16; }

  void Forward(RunContext, const void* data, const void* weight, void* out, bool add,
               void* workspace) const {
    UseUp(workspace, forward_workspace());
    Products(data, weight, out, add, s_.batch * s_.out_channels * s_.out[0] * s_.out[1],
             [](const Term& t) {
               return std::array{t.data, t.weight, t.out};
             });
  }
  // As the graph's engines: no array is another one.
  bool ForwardFused(RunContext, const void* data, const void* weight, const void* bias,
                    const void* sum, void* out, void* workspace) const {
    const ConvolutionEpilogue& e = options_.epilogue;
    MXTRAIN_ASSERT(fused() && e.bias == (bias != nullptr) && e.sum == (sum != nullptr));
    MXTRAIN_ASSERT(!out || (out != data && out != sum));  // null: empty
    UseUp(workspace, forward_workspace());
    SwitchFloating(options_.type, "a convolution", [&](auto tag) {
      using T = typename decltype(tag)::type;
      const std::vector<double> sums = Sums<T>(
          data, weight, s_.batch * s_.out_channels * s_.out[0] * s_.out[1], [](const Term& t) {
            return std::array{t.data, t.weight, t.out};
          });
      const int64_t pixels = s_.out[0] * s_.out[1];
      for (int64_t i = 0; i < static_cast<int64_t>(sums.size()); ++i) {
        double value = sums[static_cast<size_t>(i)];
        if (sum)
          value +=
              static_cast<double>(static_cast<AccumulatorOf<T>>(static_cast<const T*>(sum)[i]));
        const int64_t channel =
            options_.channels_last ? i % s_.out_channels : i / pixels % s_.out_channels;
        if (bias)
          value += e.bias_type == options_.type
                       ? static_cast<double>(
                             static_cast<AccumulatorOf<T>>(static_cast<const T*>(bias)[channel]))
                       : static_cast<double>(static_cast<const float*>(bias)[channel]);
        if (e.relu) value = value < 0 ? 0 : value;
        static_cast<T*>(out)[i] = static_cast<T>(static_cast<AccumulatorOf<T>>(value));
      }
    });
    return true;
  }
  // An odd number of channels stands for an array that is not aligned.
  bool ForwardSums(RunContext ctx, const void* data, const void* weight, void* out, float* to,
                   void* workspace) const {
    MXTRAIN_ASSERT(sums());
    if (s_.in_channels % 2 == 1) return false;
    Forward(ctx, data, weight, out, /*add=*/false, workspace);
    const auto* values = static_cast<const float16*>(out);
    const int64_t channels = s_.out_channels, pixels = s_.out[0] * s_.out[1];
    std::fill_n(to, 2 * channels, 0.0f);
    for (int64_t i = 0; i < s_.batch * channels * pixels; ++i) {
      const int64_t channel = options_.channels_last ? i % channels : i / pixels % channels;
      const auto value = static_cast<float>(values[i]);
      to[channel] += value;
      to[channels + channel] += value * value;
    }
    return true;
  }
  struct Normalisation {
    const void* data;
    const float *mean, *inverse, *scale, *shift;
  };
  bool DataGradientGated(RunContext ctx, const void* head, const void* weight,
                         const Normalisation& norm, void* gradient, float* scale_gradient,
                         float* shift_gradient, void* workspace) const {
    MXTRAIN_ASSERT(gated());
    if (s_.in_channels % 2 == 1) return false;
    DataGradient(ctx, head, weight, gradient, /*add=*/false, workspace);
    auto* g = static_cast<float16*>(gradient);
    const auto* x = static_cast<const float16*>(norm.data);
    const int64_t channels = s_.in_channels, pixels = s_.in[0] * s_.in[1];
    std::fill_n(scale_gradient, channels, 0.0f);
    std::fill_n(shift_gradient, channels, 0.0f);
    for (int64_t i = 0; i < s_.batch * channels * pixels; ++i) {
      const int64_t c = options_.channels_last ? i % channels : i / pixels % channels;
      const float normal = (static_cast<float>(x[i]) - norm.mean[c]) * norm.inverse[c];
      if (normal * norm.scale[c] + norm.shift[c] <= 0) g[i] = float16(0.0f);
      shift_gradient[c] += static_cast<float>(g[i]);
      scale_gradient[c] += static_cast<float>(g[i]) * normal;
    }
    return true;
  }
  void DataGradient(RunContext, const void* head, const void* weight, void* out, bool add,
                    void* workspace) const {
    MXTRAIN_ASSERT(options_.data_gradient && add == options_.data_gradient_adds);
    UseUp(workspace, backward_workspace());
    Products(head, weight, out, add, s_.batch * s_.in_channels * s_.in[0] * s_.in[1],
             [](const Term& t) {
               return std::array{t.out, t.weight, t.data};
             });
  }
  void WeightGradient(RunContext, const void* head, const void* data, void* out, bool add,
                      void* workspace) const {
    MXTRAIN_ASSERT(options_.weight_gradient && add == options_.weight_gradient_adds);
    UseUp(workspace, backward_workspace());
    Products(head, data, out, add, s_.out_channels * weight_.channels * s_.kernel[0] * s_.kernel[1],
             [](const Term& t) {
               return std::array{t.out, t.data, t.weight};
             });
  }

 private:
  struct Term {  // offsets of the elements of one product
    int64_t data, weight, out;
  };

  static void UseUp(void* workspace, int64_t bytes) {
    MXTRAIN_ASSERT(reinterpret_cast<uintptr_t>(workspace) % kAlignment == 0);
    std::memset(workspace, 0xa5, static_cast<size_t>(bytes));
  }

  template <typename F>
  void ForTerms(const F& f) const {
    const int64_t group_out = s_.out_channels / s_.groups;
    for (int64_t n = 0; n < s_.batch; ++n) {
      for (int64_t o = 0; o < s_.out_channels; ++o) {
        for (int64_t y = 0; y < s_.out[0]; ++y) {
          for (int64_t x = 0; x < s_.out[1]; ++x) {
            for (int64_t c = 0; c < weight_.channels; ++c) {
              for (int64_t i = 0; i < s_.kernel[0]; ++i) {
                for (int64_t j = 0; j < s_.kernel[1]; ++j) {
                  const int64_t row = y * s_.stride[0] + i * s_.dilate[0] - s_.pad[0],
                                column = x * s_.stride[1] + j * s_.dilate[1] - s_.pad[1];
                  if (row < 0 || row >= s_.in[0] || column < 0 || column >= s_.in[1]) continue;
                  f(Term{data_.At(n, o / group_out * weight_.channels + c, row, column),
                         weight_.At(o, c, i, j), out_.At(n, o, y, x)});
                }
              }
            }
          }
        }
      }
    }
  }

  // The sums of first[places[0]] second[places[1]] at places[2].
  template <typename T, typename Places>
  std::vector<double> Sums(const void* first, const void* second, int64_t size,
                           const Places& places_of) const {
    using A = AccumulatorOf<T>;
    std::vector<double> sums(static_cast<size_t>(size));
    const T *a = static_cast<const T*>(first), *b = static_cast<const T*>(second);
    ForTerms([&](const Term& term) {
      const auto places = places_of(term);
      sums[static_cast<size_t>(places[2])] +=
          static_cast<double>(static_cast<A>(a[places[0]])) * static_cast<A>(b[places[1]]);
    });
    return sums;
  }
  template <typename Places>
  void Products(const void* first, const void* second, void* result, bool add, int64_t size,
                const Places& places_of) const {
    SwitchFloating(options_.type, "a convolution", [&](auto tag) {
      using T = typename decltype(tag)::type;
      const std::vector<double> sums = Sums<T>(first, second, size, places_of);
      T* to = static_cast<T*>(result);
      for (int64_t i = 0; i < size; ++i)
        Assign(add ? OpReqType::kAddTo : OpReqType::kWriteTo, to, i,
               static_cast<AccumulatorOf<T>>(sums[static_cast<size_t>(i)]));
    });
  }

  const ConvolutionShape s_;
  const ConvolutionOptions options_;
  const Images data_, weight_, out_;
};

constexpr const char* kKernel = "library";

// The plan of a convolution with a bias and three gradients, 1 x 1 and one group.
Plan PlanOf(const OperatorRegistry& registry, const TShape& out, DType type, Backend& backend) {
  const auto property = registry.Create(
      "Convolution", {{"kernel", "(1, 1)"}, {"num_filter", std::to_string(out[1])}});
  const TensorSpec specs[] = {
      {{out[0], 1, out[2], out[3]}, type, {}}, {{out[1], 1, 1, 1}, type, {}}, {{out[1]}, type, {}}};
  const TensorSpec outs[] = {{out, type, {}}};
  const std::vector<std::optional<Layout>> free(3);
  const OpReqType out_req[] = {OpReqType::kWriteTo};
  const std::vector<OpReqType> grad_req(3, OpReqType::kWriteTo);
  PlanRequest request;
  request.ctx = Context::gpu();
  request.is_train = request.needs_backward = true;
  request.in = specs;
  request.out = outs;
  request.in_layout = free;
  request.out_req = out_req;
  request.grad_req = grad_req;
  for (const KernelEntry* kernel : registry.Kernels("Convolution", DeviceType::kGPU)) {
    if (kernel->name != kKernel) continue;
    Expected<Plan, Refusal> plan = kernel->plan(*property, request, backend);
    REQUIRE(plan);
    return *plan;
  }
  FAIL("no kernel of that name");
  return {};
}

// The sums over channels last are divided into many more slices than those over a plain array.
TEST_CASE("the workspace of a convolution has space for the gradient of its bias, in its layout") {
  const std::shared_ptr<OperatorRegistry> registry = BuiltinOperators();
  AddLibraryConvolution(*registry);
  const std::unique_ptr<Backend> backend = NewCpuBackend(1);
  int larger = 0;
  for (const DType type : {DType::kBfloat16, DType::kFloat16, DType::kFloat32, DType::kFloat64}) {
    for (const int64_t channels : {1, 3, 64, 2048}) {
      for (const TShape& pixels :
           {TShape{1, 1, 1}, TShape{1, 7, 9}, TShape{1, 8, 8}, TShape{5, 13, 1}, TShape{2, 32, 33},
            TShape{256, 7, 7}, TShape{256, 14, 14}, TShape{16, 64, 64}, TShape{64, 112, 112},
            TShape{1, 1000, 1000}}) {
        const TShape out{pixels[0], channels, pixels[1], pixels[2]};
        CAPTURE(NameOf(type));
        CAPTURE(out.ToString());
        const Plan plan = PlanOf(*registry, out, type, *backend);
        CHECK(ChannelsLast(plan.out[0]) == (SizeOf(type) == 2));
        const int64_t needed = weighted::BytesOfBiasSums(type, ChannelView(out, 1, plan.out[0]));
        CHECK(plan.backward_workspace >= needed);
        larger += needed > weighted::BytesOfBiasSums(type, ChannelView(out, 1));
      }
    }
  }
  CHECK(larger > 10);
}

// As above, run: 64k sums of a channel, between guard words.
TEST_CASE("gradients of biases in 16 bits, of many images") {
  const std::shared_ptr<OperatorRegistry> registry = BuiltinOperators();
  AddLibraryConvolution(*registry);
  const std::unique_ptr<Backend> backend = NewCpuBackend(1);
  const TShape out{64, 3, 32, 32};
  const int64_t pixels = out[0] * out[2] * out[3];
  const Plan plan = PlanOf(*registry, out, DType::kBfloat16, *backend);
  constexpr uint64_t kGuard = 0x5afe5afe5afe5afe;
  std::vector<uint64_t> workspace(static_cast<size_t>(plan.backward_workspace) / 8 + 9, kGuard);
  std::vector<bfloat16> head(static_cast<size_t>(pixels * out[1])), grad(3), data(head.size() / 3);
  std::vector<double> expected(3);
  for (size_t i = 0; i < head.size(); ++i) {
    head[i] = bfloat16(static_cast<float>(i * 2654435761u % 17) / 8 - 0.5f);
    expected[i % 3] += static_cast<float>(head[i]);  // channels last
  }
  const auto blob = [&](void* bytes, const TShape& shape, DType type, Layout layout = {}) {
    return TBlob{bytes, shape, type, layout, Context::gpu()};
  };
  const TBlob heads[] = {blob(head.data(), out, DType::kBfloat16, plan.out[0])};
  const TBlob none = blob(nullptr, {}, DType::kBfloat16);
  const TBlob in[] = {blob(data.data(), {64, 1, 32, 32}, DType::kBfloat16), none, none};
  const TBlob gradients[] = {none, none, blob(grad.data(), {3}, DType::kBfloat16)};
  const OpReqType req[] = {OpReqType::kNullOp, OpReqType::kNullOp, OpReqType::kWriteTo};
  OpContext ctx;
  ctx.workspace = blob(workspace.data(), TShape{plan.backward_workspace}, DType::kUint8);
  const std::unique_ptr<Operator> op = plan.make();
  op->Backward({ctx, heads, in, {}, req, gradients, {}});
  for (size_t c = 0; c < 3; ++c)
    CHECK(static_cast<float>(grad[c]) == doctest::Approx(expected[c]).epsilon(0x1p-8));
  const auto behind = static_cast<size_t>(plan.backward_workspace + 7) / 8;
  CHECK(std::all_of(workspace.begin() + static_cast<int64_t>(behind), workspace.end(),
                    [](uint64_t word) { return word == kGuard; }));
  // A smaller workspace is noticed before anything is written behind it.
  ctx.workspace.shape = TShape{weighted::BytesOfBiasSums(DType::kBfloat16, ChannelView(out, 1))};
  CHECK_THROWS_WITH(op->Backward({ctx, heads, in, {}, req, gradients, {}}),
                    doctest::Contains("internal check failed"));
}

}  // namespace

void AddLibraryConvolution(OperatorRegistry& registry) {
  convolution::AddLibraryKernels<OnTeams, HostLibrary<false>>(kKernel, registry);
  convolution::AddLibraryKernels<OnTeams, HostLibrary<true>>("fusing_library", registry);
}

}  // namespace mxtrain::test

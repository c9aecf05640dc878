// SPDX-License-Identifier: Apache-2.0
// Graphs over a strict cuDNN on the host: what they compute, which engines they take, and what
// becomes of refusals and failures.
#include "mxtrain/device/cuda/internal/cudnn_graph.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "mxtrain/base/format.h"
#include "mxtrain/base/math.h"
#include "mxtrain/device/cuda/fake/internal/fake_cudnn.h"
#include "mxtrain/device/kernel_choices.h"

namespace mxtrain::cuda {
namespace {

using test::FakeCudnn;
using test::FakeEngine;
using enum ConvolutionPart;

constexpr ConvolutionPart kParts[] = {kForward, kDataGradient, kWeightGradient};

// An array [outer, channels, h, w] in double, and as cuDNN gets it: of a type, plain or channels
// last, between guards.
class Images {
 public:
  Images(std::array<int64_t, 4> shape, DType type, bool channels_last, uint32_t seed)
      : shape_(shape),
        type_(type),
        channels_last_(channels_last),
        values_(static_cast<size_t>(shape[0] * shape[1] * shape[2] * shape[3])),
        bytes_(values_.size() * static_cast<size_t>(SizeOf(type)) + 2 * kGuard, kFill) {
    std::minstd_rand random(seed);
    ForElements([&](double& value, int64_t at) {
      value = static_cast<double>(random() % 17) / 8 - 1;  // exact in every type
      Write(value, at);
    });
  }

  double operator()(int64_t a, int64_t b, int64_t c, int64_t d) const {
    return values_[static_cast<size_t>(((a * shape_[1] + b) * shape_[2] + c) * shape_[3] + d)];
  }
  void* data() { return bytes_.data() + kGuard; }
  int64_t dim(size_t i) const { return shape_[i]; }

  // Compares what cuDNN left there with f(a, b, c, d).
  template <typename F>
  void Expect(const F& f) {
    double worst = 0;
    size_t i = 0;
    ForElements([&](double&, int64_t at) {
      int64_t rest = static_cast<int64_t>(i++), index[4];
      for (size_t axis = 4; axis-- > 0; rest /= shape_[axis]) index[axis] = rest % shape_[axis];
      const double expected = f(index[0], index[1], index[2], index[3]);
      worst = std::max(worst, std::abs(Read(at) - expected) / std::max(1.0, std::abs(expected)));
    });
    CHECK(worst <= (type_ == DType::kFloat64   ? 1e-13
                    : type_ == DType::kFloat32 ? 1e-6
                    : type_ == DType::kFloat16 ? 0x1p-11
                                               : 0x1p-8));
    const auto guarded = [](char byte) { return byte == kFill; };
    CHECK(std::all_of(bytes_.begin(), bytes_.begin() + kGuard, guarded));
    CHECK(std::all_of(bytes_.end() - kGuard, bytes_.end(), guarded));
  }

 private:
  static constexpr std::ptrdiff_t kGuard = 64;
  static constexpr char kFill = 0x5a;

  template <typename F>
  void ForElements(const F& f) {
    size_t i = 0;
    for (int64_t a = 0; a < shape_[0]; ++a) {
      for (int64_t b = 0; b < shape_[1]; ++b) {
        for (int64_t c = 0; c < shape_[2]; ++c) {
          for (int64_t d = 0; d < shape_[3]; ++d) {
            f(values_[i++], channels_last_ ? ((a * shape_[2] + c) * shape_[3] + d) * shape_[1] + b
                                           : ((a * shape_[1] + b) * shape_[2] + c) * shape_[3] + d);
          }
        }
      }
    }
  }
  template <typename F>
  void WithType(int64_t at, const F& f) {
    switch (type_) {
      case DType::kFloat64:
        return f(static_cast<double*>(data())[at]);
      case DType::kFloat16:
        return f(static_cast<float16*>(data())[at]);
      case DType::kBfloat16:
        return f(static_cast<bfloat16*>(data())[at]);
      default:
        return f(static_cast<float*>(data())[at]);
    }
  }
  void Write(double value, int64_t at) {
    WithType(at, [&](auto& place) {
      place = static_cast<std::decay_t<decltype(place)>>(static_cast<float>(value));
    });
  }
  double Read(int64_t at) {
    double value = 0;
    WithType(at, [&](const auto& place) { value = static_cast<double>(place); });
    return value;
  }

  const std::array<int64_t, 4> shape_;
  const DType type_;
  const bool channels_last_;
  std::vector<double> values_;  // at first
  std::vector<char> bytes_;
};

// A convolution whose parts are computed element by element, each from its definition.
struct Problem {
  ConvolutionShape s;
  ConvolutionEpilogue epilogue;  // of the task
  Images data, weight, out, bias, sum, sums, square_sums;
  Images normalised, mean, inverse, scale, shift, scale_gradient, shift_gradient;

  Problem(const ConvolutionShape& shape, const GraphTask& task)
      : s(shape),
        epilogue(EpilogueOf(task)),
        data({s.batch, s.in_channels, s.in[0], s.in[1]}, task.options.type,
             task.options.channels_last, 1),
        weight({s.out_channels, s.in_channels / s.groups, s.kernel[0], s.kernel[1]},
               task.options.type, task.options.channels_last, 2),
        out({s.batch, s.out_channels, s.out[0], s.out[1]}, task.options.type,
            task.options.channels_last, 3),
        bias({1, s.out_channels, 1, 1}, epilogue.bias_type, false, 4),
        sum({s.batch, s.out_channels, s.out[0], s.out[1]}, task.options.type,
            task.options.channels_last, 5),
        sums({1, s.out_channels, 1, 1}, DType::kFloat32, false, 6),
        square_sums({1, s.out_channels, 1, 1}, DType::kFloat32, false, 7),
        normalised({s.batch, s.in_channels, s.in[0], s.in[1]}, task.options.type,
                   task.options.channels_last, 8),
        mean(OfDataChannels(9)),
        inverse(OfDataChannels(10)),
        scale(OfDataChannels(11)),
        shift(OfDataChannels(12)),
        scale_gradient(OfDataChannels(13)),
        shift_gradient(OfDataChannels(14)) {}

  Images OfDataChannels(uint32_t seed) const {
    return Images({1, s.in_channels, 1, 1}, DType::kFloat32, false, seed);
  }
  static ConvolutionEpilogue EpilogueOf(const GraphTask& task) {
    const auto* epilogue = std::get_if<ConvolutionEpilogue>(&task.end);
    return epilogue ? *epilogue : ConvolutionEpilogue();
  }
  // All that any graph has.
  GraphArrays arrays() {
    return {.data = data.data(),
            .weight = weight.data(),
            .out = out.data(),
            .bias = bias.data(),
            .sum = sum.data(),
            .sums = sums.data(),
            .square_sums = square_sums.data(),
            .normalised = normalised.data(),
            .mean = mean.data(),
            .inverse = inverse.data(),
            .scale = scale.data(),
            .shift = shift.data(),
            .scale_gradient = scale_gradient.data(),
            .shift_gradient = shift_gradient.data()};
  }

  int64_t InAt(int axis, int64_t o, int64_t k) const {
    return o * s.stride[axis] + k * s.dilate[axis] - s.pad[axis];
  }
  bool Inside(int64_t y, int64_t x) const { return y >= 0 && y < s.in[0] && x >= 0 && x < s.in[1]; }
  double Forward(int64_t n, int64_t o, int64_t y, int64_t x) const {
    const int64_t first = o / (s.out_channels / s.groups) * weight.dim(1);
    double total = 0;
    for (int64_t c = 0; c < weight.dim(1); ++c) {
      for (int64_t i = 0; i < s.kernel[0]; ++i) {
        for (int64_t j = 0; j < s.kernel[1]; ++j) {
          const int64_t row = InAt(0, y, i), column = InAt(1, x, j);
          if (Inside(row, column)) total += data(n, first + c, row, column) * weight(o, c, i, j);
        }
      }
    }
    return total;
  }
  double DataGradient(int64_t n, int64_t c, int64_t row, int64_t column) const {
    const int64_t group = c / weight.dim(1), outs = s.out_channels / s.groups;
    double total = 0;
    for (int64_t o = group * outs; o < (group + 1) * outs; ++o) {
      for (int64_t y = 0; y < s.out[0]; ++y) {
        for (int64_t x = 0; x < s.out[1]; ++x) {
          const int64_t i = row + s.pad[0] - y * s.stride[0],
                        j = column + s.pad[1] - x * s.stride[1];
          if (i < 0 || j < 0 || i % s.dilate[0] != 0 || j % s.dilate[1] != 0) continue;
          if (i / s.dilate[0] >= s.kernel[0] || j / s.dilate[1] >= s.kernel[1]) continue;
          total += out(n, o, y, x) * weight(o, c % weight.dim(1), i / s.dilate[0], j / s.dilate[1]);
        }
      }
    }
    return total;
  }
  double WeightGradient(int64_t o, int64_t c, int64_t i, int64_t j) const {
    const int64_t channel = o / (s.out_channels / s.groups) * weight.dim(1) + c;
    double total = 0;
    for (int64_t n = 0; n < s.batch; ++n) {
      for (int64_t y = 0; y < s.out[0]; ++y) {
        for (int64_t x = 0; x < s.out[1]; ++x) {
          const int64_t row = InAt(0, y, i), column = InAt(1, x, j);
          if (Inside(row, column)) total += out(n, o, y, x) * data(n, channel, row, column);
        }
      }
    }
    return total;
  }

  // The sum of f(n, y, x) over images of this size.
  template <typename F>
  double OverImages(const int64_t (&size)[2], const F& f) const {
    double total = 0;
    for (int64_t n = 0; n < s.batch; ++n) {
      for (int64_t y = 0; y < size[0]; ++y) {
        for (int64_t x = 0; x < size[1]; ++x) total += f(n, y, x);
      }
    }
    return total;
  }
  // Without scale and shift.
  double Normalised(int64_t n, int64_t c, int64_t y, int64_t x) const {
    return (normalised(n, c, y, x) - mean(0, c, 0, 0)) * inverse(0, c, 0, 0);
  }
  double GatedGradient(int64_t n, int64_t c, int64_t y, int64_t x) const {
    const bool passes = Normalised(n, c, y, x) * scale(0, c, 0, 0) + shift(0, c, 0, 0) > 0;
    return passes ? DataGradient(n, c, y, x) : 0;
  }

  // What comes with the result of the part.
  void Expect(const ConvolutionEpilogue&) {}
  void Expect(const OutputSums&) {
    const auto square = [&](int64_t n, int64_t o, int64_t y, int64_t x) {
      const double value = Forward(n, o, y, x);
      return value * value;
    };
    sums.Expect([&](int64_t, int64_t o, int64_t, int64_t) {
      return OverImages(s.out,
                        [&](int64_t n, int64_t y, int64_t x) { return Forward(n, o, y, x); });
    });
    square_sums.Expect([&](int64_t, int64_t o, int64_t, int64_t) {
      return OverImages(s.out, [&](int64_t n, int64_t y, int64_t x) { return square(n, o, y, x); });
    });
  }
  void Expect(const ReluGate&) {
    scale_gradient.Expect([&](int64_t, int64_t c, int64_t, int64_t) {
      return OverImages(s.in, [&](int64_t n, int64_t y, int64_t x) {
        return GatedGradient(n, c, y, x) * Normalised(n, c, y, x);
      });
    });
    shift_gradient.Expect([&](int64_t, int64_t c, int64_t, int64_t) {
      return OverImages(s.in,
                        [&](int64_t n, int64_t y, int64_t x) { return GatedGradient(n, c, y, x); });
    });
  }

  void Expect(const GraphTask& task) {
    std::visit([&](const auto& end) { Expect(end); }, task.end);
    const double old = task.add ? 1 : 0;
    const ConvolutionEpilogue& e = epilogue;
    switch (task.part) {
      case kForward:
        return out.Expect([&](int64_t n, int64_t o, int64_t y, int64_t x) {
          const double value = Forward(n, o, y, x) + old * out(n, o, y, x) +
                               (e.sum ? sum(n, o, y, x) : 0) + (e.bias ? bias(0, o, 0, 0) : 0);
          return e.relu ? std::max(value, 0.0) : value;
        });
      case kDataGradient:
        if (std::holds_alternative<ReluGate>(task.end)) {
          return data.Expect([&](int64_t n, int64_t c, int64_t y, int64_t x) {
            return GatedGradient(n, c, y, x);
          });
        }
        return data.Expect([&](int64_t n, int64_t c, int64_t y, int64_t x) {
          return DataGradient(n, c, y, x) + old * data(n, c, y, x);
        });
      case kWeightGradient:
        return weight.Expect([&](int64_t o, int64_t c, int64_t i, int64_t j) {
          return WeightGradient(o, c, i, j) + old * weight(o, c, i, j);
        });
    }
  }
};

// Channels, groups, and per axis: input, kernel, stride, dilation, padding.
ConvolutionShape MakeShape(int64_t batch, int64_t in, int64_t out, int64_t groups,
                           std::array<std::array<int64_t, 5>, 2> axes) {
  ConvolutionShape s{batch, in, out, groups, {}, {}, {}, {}, {}, {}};
  for (size_t i = 0; i < 2; ++i) {
    const auto [size, kernel, stride, dilate, pad] = axes[i];
    s.in[i] = size;
    s.kernel[i] = kernel;
    s.stride[i] = stride;
    s.dilate[i] = dilate;
    s.pad[i] = pad;
    s.out[i] = (size + 2 * pad - dilate * (kernel - 1) - 1) / stride + 1;
  }
  return s;
}
const ConvolutionShape kSmall = MakeShape(2, 3, 4, 1, {{{6, 3, 1, 1, 1}, {5, 3, 1, 1, 1}}});
const ConvolutionShape kGraphShapes[] = {
    kSmall,
    MakeShape(2, 4, 6, 2, {{{7, 3, 2, 1, 1}, {9, 2, 3, 1, 0}}}),
    MakeShape(1, 4, 4, 4, {{{8, 3, 1, 2, 2}, {8, 3, 2, 2, 1}}}),
    MakeShape(3, 5, 2, 1, {{{4, 1, 1, 1, 0}, {1, 1, 1, 1, 0}}}),
};

constexpr int64_t kWorkspace = 333;
FakeEngine Engine(int64_t index) {
  FakeEngine engine;
  engine.index = index;
  engine.workspace = kWorkspace;
  return engine;
}

GraphTask TaskOf(const ConvolutionShape& shape, ConvolutionPart part = kForward) {
  GraphTask task;
  task.part = part;
  task.shape = shape;
  return task;
}

// Each thing that may follow the products, and after which part.
const std::pair<ConvolutionPart, GraphEnd> kEnds[] = {
    {kForward, ConvolutionEpilogue{true, true, DType::kFloat32, true}},
    {kForward, OutputSums()},
    {kDataGradient, ReluGate()},
};

// Makes the graph of a task, runs its first engine between guards, and compares.
void RunAndCompare(FakeCudnn& cudnn, const GraphTask& task) {
  CAPTURE(static_cast<int>(task.part));
  CAPTURE(NameOf(task.options.type));
  std::shared_ptr<const CudnnPlan> plan;  // outlives its graph
  {
    const auto graph = CudnnGraph::Make(cudnn.functions(), {cudnn.handle()}, task);
    REQUIRE(graph);
    const auto made = graph->PlanOf(0);
    REQUIRE(made);
    plan = *made;
  }
  // Behind cuDNN's workspace lie three arrays of channels that nobody wants.
  const int64_t size = std::holds_alternative<ReluGate>(task.end)
                           ? RoundUp(kWorkspace, kGraphAlignment) +
                                 3 * RoundUp(4 * task.shape.in_channels, kGraphAlignment)
                           : kWorkspace;
  CHECK(plan->workspace() == size);
  Problem problem(task.shape, task);
  std::vector<char> workspace(static_cast<size_t>(size) + 64, 0x11);
  CHECK(plan->Run(cudnn.handle(), problem.arrays(), workspace.data()) == CUDNN_STATUS_SUCCESS);
  problem.Expect(task);
  CHECK(std::all_of(workspace.begin() + size, workspace.end(),
                    [](char byte) { return byte == 0x11; }));
}

void ExpectNoFault(const FakeCudnn& cudnn) {
  CHECK(cudnn.problems == std::vector<std::string>());
  CHECK(cudnn.created == cudnn.destroyed);
}

TEST_CASE("the parts of a convolution, assigned and accumulated, in every type and layout") {
  FakeCudnn cudnn;
  cudnn.engines[CUDNN_HEUR_MODE_A] = {Engine(1)};
  for (const ConvolutionShape& shape : kGraphShapes) {
    for (const ConvolutionPart part : kParts) {
      for (const DType type :
           {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBfloat16}) {
        for (const bool channels_last : {false, true}) {
          for (const bool add : {false, true}) {
            GraphTask task = TaskOf(shape, part);
            task.options.type = type;
            task.options.channels_last = channels_last;
            task.add = add;
            RunAndCompare(cudnn, task);
          }
        }
      }
    }
  }
  CHECK(cudnn.executed.size() == 4 * 3 * 4 * 2 * 2);
  ExpectNoFault(cudnn);
}

TEST_CASE("every epilogue of the forward part") {
  FakeCudnn cudnn;
  cudnn.engines[CUDNN_HEUR_MODE_A] = {Engine(1)};
  for (int which = 1; which < 8; ++which) {
    for (const DType type : {DType::kFloat32, DType::kBfloat16}) {
      for (const DType bias_type : {DType::kFloat32, type}) {
        GraphTask task = TaskOf(kGraphShapes[1]);
        task.options.type = type;
        task.options.channels_last = type == DType::kBfloat16;
        task.end =
            ConvolutionEpilogue{(which & 1) != 0, (which & 2) != 0, bias_type, (which & 4) != 0};
        RunAndCompare(cudnn, task);
      }
    }
  }
  ExpectNoFault(cudnn);
}

// Outputs are exact in float16 as far as their sums are compared in float32.
TEST_CASE("the sums of the outputs and of their squares, with the outputs") {
  FakeCudnn cudnn;
  cudnn.engines[CUDNN_HEUR_MODE_A] = {Engine(1)};
  for (const ConvolutionShape& shape : kGraphShapes) {
    for (const DType type : {DType::kFloat16, DType::kFloat32}) {
      for (const bool channels_last : {false, true}) {
        GraphTask task = TaskOf(shape);
        task.options.type = type;
        task.options.channels_last = channels_last;
        task.end = OutputSums();
        RunAndCompare(cudnn, task);
      }
    }
  }
  ExpectNoFault(cudnn);
}

TEST_CASE("the data gradient behind ReLU, with the gradients of scale and shift") {
  FakeCudnn cudnn;
  cudnn.engines[CUDNN_HEUR_MODE_A] = {Engine(1)};
  for (const ConvolutionShape& shape : kGraphShapes) {
    for (const DType type : {DType::kFloat16, DType::kFloat32}) {
      for (const bool channels_last : {false, true}) {
        GraphTask task = TaskOf(shape, kDataGradient);
        task.options.type = type;
        task.options.channels_last = channels_last;
        task.end = ReluGate();
        RunAndCompare(cudnn, task);
      }
    }
  }
  ExpectNoFault(cudnn);
}

std::vector<std::string> EnginesOf(FakeCudnn& cudnn, const GraphTask& task) {
  const auto graph = CudnnGraph::Make(cudnn.functions(), {cudnn.handle()}, task);
  return graph ? graph->engines() : std::vector<std::string>{graph.error().reason};
}

using Names = std::vector<std::string>;

TEST_CASE("engines of the heuristics A and B by turns, each once, ten at most") {
  FakeCudnn cudnn;
  const GraphTask task = TaskOf(kSmall);
  const auto with_knob = [](int64_t value) {
    FakeEngine engine = Engine(7);
    engine.knobs = {{CUDNN_KNOB_TYPE_TILE_SIZE, value}, {CUDNN_KNOB_TYPE_TILEK, 0}};
    return engine;
  };
  cudnn.engines[CUDNN_HEUR_MODE_A] = {with_knob(1), with_knob(2), Engine(3)};
  cudnn.engines[CUDNN_HEUR_MODE_B] = {with_knob(1), with_knob(4), with_knob(2), Engine(5)};
  cudnn.engines[CUDNN_HEUR_MODE_FALLBACK] = {Engine(9)};
  CHECK(EnginesOf(cudnn, task) == Names{"engine 7, knobs 2=1 13=0", "engine 7, knobs 2=2 13=0",
                                        "engine 7, knobs 2=4 13=0", "engine 3", "engine 5"});
  for (int64_t i = 0; i < 20; ++i) cudnn.engines[CUDNN_HEUR_MODE_A].push_back(Engine(20 + i));
  CHECK(EnginesOf(cudnn, task).size() == CudnnGraph::kMostEngines);
  cudnn.engines.erase(CUDNN_HEUR_MODE_B);  // a heuristic that fails
  CHECK(EnginesOf(cudnn, task)[1] == "engine 7, knobs 2=2 13=0");
  ExpectNoFault(cudnn);
}

TEST_CASE("engines to fall back to serve a part, but not what follows it") {
  FakeCudnn cudnn;
  cudnn.engines[CUDNN_HEUR_MODE_FALLBACK] = {Engine(9)};
  GraphTask task = TaskOf(kSmall);
  CHECK(EnginesOf(cudnn, task) == Names{"engine 9"});
  for (const auto& [part, end] : kEnds) {
    task.part = part;
    task.end = end;
    CHECK(EnginesOf(cudnn, task) == Names{"no engine computes what is allowed"});
  }
  cudnn.engines.clear();
  task.end = {};
  CHECK(EnginesOf(cudnn, task) == Names{"no engine computes what is allowed"});
  ExpectNoFault(cudnn);
}

TEST_CASE("what cuDNN notes of an engine must be allowed") {
  struct Row {
    cudnnBackendNumericalNote_t note;
    bool tf32, fast, exact, bfloat16, deterministic;  // float32 in three maths; bfloat16; float32
  };
  const Row rows[] = {
      {CUDNN_NUMERICAL_NOTE_TENSOR_CORE, true, false, false, true, true},
      {CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS, false, false, false, false, false},
      {CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION, false, false, false, false, false},
      {CUDNN_NUMERICAL_NOTE_FFT, false, false, false, false, false},
      {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC, true, true, true, true, false},
      {CUDNN_NUMERICAL_NOTE_WINOGRAD, true, true, false, true, true},
      {CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4, true, true, false, true, true},
      {CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13, true, true, false, true, true},
      {CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP, true, true, true, true, true},
  };
  FakeCudnn cudnn;
  for (const Row& row : rows) {
    CAPTURE(static_cast<int>(row.note));
    FakeEngine noted = Engine(1);
    noted.notes = {CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP, row.note};
    cudnn.engines[CUDNN_HEUR_MODE_A] = {noted, Engine(2)};
    const auto allowed = [&](DType type, ConvolutionMath math, bool deterministic) {
      GraphTask task = TaskOf(kSmall);
      task.options.type = type;
      task.options.math = math;
      task.options.deterministic = deterministic;
      return EnginesOf(cudnn, task).front() == "engine 1";
    };
    CHECK(allowed(DType::kFloat32, ConvolutionMath::kTf32, false) == row.tf32);
    CHECK(allowed(DType::kFloat32, ConvolutionMath::kWinograd, false) == row.fast);
    CHECK(allowed(DType::kFloat32, ConvolutionMath::kPlain, false) == row.exact);
    CHECK(allowed(DType::kBfloat16, ConvolutionMath::kWinograd, false) == row.bfloat16);
    CHECK(allowed(DType::kFloat32, ConvolutionMath::kTf32, true) == row.deterministic);
  }
  cudnn.engines[CUDNN_HEUR_MODE_A][0].behavior = {CUDNN_BEHAVIOR_NOTE_CUBLASLT_DEPENDENCY,
                                                  CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION};
  CHECK(EnginesOf(cudnn, TaskOf(kSmall)) == Names{"engine 2"});
  cudnn.engines[CUDNN_HEUR_MODE_A][0].behavior.pop_back();
  cudnn.engines[CUDNN_HEUR_MODE_A][0].notes = {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC};
  const auto graph = CudnnGraph::Make(cudnn.functions(), {cudnn.handle()}, TaskOf(kSmall));
  CHECK_FALSE((*graph->PlanOf(0))->deterministic());
  CHECK((*graph->PlanOf(1))->deterministic());
  for (const auto& [part, end] : {std::pair<ConvolutionPart, GraphEnd>{kForward, OutputSums()},
                                  {kDataGradient, ReluGate()}}) {
    GraphTask task = TaskOf(kSmall, part);
    task.end = end;
    const auto summing = CudnnGraph::Make(cudnn.functions(), {cudnn.handle()}, task);
    CHECK_FALSE((*summing->PlanOf(1))->deterministic());
    task.options.deterministic = true;
    CHECK(EnginesOf(cudnn, task) == Names{"sums that vary between runs"});
  }
}

// As CudnnConvolution chooses: seconds are 1 / index of the engine.
struct Chosen {
  std::optional<size_t> engine;
  std::vector<std::string> refusals;
};
Chosen ChooseFor(FakeCudnn& cudnn, KernelChoices& choices, bool memory,
                 const GraphTask& task = TaskOf(kSmall)) {
  const auto graph = CudnnGraph::Make(cudnn.functions(), {cudnn.handle()}, task);
  REQUIRE(graph);
  Chosen chosen;
  const auto seconds_of = [&](size_t i) -> std::optional<double> {
    const auto plan = graph->PlanOf(i);
    if (!plan) {
      chosen.refusals.push_back(plan.error().reason);
      return std::nullopt;
    }
    if (!memory) return std::nullopt;
    Problem problem(task.shape, task);
    std::vector<char> workspace(static_cast<size_t>((*plan)->workspace()) + 1);
    if ((*plan)->Run(cudnn.handle(), problem.arrays(), workspace.data()) != CUDNN_STATUS_SUCCESS)
      return std::nullopt;
    return 1.0 / static_cast<double>(cudnn.executed.back());
  };
  chosen.engine = ChooseUsable(&choices, "key", graph->engines(), seconds_of,
                               [&](size_t i) { return graph->PlanOf(i).has_value(); });
  return chosen;
}

TEST_CASE("a plan takes arrays that are aligned, and does without those that it has not") {
  alignas(kGraphAlignment) char memory[4 * kGraphAlignment];
  GraphArrays arrays{memory, memory + kGraphAlignment, memory + 2 * kGraphAlignment};
  CHECK(arrays.IsAligned());
  for (void* GraphArrays::*array :
       {&GraphArrays::weight, &GraphArrays::sum, &GraphArrays::sums, &GraphArrays::square_sums,
        &GraphArrays::normalised, &GraphArrays::mean, &GraphArrays::inverse, &GraphArrays::scale,
        &GraphArrays::shift, &GraphArrays::scale_gradient, &GraphArrays::shift_gradient}) {
    GraphArrays shifted = arrays;
    shifted.*array = memory + 3 * kGraphAlignment + 8;
    CHECK_FALSE(shifted.IsAligned());
  }
}

TEST_CASE(
    "an engine that cuDNN refuses, now or when it runs, or that wants too much is passed over") {
  FakeCudnn cudnn;
  std::vector<FakeEngine>& engines = cudnn.engines[CUDNN_HEUR_MODE_A];
  engines = {Engine(5), Engine(4), Engine(3), Engine(2), Engine(1)};
  engines[0].finalized = CUDNN_STATUS_NOT_SUPPORTED_SHAPE;
  engines[1].workspace = CudnnGraph::kMostWorkspace * 3 / 2;
  engines[2].executed = CUDNN_STATUS_EXECUTION_FAILED;
  {
    KernelChoices choices;
    const KernelChoices::Measuring allowed(&choices);
    const Chosen chosen = ChooseFor(cudnn, choices, /*memory=*/true);
    CHECK(chosen.engine == 3);
    CHECK(chosen.refusals == Names{"refused", "its workspace is 1.5 GiB"});
    CHECK(cudnn.executed == std::vector<int64_t>{2, 1});
    CHECK(choices.kept() == KernelChoices::Table{{"key", "engine 2"}});
  }
  {
    KernelChoices choices;  // nothing measured: the first that has a plan
    CHECK(ChooseFor(cudnn, choices, true).engine == 2);
    CHECK(choices.kept().empty());
  }
  for (const auto& [part, end] : kEnds) {
    KernelChoices choices;
    const KernelChoices::Measuring allowed(&choices);
    GraphTask task = TaskOf(kSmall, part);
    task.end = end;
    CHECK(ChooseFor(cudnn, choices, true, task).engine == 3);
  }
  for (FakeEngine& engine : engines) engine.finalized = CUDNN_STATUS_NOT_SUPPORTED;
  KernelChoices choices;
  CHECK_FALSE(ChooseFor(cudnn, choices, true).engine.has_value());
  ExpectNoFault(cudnn);
}

TEST_CASE("without memory to measure in, the run keeps to the order of the heuristics") {
  FakeCudnn cudnn;
  cudnn.engines[CUDNN_HEUR_MODE_A] = {Engine(1), Engine(2)};
  KernelChoices choices;
  {
    const KernelChoices::Measuring allowed(&choices);
    CHECK(ChooseFor(cudnn, choices, /*memory=*/false).engine == 0);
    CHECK(ChooseFor(cudnn, choices, true).engine == 0);  // the same within the process
  }
  // A run that goes on from its checkpoint, with more memory; and a new one.
  KernelChoices continued, other;
  continued.Keep(choices.kept());
  const KernelChoices::Measuring allowed(&continued), allowed_too(&other);
  CHECK(ChooseFor(cudnn, continued, true).engine == 0);
  CHECK(ChooseFor(cudnn, other, true).engine == 1);
  ExpectNoFault(cudnn);
}

TEST_CASE("whichever call fails, it is a refusal or a status, and every descriptor is destroyed") {
  GraphTask task = TaskOf(kSmall);
  const auto run = [&](FakeCudnn& cudnn) {
    FakeEngine engine = Engine(1);
    engine.knobs = {{CUDNN_KNOB_TYPE_TILE_SIZE, 1}};
    cudnn.engines[CUDNN_HEUR_MODE_A] = cudnn.engines[CUDNN_HEUR_MODE_B] = {engine};
    const auto graph = CudnnGraph::Make(cudnn.functions(), {cudnn.handle()}, task);
    if (!graph) return false;
    const auto plan = graph->PlanOf(0);
    if (!plan) return false;
    Problem problem(kSmall, task);
    std::vector<char> workspace(static_cast<size_t>((*plan)->workspace()));
    return (*plan)->Run(cudnn.handle(), problem.arrays(), workspace.data()) == CUDNN_STATUS_SUCCESS;
  };
  for (const auto& [part, end] : kEnds) {
    task.part = part;
    task.end = end;
    CAPTURE(task.end.index());
    int64_t calls = 0, survived = 0;
    {
      FakeCudnn cudnn;
      CHECK(run(cudnn));
      calls = cudnn.calls;
    }
    for (int64_t at = 0; at < calls; ++at) {
      CAPTURE(at);
      FakeCudnn cudnn;
      cudnn.fail_at = at;
      survived += run(cudnn);
      ExpectNoFault(cudnn);
    }
    // Only one of two heuristics may fail without loss.
    CHECK(survived > 0);
    CHECK(survived < calls / 2 + calls / 4);
  }
}

TEST_CASE("a graph that is not one is refused") {
  FakeCudnn cudnn;
  cudnn.engines[CUDNN_HEUR_MODE_A] = {Engine(1)};
  GraphTask task = TaskOf(kSmall);
  task.shape.out[0] += 1;
  CHECK(EnginesOf(cudnn, task) == Names{"refused"});
  CHECK(cudnn.problems.size() == 1);  // the fake notices what it should
  CHECK(cudnn.created == cudnn.destroyed);
}

}  // namespace
}  // namespace mxtrain::cuda

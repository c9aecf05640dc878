// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "mxtrain/device/blocked_layout.h"
#include "mxtrain/operator/param_of.h"
#include "tests/support/indices.h"
#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

struct PoolingNet {
  TShape data, kernel, stride = {1, 1}, pad = {0, 0};
  std::string type = "max";
  bool full = false;
  std::optional<bool> include = std::nullopt;
  int p = 0;
};

int64_t Windows(int64_t size, int64_t kernel, int64_t stride, int64_t pad, bool full) {
  const double steps = static_cast<double>(size + 2 * pad - kernel) / static_cast<double>(stride);
  return static_cast<int64_t>(full ? std::ceil(steps) : std::floor(steps)) + 1;
}

double PoolOne(const PoolingNet& net, const double* image, int64_t y, int64_t x) {
  const int64_t height = net.data[2], width = net.data[3];
  std::vector<double> cells;
  int64_t counted = 0;
  for (int64_t i = 0; i < net.kernel[0]; ++i) {
    for (int64_t j = 0; j < net.kernel[1]; ++j) {
      const int64_t row = y * net.stride[0] - net.pad[0] + i,
                    column = x * net.stride[1] - net.pad[1] + j;
      const bool real = row >= 0 && column >= 0 && row < height && column < width;
      if (real) cells.push_back(image[row * width + column]);
      if (real ||
          (net.include.value_or(true) && row < height + net.pad[0] && column < width + net.pad[1]))
        ++counted;
    }
  }
  double sum = 0;
  for (double v : cells) sum += net.type == "lp" ? std::pow(std::abs(v), net.p) : v;
  if (net.type == "max") {
    const bool has_nan =
        std::any_of(cells.begin(), cells.end(), [](double v) { return std::isnan(v); });
    return has_nan ? std::nan("") : *std::max_element(cells.begin(), cells.end());
  }
  if (net.type == "lp") return std::pow(sum, 1.0 / net.p);
  return net.type == "sum" || cells.empty() ? sum : sum / static_cast<double>(counted);
}

OperatorCase PoolingCase(const std::string& name, const PoolingNet& net) {
  OperatorCase c;
  c.name = "pooling, " + name;
  c.op = "Pooling";
  c.kwargs = {{"kernel", net.kernel.ToTuple()},
              {"stride", net.stride.ToTuple()},
              {"pad", net.pad.ToTuple()},
              {"pool_type", net.type}};
  if (net.full) c.kwargs.push_back({"pooling_convention", "full"});
  if (net.include) c.kwargs.push_back({"count_include_pad", *net.include ? "True" : "False"});
  if (net.p) c.kwargs.push_back({"p_value", std::to_string(net.p)});
  c.shapes = {net.data};
  // Padding must not win over negatives.
  c.inputs = {net.type == "max" ? Distinct(-20, -1) : UniformAwayFrom(-2, 2, {0}, 0.05)};
  c.forward = [net](const Arrays& in, const Arrays&) {
    const int64_t rows = Windows(net.data[2], net.kernel[0], net.stride[0], net.pad[0], net.full);
    const int64_t columns =
        Windows(net.data[3], net.kernel[1], net.stride[1], net.pad[1], net.full);
    Values out;
    for (int64_t image = 0; image < net.data[0] * net.data[1]; ++image) {
      for (int64_t y = 0; y < rows; ++y) {
        for (int64_t x = 0; x < columns; ++x)
          out.push_back(PoolOne(net, in[0].data() + image * net.data[2] * net.data[3], y, x));
      }
    }
    return Arrays{out};
  };
  c.tolerance = {32, "a sum over a window and a root"};
  return c;
}

void RunPooling(const std::string& name, const PoolingNet& net, bool onednn = true) {
  OperatorCase c = PoolingCase(name, net);
  if (net.type == "max") {
    c.must_accept = {"ref", "simd"};
  } else if (onednn) {
    c.must_accept = {"ref", "onednn"};
  }
  RunCase(c);
}

TEST_CASE("Pooling: max") {
  RunPooling("2x2", {.data = {2, 8, 6, 6}, .kernel = {2, 2}, .stride = {2, 2}});
  RunPooling("3x3 overlapping with pad",
             {.data = {2, 5, 7, 6}, .kernel = {3, 3}, .stride = {2, 2}, .pad = {1, 1}});
  RunPooling("full", {.data = {1, 9, 6, 6}, .kernel = {3, 3}, .stride = {2, 2}, .full = true});
  RunPooling("uneven", {.data = {1, 3, 7, 5}, .kernel = {3, 2}, .stride = {2, 1}, .pad = {1, 0}});
  RunPooling("one cell", {.data = {1, 1, 1, 1}, .kernel = {1, 1}});
}

TEST_CASE("Pooling: the gradient goes to the first of equal maxima") {
  OperatorCase c = PoolingCase("ties", {.data = {1, 8, 4, 4}, .kernel = {2, 2}, .stride = {2, 2}});
  c.inputs = {Constant(-3)};
  c.gradient = [](const Arrays& in, const Arrays&, const Arrays& head) {
    Values gradient(in[0].size());
    for (size_t i = 0; i < head[0].size(); ++i)
      gradient[i / 4 * 16 + i % 4 / 2 * 8 + i % 2 * 2] = head[0][i];
    return Arrays{gradient};
  };
  c.must_accept = {"ref", "simd"};
  RunCase(c);
}

TEST_CASE("Pooling: avg") {
  RunPooling("2x2", {.data = {2, 8, 4, 4}, .kernel = {2, 2}, .stride = {2, 2}, .type = "avg"});
  RunPooling(
      "padding counted",
      {.data = {2, 8, 5, 5}, .kernel = {3, 3}, .stride = {2, 2}, .pad = {1, 1}, .type = "avg"});
  RunPooling("padding not counted", {.data = {2, 8, 5, 5},
                                     .kernel = {3, 3},
                                     .stride = {2, 2},
                                     .pad = {1, 1},
                                     .type = "avg",
                                     .include = false});
  RunPooling(
      "full, windows clipped",
      {.data = {1, 8, 6, 6}, .kernel = {3, 3}, .stride = {2, 2}, .type = "avg", .full = true},
      false);
  RunPooling("full, not counted", {.data = {1, 8, 6, 6},
                                   .kernel = {3, 3},
                                   .stride = {2, 2},
                                   .type = "avg",
                                   .full = true,
                                   .include = false});
}

TEST_CASE("Pooling: rows long enough for vectors") {
  const auto run = [](const std::string& name, const PoolingNet& net) {
    OperatorCase c = PoolingCase(name, net);
    c.must_accept = {"ref", "simd"};
    RunCase(c);
  };
  for (const char* type : {"max", "avg", "sum"}) {
    run("2x2", {.data = {2, 9, 4, 24}, .kernel = {2, 2}, .stride = {2, 2}, .type = type});
    run("2x2 with a remaining row and column",
        {.data = {1, 3, 5, 23}, .kernel = {2, 2}, .stride = {2, 2}, .type = type});
    run("overlapping",
        {.data = {2, 3, 9, 21}, .kernel = {3, 3}, .stride = {2, 2}, .pad = {1, 1}, .type = type});
    run("every cell", {.data = {1, 2, 5, 18}, .kernel = {3, 3}, .pad = {1, 1}, .type = type});
    run("full",
        {.data = {1, 2, 8, 22}, .kernel = {3, 3}, .stride = {2, 2}, .type = type, .full = true});
    run("gaps between windows",
        {.data = {1, 2, 8, 23}, .kernel = {2, 2}, .stride = {3, 4}, .type = type});
    run("more cells than a byte counts",
        {.data = {1, 1, 17, 24}, .kernel = {16, 17}, .type = type});
  }
  run("padding not counted",
      {.data = {1, 2, 5, 18}, .kernel = {3, 3}, .pad = {1, 1}, .type = "avg", .include = false});
}

TEST_CASE("Pooling: a maximum saves a byte per window, and nothing without a backward pass") {
  const auto property =
      TestRegistry().Create("Pooling", {{"kernel", "(2, 2)"}, {"stride", "(2, 2)"}});
  const std::vector<TensorSpec> in{{{2, 3, 8, 16}, DType::kFloat32, Layout()}},
      out{{{2, 3, 4, 8}, DType::kFloat32, Layout()}};
  const std::vector<std::optional<Layout>> plain{Layout()};
  const std::vector<OpReqType> write{OpReqType::kWriteTo};
  PlanRequest request;
  request.in = in;
  request.out = out;
  request.in_layout = plain;
  request.out_req = write;
  const KernelEntry* simd = nullptr;
  for (const KernelEntry* kernel : TestRegistry().Kernels("Pooling", DeviceType::kCPU))
    simd = kernel->name == "simd" ? kernel : simd;
  REQUIRE(simd);
  CHECK(simd->plan(*property, request, TestBackend())->saved.empty());
  request.is_train = request.needs_backward = true;
  request.grad_req = write;
  const Plan plan = *simd->plan(*property, request, TestBackend());
  CHECK(plan.saved == std::vector<int64_t>{2 * 3 * 4 * 8});
  CHECK_FALSE(plan.backward_reads->in_data[0]);
}

TEST_CASE("Pooling: a window without a real cell has the mean 0") {
  for (const bool include : {true, false}) {
    RunPooling("begins at the far edge",
               {.data = {1, 2, 6, 6},
                .kernel = {2, 2},
                .stride = {3, 3},
                .type = "avg",
                .full = true,
                .include = include},
               false);
    RunPooling("one cell, beyond the far edge",
               {.data = {1, 2, 5, 6},
                .kernel = {1, 1},
                .stride = {3, 3},
                .type = "avg",
                .full = true,
                .include = include},
               false);
    RunPooling("begins in the padding",
               {.data = {1, 2, 6, 24},
                .kernel = {2, 2},
                .stride = {4, 4},
                .pad = {1, 1},
                .type = "avg",
                .full = true,
                .include = include},
               false);
  }
}

TEST_CASE("Pooling: a maximum over a NaN is NaN, wherever it is in the window") {
  const double nan = std::nan("");
  const PoolingNet nets[] = {
      {.data = {1, 1, 4, 24}, .kernel = {2, 2}, .stride = {2, 2}},
      {.data = {1, 16, 4, 4}, .kernel = {2, 2}, .stride = {2, 2}},
      {.data = {1, 1, 9, 22}, .kernel = {3, 3}, .stride = {2, 2}, .pad = {1, 1}},
      {.data = {1, 3, 5, 4}, .kernel = {5, 4}},
      {.data = {1, 1, 17, 24}, .kernel = {16, 17}}};
  for (const PoolingNet& net : nets) {
    // At most one NaN per window if windows do not overlap; at a different cell in every window.
    Values cells;
    for (int i = 0; i < 83; ++i) cells.push_back(i % 7 == 3 ? nan : -20 + i % 19);
    OperatorCase c = PoolingCase("NaN", net);
    c.inputs = {Cycle(cells)};
    c.backward = false;
    c.types = kAllFloatingTypes;
    c.must_accept = {"ref"};
    RunCase(c);
  }
}

TEST_CASE("Pooling: the gradient of a NaN goes to it") {
  const double nan = std::nan("");
  for (const TShape& data : {TShape{1, 1, 2, 16}, TShape{1, 8, 2, 2}}) {
    OperatorCase c =
        PoolingCase("gradient of NaN", {.data = data, .kernel = {2, 2}, .stride = {2, 2}});
    Values cells(static_cast<size_t>(data.Size()), 1.0);
    const int64_t row = data[3];
    // The window k has its NaN at cell k % 4.
    const auto place = [=](int64_t k) {
      return k % (row / 2) * 2 + k / (row / 2) * 2 * row + k % 4 / 2 * row + k % 2;
    };
    for (int64_t k = 0; k < data.Size() / 4; ++k) cells[static_cast<size_t>(place(k))] = nan;
    c.inputs = {Cycle(cells)};
    c.gradient = [=](const Arrays& in, const Arrays&, const Arrays& head) {
      Values gradient(in[0].size());
      for (size_t k = 0; k < head[0].size(); ++k)
        gradient[static_cast<size_t>(place(static_cast<int64_t>(k)))] = head[0][k];
      return Arrays{gradient};
    };
    c.types = kAllFloatingTypes;
    RunCase(c);
  }
}

TEST_CASE("Pooling: sum and lp") {
  RunPooling(
      "sum",
      {.data = {2, 3, 5, 5}, .kernel = {3, 3}, .stride = {2, 2}, .pad = {1, 1}, .type = "sum"},
      false);
  for (int p : {1, 2, 3})
    RunPooling("lp",
               {.data = {1, 3, 5, 4}, .kernel = {2, 2}, .stride = {1, 2}, .type = "lp", .p = p},
               false);
}

// Sequences and volumes: the cells of every window are gathered from the definition.
struct AnyPooling {
  TShape data, kernel, stride, pad;
  std::string type = "max";
  bool full = false, include = true;
  int p = 0;
};

double PoolOne(const AnyPooling& net, const Values& data, const Index& at) {
  Values cells;
  int64_t counted = 0;
  ForIndices(net.kernel, [&](const Index& tap) {
    Index cell = at;
    bool padded = net.include;
    for (size_t i = 0; i < tap.size(); ++i) {
      const int axis = static_cast<int>(i);
      cell[2 + i] = at[2 + i] * net.stride[axis] - net.pad[axis] + tap[i];
      padded = padded && cell[2 + i] < net.data[2 + axis] + net.pad[axis];
    }
    const int64_t place = OffsetOf(net.data, cell);
    if (place >= 0) cells.push_back(data[static_cast<size_t>(place)]);
    if (place >= 0 || padded) ++counted;
  });
  if (net.type == "max") return *std::max_element(cells.begin(), cells.end());
  double sum = 0;
  for (double v : cells) sum += net.type == "lp" ? std::pow(std::abs(v), net.p) : v;
  return net.type == "lp"    ? std::pow(sum, 1.0 / net.p)
         : net.type == "sum" ? sum
                             : sum / static_cast<double>(counted);
}

void RunAnyPooling(const std::string& name, const AnyPooling& net,
                   std::vector<std::string> must_accept) {
  OperatorCase c;
  c.name = "pooling, " + name + ", " + net.type;
  c.op = "Pooling";
  c.kwargs = {{"kernel", net.kernel.ToTuple()},
              {"stride", net.stride.ToTuple()},
              {"pad", net.pad.ToTuple()},
              {"pool_type", net.type},
              {"pooling_convention", net.full ? "full" : "valid"},
              {"count_include_pad", net.include ? "True" : "False"}};
  if (net.p) c.kwargs.push_back({"p_value", std::to_string(net.p)});
  c.shapes = {net.data};
  c.inputs = {net.type == "max" ? Distinct(-20, -1) : UniformAwayFrom(-2, 2, {0}, 0.05)};
  TShape out = net.data;
  for (int i = 0; i < net.kernel.ndim(); ++i)
    out[2 + i] = Windows(net.data[2 + i], net.kernel[i], net.stride[i], net.pad[i], net.full);
  c.forward = [=](const Arrays& in, const Arrays&) {
    Values result;
    ForIndices(out, [&](const Index& at) { result.push_back(PoolOne(net, in[0], at)); });
    return Arrays{result};
  };
  c.types = kAllFloatingTypes;
  c.must_accept = std::move(must_accept);
  c.tolerance = {32, "a sum over a window and a root"};
  RunCase(c);
}

TEST_CASE("Pooling: sequences") {
  for (const char* type : {"max", "avg", "sum", "lp"}) {
    const int p = type == std::string("lp") ? 2 : 0;
    const std::vector<std::string> fast =
        p ? std::vector<std::string>{"ref"} : std::vector<std::string>{"ref", "simd"};
    RunAnyPooling("sequence", {{2, 3, 24}, {2}, {2}, {0}, type, false, true, p}, fast);
    RunAnyPooling("sequence in blocks", {{2, 16, 13}, {3}, {2}, {1}, type, false, true, p}, fast);
    RunAnyPooling("sequence, full", {{1, 2, 24}, {3}, {4}, {1}, type, true, false, p}, fast);
  }
  RunAnyPooling("sequence of means", {{2, 16, 9}, {3}, {2}, {1}, "avg", false, false},
                {"ref", "onednn"});
}

TEST_CASE("Pooling: volumes") {
  for (const char* type : {"max", "avg", "sum", "lp"}) {
    const int p = type == std::string("lp") ? 3 : 0;
    RunAnyPooling("volume",
                  {{1, 2, 4, 6, 4}, {2, 2, 2}, {2, 2, 2}, {0, 0, 0}, type, false, true, p},
                  {"ref"});
    RunAnyPooling("uneven volume",
                  {{2, 1, 5, 3, 7}, {3, 2, 4}, {2, 1, 3}, {1, 0, 2}, type, false, false, p},
                  {"ref"});
    RunAnyPooling("volume, full",
                  {{1, 2, 4, 6, 6}, {3, 2, 3}, {2, 2, 2}, {1, 1, 0}, type, true, true, p}, {"ref"});
  }
  RunAnyPooling("volume of means", {{1, 16, 4, 4, 4}, {2, 2, 2}, {2, 2, 2}, {0, 0, 0}, "avg"},
                {"ref", "onednn"});
}

// Channels last, a GPU thread takes 16 bytes of them.
TEST_CASE("Pooling: channels that are processed together") {
  for (const char* type : {"max", "avg", "sum", "lp"}) {
    const int p = type == std::string("lp") ? 2 : 0;
    RunAnyPooling("images", {{2, 24, 7, 9}, {3, 2}, {2, 3}, {1, 0}, type, false, true, p}, {"ref"});
    RunAnyPooling("images, full", {{1, 8, 6, 5}, {3, 3}, {2, 2}, {1, 1}, type, true, false, p},
                  {"ref"});
    RunAnyPooling("one window", {{3, 16, 5, 4}, {5, 4}, {1, 1}, {0, 0}, type, false, true, p},
                  {"ref"});
    RunAnyPooling("volume",
                  {{2, 16, 5, 3, 4}, {3, 2, 2}, {2, 1, 3}, {1, 0, 1}, type, false, false, p},
                  {"ref"});
  }
}

TEST_CASE("Pooling: global, of sequences and volumes") {
  for (const TShape& data : {TShape{2, 3, 11}, TShape{2, 3, 2, 3, 4}}) {
    OperatorCase c;
    c.name = "global pooling of " + data.ToString();
    c.op = "Pooling";
    c.kwargs = {{"global_pool", "True"}, {"pool_type", "avg"}};
    c.shapes = {data};
    c.inputs = {Uniform(-2, 2)};
    const size_t cells = static_cast<size_t>(data.Product(2, data.ndim()));
    c.forward = [=](const Arrays& in, const Arrays&) {
      Values means(in[0].size() / cells);
      for (size_t i = 0; i < in[0].size(); ++i)
        means[i / cells] += in[0][i] / static_cast<double>(cells);
      return Arrays{means};
    };
    c.tolerance = {32, "a mean"};
    RunCase(c);
    std::vector<TShape> in{data}, out(1), aux;
    CHECK(TestRegistry().Create("Pooling", {{"global_pool", "True"}})->InferShape(&in, &out, &aux));
    CHECK(out[0].ndim() == data.ndim());
  }
}

TEST_CASE("Pooling: global") {
  for (const char* type : {"max", "avg"}) {
    OperatorCase c = PoolingCase("global", {.data = {2, 16, 3, 5}, .kernel = {3, 5}, .type = type});
    c.kwargs = {
        {"global_pool", "True"}, {"kernel", "(7, 7)"}, {"stride", "(2, 2)"}, {"pool_type", type}};
    c.must_accept = {"ref", type == std::string("max") ? "simd" : "onednn"};
    RunCase(c);
  }
}

// Blocks of channels of one pixel are plain, blocks of images are not.
TEST_CASE("Pooling: global, layout of the output") {
  const auto layout = [](const char* name, const TShape& shape, const char* type) {
    const auto property =
        TestRegistry().Create("Pooling", {{"global_pool", "True"}, {"pool_type", type}});
    const TensorSpec in{shape, DType::kFloat32, Layout()},
        out{{shape[0], shape[1], 1, 1}, DType::kFloat32, Layout()};
    const std::optional<Layout> offered = TestBackend().Intern(BlockedLayout::FromName(name));
    const OpReqType write = OpReqType::kWriteTo;
    PlanRequest request;
    request.in = {&in, 1};
    request.out = {&out, 1};
    request.in_layout = {&offered, 1};
    request.out_req = {&write, 1};
    return property->CreatePlan(TestRegistry(), request, TestBackend()).out[0].Name();
  };
  for (const char* type : {"max", "avg"}) {
    CHECK(layout("aBcd8b", {2, 16, 3, 5}, type) == "plain");
    CHECK(layout("Abcd8a", {16, 3, 4, 5}, type) == "Abcd8a");
  }
}

TEST_CASE("Pooling: inference, narrow types, no images") {
  OperatorCase c =
      PoolingCase("inference", {.data = {2, 8, 6, 6}, .kernel = {2, 2}, .stride = {2, 2}});
  c.is_train = false;
  c.backward = false;
  c.must_accept = {"ref", "simd"};
  RunCase(c);
  c = PoolingCase("narrow types",
                  {.data = {1, 2, 4, 4}, .kernel = {2, 2}, .stride = {2, 2}, .type = "avg"});
  c.types = {DType::kFloat16, DType::kBfloat16};
  RunCase(c);
  for (const PoolingNet& net :
       {PoolingNet{.data = {1, 2, 4, 24}, .kernel = {2, 2}, .stride = {2, 2}},
        PoolingNet{.data = {1, 9, 5, 7}, .kernel = {3, 3}, .stride = {2, 2}, .pad = {1, 1}}}) {
    c = PoolingCase("narrow maxima", net);
    c.types = {DType::kFloat16};
    RunCase(c);
    c.types = {DType::kBfloat16};
    CHECK(KernelRan(RunCase(c), "simd"));
  }
  RunCase(PoolingCase("no images", {.data = {0, 2, 4, 4}, .kernel = {2, 2}}));
}

// Places of maxima are saved as int32. Only planned: there is no such array.
TEST_CASE("Pooling: volumes of more cells than the places of their maxima count") {
  const auto plan = [](const char* type, bool needs_backward) {
    const auto property = TestRegistry().Create(
        "Pooling", {{"kernel", "(2, 2, 2)"}, {"stride", "(2, 2, 2)"}, {"pool_type", type}});
    const TensorSpec in{{1, 1, 2048, 1024, 1024}, DType::kFloat32, Layout()},
        out{{1, 1, 1024, 512, 512}, DType::kFloat32, Layout()};
    const std::optional<Layout> offered = Layout();
    const OpReqType write = OpReqType::kWriteTo;
    PlanRequest request;
    request.in = {&in, 1};
    request.out = {&out, 1};
    request.in_layout = {&offered, 1};
    request.out_req = {&write, 1};
    request.needs_backward = needs_backward;
    property->CreatePlan(TestRegistry(), request, TestBackend());
  };
  CHECK_THROWS_WITH_AS(plan("max", true), doctest::Contains("2147483648 cells of an image"), Error);
  CHECK_NOTHROW(plan("max", false));
  CHECK_NOTHROW(plan("sum", true));
}

// TensorFlow's windows: ceil(size / stride) of them along an axis, the first one beginning half of
// the missing cells, rounded down, before the data; only cells of the data count.
void RunSame(const std::string& type, const TShape& data, const TShape& kernel,
             const TShape& stride) {
  OperatorCase c;
  c.op = "Pooling";
  c.name = format("pooling, same, {} of {} by {}", type, data.ToString(), kernel.ToString());
  c.kwargs = {{"kernel", kernel.ToTuple()},
              {"stride", stride.ToTuple()},
              {"pool_type", type},
              {"pad", "same"}};
  if (type == "lp") c.kwargs.push_back({"p_value", "2"});
  c.shapes = {data};
  c.inputs = {type == "max" ? Distinct(-20, -1) : UniformAwayFrom(-2, 2, {0}, 0.05)};
  std::array<int64_t, 2> count, first;
  for (int i = 0; i < 2; ++i) {
    const auto axis = static_cast<size_t>(i);
    count[axis] = (data[2 + i] + stride[i] - 1) / stride[i];
    const int64_t missing = (count[axis] - 1) * stride[i] + kernel[i] - data[2 + i];
    first[axis] = -(std::max<int64_t>(missing, 0) / 2);
  }
  c.forward = [=](const Arrays& in, const Arrays&) {
    Values out;
    for (int64_t plane = 0; plane < data[0] * data[1]; ++plane) {
      for (int64_t y = 0; y < count[0]; ++y) {
        for (int64_t x = 0; x < count[1]; ++x) {
          Values cells;
          for (int64_t i = 0; i < kernel[0] * kernel[1]; ++i) {
            const int64_t row = first[0] + y * stride[0] + i / kernel[1],
                          column = first[1] + x * stride[1] + i % kernel[1];
            if (row < 0 || column < 0 || row >= data[2] || column >= data[3]) continue;
            cells.push_back(in[0][static_cast<size_t>((plane * data[2] + row) * data[3] + column)]);
          }
          double sum = 0, squares = 0;
          for (const double v : cells) {
            sum += v;
            squares += v * v;
          }
          out.push_back(type == "max"   ? *std::max_element(cells.begin(), cells.end())
                        : type == "avg" ? sum / static_cast<double>(cells.size())
                        : type == "lp"  ? std::sqrt(squares)
                                        : sum);
        }
      }
    }
    return Arrays{out};
  };
  c.tolerance = {32, "a sum over a window and a root"};
  RunCase(c);
}

TEST_CASE("Pooling: padding as TensorFlow's SAME") {
  for (const char* type : {"max", "avg", "sum", "lp"}) {
    RunSame(type, {2, 3, 7, 8}, {3, 3}, {2, 2});
    RunSame(type, {1, 16, 6, 6}, {3, 3}, {2, 2});
    RunSame(type, {1, 8, 5, 9}, {2, 4}, {1, 3});
    RunSame(type, {2, 2, 3, 5}, {5, 2}, {4, 7});
    RunSame(type, {1, 1, 1, 30}, {3, 3}, {1, 1});
  }
  const auto same = TestRegistry().Create("Pooling", {{"kernel", "(3,)"}, {"pad", "same"}});
  std::vector<TShape> in{{1, 2, 7}}, out(1), aux;
  CHECK(same->InferShape(&in, &out, &aux));
  CHECK(out[0] == TShape{1, 2, 7});
  CHECK(ParamOf(*same, "pad") == "same");
  const Kwargs params = same->GetParams();
  CHECK(TestRegistry().Create("Pooling", params)->GetParams() == params);
}

TEST_CASE("Pooling: MXNet's convention same") {
  OperatorCase c;
  c.op = "Pooling";
  c.name = "pooling, convention same";
  c.kwargs = {{"kernel", "(3,)"}, {"stride", "(2,)"}, {"pooling_convention", "same"}};
  c.shapes = {{1, 2, 5}};
  c.inputs = {Distinct(-20, -1)};
  c.forward = [](const Arrays& in, const Arrays&) {
    const Values& x = in[0];
    Values out;
    for (size_t row = 0; row < 10; row += 5) {
      out.insert(out.end(), {std::max({x[row], x[row + 1], x[row + 2]}),
                             std::max({x[row + 2], x[row + 3], x[row + 4]}), x[row + 4]});
    }
    return Arrays{out};
  };
  RunCase(c);
}

TEST_CASE("Pooling: sizes and refusals") {
  const auto make = [](Kwargs kwargs) { return TestRegistry().Create("Pooling", kwargs); };
  std::vector<TShape> in{{-1, 3, 7, 8}}, out{{4, -1, -1, -1}}, aux;
  CHECK(make({{"kernel", "(3, 3)"}, {"stride", "(2, 2)"}})->InferShape(&in, &out, &aux));
  CHECK(in[0] == TShape{4, 3, 7, 8});
  CHECK(out[0] == TShape{4, 3, 3, 3});
  out = {TShape()};
  CHECK(make({{"kernel", "(3, 3)"}, {"stride", "(2, 2)"}, {"pooling_convention", "full"}})
            ->InferShape(&in, &out, &aux));
  CHECK(out[0] == TShape{4, 3, 3, 4});
  CHECK_THROWS_WITH_AS(make({{"kernel", "(2, 2)"}, {"pad", "(2, 2)"}}),
                       doctest::Contains("smaller than kernel"), Error);
  CHECK_THROWS_WITH_AS(make({}), doctest::Contains("kernel"), Error);
  CHECK_THROWS_WITH_AS(make({{"kernel", "(2, 2)"}, {"layout", "NCW"}}),
                       doctest::Contains("layout must be NCHW"), Error);
  CHECK_THROWS_WITH_AS(make({{"kernel", "(2, 2)"}, {"layout", "NHWC"}}),
                       doctest::Contains("NCW, NCHW or NCDHW"), Error);
  out = {TShape()};
  CHECK_THROWS_WITH_AS(make({{"kernel", "(2,)"}})->InferShape(&in, &out, &aux),
                       doctest::Contains("must be sequences [N, C, W] for a kernel with 1 axis"),
                       Error);
  CHECK_THROWS_WITH_AS(make({{"kernel", "(2, 2)"}, {"pooling_convention", "same"}}),
                       doctest::Contains("use pad = same"), Error);
  CHECK_THROWS_WITH_AS(make({{"kernel", "(2,)"}, {"pad", "(1,)"}, {"pooling_convention", "same"}}),
                       "Pooling: pooling_convention = same excludes pad", Error);
  CHECK_THROWS_WITH_AS(
      make({{"kernel", "(2, 2)"}, {"pad", "same"}, {"pooling_convention", "full"}}),
      doctest::Contains("leave pooling_convention out"), Error);
  CHECK_THROWS_WITH_AS(make({{"kernel", "(2, 2)"}, {"pad", "same"}, {"count_include_pad", "True"}}),
                       doctest::Contains("does not count in a mean"), Error);
  CHECK_THROWS_WITH_AS(make({{"kernel", "(2,)"}, {"pad", "(1, 1)"}}),
                       "Pooling: pad = (1, 1) has 2 entries, but the kernel has 1 axis", Error);
  CHECK_THROWS_WITH_AS(make({{"kernel", "(2, 2)"}, {"pool_type", "lp"}}),
                       doctest::Contains("p_value"), Error);
}

}  // namespace
}  // namespace mxtrain::test

// Operators and whole steps on a GPU, against the CPU.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "mxtrain/operator/imperative.h"
#include "tests/gpu/runtime.h"
#include "tests/support/small_nets.h"

namespace mxtrain::test {
namespace {

const Context kGpu = Context::gpu(0);

NDArray Make(Runtime& runtime, const std::string& name, int64_t n, DType type, Context ctx) {
  NDArray array(runtime, {n}, DType::kFloat32, Context::cpu());
  SetValues(array, ValuesFor(name, n));
  const NDArray in[] = {array};
  return Invoke("Cast", in, {{"dtype", NameOf(type)}})[0].Copy(ctx);
}

TEST_CASE("one functor, two devices: smooth_l1 in every type, writing and adding") {
  const auto runtime = GpuRuntime();
  for (const DType type : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBfloat16}) {
    for (const int64_t n : {1, 31, 4097}) {
      for (const OpReqType req : {OpReqType::kWriteTo, OpReqType::kAddTo}) {
        const auto run = [&](Context ctx) {
          const NDArray in[] = {Make(*runtime, "x", n, type, ctx)};
          NDArray out[] = {Make(*runtime, "y", n, type, ctx)};
          InvokeInto("smooth_l1", in, out, req, {{"scalar", "2"}});
          return out[0].ToVector();
        };
        CAPTURE(NameOf(type));
        CAPTURE(n);
        const std::vector<float> on_cpu = run(Context::cpu()), on_gpu = run(kGpu);
        const double width = type == DType::kBfloat16 ? 0x1p-7 : type == DType::kFloat16 ? 0x1p-10 : 0x1p-22;
        for (size_t i = 0; i < on_cpu.size(); ++i) CHECK(std::abs(on_cpu[i] - on_gpu[i]) <= width * (1 + std::abs(on_cpu[i])));
      }
    }
  }
}

TEST_CASE("a step of a net: outputs and gradients are the CPU's") {
  const auto runtime = GpuRuntime();
  for (const SmallNet& net : SmallNets(runtime->operators())) {
    CAPTURE(net.name);
    std::map<std::string, std::vector<double>> results[2];
    for (const bool on_gpu : {false, true}) {
      executor::BindRequest request = RequestFor(net, net.losses);
      request.ctx = on_gpu ? kGpu : Context::cpu();
      const auto executor = BindWithValues(*runtime, net.losses, request);
      for (int step = 0; step < 3; ++step)
        executor->Step(MakeInputs(*runtime, net, executor->input_names(), DType::kFloat32, std::to_string(step)));
      for (size_t i = 0; i < executor->outputs().size(); ++i) results[on_gpu][std::to_string(i)] = GetValues(executor->outputs()[i]);
      for (const auto& [name, array] : executor->grads()) results[on_gpu][name] = GetValues(array);
      for (const auto& [name, array] : executor->auxs()) results[on_gpu][name] = GetValues(array);
    }
    REQUIRE(results[0].size() == results[1].size());
    for (const auto& [name, values] : results[0]) {
      CAPTURE(name);
      const std::vector<double>& others = results[1].at(name);
      double worst = 0;
      for (size_t i = 0; i < values.size(); ++i) worst = std::max(worst, std::abs(others[i] - values[i]) / (1 + std::abs(values[i])));
      CHECK(worst < 2e-4);
    }
  }
}

}  // namespace
}  // namespace mxtrain::test

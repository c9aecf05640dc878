// SPDX-License-Identifier: Apache-2.0
#include "tests/support/operator_case.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>
#include <optional>

#include "mxtrain/base/format.h"
#include "tests/support/case_examiner.h"

namespace mxtrain::test {
namespace {

// The setting of TestOn.
Context test_context = Context::cpu();
std::shared_ptr<const OperatorRegistry> test_registry;
Backend* test_backend = nullptr;

// A build without oneDNN has none of its kernels; tests require them only if present.
bool InThisBuild(const std::string& kernel) {
  if (kernel != "onednn") return true;
  const auto kernels = TestRegistry().Kernels("Convolution", DeviceType::kCPU);
  return std::any_of(kernels.begin(), kernels.end(),
                     [&](const KernelEntry* r) { return r->name == kernel; });
}

// The case with images for its arrays (an update's scalars excepted), if the operator takes them:
// results in every layout are compared with the first one. None if the case has images itself.
std::optional<OperatorCase> OnImages(const OperatorCase& c, const OperatorProperty& property) {
  const auto is_image = [](const TShape& shape) { return shape.ndim() == 4; };
  if (c.shapes.empty() || std::any_of(c.shapes.begin(), c.shapes.end(), is_image)) return {};
  OperatorCase images = c;
  images.name += ", on images";
  const size_t arrays = c.op.ends_with("_update") ? c.shapes.size() - 1 : 1;
  std::fill_n(images.shapes.begin(), arrays, TShape{3, 16, 2, 3});
  std::fill(images.shapes.begin() + static_cast<std::ptrdiff_t>(arrays), images.shapes.end(),
            TShape());
  std::vector<TShape> out(static_cast<size_t>(property.NumOutputs())),
      aux(property.ListAuxiliaryStates().size());
  try {
    if (!property.InferShape(&images.shapes, &out, &aux)) return {};
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kConfig) throw;
    return {};
  }
  images.check = [](const CaseResult&) { return std::vector<std::string>(); };
  images.must_accept.clear();
  return images;
}

double BestNanoseconds(int repetitions, const std::function<void()>& run) {
  double best = 0;
  for (int i = 0; i < repetitions; ++i) {
    const auto start = std::chrono::steady_clock::now();
    run();
    const double ns =
        std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
    best = i == 0 ? ns : std::min(best, ns);
  }
  return best;
}

}  // namespace

CaseReport ExamineCase(const OperatorCase& c, const OperatorRegistry& registry, Backend& backend,
                       Context ctx) {
  const CaseOnDevice on(c, registry, backend, ctx);
  CaseReport report = ExamineKernels(on, registry);
  if (on.IsRandomOrUpdate()) {
    if (const auto images = OnImages(c, on.property())) {
      CaseReport more = ExamineKernels(CaseOnDevice(*images, registry, backend, ctx), registry);
      report.trials += more.trials;
      std::move(more.problems.begin(), more.problems.end(), std::back_inserter(report.problems));
    }
  }
  if (ctx.type != DeviceType::kCPU) return report;  // the case names CPU kernels
  for (const std::string& name : c.must_accept) {
    const bool known =
        std::any_of(report.kernels.begin(), report.kernels.end(),
                    [&](const KernelOutcome& kernel) { return kernel.kernel == name; });
    if (!known && InThisBuild(name))
      report.problems.push_back(
          format("case '{}': operator {} has no kernel '{}'", c.name, c.op, name));
  }
  return report;
}

void TestOn(Context ctx, std::shared_ptr<const OperatorRegistry> registry, Backend* backend) {
  test_context = ctx;
  test_registry = std::move(registry);
  test_backend = backend;
}

CaseReport RunCase(const OperatorCase& c) {
  if (test_backend && TestRegistry().Kernels(c.op, test_context.type).empty()) return {};
  CaseReport report =
      ExamineCase(c, TestRegistry(), test_backend ? *test_backend : TestBackend(), test_context);
  for (const std::string& problem : report.problems) FAIL_CHECK(problem);
  // A composite's kernels may leave everything to its graph, which is examined on the CPU.
  const bool left = test_backend &&
                    std::all_of(report.kernels.begin(), report.kernels.end(),
                                [](const auto& k) { return !k.refusal.empty(); }) &&
                    CaseOnDevice(c, TestRegistry(), *test_backend, test_context).IsComposite();
  CHECK((report.trials > 0 || left));
  return report;
}

std::vector<CaseTiming> TimeCase(const OperatorCase& c, DType type, int repetitions,
                                 const OperatorRegistry& registry, Backend& backend) {
  const CaseOnDevice on(c, registry, backend, Context::cpu());
  const CaseNumbers n = on.MakeNumbers({type});
  const PassTrial trial = on.WriteTrial(n);
  std::vector<CaseTiming> timings;
  for (const KernelEntry* kernel : registry.Kernels(c.op, DeviceType::kCPU)) {
    PassSetup setup = n.setup;
    setup.kernel = kernel;
    Pass pass(setup, trial);
    if (!pass.Plan()) continue;
    pass.Run();
    CaseTiming timing{kernel->name, BestNanoseconds(repetitions, [&] { pass.Forward(); }), 0};
    if (pass.CanRunBackward())
      timing.backward_ns = BestNanoseconds(repetitions, [&] { pass.Backward(); });
    timings.push_back(timing);
  }
  return timings;
}

const OperatorRegistry& TestRegistry() {
  static const std::shared_ptr<const OperatorRegistry> registry =
      test_registry ? test_registry : BuiltinOperators();
  return *registry;
}

Backend& TestBackend() {
  static const std::unique_ptr<Backend> backend = [] {
    auto made = NewCpuBackend(2);
    made->EnterThread();
    return made;
  }();
  return *backend;
}

bool KernelRan(const CaseReport& report, const std::string& kernel) {
  return test_context.type != DeviceType::kCPU ||
         std::any_of(report.kernels.begin(), report.kernels.end(), [&](const KernelOutcome& o) {
           return o.kernel == kernel && o.refusal.empty();
         });
}

Values Apply(const Values& x, const std::function<double(double)>& f) {
  Values y(x.size());
  std::transform(x.begin(), x.end(), y.begin(), f);
  return y;
}

Values Apply(const Values& x, const Values& y, const std::function<double(double, double)>& f) {
  Values z(x.size());
  std::transform(x.begin(), x.end(), y.begin(), z.begin(), f);
  return z;
}

double Norm(const Values& x) {
  double sum = 0;
  for (double v : x) sum += v * v;
  return std::sqrt(sum);
}

}  // namespace mxtrain::test

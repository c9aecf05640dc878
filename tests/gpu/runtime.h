// SPDX-License-Identifier: Apache-2.0
#pragma once
// A Runtime with the kernels of the CUDA backend.
#include "mxtrain/ndarray/runtime.h"
#include "mxtrain/operator/registry.h"

namespace mxtrain::test {

inline std::unique_ptr<Runtime> GpuRuntime(const std::string& engine = "threaded") {
  static const std::shared_ptr<OperatorRegistry> registry = BuiltinOperators(DeviceType::kGPU);
  RuntimeOptions options;
  options.engine = engine;
  options.threads = 2;
  options.seed = 3;
  return std::make_unique<Runtime>(options, registry);
}

}  // namespace mxtrain::test

// SPDX-License-Identifier: Apache-2.0
// Graphs over cuDNN itself, without a GPU: since 9.8 it plans for a device of which it is given the
// properties, here those of an H100. What it cannot do so is run.
#include <doctest/doctest.h>

#include <string_view>

#include "mxtrain/device/cuda/internal/cudnn_graph.h"

namespace mxtrain::cuda {
namespace {

const CudnnBackend kCudnn = {cudnnBackendCreateDescriptor, cudnnBackendDestroyDescriptor,
                             cudnnBackendSetAttribute,     cudnnBackendGetAttribute,
                             cudnnBackendFinalize,         cudnnBackendExecute,
                             cudnnGetErrorString};

constexpr std::string_view kProperties =
    R"({"deviceName":"NVIDIA H100 80GB HBM3","deviceVer":900,"driverVer":13000,"cudaDeviceId":0,)"
    R"("multiProcessorCount":132,"maxGridSize":[2147483647,65535,65535],)"
    R"("maxBlockSize":[1024,1024,64],"regsPerBlock":65536,"warpSize":32,)"
    R"("maxSharedMemoryPerBlock":49152,"maxSharedMemoryPerBlockOptin":232448,)"
    R"("reservedSharedMemoryPerBlock":1024,"maxRegistersPerSM":65536,"maxCtasPerSM":32,)"
    R"("maxThreadsPerBlock":1024,"maxThreadsPerSM":2048,"pciDeviceId":0,"isTccDriver":0,)"
    R"("supportCoopLaunch":1,"smClockRateKHz":1980000,"memClockRateKHz":2619000,)"
    R"("l2CacheSize":52428800,"totalGlobalMem":84929347584})";

// By the numbers that they have since cuDNN 9.8.
constexpr auto kPropertiesKind = static_cast<cudnnBackendDescriptorType_t>(38);
constexpr auto kPropertiesText = static_cast<cudnnBackendAttributeName_t>(2702);

// Null if this cuDNN does not plan for a described device.
cudnnBackendDescriptor_t H100(CudnnDescriptors* made) {
  const cudnnBackendDescriptor_t device = made->New(kPropertiesKind);
  made->Set(device, kPropertiesText, CUDNN_TYPE_CHAR,
            std::span<const char>(kProperties.data(), kProperties.size()));
  made->Finalize(device);
  return made->ok() ? device : nullptr;
}

struct Kind {
  const char* name;
  DType type;
  bool channels_last;
  ConvolutionMath math;
};
const Kind kKinds[] = {{"bfloat16", DType::kBfloat16, true, ConvolutionMath::kWinograd},
                       {"float16", DType::kFloat16, true, ConvolutionMath::kWinograd},
                       {"tf32", DType::kFloat32, true, ConvolutionMath::kTf32},
                       {"float32, fast", DType::kFloat32, false, ConvolutionMath::kWinograd},
                       {"float32, exact", DType::kFloat32, false, ConvolutionMath::kPlain},
                       {"float64", DType::kFloat64, false, ConvolutionMath::kPlain}};

// Of ResNet-50 and MobileNet.
const ConvolutionShape kPlannedShapes[] = {
    {256, 64, 64, 1, {56, 56}, {56, 56}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
    {256, 256, 64, 1, {56, 56}, {56, 56}, {1, 1}, {1, 1}, {1, 1}, {0, 0}},
    {64, 256, 512, 1, {56, 56}, {28, 28}, {1, 1}, {2, 2}, {1, 1}, {0, 0}},
    {64, 8, 64, 1, {224, 224}, {112, 112}, {7, 7}, {2, 2}, {1, 1}, {3, 3}},
    {32, 96, 96, 96, {56, 56}, {56, 56}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
};

TEST_CASE("cuDNN plans every part of convolutions for an H100, and what follows") {
  CudnnDescriptors own(kCudnn);
  const GraphDevice device{nullptr, H100(&own)};
  if (!device.properties) {
    MESSAGE("skipped: this cuDNN does not plan for a described device");
    return;
  }
  const auto plans = [&](const GraphTask& task) {
    const auto graph = CudnnGraph::Make(kCudnn, device, task);
    if (!graph) return 0;
    CHECK(CudnnGraph::Make(kCudnn, device, task)->engines() == graph->engines());
    int count = 0;
    for (size_t i = 0; i < graph->engines().size(); ++i) {
      const auto plan = graph->PlanOf(i);
      if (!plan) continue;
      ++count;
      CHECK((*plan)->workspace() <= CudnnGraph::kMostWorkspace);
    }
    return count;
  };
  for (const Kind& kind : kKinds) {
    CAPTURE(kind.name);
    for (const ConvolutionShape& shape : kPlannedShapes) {
      CAPTURE(shape.in_channels);
      CAPTURE(shape.out_channels);
      GraphTask task;
      task.shape = shape;
      task.options.type = kind.type;
      task.options.channels_last = kind.channels_last;
      task.options.math = kind.math;
      for (const ConvolutionPart part : {ConvolutionPart::kForward, ConvolutionPart::kDataGradient,
                                         ConvolutionPart::kWeightGradient}) {
        task.part = part;
        CAPTURE(static_cast<int>(part));
        for (const bool add : {false, true}) {
          task.add = add;
          CHECK(plans(task) > 0);
        }
        task.add = false;
      }
      task.part = ConvolutionPart::kForward;
      // Without a bias cuDNN has only engines that it compiles.
      for (const int which : {0, 1, 2, 3}) {
        ConvolutionEpilogue epilogue{(which & 1) != 0, true, kind.type, (which & 2) != 0};
        task.end = epilogue;
        CAPTURE(which);
        if (kind.channels_last && shape.groups == 1) CHECK(plans(task) > 0);
        epilogue.bias = false;
        task.end = epilogue;
        if (epilogue.any()) CHECK(plans(task) == 0);
      }
      // For what batch norm needs there are engines in float16 alone, for one group; those for sums
      // have windows of less than 7 x 7.
      const bool some = kind.type == DType::kFloat16 && shape.groups == 1;
      task.end = OutputSums();
      CHECK((plans(task) > 0) == (some && shape.kernel[0] < 7));
      task.part = ConvolutionPart::kDataGradient;
      task.end = ReluGate();
      CHECK((plans(task) > 0) == some);
    }
  }
}

}  // namespace
}  // namespace mxtrain::cuda

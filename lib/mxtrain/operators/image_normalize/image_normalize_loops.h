// SPDX-License-Identifier: Apache-2.0
#pragma once
// image_normalize, one pixel at a time: adjacent threads read adjacent bytes and write adjacent
// numbers of each plane, or of the image if its channels are last. Written once for both devices:
// Device is OnCpu or OnGpu.
#include <memory>

#include "mxtrain/device/blocked_layout.h"
#include "mxtrain/operator/kernel.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operators/image_normalize/image_normalize.h"

namespace mxtrain::image_normalize {

template <typename T>
struct PixelAt {
  PixelLevels levels;
  int64_t plane;  // pixels of an image
  int channels;
  bool last;  // channels of the output
  const uint8_t* data;
  T* out;
  OpReqType req;
  MXTRAIN_HD void operator()(int64_t i) const {
    const int64_t image = i / plane,
                  first = last ? i * channels : image * channels * plane + i % plane,
                  step = last ? 1 : plane;
    for (int c = 0; c < channels; ++c)
      Assign(req, out, first + c * step, levels(data[i * channels + c], c));
  }
};

template <typename Device>
class ImageNormalize final : public Operator {
 public:
  explicit ImageNormalize(const PixelLevels& levels) : levels_(levels) {}
  void Forward(const ForwardArgs& args) override {
    if (args.req[0] == OpReqType::kNullOp) return;
    const TShape& shape = args.in_data[0].shape;
    const TBlob& out = args.out_data[0];
    SwitchFloating(out.type, "image_normalize", [&](auto tag) {
      using T = typename decltype(tag)::type;
      Launch(
          Device{args.ctx.run_ctx}, shape[0] * shape[1] * shape[2],
          PixelAt<T>{levels_, shape[1] * shape[2], static_cast<int>(shape[3]), !out.layout.plain(),
                     args.in_data[0].dptr<uint8_t>(), out.dptr<T>(), args.req[0]});
    });
  }

 private:
  const PixelLevels levels_;
};

// Convolutions in 16 bits on a GPU want channels last.
template <typename Device>
KernelEntry Kernel() {
  return LastKernel<Device>(
      "image_normalize",
      [](const OperatorProperty& base, const PlanRequest& request,
         Backend& backend) -> Expected<Plan, Refusal> {
        const ImageNormalizeParam& param = static_cast<const ImageNormalizeProperty&>(base).param();
        Plan plan = PlainPlan(base, request);
        if (Device::kType == DeviceType::kGPU && param.dtype != DType::kFloat32)
          plan.out[0] = backend.Intern(NewChannelsLast(request.out[0].shape.ndim()));
        plan.make = [levels = LevelsOf(param, static_cast<int>(request.in[0].shape[3]),
                                       "image_normalize")] {
          return std::make_unique<ImageNormalize<Device>>(levels);
        };
        return plan;
      },
      Takes::kEveryType);
}

}  // namespace mxtrain::image_normalize

MXTRAIN_KERNELS(image_normalize, Device, registry) {
  registry.AddKernel(mxtrain::image_normalize::Kernel<Device>());
}

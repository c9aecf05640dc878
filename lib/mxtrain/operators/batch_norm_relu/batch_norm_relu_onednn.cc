#include "mxtrain/operators/batch_norm_relu/batch_norm_relu.h"

MXTRAIN_OPERATOR(batch_norm_relu_onednn, registry) {
  using namespace mxtrain;
  registry.AddRow({"_BatchNormReLU", DeviceType::kCPU, "onednn", 100,
                   [](const OperatorProperty& property, const PlanRequest& request, Backend& backend) {
                     return PlanBatchNormOneDnn(property, request, backend, true);
                   }});
}

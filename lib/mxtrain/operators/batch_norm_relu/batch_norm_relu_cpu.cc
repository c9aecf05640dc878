#include "mxtrain/operators/batch_norm_relu/batch_norm_relu.h"

MXTRAIN_OPERATOR(batch_norm_relu_cpu, registry) {
  using namespace mxtrain;
  registry.AddRow(
      {"_BatchNormReLU", DeviceType::kCPU, "ref", kRefRank, [](const OperatorProperty& property, const PlanRequest& request, Backend&) {
         return PlanBatchNormReference(property, request, true);
       }});
}

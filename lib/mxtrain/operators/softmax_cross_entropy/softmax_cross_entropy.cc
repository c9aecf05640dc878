// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/elementwise.h"
#include "mxtrain/operator/simple_op.h"

namespace mxtrain {
namespace {

TShape Shape(const TShape& data, const TShape& label, const EnvArguments&) {
  if (data.ndim() != 2 || label != TShape{data[0]}) {
    Throw(ErrorKind::kConfig,
          "softmax_cross_entropy: expected data [N, K] and label [N], but they are {} and {}",
          data.ToString(), label.ToString());
  }
  return TShape{1};
}

}  // namespace

MXTRAIN_OPERATOR(softmax_cross_entropy, registry) {
  SimpleOp(registry, "softmax_cross_entropy")
      .set_arguments({"data", "label"})
      .set_shape_function(Shape)
      .set_resource_request(ResourceRequest::kTempSpace,
                            [](const std::vector<TShape>& in, const EnvArguments&) {
                              return in[0][0] * static_cast<int64_t>(sizeof(double));
                            })
      .set_types(kFloatingTypes)
      .describe("the sum over rows of -log(softmax(row)[label])");
}

}  // namespace mxtrain

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <memory>

#include "mxtrain/operator/operator.h"
#include "mxtrain/operators/anchor_boxes/anchor_boxes.h"

namespace mxtrain::anchor_boxes {

// The rows of an anchor of an image, of all classes.
template <typename T>
struct ProposeBoxes {
  using C = ComputeOf<T>;
  static constexpr int64_t kColumns = AnchorBoxesProperty::kColumns;
  AnchorPredictions<T> says;
  C most_log_growth;
  OpReqType req;
  T* out;

  MXTRAIN_HD static C Within(C at, C length) {
    return at < C(0) ? C(0) : at > length ? length : at;
  }
  MXTRAIN_HD void operator()(int64_t row) const {
    BoxNumbers<C> offsets{};
    for (int k = 0; k < 4; ++k) {
      const C offset = says.Offset(row, k) * says.variances[k];
      offsets.at[k] = k >= 2 && offset > most_log_growth ? most_log_growth : offset;
    }
    const Corners<C> box = BoxAt(offsets, says.Anchor(row));
    const C log_sum = says.LogSum(row);
    const int64_t classes = says.columns - 1,
                  first = row / says.count * classes * says.count + row % says.count;
    for (int64_t k = 0; k < classes; ++k) {
      const C columns[kColumns] = {static_cast<C>(k),
                                   vector_math::Exp(says.Score(row, k + 1) - log_sum),
                                   Within(box.left, says.width),
                                   Within(box.top, says.height),
                                   Within(box.right, says.width),
                                   Within(box.bottom, says.height)};
      for (int64_t j = 0; j < kColumns; ++j)
        Assign(req, out, (first + k * says.count) * kColumns + j, columns[j]);
    }
  }
};

template <typename Device>
class AnchorBoxes final : public Operator {
 public:
  explicit AnchorBoxes(const AnchorBoxesParam& param) : param_(param) {}

  void Forward(const ForwardArgs& args) override {
    const TBlob& out = args.out_data[0];
    if (args.req[0] == OpReqType::kNullOp || out.Size() == 0) return;
    SwitchFloating(out.type, "AnchorBoxes", [&](auto tag) {
      using T = typename decltype(tag)::type;
      const AnchorPredictions<T> says(param_, args.in_data);
      const auto most = static_cast<ComputeOf<T>>(std::log(kMostAnchorGrowth));
      Launch(Device{args.ctx.run_ctx}, says.rows(),
             ProposeBoxes<T>{says, most, args.req[0], out.template dptr<T>()});
    });
  }

 private:
  const AnchorBoxesParam param_;
};

}  // namespace mxtrain::anchor_boxes

MXTRAIN_KERNELS(anchor_boxes, Device, registry) {
  using namespace mxtrain;
  registry.AddKernel(
      ForwardKernel<AnchorBoxesProperty, anchor_boxes::AnchorBoxes<Device>, Device>("AnchorBoxes"));
}

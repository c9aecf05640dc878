// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the losses of detectors without anchors (point_grid.h) share. Their arguments are the maps,
// then the label (labelled_objects.h). The output is [N].
#include "mxtrain/base/math.h"
#include "mxtrain/operator/labelled_objects.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operator/point_grid.h"

namespace mxtrain {

// The names of those arguments.
MXTRAIN_API std::vector<std::string> PointLossArguments(const TShape& strides, int form);
// As InferShape of a property.
MXTRAIN_API bool InferPointLossShapes(const TShape& strides, int form, int64_t bins,
                                      const std::string& who, std::vector<TShape>* in,
                                      std::vector<TShape>* out);

// The property of such a loss, whose parameters have `strides`.
template <typename P>
class PointLossProperty : public PropertyWithParam<P> {
 public:
  static constexpr int kMostCandidates = 32;

  virtual int form() const = 0;               // PointForm
  virtual int64_t bins() const { return 1; }  // numbers of a side

  std::vector<std::string> ListArguments() const override {
    return PointLossArguments(this->param_.strides, form());
  }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>*) const override {
    return InferPointLossShapes(this->param_.strides, form(), bins(), this->TypeString(), in, out);
  }
  bool InferType(std::vector<DType>* in, std::vector<DType>* out,
                 std::vector<DType>*) const override {
    return InferLabelledTypes(ListArguments(), this->TypeString(), in, out);
  }
  std::vector<int> DeclareBackwardDependency(const std::vector<int>&,
                                             const std::vector<int>& in_data,
                                             const std::vector<int>&) const override {
    return in_data;
  }
  bool HasGradient(int argument) const override {
    return argument + 1 < static_cast<int>(ListArguments().size());
  }

 protected:
  void Check() override { CheckStrides(this->param_.strides, this->TypeString()); }
};

// --- for kernels ---

// Where a forward pass has its targets, which are kept for the backward pass if there is one, and
// the rest of its workspace. Targets<C> is made of bytes and the numbers of images and points, and
// has Bytes of these.
template <template <typename> typename Targets, typename C>
struct PointLossSpace {
  char* rest;
  Targets<C> targets;

  PointLossSpace(const ForwardArgs& args, int64_t images, int64_t points)
      : rest(args.ctx.workspace.template dptr<char>()),
        targets(args.ctx.saved.empty() ? rest : args.ctx.saved[0].data, images, points) {
    if (args.ctx.saved.empty()) rest += Bytes(images, points);
  }
  static int64_t Bytes(int64_t images, int64_t points) {
    return RoundUp(Targets<C>::Bytes(images, points), 64);
  }
};

// A plan with that space, and `rest` bytes beside the targets.
template <template <typename> typename Targets, typename C>
Plan PointLossPlan(const OperatorProperty& property, const PlanRequest& request, int64_t points,
                   int64_t rest) {
  const int64_t images = request.in[0].shape[0];
  const int64_t targets = PointLossSpace<Targets, C>::Bytes(images, points);
  Plan plan = PlainPlan(property, request);
  plan.forward_workspace = rest + (request.needs_backward ? 0 : targets);
  if (request.needs_backward) plan.saved = {targets};
  return plan;
}

// Points of no object that are in one that nothing is to be learnt of. `object`: of each point of
// the image.
template <typename T>
MXTRAIN_HD void IgnoreInside(const PointMaps<T>& maps, const LabelledObjects<T>& labels,
                             int64_t image, int32_t* object) {
  for (int64_t m = 0; m < labels.most; ++m) {
    typename LabelledObjects<T>::Object ignored;
    if (!labels.Get(image, m, &ignored) || ignored.learnt) continue;
    for (int64_t p = 0; p < maps.points; ++p) {
      const auto at = maps.PlaceOf(p);
      const bool inside = at.x >= ignored.box.left && at.x <= ignored.box.right &&
                          at.y >= ignored.box.top && at.y <= ignored.box.bottom;
      if (inside && object[p] == kBackground) object[p] = kNothingLearnt;
    }
  }
}

// How many points the maps of this plan have; refuses more than int32_t holds.
MXTRAIN_API Expected<int64_t, Refusal> CountPoints(const TShape& strides,
                                                   const PlanRequest& request);

}  // namespace mxtrain

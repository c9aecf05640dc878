// SPDX-License-Identifier: Apache-2.0
// dice_loss: how little the predicted pixels of each class overlap with the labelled ones
// (Milletari et al. 2016, arXiv 1606.04797), one number for each image; MakeLoss makes it the loss
// of a net, beside a SoftmaxOutput or alone. Inputs: data [N, classes, ...], scores before the
// softmax; label [N, ...], or its pixels in a row, classes. With p the softmax, t 1 where a pixel
// is labelled as the class:
//   L = 1 - mean over classes of (2 sum p t + smooth) / (sum p + sum t + smooth)
// over the pixels of the image whose label is a class. Classes count alike however few pixels they
// have; one that an image has not is learnt there too: not to be predicted. The label has no
// gradient, and its shape follows from the data.
#include <vector>

#include "mxtrain/operator/composite.h"

namespace mxtrain {
namespace {

struct DiceParam : Parameter<DiceParam> {
  double smooth;
  static void Declare(Fields<DiceParam>& f) {
    f.Add("smooth", &DiceParam::smooth)
        .Default(1)
        .Range(1e-6, 1e6)
        .Help("pixels added to both sides of the fraction: the larger, the less small areas count");
  }
};

void CompleteDice(const DiceParam&, std::vector<TShape>* in) {
  const TShape& data = (*in)[0];
  if (!data.has_rank()) return;
  if (data.ndim() < 3)
    Throw(ErrorKind::kConfig,
          "dice_loss: data of shape {} have no pixels; expected [N, classes, ...]",
          data.ToString());
  std::vector<int64_t> pixels(data.begin(), data.end());
  pixels.erase(pixels.begin() + 1);
  TShape& label = (*in)[1];
  const bool flat = data.known() && data.ndim() > 3 && label.has_rank() && label.ndim() == 2;
  UnifyShape(flat ? TShape{data[0], data.Product(2, data.ndim())} : TShape(pixels), &label,
             "dice_loss", "label");
}

void LowerDice(const DiceParam& param, Lowering& g) {
  const TShape& shape = g.shape(0);
  std::vector<int64_t> axes, across(static_cast<size_t>(shape.ndim()), 1),
      one_class(shape.begin(), shape.end());
  for (int i = 2; i < shape.ndim(); ++i) axes.push_back(i);
  across[1] = shape[1];
  one_class[1] = 1;
  const Kwargs pixels = {{"axis", params::Print(TShape(axes))}};
  const auto classes = g("arange_like", {g.argument(0)}, {{"axis", "1"}});

  const auto p = g("softmax", {g.argument(0)}, {{"axis", "1"}}),
             t = g("broadcast_equal", {g.Reshape(g.argument(1), TShape(one_class)),
                                       g.Reshape(classes, TShape(across))}),
             learnt = g("sum", {t}, {{"axis", "1"}, {"keepdims", "True"}});
  const auto common = g("sum", {g("elemwise_mul", {p, t})}, pixels),
             both = g("elemwise_add",
                      {g("sum", {g("broadcast_mul", {p, learnt})}, pixels), g("sum", {t}, pixels)});
  const auto twice = g.WithScalar("_mul_scalar", common, 2);
  const auto overlap = g("elemwise_div", {g.WithScalar("_plus_scalar", twice, param.smooth),
                                          g.WithScalar("_plus_scalar", both, param.smooth)});
  g.SetOutput(0, g.WithScalar("_rminus_scalar", g("mean", {overlap}, {{"axis", "1"}}), 1));
}

}  // namespace
}  // namespace mxtrain

MXTRAIN_OPERATOR(dice_loss, registry) {
  using namespace mxtrain;
  AddComposite<DiceParam>(
      registry,
      {.name = "dice_loss",
       .description = "how little the predicted pixels of the classes overlap with their own",
       .arguments = {"data", "label"},
       .labels = {"label"},
       .complete = CompleteDice,
       .lower = LowerDice});
}

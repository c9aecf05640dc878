// SPDX-License-Identifier: Apache-2.0
#pragma once
// CTCLoss: connectionist temporal classification (Graves et al. 2006, "Connectionist Temporal
// Classification: Labelling Unsegmented Sequence Data with Recurrent Neural Networks"), as MXNet's
// operator of that name.
//
//   data [T, N, C], label [N, L] [, data_lengths [N]] [, label_lengths [N]]  ->  output [N]
//
// The data are scores of C classes at T steps, before the softmax. One class is the blank. A path
// is a class for each step; without its repetitions, and then without its blanks, it is a sequence
// of labels. The output is -log of the sum of the probabilities of all paths of the label.
//
//   blank_label   blank    labels          a label ends at
//   first         0        1 ... C - 1     its first 0
//   last          C - 1    0 ... C - 2     its first -1
//
// With use_label_lengths it ends at its length instead, with use_data_lengths the steps of a
// sequence do; both are read as those of SequenceMask. Steps beyond have no gradient. Labels and
// lengths are of any numeric type; fractions are truncated.
//
// A label with more elements, and repetitions, than there are steps has no path. Its loss and its
// gradient are 0, as in MXNet, not infinite. A label out of range, and with label_lengths a blank
// among the labels, throws kData on the CPU and makes loss and gradient NaN on a GPU.
//
// The gradient of the data is (softmax - expected share of the step's paths) times the head
// gradient of the sequence. Labels and lengths have none. Everything is computed in double and in
// logarithms, so long sequences lose no digits.
#include "mxtrain/operator/property.h"

namespace mxtrain {

enum BlankLabel { kBlankFirst, kBlankLast };

template <typename P>
void DeclareBlankLabel(Fields<P>& f) {
  f.Add("blank_label", &P::blank_label)
      .Enum({{"first", kBlankFirst}, {"last", kBlankLast}})
      .Default(kBlankFirst)
      .Help(
          "the class of the blank. first: 0, labels are 1 and above, and end at 0; last: the last "
          "one, labels are 0 and above, and end at -1");
}
template <typename P>
void DeclareDataLengths(Fields<P>& f) {
  f.Add("use_data_lengths", &P::use_data_lengths)
      .Default(false)
      .Help("sequences have the lengths given by data_lengths; else all steps count");
}

struct CtcLossParam : Parameter<CtcLossParam> {
  bool use_data_lengths, use_label_lengths;
  int blank_label;
  static void Declare(Fields<CtcLossParam>& f) {
    DeclareDataLengths(f);
    f.Add("use_label_lengths", &CtcLossParam::use_label_lengths)
        .Default(false)
        .Help("labels have the lengths given by label_lengths; else padding ends them");
    DeclareBlankLabel(f);
  }
};

class CtcLossProperty final : public PropertyWithParam<CtcLossParam> {
 public:
  enum Argument { kData, kLabel };

  std::string TypeString() const override { return "CTCLoss"; }
  std::string Description() const override {
    return "-log of the probability of a sequence of labels whose places are not known";
  }
  std::vector<std::string> ListArguments() const override;
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;
  bool InferType(std::vector<DType>* in, std::vector<DType>* out,
                 std::vector<DType>* aux) const override;
  std::vector<int> DeclareBackwardDependency(const std::vector<int>& out_grad,
                                             const std::vector<int>& in_data,
                                             const std::vector<int>&) const override;
  bool HasGradient(int argument) const override { return argument == kData; }
  double ForwardFlops(const std::vector<TShape>& in, const std::vector<TShape>&) const override;

  // Arguments of the lengths; -1: there is none.
  static int DataLengthsAt(const CtcLossParam& param) { return param.use_data_lengths ? 2 : -1; }
  static int LabelLengthsAt(const CtcLossParam& param) {
    return param.use_label_lengths ? 2 + param.use_data_lengths : -1;
  }
};

}  // namespace mxtrain

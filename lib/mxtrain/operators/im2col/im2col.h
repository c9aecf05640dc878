// SPDX-License-Identifier: Apache-2.0
#pragma once
// im2col: the cells of every window of data [N, C, ...] as columns [N, C k..., windows]; zero in
// the padding. col2im, its transpose, adds columns up where their cells lie in [N, C,
// output_size...]. A kernel has one to three axes. Windows are those of Convolution, which is a
// matrix product of such columns.
#include "mxtrain/operators/convolution/convolution.h"

namespace mxtrain {

struct ColumnsParam : ConvolutionSettings {
  template <typename P>
  static void DeclareWindow(Fields<P>& f) {
    const TShape empty = TShape::OfRank(0);
    f.Add("kernel", &P::kernel).Required().Help("window: (w), (h, w) or (d, h, w)");
    f.Add("stride", &P::stride).Default(empty).Help("stride of the window; 1 by default");
    f.Add("dilate", &P::dilate).Default(empty).Help("dilation; 1 by default");
    f.Add("pad", &P::pad).Default(empty).Help("zero padding on either side; 0 by default");
  }
  // Windows of images [N, C, ...] along each axis; -1 where the size is unknown. Throws kConfig if
  // a window is larger than the padded image.
  TShape WindowsOf(const TShape& images, const std::string& who) const;
  // The geometry of a convolution of these images.
  MXTRAIN_API ConvolutionGeometry GeometryOf(const TShape& images) const;
};

struct Im2colParam : ColumnsParam, Parameter<Im2colParam> {
  static void Declare(Fields<Im2colParam>& f) { DeclareWindow(f); }
};

struct Col2imParam : ColumnsParam, Parameter<Col2imParam> {
  TShape output_size;
  static void Declare(Fields<Col2imParam>& f) {
    f.Add("output_size", &Col2imParam::output_size)
        .Required()
        .Help("spatial size of the result, as kernel");
    DeclareWindow(f);
  }
};

class Im2colProperty final : public PropertyWithParam<Im2colParam> {
 public:
  std::string TypeString() const override { return "im2col"; }
  std::string Description() const override { return "the cells of every window as columns"; }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;
  std::vector<int> DeclareBackwardDependency(const std::vector<int>& out_grad,
                                             const std::vector<int>&,
                                             const std::vector<int>&) const override {
    return {out_grad[0]};
  }

 protected:
  void Check() override { CompleteWindow(TypeString(), &param_); }
};

class Col2imProperty final : public PropertyWithParam<Col2imParam> {
 public:
  std::string TypeString() const override { return "col2im"; }
  std::string Description() const override { return "adds columns up where their windows lie"; }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;
  std::vector<int> DeclareBackwardDependency(const std::vector<int>& out_grad,
                                             const std::vector<int>&,
                                             const std::vector<int>&) const override {
    return {out_grad[0]};
  }

 protected:
  void Check() override;
};

}  // namespace mxtrain

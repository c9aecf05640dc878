// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/im2col/im2col.h"

#include "mxtrain/operator/registry.h"
#include "mxtrain/operator/window.h"

namespace mxtrain {
namespace {

// Number of windows, or cells of one; unknown if a factor is.
int64_t CountOf(const TShape& sizes) {
  return sizes.known() ? sizes.Size() : TShape::kUnknown;
}

}  // namespace

TShape ColumnsParam::WindowsOf(const TShape& images, const std::string& who) const {
  TShape windows = TShape::OfRank(axes());
  for (int i = 0; i < axes(); ++i) {
    if (images[2 + i] < 0) continue;
    const int64_t padded = images[2 + i] + 2 * pad[i], window = DilatedSize(kernel[i], dilate[i]);
    if (window > padded) {
      Throw(ErrorKind::kConfig,
            "{}: the kernel {} (dilated: {} cells) exceeds the padded {} cells along axis {} of {}",
            who, kernel.ToTuple(), window, padded, 2 + i, images.ToString());
    }
    windows[i] = (padded - window) / stride[i] + 1;
  }
  return windows;
}

ConvolutionGeometry ColumnsParam::GeometryOf(const TShape& images) const {
  const TShape windows = WindowsOf(images, "im2col");
  TShape out = images;
  for (int i = 0; i < axes(); ++i) out[2 + i] = windows[i];
  return {*this, images, out};
}

bool Im2colProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                std::vector<TShape>*) const {
  TShape &data = (*in)[0], &columns = (*out)[0];
  CheckImages(data, param_.axes(), TypeString());
  UnifyShape(TShape::OfRank(2 + param_.axes()), &data, TypeString(), "data");
  const int64_t cells = param_.kernel.Size();
  TShape expected{data[0], data[1] < 0 ? TShape::kUnknown : data[1] * cells,
                  CountOf(param_.WindowsOf(data, TypeString()))};
  UnifyShape(columns, &expected, TypeString(), "output");
  columns = expected;
  data[0] = columns[0];
  if (data[1] < 0 && columns[1] >= 0 && columns[1] % cells == 0) data[1] = columns[1] / cells;
  return data.known() && columns.known();
}

void Col2imProperty::Check() {
  CompleteWindow(TypeString(), &param_);
  param_.output_size =
      WindowParam(param_.output_size, param_.axes(), 1, 1, TypeString(), "output_size");
}

bool Col2imProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                std::vector<TShape>*) const {
  TShape &columns = (*in)[0], &images = (*out)[0];
  const int64_t cells = param_.kernel.Size();
  if (columns.has_rank() && columns.ndim() != 3) {
    Throw(ErrorKind::kConfig, "{}: data {} must be columns [N, C k..., windows]", TypeString(),
          columns.ToString());
  }
  TShape expected = TShape::OfRank(2 + param_.axes());
  for (int i = 0; i < param_.axes(); ++i) expected[2 + i] = param_.output_size[i];
  UnifyShape(images, &expected, TypeString(), "output");
  const TShape found{expected[0], expected[1] < 0 ? TShape::kUnknown : expected[1] * cells,
                     CountOf(param_.WindowsOf(expected, TypeString()))};
  UnifyShape(found, &columns, TypeString(), "data");
  if (columns[1] >= 0 && columns[1] % cells != 0) {
    Throw(ErrorKind::kConfig, "{}: data {} has {} rows, not a multiple of the kernel's {} cells",
          TypeString(), columns.ToString(), columns[1], cells);
  }
  expected[0] = columns[0];
  if (columns[1] >= 0) expected[1] = columns[1] / cells;
  images = expected;
  return columns.known() && images.known();
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(im2col, registry) {
  registry.AddProperty("im2col", {}, [] { return std::make_unique<mxtrain::Im2colProperty>(); });
  registry.AddProperty("col2im", {}, [] { return std::make_unique<mxtrain::Col2imProperty>(); });
}

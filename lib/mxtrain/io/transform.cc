// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/transform.h"

#include <utility>

#include "mxtrain/io/crop_resize.h"

namespace mxtrain::io::detail {

void CropResizeTransform::Apply(Image* image, Image* scratch, RandomStream* random,
                                const ImagePart& part) const {
  CropResize crop = CropResize::Whole(image->height, image->width);
  MXTRAIN_ASSERT(Fold(&crop, random));
  io::Apply(crop, *image, {image->height, image->width, crop.box, 1}, scratch);
  part.Moves(crop.Map());
  std::swap(*image, *scratch);
}

NumberRange ParseRange(const std::vector<double>& given, const char* owner, const char* parameter,
                       double low, double high, NumberRange (*one)(double)) {
  NumberRange range;
  if (given.size() == 1 && one) {
    range = one(given[0]);
  } else if (given.size() == 2) {
    range = {given[0], given[1]};
  }
  const bool counted = given.size() == 2 || (given.size() == 1 && one);
  if (counted && range.low >= low && range.low <= range.high && range.high <= high) return range;
  Throw(ErrorKind::kConfig,
        "{}: {} = {}: expected {}two numbers, minimum and maximum, within {} .. {}", owner,
        parameter, params::Print(given), one ? "one number, or " : "", low, high);
}

}  // namespace mxtrain::io::detail

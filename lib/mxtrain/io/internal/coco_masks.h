// SPDX-License-Identifier: Apache-2.0
#pragma once
// Classes of pixels from the segmentations in a file of COCO. Private to io.
#include <memory>
#include <string_view>

#include "mxtrain/io/internal/coco_source.h"
#include "mxtrain/io/source.h"

namespace mxtrain::io {

// The class of the pixels that no object covers.
inline constexpr std::string_view kBackgroundClass = "background";

// Fields: data and label (FieldKind::kMask). The classes are `classes` or, without,
// kBackgroundClass and then the categories in the order of their ids; a category of the name
// kBackgroundClass is that class. Where objects overlap, the one of the fewest pixels is seen, of
// equally many the last. Pixels without an object are of kBackgroundClass or, if `classes` does not
// have it, of none; those of crowds (iscrowd) without an object are of none.
//
// A segmentation is a list of polygons, or counts (numbers or COCO's compressed text) and size; its
// pixels are those of pycocotools. It is decoded when its image is read. A segmentation that is
// missing or bad, or of another size than its image, makes a bad example: kData with the file and
// the annotation. So does an image of another size than the file says.
//
// Throws as NewCocoSource, but for boxes, which are not read; kData if no annotation has a
// segmentation, and kConfig for more than 255 classes.
std::unique_ptr<Source> NewCocoMasks(const CocoParam& param);

}  // namespace mxtrain::io

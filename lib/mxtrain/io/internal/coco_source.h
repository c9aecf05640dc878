// SPDX-License-Identifier: Apache-2.0
#pragma once
// Images with objects in them as COCO has them: one JSON file for all. Private to io.
#include <memory>

#include "mxtrain/base/params.h"
#include "mxtrain/io/source.h"

namespace mxtrain::io {

struct CocoParam : Parameter<CocoParam> {
  std::string path, root;
  std::vector<std::string> classes;
  static void Declare(Fields<CocoParam>& f) {
    f.Add("path", &CocoParam::path)
        .IsPath()
        .Required()
        .Help("JSON file of images, annotations and categories");
    f.Add("root", &CocoParam::root)
        .IsPath()
        .Default("")
        .Help(
            "folder that image paths are relative to; default: that of the file, or one beside "
            "it that has the first image");
    f.Add("classes", &CocoParam::classes)
        .Default({})
        .Help(
            "names of the classes in the order of their numbers; default: the categories in the "
            "order of their ids, of masks after background, the class of pixels without an "
            "object");
  }
};

// Fields: data and label (boxes.h), with the area of an object, -1 if the file does not say it, as
// the seventh number. A box is bbox, [x, y, width, height], or that of the polygons of an object
// without one; iscrowd makes a kCrowdBox. Ids are integers or text. Images without annotations have
// no objects. Paths of images are relative to `root` or, without, the first of these folders that
// has the first image: that of the file; images in it; images beside it; and, for
// instances_NAME.json, NAME beside it and in images beside it.
//
// Throws kFileSystem for a missing file, and kData, with the file, for one that is not JSON (with
// the line) or not of this form, for annotations of unknown images and categories, for ids and
// names that occur twice, and for objects of a category that is not one of `classes`.
MXTRAIN_API std::unique_ptr<Source> NewCocoSource(const CocoParam& param);

}  // namespace mxtrain::io

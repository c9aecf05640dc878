// SPDX-License-Identifier: Apache-2.0
#pragma once
// Images with objects in them as a table: a line for each object. Private to io.
#include <memory>

#include "mxtrain/base/params.h"
#include "mxtrain/io/source.h"

namespace mxtrain::io {

struct BoxCsvParam : Parameter<BoxCsvParam> {
  std::string path, root;
  std::vector<std::string> classes;
  static void Declare(Fields<BoxCsvParam>& f) {
    f.Add("path", &BoxCsvParam::path)
        .IsPath()
        .Required()
        .Help("table with an image, a class and a box per line");
    f.Add("root", &BoxCsvParam::root)
        .IsPath()
        .Default("")
        .Help("folder that image paths are relative to; default: the folder of the file");
    f.Add("classes", &BoxCsvParam::classes)
        .Default({})
        .Help("names of the classes in the order of their numbers; default: sorted");
  }
};

// Fields: data and label (boxes.h). The first line names the columns, in any order and case:
//
//   image        or file, filename, image_path, path; ImageID, whose images end in .jpg
//   class        or label, name, class_name, category, LabelName
//   xmin         or x1, left; and so ymin, xmax, ymax; or x, y, w (width), h (height) of a corner
//                and a size
//   difficult, iscrowd   if there are: 1 for such objects
//
// Others are ignored. Without such a line there are six columns: image, x1, y1, x2, y2, class
// (RetinaNet's). Boxes are in pixels, as edges. The lines of an image need not be together; one
// without a box says that the image has no objects, unless others say more.
//
// Throws kFileSystem for a missing file, and kData, with file, line and column, for cells that are
// no numbers, lines of other lengths, a class outside of the given ones; for columns that are
// missing, and for boxes of which none goes beyond 1, as those that are shares of an image's size.
MXTRAIN_API std::unique_ptr<Source> NewBoxCsvSource(const BoxCsvParam& param);

}  // namespace mxtrain::io

// SPDX-License-Identifier: Apache-2.0
#pragma once
// Images with objects in them as Darknet and Ultralytics have them: a text file for each image, a
// line for each object. Private to io.
#include <memory>

#include "mxtrain/base/params.h"
#include "mxtrain/io/source.h"

namespace mxtrain::io {

struct YoloParam : Parameter<YoloParam> {
  std::string path, annotations;
  std::vector<std::string> classes;
  static void Declare(Fields<YoloParam>& f) {
    f.Add("path", &YoloParam::path)
        .IsPath()
        .Required()
        .Help("folder of images, or of images and labels; or a file that lists images");
    f.Add("annotations", &YoloParam::annotations)
        .IsPath()
        .Default("")
        .Help("folder of the files that say what is in the images; default: found beside them");
    f.Add("classes", &YoloParam::classes)
        .Default({})
        .Help(
            "names of the classes in the order of their numbers; default: of a file of names "
            "found beside");
  }
};

// Fields: data and label (boxes.h). `path` is a folder, whose subfolder `images` is taken if there
// is one, or a text file with the path of an image per line, relative to the file's folder.
//
// The objects of images/a/b.jpg are in labels/a/b.txt, where the last folder of the name images (or
// JPEGImages) counts; else in b.txt beside the image; else in a folder of annotations beside
// (FindAnnotations). An image without such a file, or with an empty one, has no objects. A line is
// `class x y width height`, the centre and the size of a box as shares of the size of the image as
// it is shown, or `class x y x y x y ...`, a polygon, whose bounding box is taken. Shares beyond
// the image are kept. The size is that of the image's header; an image that has none that can be
// read stays, without its objects.
//
// Names of the classes are in a file classes.txt, obj.names, NAME.names or _darknet.labels, a line
// each, in a folder of the images or of their files or up to two folders above; else they are "0",
// "1", ... `classes` names the numbers if there is no such file or it has none of the names; else
// classes are numbered in that order, by name.
//
// Throws kFileSystem for missing folders and files, and kData, with file and line, for lines of
// another form and class numbers without a name, or if no image has a file.
MXTRAIN_API std::unique_ptr<Source> NewYoloSource(const YoloParam& param);

}  // namespace mxtrain::io

// SPDX-License-Identifier: Apache-2.0
#pragma once
// Images with objects in them as Pascal VOC has them, and the tools that write its form: an XML
// file for each image. Private to io.
#include <memory>

#include "mxtrain/base/params.h"
#include "mxtrain/io/source.h"

namespace mxtrain::io {

struct VocParam : Parameter<VocParam> {
  std::string path, annotations, set;
  std::vector<std::string> classes;
  static void Declare(Fields<VocParam>& f) {
    f.Add("path", &VocParam::path)
        .IsPath()
        .Required()
        .Help("folder of images (or JPEGImages) and annotations, or of both in one");
    f.Add("annotations", &VocParam::annotations)
        .IsPath()
        .Default("")
        .Help("folder of the files that say what is in the images; default: found beside them");
    f.Add("set", &VocParam::set)
        .Default("")
        .Help(
            "list of the images to take: train for ImageSets/Main/train.txt below path, or another "
            "file below it");
    f.Add("classes", &VocParam::classes)
        .Default({})
        .Help("names of the classes in the order of their numbers; default: sorted");
  }
};

// Fields: data and label (boxes.h). The annotation of an image has its name, in the folder of
// annotations as the image in the folder of images; its boxes are xmin, ymin, xmax, ymax as edges
// of the box, and difficult objects are kDifficultBox. Images without an annotation are skipped.
// Throws kFileSystem for missing folders, and kData, with the file, for one that is not XML of this
// form, numbers that are none, a class outside of the given ones, or if no image has an annotation.
MXTRAIN_API std::unique_ptr<Source> NewVocSource(const VocParam& param);

}  // namespace mxtrain::io

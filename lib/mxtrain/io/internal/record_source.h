// SPDX-License-Identifier: Apache-2.0
#pragma once
// Images in RecordIO files, as MXNet's im2rec writes them. Private to io.
#include <memory>
#include <string>
#include <vector>

#include "mxtrain/base/params.h"
#include "mxtrain/io/source.h"

namespace mxtrain::io {

struct RecordParam : Parameter<RecordParam> {
  enum Kind { kAuto, kClass, kBoxes };
  std::string path;
  std::vector<std::string> classes;
  int label_kind;
  bool labels;
  static void Declare(Fields<RecordParam>& f) {
    f.Add("path", &RecordParam::path)
        .IsPath()
        .Required()
        .Help("a .rec file, or a folder of them, which are read in the order of their names");
    f.Add("classes", &RecordParam::classes)
        .Default({})
        .Help(
            "names of the classes in the order of their numbers; if NAME.classes or classes.txt "
            "beside the file has some of them, that says what the numbers in the file mean; "
            "default: its lines, else numbers");
    f.Add("label_kind", &RecordParam::label_kind)
        .Enum({{"auto", kAuto}, {"class", kClass}, {"boxes", kBoxes}})
        .Default(kAuto)
        .Help(
            "what the labels of records are: one number, a class; or boxes of objects; auto: boxes "
            "if the first 100 records have their form");
    f.Add("labels", &RecordParam::labels)
        .Default(true)
        .Internal()
        .Help("False: the labels are not read");
  }
};

// Fields: data (images of any size), and softmax_label (), the class, or label, the boxes
// (io/boxes.h). Labels of boxes are MXNet's: two numbers, the sizes A >= 2 of this header and B >=
// 5 of an object; further numbers of the header, which are ignored; and B numbers for each object:
// its class, left, top, right and bottom as shares of the image's size, and the sixth, if there is
// one: 0, 2 for a crowd, any other for a difficult one. Objects of the class -1 fill a label, and
// are skipped. All labels are read when it is made, and of boxes the beginnings of the images.
//
// Throws as RecordReader, and kData, with file, record and offset, for labels of another form and
// classes without a name; files of one folder must have the same names of classes.
MXTRAIN_API std::unique_ptr<Source> NewRecordSource(const RecordParam& param);

}  // namespace mxtrain::io

// SPDX-License-Identifier: Apache-2.0
#pragma once
// A text file that lists images: one per line, the path followed by one or more labels
// (list_line.h). Empty lines and lines starting with '#' are ignored.
#include <memory>

#include "mxtrain/base/params.h"
#include "mxtrain/io/source.h"

namespace mxtrain::io {

struct ListParam : Parameter<ListParam> {
  std::string path, root, label_delim;
  std::vector<std::string> classes;
  int64_t weight_column;
  bool weight_optional;
  static void Declare(Fields<ListParam>& f) {
    f.Add("path", &ListParam::path).IsPath().Required().Help("file with PATH LABEL... per line");
    f.Add("root", &ListParam::root)
        .IsPath()
        .Default("")
        .Help("folder that image paths are relative to; default: the folder of the file");
    f.Add("label_delim", &ListParam::label_delim)
        .Default("")
        .Help(
            "separator between the classes of a multi-label example, such as ';' in 'cat;dog'; the "
            "label is then 0 or 1 for each class");
    f.Add("classes", &ListParam::classes)
        .Default({})
        .Internal()
        .Help("class names in order of their numbers; default: the labels found, sorted");
    f.Add("weight_column", &ListParam::weight_column)
        .Default(0)
        .Range(0)
        .Internal()
        .Help(
            "column of the weight of an example (example_weight.h), counted from 0, which is the "
            "path; 0: lines have none");
    f.Add("weight_optional", &ListParam::weight_optional)
        .Default(false)
        .Internal()
        .Help("a list that lacks the column has no weights");
  }
};

// Fields: data (images of any size) and softmax_label. A single label per line is a class: its
// number from 0, or its name. Several labels are numbers, [count], without classes. With
// label_delim the single label, which may be missing, names any number of classes: 0 or 1 per
// class, [classes]. With weight_column a column of each line is no label, but the weight of the
// example; the label that may be missing is then an empty column between tabs or commas, if the
// weight comes after it. With weight_optional a list has weights if its first line, or with
// label_delim any line, has columns for path, label and weight. Throws kFileSystem for a missing
// list, and kData, with file and line, for lines with different numbers of labels, a label outside
// the classes, a weight that is not a number from 0, and an empty list. Missing images are detected
// when read.
MXTRAIN_API std::unique_ptr<Source> NewListSource(const ListParam& param);

}  // namespace mxtrain::io

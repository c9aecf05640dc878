#pragma once
// A text file that names pictures: a line each, the path and then one label or several. Columns are parted by tabs, where a line has none
// by commas, else by spaces (a path that holds spaces wants tabs or commas). Empty lines and lines that begin with '#' are passed over.
// Lines of the reference system's list files (number, labels, path, parted by tabs) are read as well.
#include <memory>

#include "mxtrain/base/params.h"
#include "mxtrain/io/source.h"

namespace mxtrain::io {

struct ListParam : Parameter<ListParam> {
  std::string path, root, label_delim;
  std::vector<std::string> classes;
  static void Declare(Fields<ListParam>& f) {
    f.Add("path", &ListParam::path).Required().Help("the list: PATH LABEL... per line");
    f.Add("root", &ListParam::root).Default("").Help("folder to which the paths are relative; default: that of the list");
    f.Add("label_delim", &ListParam::label_delim)
        .Default("")
        .Help("what parts the classes of a picture that has any number of them: ';' in cat;dog");
    f.Add("classes", &ListParam::classes).Default({}).Help("class names in order of their numbers; default: the labels found, sorted");
  }
};

// Fields: data (pictures of any size) and softmax_label. One label per line is a class: its number from 0, or its name. Several are
// numbers, [count], without classes. With label_delim the one label, which may be missing, names any number of classes: a 0 or 1 for each,
// [classes]. Throws kFileSystem for a missing list, and kData, with file and line, for lines of different numbers
// of labels, a label outside the classes, and a list without lines. Whether a picture is there shows when it is read.
MXTRAIN_API std::unique_ptr<Source> NewListSource(const ListParam& param);

}  // namespace mxtrain::io

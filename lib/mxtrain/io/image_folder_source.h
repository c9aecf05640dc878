#pragma once
// Pictures in folders. A picture is a file whose name ends in .jpg, .jpeg, .png or .bmp, in any case; hidden files and folders (a dot
// first) are passed over silently, other files with a warning. Order is that of the names, byte by byte, the same on every machine.
#include <memory>

#include "mxtrain/base/params.h"
#include "mxtrain/io/source.h"

namespace mxtrain::io {

struct ImageFolderParam : Parameter<ImageFolderParam> {
  std::string path;
  std::vector<std::string> classes;
  static void Declare(Fields<ImageFolderParam>& f) {
    f.Add("path", &ImageFolderParam::path).Required().Help("folder with one folder of pictures per class");
    f.Add("classes", &ImageFolderParam::classes)
        .Default({})
        .Help("class names in order of their numbers; default: the folders' names, sorted");
  }
};

// A folder per class, searched to any depth. Fields: data (pictures of any size), softmax_label (): the class number.
// Without `classes` the folders found are the classes, and one without pictures is an error (kData). With `classes` (validation with the
// classes of training) a folder that is not among them is an error, and a class without pictures a warning.
MXTRAIN_API std::unique_ptr<Source> NewImageFolderSource(const ImageFolderParam& param);

struct ImageListParam : Parameter<ImageListParam> {
  std::string path;
  std::vector<std::string> files;
  bool recursive;
  static void Declare(Fields<ImageListParam>& f) {
    f.Add("path", &ImageListParam::path).Default("").Help("a folder of pictures, or one picture");
    f.Add("files", &ImageListParam::files).Default({}).Help("instead of path: the pictures, in this order");
    f.Add("recursive", &ImageListParam::recursive).Default(false).Help("with path: folders inside it too");
  }
};

// Pictures without labels, for inference. Files of `files` are taken whatever their names end in; whether they can be read shows when they
// are. Field: data.
MXTRAIN_API std::unique_ptr<Source> NewImageListSource(const ImageListParam& param);

}  // namespace mxtrain::io

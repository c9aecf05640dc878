// SPDX-License-Identifier: Apache-2.0
#pragma once
// Images in folders. An image is a file whose name ends in .jpg, .jpeg, .png or .bmp, in any case;
// hidden files and folders (leading dot) are ignored silently; folders that file servers make
// (folder_names.h), and other files, with a warning. Links are followed, also to folders outside,
// but not to a folder that they lie in; no folder is read twice. Ordered bytewise by name, the same
// on every machine.
#include <memory>

#include "mxtrain/base/params.h"
#include "mxtrain/io/source.h"

namespace mxtrain::io {

struct ImageFolderParam : Parameter<ImageFolderParam> {
  std::string path;
  std::vector<std::string> classes, exclude;
  static void Declare(Fields<ImageFolderParam>& f) {
    f.Add("path", &ImageFolderParam::path)
        .IsPath()
        .Required()
        .Help("folder with one subfolder of images per class");
    f.Add("classes", &ImageFolderParam::classes)
        .Default({})
        .Internal()
        .Help("class names in order of their numbers; default: the folders' names, sorted");
    f.Add("exclude", &ImageFolderParam::exclude)
        .Default({})
        .Help(
            "names of folders, * and ? stand for any characters, that are skipped with all that is "
            "in them, among the classes and below");
  }
};

// One folder per class, searched recursively. Fields: data (images of any size), softmax_label ():
// the class number. Without `classes` the folders are the classes, and one without images is an
// error (kData), as is a pattern of `exclude` that no folder has. With `classes` (validation with
// the classes of training) a folder not among them is an error, and a class without images a
// warning.
MXTRAIN_API std::unique_ptr<Source> NewImageFolderSource(const ImageFolderParam& param);

struct ImageListParam : Parameter<ImageListParam> {
  std::string path;
  std::vector<std::string> files;
  bool recursive;
  static void Declare(Fields<ImageListParam>& f) {
    f.Add("path", &ImageListParam::path).Default("").Help("a folder of images, or one image");
    f.Add("files", &ImageListParam::files)
        .Default({})
        .Help("instead of path: the images, in this order");
    f.Add("recursive", &ImageListParam::recursive)
        .Default(false)
        .Help("with path: include subfolders");
  }
};

// Images without labels, for inference. `files` may have any file name extension; unreadable ones
// are detected when read. Field: data.
MXTRAIN_API std::unique_ptr<Source> NewImageListSource(const ImageListParam& param);

}  // namespace mxtrain::io

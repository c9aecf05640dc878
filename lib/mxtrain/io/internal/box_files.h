// SPDX-License-Identifier: Apache-2.0
#pragma once
// Shared by the sources of image files with objects in them. Private to io.
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "mxtrain/base/error.h"
#include "mxtrain/io/boxes.h"
#include "mxtrain/io/source.h"

namespace mxtrain::io {

// An object as a file says it, its class by name.
struct NamedBox {
  std::string name;
  double left = 0, top = 0, right = 0, bottom = 0;
  BoxUse use = kPlainBox;
};

struct BoxTable {
  std::vector<std::string> paths;  // of the images
  int64_t columns = kBoxColumns;
  std::vector<float> rows;           // of the objects of all images, in their order
  std::vector<size_t> ends;          // of each image: its objects and those before it
  std::vector<std::string> classes;  // their names
  // Of images whose sizes had to be known but could not be read: why. Reading them throws it.
  std::map<size_t, std::string> unreadable;
  std::vector<std::string> notes, warnings, losses;  // of the source
};

// What is wrong (kData) with files of which all are read, to be told at once.
class WrongFiles {
 public:
  template <typename F>
  void Try(F&& read) {
    try {
      read();
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kData) throw;
      errors_.emplace_back(error.what());
    }
  }
  // Throws kData with the first errors, if there were any.
  void ThrowIfAny() const;

 private:
  std::vector<std::string> errors_;
};

// Fields: data (images of any size) and label, [most, columns], of as many objects as an image has
// at most.
std::unique_ptr<Source> NewBoxFiles(BoxTable table);

// Adds the objects of one image; numbers[i] is the class of objects[i].
void AddImage(std::string path, const std::vector<NamedBox>& objects,
              const std::vector<int64_t>& numbers, BoxTable* table);

// Numbers names by `given` or, without, in alphabetical order. Throws kData for a name that `given`
// does not have; `place(i)` names where name i is written.
struct NameNumbers {
  std::vector<int64_t> numbers;
  std::vector<std::string> classes;
};
NameNumbers NumberNames(const std::vector<std::string>& names,
                        const std::vector<std::string>& given,
                        const std::function<std::string(size_t)>& place);

// The images of a data set and the folder of the files that say what is in them.
struct AnnotatedFolder {
  std::string images, annotations;
};
// Of a folder with both as subfolders (images or JPEGImages beside annotations, Annotations or
// labels), of a folder of images beside one of annotations, or with both in it: where files with
// this ending are. Nothing if there are none.
std::optional<AnnotatedFolder> FindAnnotations(const std::string& path, const std::string& ending);
// The images in it and its subfolders, sorted. Throws kFileSystem and kData.
std::vector<std::string> ImagesIn(const std::string& folder);

}  // namespace mxtrain::io

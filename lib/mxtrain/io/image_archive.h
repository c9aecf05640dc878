// SPDX-License-Identifier: Apache-2.0
#pragma once
// Images in tar and zip archives, as sources read them: without unpacking. Nothing is written, and
// no path leads out of the archive: entries whose paths do, links, hidden files and those of file
// servers are no images.
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "mxtrain/base/macros.h"
#include "mxtrain/base/params.h"
#include "mxtrain/io/source.h"

namespace mxtrain::io {

// Whether a regular file begins as a tar or zip archive, or, of gzip, unpacks to one; of other
// compressed files whether it is named .tar.bz2, .tar.xz or .tar.zst, or is /dev/stdin.
MXTRAIN_API bool IsImageArchive(const std::string& path);
// Whether bytes begin as such an archive; of compressed ones any is taken for a tar.
MXTRAIN_API bool BeginsArchive(std::string_view bytes);

// The images of an archive in the order of their names. Those of a tar, and of a zip whose entries
// are stored or deflated, are read where they lie, at any time; those of a compressed tar are held
// in memory. Immutable after construction.
class MXTRAIN_API ImageArchive {
 public:
  // Reads the archive once. Throws kFileSystem if it cannot be read, kData if it is damaged,
  // encrypted, or holds more than 10 million entries, an image of more than 256 MiB or, compressed,
  // more than 4 GiB of images or 16 GiB in all.
  explicit ImageArchive(const std::string& path);
  ~ImageArchive();
  ImageArchive(const ImageArchive&) = delete;
  ImageArchive& operator=(const ImageArchive&) = delete;

  int64_t size() const;
  // The path in the archive, without ./ in front.
  const std::string& Name(int64_t index) const;
  // The bytes of the file. Any thread. Throws kFileSystem, and kData if the archive is damaged
  // there.
  void Read(int64_t index, std::string* bytes) const;
  // Of files that are skipped.
  const std::vector<std::string>& warnings() const;
  int64_t held() const;  // bytes of images in memory

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

// The folders in an archive that hold the parts of a data set, by their names (folder_names.h),
// each with a folder for each class; "" for parts that there are not.
struct ArchiveParts {
  std::string train, val, test;
};
MXTRAIN_API ArchiveParts PartsOf(const ImageArchive& archive);

struct ImageArchiveParam : Parameter<ImageArchiveParam> {
  std::string path, folder;
  std::vector<std::string> classes;
  bool labels = true;
  static void Declare(Fields<ImageArchiveParam>& f) {
    f.Add("path", &ImageArchiveParam::path)
        .IsPath()
        .Required()
        .Help(
            "tar or zip archive with one folder for each class; compressed tars are held in "
            "memory");
    f.Add("folder", &ImageArchiveParam::folder)
        .Default("")
        .Help(
            "the folder in the archive that the folders of the classes lie in, such as train; "
            "default: the one that all images lie in");
    f.Add("classes", &ImageArchiveParam::classes)
        .Default({})
        .Internal()
        .Help(
            "names of the classes in order of their numbers; default: the folders' names, sorted");
    f.Add("labels", &ImageArchiveParam::labels)
        .Default(true)
        .Internal()
        .Help("False: all images, in any folder, without labels");
  }
};

// The class of an image is the first folder of its path below `folder`. Throws as ImageArchive, and
// kData if there are no images, no folders of classes, other classes than `classes`, or folders
// that are parts of a data set.
MXTRAIN_API std::unique_ptr<Source> NewImageArchiveSource(const ImageArchiveParam& param);

}  // namespace mxtrain::io

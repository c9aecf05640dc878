// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the tables of a COCO file say together. Private to io.
#include <string>
#include <vector>

#include "mxtrain/io/internal/coco_file.h"

namespace mxtrain::io {

// The names of the categories in the order of their ids, numbers before text.
std::vector<std::string> CategoryNames(const CocoTables& tables);

// The objects of each image: of images[i], tables.objects[order[k]] is of the class labels[k], for
// k up to ends[i], from ends[i - 1] on.
struct CocoObjects {
  std::vector<size_t> order, ends;
  std::vector<int> labels;
};
// `classes`: their names. Throws kData for ids and names that occur twice, annotations of unknown
// images and categories, and those of a category that is not one of `classes`, and kConfig for a
// name in `classes` that occurs twice.
CocoObjects ArrangeObjects(const CocoTables& tables, const std::vector<std::string>& classes,
                           const std::string& file);

// The paths of the images, of which there is one at least, relative to `root` or, without, to the
// first of these folders that has the first image: that of the file; images in it; images beside
// it; and, for instances_NAME.json, NAME beside it and in images beside it. Adds a warning if none
// has it.
std::vector<std::string> CocoImagePaths(const CocoTables& tables, const std::string& root,
                                        const std::string& file,
                                        std::vector<std::string>* warnings);

}  // namespace mxtrain::io

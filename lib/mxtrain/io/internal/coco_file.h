// SPDX-License-Identifier: Apache-2.0
#pragma once
// The tables in a file of COCO. Private to io.
#include <string>
#include <vector>

#include "mxtrain/io/internal/coco_segmentations.h"

namespace mxtrain::io {

// Ids as text, so that 7 and "7" are the same.
struct CocoImage {
  std::string id, file_name;
  double width = 0, height = 0;  // as the file says, 0 if it does not
};
struct CocoCategory {
  std::string id, name;
};
struct CocoObject {
  std::string id = {}, image = {}, category = {};
  double left = 0, top = 0, right = 0, bottom = 0, area = -1;  // of CocoContent::kBoxes
  uint64_t segmentation = CocoSegmentations::kNone;            // of kSegmentations
  bool crowd = false;
};

struct CocoTables {
  std::vector<CocoImage> images;
  std::vector<CocoCategory> categories;
  std::vector<CocoObject> objects;
  CocoSegmentations segmentations;
};

// What is read of the annotations, and must be right.
enum class CocoContent { kBoxes, kSegmentations };

// Reads a file, which may be compressed (gzip) or a pipe. A box is bbox, or that of the polygons of
// an annotation without one. Throws kFileSystem and, with the file and the line or the id, kData
// for what is not such a file: not JSON, without a table, without ids and names, without or with a
// bad box. A bad segmentation is an error where its image is read.
CocoTables ReadCocoFile(const std::string& file, CocoContent content);

}  // namespace mxtrain::io

// SPDX-License-Identifier: Apache-2.0
#include "app/tasks/classification/shape_folders.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "app/tasks/shape_images.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"

namespace mxtrain::tasks {
namespace {

void WriteOne(const SynthRequest& request, size_t shape, int64_t number,
              const std::filesystem::path& part) {
  const SynthImage image = DrawSynthImage(request.seed, shape, number, request.size);
  const std::filesystem::path folder = part / ShapeNames()[shape];
  if (number == 0 || !std::filesystem::exists(folder)) MakeFolders(folder.string());
  const std::filesystem::path file = folder / format("{:06}{}", number, image.ending());
  FileAppender(file.string(), FileAppender::Begin::kNew).Append(image.Bytes());
}

}  // namespace

SynthResult SynthesizeShapes(const SynthRequest& request) {
  const auto most = static_cast<int>(ShapeNames().size());
  const int classes = request.classes > 0 ? request.classes : 6;
  if (classes > most || classes < 2)
    Throw(ErrorKind::kUsage, "--classes {}: there are 2 to {}: {}", classes, most,
          join(ShapeNames(), ", "));
  const int64_t of_class = request.count / classes;
  const double fraction = static_cast<double>(of_class) * request.val;
  const int64_t val_of_class = request.val > 0 ? std::max<int64_t>(std::llround(fraction), 1) : 0;
  if (of_class < 2 || val_of_class >= of_class) {
    Throw(ErrorKind::kUsage,
          "--count {} leaves {} images for each of {} classes; at least 2 are needed",
          request.count, of_class, classes);
  }
  const std::filesystem::path folder = request.folder;
  for (int64_t i = 0; i < of_class && !request.stopped(); ++i) {
    for (int k = 0; k < classes; ++k)
      WriteOne(request, static_cast<size_t>(k), i, folder / (i < val_of_class ? "val" : "train"));
  }
  return {(of_class - val_of_class) * classes,
          val_of_class * classes,
          {ShapeNames().begin(), ShapeNames().begin() + classes}};
}

}  // namespace mxtrain::tasks

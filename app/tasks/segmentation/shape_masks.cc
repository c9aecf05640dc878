// SPDX-License-Identifier: Apache-2.0
#include "app/tasks/segmentation/shape_masks.h"

#include <filesystem>

#include "app/tasks/class_colours.h"
#include "app/tasks/shape_images.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"

namespace mxtrain::tasks {

SynthResult SynthesizeMasks(const SynthRequest& request) {
  const auto most = static_cast<int>(ShapeNames().size()) + 1;
  const int classes = request.classes > 0 ? request.classes : 4;
  if (classes > most || classes < 2)
    Throw(ErrorKind::kUsage, "--classes {}: there are 2 to {}: background, {}", classes, most,
          join(ShapeNames(), ", "));
  const int64_t val = ValidationCount(request);
  const auto shapes = static_cast<size_t>(classes - 1);
  const std::filesystem::path folder = request.folder;
  std::vector<std::string> names = {"background"};
  names.insert(names.end(), ShapeNames().begin(),
               ShapeNames().begin() + static_cast<std::ptrdiff_t>(shapes));
  for (int64_t i = 0; i < request.count && !request.stopped(); ++i) {
    const std::filesystem::path part = folder / (i < val ? "val" : "train"),
                                images = part / "images", masks = part / "masks";
    if (i == 0 || i == val) MakeFolders(images.string()), MakeFolders(masks.string());
    const SynthScene scene = DrawSynthScene(request.seed, shapes, i, request.size);
    const std::string name = format("{:06}", i);
    const auto write = [](const std::filesystem::path& file, const std::string& bytes) {
      FileAppender(file.string(), FileAppender::Begin::kNew).Append(bytes);
    };
    write(images / (name + scene.image.ending()), scene.image.Bytes());
    write(masks / (name + ".png"), io::EncodePng(scene.classes, ClassPalette()));
  }
  if (!request.stopped())
    WriteFileAtomically((folder / "classes.txt").string(), format("{}\n", join(names, "\n")));
  return {request.count - val, val, names};
}

}  // namespace mxtrain::tasks

// SPDX-License-Identifier: Apache-2.0
#include "app/tasks/detection/shape_boxes.h"

#include <cmath>
#include <filesystem>

#include "app/tasks/shape_images.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"

namespace mxtrain::tasks {
namespace {

std::string LabelText(const SynthScene& scene) {
  const double width = scene.image.image.width, height = scene.image.image.height;
  std::string text;
  for (const SynthObject& o : scene.objects)
    text += format("{} {:.6f} {:.6f} {:.6f} {:.6f}\n", o.shape, (o.left + o.right) / 2.0 / width,
                   (o.top + o.bottom) / 2.0 / height, (o.right - o.left) / width,
                   (o.bottom - o.top) / height);
  return text;
}

}  // namespace

SynthResult SynthesizeBoxes(const SynthRequest& request) {
  const auto most = static_cast<int>(ShapeNames().size());
  const int classes = request.classes > 0 ? request.classes : 3;
  if (classes > most)
    Throw(ErrorKind::kUsage, "--classes {}: there are 1 to {}: {}", classes, most,
          join(ShapeNames(), ", "));
  const int64_t val = ValidationCount(request);
  const std::filesystem::path folder = request.folder;
  const std::vector<std::string> names(ShapeNames().begin(), ShapeNames().begin() + classes);
  for (int64_t i = 0; i < request.count && !request.stopped(); ++i) {
    const std::filesystem::path part = folder / (i < val ? "val" : "train"),
                                images = part / "images", labels = part / "labels";
    if (i == 0 || i == val) MakeFolders(images.string()), MakeFolders(labels.string());
    const SynthScene scene =
        DrawSynthScene(request.seed, static_cast<size_t>(classes), i, request.size);
    const std::string name = format("{:06}", i);
    const auto write = [](const std::filesystem::path& file, const std::string& bytes) {
      FileAppender(file.string(), FileAppender::Begin::kNew).Append(bytes);
    };
    write(images / (name + scene.image.ending()), scene.image.Bytes());
    write(labels / (name + ".txt"), LabelText(scene));
  }
  if (!request.stopped())
    WriteFileAtomically((folder / "classes.txt").string(), format("{}\n", join(names, "\n")));
  return {request.count - val, val, names};
}

}  // namespace mxtrain::tasks

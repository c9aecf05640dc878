// SPDX-License-Identifier: Apache-2.0
#include "app/tasks/segmentation/annotated_masks.h"

#include <filesystem>

#include "app/tasks/annotated_data.h"
#include "app/tasks/recipe_text.h"
#include "app/tasks/segmentation/mask_recipe.h"
#include "mxtrain/base/format.h"

namespace mxtrain::tasks {

std::unique_ptr<Recipe> RecognizeAnnotatedMasks(const RecipeRequest& request) {
  const auto parts = FindAnnotatedData(request, io::FieldKind::kMask, {});
  if (!parts) return nullptr;
  const io::Source& train = *parts->train.source;
  MaskData data;
  data.classes = train.class_names();
  data.form = format(" ({})", parts->train.kind);
  data.size = MedianSize(train);
  data.train_images = train.size();
  data.train = SourceLines(parts->train, request.output) + "    label: mask\n";
  data.train +=
      TextLine("    classes: " + ListText(data.classes), "background: the pixels of no object");
  if (parts->val) {
    data.val = SourceLines(*parts->val, request.output);
    data.val_images = parts->val->source->size();
  } else {
    data.HoldOut();
  }
  return NewMaskRecipe(std::move(data));
}

}  // namespace mxtrain::tasks

// SPDX-License-Identifier: Apache-2.0
#pragma once
// Data sets whose files say what is in the images, as `init` finds them in a folder.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/tasks/recipe.h"
#include "mxtrain/io/source.h"

namespace mxtrain::tasks {

// A data set, and how a configuration names it.
struct AnnotatedData {
  std::string kind, path;  // the source; absolute
  Kwargs params;           // without those that say which labels it gives
  std::shared_ptr<const io::Source> source;
};

struct AnnotatedParts {
  AnnotatedData train;
  std::optional<AnnotatedData> val;  // none: there is no such part
};

// The data in request.root, or its parts by their names, whose labels are of the kind `wanted`,
// kBoxes or kMask; none if there are no such files. `classes`: their names, if they are known.
// Throws kData for files that cannot be read, and for a single image; warns of a part for
// validation without such labels.
std::optional<AnnotatedParts> FindAnnotatedData(const RecipeRequest& request, io::FieldKind wanted,
                                                const std::vector<std::string>& classes);

// The lines of a section of `data` that name it, in the configuration `output`.
std::string SourceLines(const AnnotatedData& data, const std::string& output);

}  // namespace mxtrain::tasks

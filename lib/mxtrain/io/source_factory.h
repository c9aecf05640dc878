// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sources by name.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "mxtrain/base/params.h"
#include "mxtrain/io/source.h"

namespace mxtrain::io {

struct SourceInfo {
  std::string name, help;
  int64_t num_classes = 0;  // if the format of the files fixes it, else 0
  std::vector<FieldInfo> parameters;
};

// mnist, cifar10, cifar100, csv, image_folder, list, image_list.
MXTRAIN_API std::vector<SourceInfo> ListSources();
// Besides its own parameters every kind takes those of HoldoutParam (holdout_source.h). Throws
// kConfig for an unknown kind (with the nearest known one) or parameter, and what the source itself
// throws.
MXTRAIN_API std::unique_ptr<Source> MakeSource(std::string_view kind, const Kwargs& kwargs);

}  // namespace mxtrain::io

// SPDX-License-Identifier: Apache-2.0
#pragma once
// The sheet of the first training batch: images as the net reads them, with their labels.
#include <memory>
#include <string>
#include <vector>

#include "app/report/sample_sheet.h"
#include "app/tasks/task.h"
#include "mxtrain/io/data_iter.h"

namespace mxtrain::tasks {

// Writes FOLDER/train_batch.png (train_batch_INPUT.png if several inputs are images), at most
// kMostOfSheet images; nothing if no input contains images. Each task shows its label. Resets the
// iterator; the run resets it again. Throws kFileSystem, and what the iterator throws.
inline constexpr int64_t kMostOfSheet = 32;
void SaveFirstBatch(const std::string& folder, DataIter& train, const report::ImageReader& reader,
                    const std::vector<std::unique_ptr<Task>>& tasks);

}  // namespace mxtrain::tasks

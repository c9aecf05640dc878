// SPDX-License-Identifier: Apache-2.0
#include "app/tasks/first_batch.h"

#include <algorithm>
#include <set>

#include "mxtrain/base/file.h"
#include "mxtrain/base/format.h"

namespace mxtrain::tasks {
namespace {

// A label of the batch, in the units of the data, and the task that shows it.
struct ShownLabel {
  const Task* task;
  TShape shape;
  std::vector<float> values;
};

// Each label once, shown by the first task that has it.
std::vector<ShownLabel> LabelsOf(const DataBatch& batch, const DataIter& iter,
                                 const std::vector<std::unique_ptr<Task>>& tasks) {
  std::vector<ShownLabel> shown;
  std::set<std::string> seen;
  const std::vector<DataDesc> labels = iter.provide_label();
  for (const auto& task : tasks) {
    const std::string& name = task->head().label;
    const auto label = std::ranges::find(labels, name, &DataDesc::name);
    if (label == labels.end() || !seen.insert(name).second) continue;
    const NDArray& array = batch.label[static_cast<size_t>(label - labels.begin())];
    ShownLabel& one = shown.emplace_back(ShownLabel{task.get(), array.shape(), array.ToVector()});
    if (label->units) label->units->Restore(&one.values);
  }
  return shown;
}

}  // namespace

void SaveFirstBatch(const std::string& folder, DataIter& train, const report::ImageReader& reader,
                    const std::vector<std::unique_ptr<Task>>& tasks) {
  std::vector<DataDesc> inputs = train.provide_data();
  const auto images = std::ranges::count_if(inputs, report::ImageReader::IsImage);
  DataBatch batch;
  train.Reset(0);
  if (images == 0 || !train.Next(&batch)) return;
  inputs = ArraysOfBatch(train, batch).data;
  MakeOwnFolder(folder);
  const std::vector<ShownLabel> labels = LabelsOf(batch, train, tasks);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!report::ImageReader::IsImage(inputs[i])) continue;
    const std::vector<float> planes = InputValues(inputs[i], batch.data[i]);
    const int64_t size = inputs[i].shape.Size() / inputs[i].shape[0];
    std::vector<report::SheetImage> sheet;
    for (int64_t k = 0; k < std::min(batch.count, kMostOfSheet); ++k) {
      report::SheetImage& one = sheet.emplace_back(
          report::SheetImage{reader.Read(planes.data() + k * size, inputs[i].shape), {}});
      for (const ShownLabel& label : labels) {
        const auto width = static_cast<size_t>(label.shape.Size() / label.shape[0]);
        label.task->Show(std::span(label.values).subspan(static_cast<size_t>(k) * width, width),
                         label.shape, &one);
      }
    }
    const std::string name = images > 1 ? "train_batch_" + inputs[i].name : "train_batch";
    plot::SaveAs(report::DrawSheet("first training batch, as fed to the net", sheet),
                 format("{}/{}.png", folder, name));
  }
}

}  // namespace mxtrain::tasks

// SPDX-License-Identifier: Apache-2.0
#include "app/commands/label_trial.h"

#include "app/config/net.h"
#include "app/session/shape_check.h"
#include "mxtrain/base/error.h"

namespace mxtrain::commands {

LabelTrial::LabelTrial(const session::Session& session, const DataIter& iter)
    : losses_(session.net().symbol),
      metrics_(session.net().symbol, losses_, session.Metrics(), iter.provide_label()) {
  const config::Net& net = session.net();
  const Symbol::Shapes found = net.symbol.InferShape(config::BatchShapes(net, iter.batch_size()));
  for (const TShape& shape : found.complete ? found.outputs : session::OutputShapes(iter, net)) {
    std::vector<float>& values = values_.emplace_back(static_cast<size_t>(shape.Size()), 0.5f);
    outputs_.push_back({values.data(), shape, DType::kFloat32, {}, Context::cpu()});
  }
}

std::optional<std::string> LabelTrial::WhyNot(const DataBatch& batch, const DataIter& iter) {
  std::map<std::string, TBlob> labels;
  const std::vector<DataDesc> descs = iter.provide_label();
  for (size_t i = 0; i < descs.size(); ++i) {
    batch.label[i].WaitToRead();
    labels[descs[i].name] = batch.label[i].data();
  }
  if (!Refusal(labels, batch.count)) return std::nullopt;
  for (int64_t count = 1;; ++count) {
    if (const auto why = Refusal(labels, count))
      return format("{}: {}", iter.ExampleName(batch.index[static_cast<size_t>(count - 1)]), *why);
  }
}

std::optional<std::string> LabelTrial::Refusal(const std::map<std::string, TBlob>& labels,
                                               int64_t count) {
  try {
    for (size_t h = 0; h < losses_.heads().size(); ++h) {
      const LossReport::Head& head = losses_.heads()[h];
      if (!head.label.empty() && labels.contains(head.label))
        losses_.Update(static_cast<int>(h), outputs_[head.output], &labels.at(head.label), count);
    }
    metrics_.Update(outputs_, labels, count);
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kData) throw;
    return e.what();
  }
  return std::nullopt;
}

bool LabelsFit(session::Session* session) {
  for (const bool validation : {false, true}) {
    const auto source = session->OpenSource(validation);
    if (!source || (source->num_classes() > 0 && session->net().symbol.NumOutputs() == 1)) continue;
    const std::unique_ptr<DataIter> iter = session->WholeIter(validation);
    LabelTrial labels(*session, *iter);
    DataBatch batch;
    iter->Reset(0);
    while (iter->Next(&batch)) {
      if (StopFlag() == 1) return false;
      if (const auto why = labels.WhyNot(batch, *iter)) Throw(ErrorKind::kData, "{}", *why);
    }
  }
  return true;
}

}  // namespace mxtrain::commands

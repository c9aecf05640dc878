// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether the labels of a data set fit the losses and metrics of a net, without running it.
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "app/session/session.h"
#include "mxtrain/io/data_iter.h"
#include "mxtrain/train/evaluation.h"
#include "mxtrain/train/loss_report.h"

namespace mxtrain::commands {

// Losses and metrics over dummy outputs: what they reject, they reject because of the labels.
class LabelTrial {
 public:
  LabelTrial(const session::Session& session, const DataIter& iter);

  // The first example of the batch whose labels are rejected, and why.
  std::optional<std::string> WhyNot(const DataBatch& batch, const DataIter& iter);

 private:
  std::optional<std::string> Refusal(const std::map<std::string, TBlob>& labels, int64_t count);

  LossReport losses_;
  MetricSet metrics_;
  std::vector<std::vector<float>> values_;
  std::vector<TBlob> outputs_;  // a batch
};

// Reads the training and validation examples, except those of one net output whose classes have
// names: CheckClassCount has compared them. Throws kData for the first label that does not fit.
// False if a stop was requested first.
bool LabelsFit(session::Session* session);

}  // namespace mxtrain::commands

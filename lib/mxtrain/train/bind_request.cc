// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/train/bind_request.h"

#include <algorithm>
#include <map>
#include <string>

#include "mxtrain/base/error.h"
#include "mxtrain/train/internal/rows_read.h"

namespace mxtrain {

bool BindOptions::SumsOverDevices() const {
  return gpus_of_ranks || std::any_of(workers.begin(), workers.end(),
                                      [&](Context device) { return device != workers[0]; });
}

Executor::BindRequest TrainingRequest(const BindOptions& options, const Symbol& net,
                                      std::span<const DataDesc> arrays, size_t worker) {
  const std::vector<Context>& workers = options.workers;
  const Context device = workers.at(worker);
  const auto on_device = std::count(workers.begin(), workers.end(), device);
  Executor::BindRequest request = EvaluationRequest(net, arrays, device, options.modes);
  request.is_train = true;
  if (workers.size() > 1 && request.devices().size() > 1) {
    Throw(ErrorKind::kConfig,
          "groups of layers cannot be placed on other devices while {} workers share each batch; "
          "train with one worker, or without the groups' devices",
          workers.size());
  }
  request.divided_batch = options.sync_batch_norm;
  request.replica = options.first_replica + static_cast<int>(worker);
  // Across several devices, gradient aggregation starts as gradients become ready.
  if (options.SumsOverDevices()) request.bucket_bytes = options.bucket_bytes;
  request.memory_budget = options.memory_budget.Among(on_device);
  for (auto& [name, shape] : request.shapes) shape[0] /= static_cast<int64_t>(workers.size());
  const std::map<std::string, Attrs> attrs = net.ListAttrs();
  for (const std::string& name : net.ListArguments()) {
    if (request.inputs.contains(name)) continue;
    const auto own = attrs.find(name);
    if (FindMultipliers(name, own == attrs.end() ? Attrs() : own->second, options.lr_mult).lr == 0)
      continue;
    request.grad_req[name] =
        options.grad_accum > 1 ? executor::GradReq::kAdd : executor::GradReq::kWrite;
  }
  for (const RowsRead& rows : FindRowsRead(options, net, arrays)) {
    const auto own = request.grad_req.find(rows.parameter);
    if (own != request.grad_req.end()) own->second = executor::GradReq::kAdd;
  }
  return request;
}

}  // namespace mxtrain

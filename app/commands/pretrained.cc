// SPDX-License-Identifier: Apache-2.0
#include "app/commands/pretrained.h"

#include "app/config/address.h"
#include "app/config/name_list.h"
#include "app/config/net_onnx.h"
#include "app/fetch/remote_file.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/ndarray/safetensors_shards.h"

namespace mxtrain::commands {
namespace {

constexpr size_t kMostIndexBytes = size_t{64} << 20;

NameMap ReadMap(const std::string& path) {
  return path.empty() ? NameMap() : config::ReadNameList(path).rules;
}

// Without training, the arrays that are not taken would be saved with their random values.
void RequireWhole(const WeightsAccount& account, Session& session) {
  if (account.reset.empty()) return;
  session.diagnostics().Error(
      session.loaded().PlaceOf("train.epochs"),
      format("train.epochs = 0 saves the model of train.weights unchanged, but not all of the net "
             "is in it: {}",
             account.Text()),
      "train at least one epoch, or map names in the file to names of the net with "
      "train.weights.map");
  session.diagnostics().ThrowIfErrors();
}

std::map<std::string, NDArray> ArraysOfOnnx(Session& session) {
  return onnx::ArraysOf(config::ImportOnnx(session.config().net, session.runtime().operators()),
                        session.runtime());
}

}  // namespace

std::string LocalWeights(const std::string& file, report::Console& console) {
  const config::PinnedFile pinned = config::SplitPin(file);
  if (!config::IsAddress(file)) {
    if (!pinned.sha256.empty()) fetch::CheckSha256(pinned.file, pinned.sha256);
    return pinned.file;
  }
  fetch::FetchOptions options = fetch::OptionsOfEnvironment();
  options.sha256 = pinned.sha256;
  options.stops = [] { return StopFlag() == 1; };
  std::string local = fetch::FetchFile(pinned.file, options, console);
  if (IsSafetensorsIndex(local)) {
    options.sha256.clear();  // that of the index
    for (const std::string& shard : ShardsOf(ReadFile(local, kMostIndexBytes), pinned.file))
      fetch::FetchFile(config::SiblingOf(pinned.file, shard), options, console);
  }
  return local;
}

void TakePretrained(Session& session, Trainer* trainer, report::Console& console) {
  // train.weights, else the file of net.onnx
  const config::WeightsConfig& weights = session.config().train.weights;
  const bool is_onnx = weights.file.empty();
  const std::string name =
      is_onnx ? session.config().net.onnx : config::SplitPin(weights.file).file;
  if (name.empty()) return;
  const std::map<std::string, NDArray> arrays =
      is_onnx ? ArraysOfOnnx(session)
              : LoadWeights(session.runtime(), LocalWeights(weights.file, console),
                            ReadMap(weights.map));
  const WeightsAccount account = trainer->Begin(arrays);
  if (account.taken.empty()) {
    Throw(ErrorKind::kConfig,
          "no array of {} fits the net: {}; use train.weights.map to map names in the file to "
          "names of the net",
          name, account.Text());
  }
  if (session.config().train.epochs == 0) RequireWhole(account, session);
  console.Message(LogLevel::kInfo, format("weights of {}: {}", name, account.Text()));
}

}  // namespace mxtrain::commands

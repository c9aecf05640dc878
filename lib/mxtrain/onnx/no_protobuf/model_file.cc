// SPDX-License-Identifier: Apache-2.0
// Builds without libonnx-dev.
#include "mxtrain/onnx/model_file.h"

#include "mxtrain/base/error.h"

namespace mxtrain::onnx {
namespace {

[[noreturn]] void Refuse() {
  Throw(ErrorKind::kUsage,
        "this build of mxtrain has no ONNX: libonnx-dev and libprotobuf-dev were not there when it "
        "was built, or MXTRAIN_WITH_ONNX=OFF; install them (scripts/install_deps.sh does) and "
        "build again");
}

}  // namespace

bool HasOnnxFiles() {
  return false;
}
std::string WriteModel(Model) {
  Refuse();
}
Model ReadModel(const std::string&) {
  Refuse();
}
Model ParseModel(std::string_view, const std::string&, const std::string&) {
  Refuse();
}

}  // namespace mxtrain::onnx

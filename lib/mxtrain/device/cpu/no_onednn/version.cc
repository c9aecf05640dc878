#include "mxtrain/device/cpu/onednn/version.h"

namespace mxtrain {

std::string OneDnnVersion() {
  return "";
}

}  // namespace mxtrain

// SPDX-License-Identifier: Apache-2.0
#include "app/console/showing.h"

#include <filesystem>

#include "mxtrain/base/error.h"

namespace mxtrain::console {

bool TryToShow(Console& console, const std::string& what, const std::function<void()>& show) {
  std::string reason;
  try {
    show();
    return true;
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kFileSystem && e.kind() != ErrorKind::kData) throw;
    reason = e.what();
  } catch (const std::filesystem::filesystem_error& e) {
    reason = e.what();
  }
  console.Message(LogLevel::kWarning,
                  format("cannot write {}; the run continues without it: {}", what, reason));
  return false;
}

}  // namespace mxtrain::console

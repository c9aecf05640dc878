// SPDX-License-Identifier: Apache-2.0
#include "app/report/list_item.h"

#include "app/config/printable.h"

namespace mxtrain::report {

std::string ListItem(const std::string& name) {
  const std::string text = config::Printable(name);
  return text.find(',') == std::string::npos ? text : "'" + text + "'";
}

}  // namespace mxtrain::report

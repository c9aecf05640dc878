#include "app/report/output.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>

#include "mxtrain/base/error.h"

namespace mxtrain::report {

std::string JsonText(const Json& value, int indent) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

std::string QuoteCsv(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

void FlushResults() {
  errno = 0;
  const bool written = static_cast<bool>(std::cout.flush()), arrived = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  if (written && arrived) return;
  Throw(ErrorKind::kFileSystem, "cannot write the results to stdout{}", errno ? format(": {}", std::strerror(errno)) : "");
}

}  // namespace mxtrain::report

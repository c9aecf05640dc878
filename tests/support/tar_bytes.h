// SPDX-License-Identifier: Apache-2.0
#pragma once
// A tar archive, byte by byte (POSIX.1-1988, ustar).
#include <string>
#include <vector>

#include "mxtrain/base/format.h"

namespace mxtrain::test {

struct TarEntry {
  std::string name, bytes;
  char type = '0';  // '2': a link
};

inline std::string TarOf(const std::vector<TarEntry>& entries) {
  std::string tar;
  for (const auto& [name, bytes, type] : entries) {
    std::string header(512, '\0');
    const auto put = [&header](size_t at, const std::string& text) {
      header.replace(at, text.size(), text);
    };
    put(0, name);
    put(100, "0000644");
    put(124, format("{:011o}", type == '0' ? bytes.size() : 0));
    put(136, "00000000000");
    put(148, "        ");
    put(156, std::string(1, type));
    if (type == '2') put(157, bytes);
    put(257, std::string("ustar\00000", 8));
    unsigned sum = 0;
    for (const char c : header) sum += static_cast<unsigned char>(c);
    put(148, format("{:06o}", sum) + std::string("\0 ", 2));
    tar += header;
    if (type != '0') continue;
    tar += bytes;
    tar.resize((tar.size() + 511) / 512 * 512, '\0');
  }
  return tar + std::string(1024, '\0');
}

}  // namespace mxtrain::test

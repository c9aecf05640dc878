// SPDX-License-Identifier: Apache-2.0
#pragma once
// SHA-256 (FIPS 180-4), by libmd; in a build without downloads every call throws.
#include <memory>
#include <string>
#include <string_view>

namespace mxtrain::fetch {

// Whether this build has it.
bool HasSha256();

class Sha256 {
 public:
  // Throws kConfig in a build without downloads.
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;
  void Add(std::string_view bytes);
  std::string Hex();  // of all bytes, 64 digits in lower case; nothing may be added afterwards

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string Sha256OfText(std::string_view text);
// Reads the file in pieces. Throws as FileReader.
std::string Sha256OfFile(const std::string& path);

}  // namespace mxtrain::fetch

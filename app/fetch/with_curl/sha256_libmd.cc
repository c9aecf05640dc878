// SPDX-License-Identifier: Apache-2.0
#include <sha2.h>
#include <sys/types.h>

#include "app/fetch/sha256.h"

namespace mxtrain::fetch {

struct Sha256::State {
  SHA2_CTX context;
};

bool HasSha256() {
  return true;
}

Sha256::Sha256() : state_(std::make_unique<State>()) {
  SHA256Init(&state_->context);
}
Sha256::~Sha256() = default;

void Sha256::Add(std::string_view bytes) {
  SHA256Update(&state_->context, reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
}

std::string Sha256::Hex() {
  uint8_t digest[SHA256_DIGEST_LENGTH];
  SHA256Final(digest, &state_->context);
  std::string text;
  for (const uint8_t byte : digest) {
    for (const int digit : {byte >> 4, byte & 15}) text += "0123456789abcdef"[digit];
  }
  return text;
}

}  // namespace mxtrain::fetch

// SPDX-License-Identifier: Apache-2.0
// A build without libcurl's headers or libmd (MXTRAIN_WITH_CURL).
#include "app/fetch/http_client.h"
#include "app/fetch/sha256.h"
#include "mxtrain/base/error.h"

namespace mxtrain::fetch {

struct HttpClient::Library {};
struct Sha256::State {};

std::string WhyNoDownloads() {
  return "this program was built without downloads and checksums (MXTRAIN_WITH_CURL); download the "
         "file with another program, and name its path";
}

HttpClient::HttpClient() {
  Throw(ErrorKind::kConfig, "{}", WhyNoDownloads());
}
HttpClient::~HttpClient() = default;
HttpEnd HttpClient::Get(const HttpRequest&, const HttpListener&) {
  Throw(ErrorKind::kConfig, "{}", WhyNoDownloads());
}

bool HasSha256() {
  return false;
}
Sha256::Sha256() {
  Throw(ErrorKind::kConfig, "{}", WhyNoDownloads());
}
Sha256::~Sha256() = default;
void Sha256::Add(std::string_view) {
  Throw(ErrorKind::kConfig, "{}", WhyNoDownloads());
}
std::string Sha256::Hex() {
  Throw(ErrorKind::kConfig, "{}", WhyNoDownloads());
}

}  // namespace mxtrain::fetch

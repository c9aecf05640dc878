// SPDX-License-Identifier: Apache-2.0
#pragma once
// A file by HTTP, by libcurl, which is opened when the first client is made: the program runs
// without it. libcurl reads the proxy from its environment variables (https_proxy, no_proxy, ...)
// and checks servers by the certificates of the system.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace mxtrain::fetch {

struct HttpRequest {
  std::string url;        // https://, or http:// of this machine
  int64_t from = 0;       // the first byte; above 0: the rest of a file that has begun to come
  std::string validator;  // of that file: anything but its rest is sent if it has changed since
};

// The head of the last answer, after redirects.
struct HttpAnswer {
  int64_t status = 0;
  int64_t from = -1;      // of status 206: the first byte that follows; -1: not told
  int64_t bytes = -1;     // that follow; -1: unknown
  int64_t total = -1;     // of status 206 and 416: bytes of the whole file; -1: not told
  std::string type;       // Content-Type; "" if it is not told
  std::string validator;  // strong ETag, else Last-Modified; "" if the server gives neither as
                          // printable ASCII
};

struct HttpListener {
  // Before the first byte of an answer of status 200 or 206. Bytes of others are dropped.
  std::function<void(const HttpAnswer&)> on_begin;
  std::function<void(std::string_view)> on_bytes;
  std::function<bool()> stops;  // asked a few times per second; true ends the transfer
};

// How a transfer ended.
struct HttpEnd {
  HttpAnswer answer;
  bool stopped = false;
  std::string failure;  // why the file did not come whole, in libcurl's words; "" if it did
};

class HttpClient {
 public:
  // Throws kConfig in a build without downloads, and where libcurl cannot be opened.
  HttpClient();
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // Waits for the end. What the listener throws ends the transfer and is thrown again. Redirects
  // are followed, from https to https alone.
  HttpEnd Get(const HttpRequest& request, const HttpListener& listener);

 private:
  struct Library;
  std::unique_ptr<Library> library_;
};

// Why this build cannot download; "" if it can.
std::string WhyNoDownloads();

}  // namespace mxtrain::fetch

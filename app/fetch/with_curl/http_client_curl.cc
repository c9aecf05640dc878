// SPDX-License-Identifier: Apache-2.0
// The only file that knows libcurl: its functions by name, from the library of the machine.
#include <curl/curl.h>
#include <dlfcn.h>

#include <algorithm>
#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <exception>
#include <optional>

#include "app/config/address.h"
#include "app/fetch/http_client.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/text.h"

namespace mxtrain::fetch {
namespace {

constexpr long kConnectSeconds = 30;
// A transfer that is slower than this for so long is given up.
constexpr long kLeastBytesPerSecond = 100, kSlowSeconds = 60;
constexpr int kMostRedirects = 10;
constexpr size_t kLongestValidator = 200;

}  // namespace

struct HttpClient::Library {
  void* handle = nullptr;
  decltype(&curl_easy_init) easy_init = nullptr;
  decltype(&curl_easy_setopt) easy_setopt = nullptr;
  decltype(&curl_easy_perform) easy_perform = nullptr;
  decltype(&curl_easy_getinfo) easy_getinfo = nullptr;
  decltype(&curl_easy_cleanup) easy_cleanup = nullptr;
  decltype(&curl_easy_strerror) easy_strerror = nullptr;
  decltype(&curl_slist_append) slist_append = nullptr;
  decltype(&curl_slist_free_all) slist_free_all = nullptr;

  template <typename Function>
  void Find(const char* name, Function* function) {
    *function = reinterpret_cast<Function>(dlsym(handle, name));
    if (!*function) Throw(ErrorKind::kConfig, "libcurl lacks {}; install a newer one", name);
  }

  Library() {
    std::string reason;
    // By OpenSSL, else by GnuTLS.
    for (const char* name : {"libcurl.so.4", "libcurl-gnutls.so.4"}) {
      handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
      if (handle) break;
      const char* error = dlerror();
      if (reason.empty() && error) reason = error;
    }
    if (!handle) {
      Throw(ErrorKind::kConfig,
            "downloads need libcurl, which cannot be opened ({}); install the package libcurl4, or "
            "download the file with another program and name its path",
            reason);
    }
    decltype(&curl_global_init) global_init = nullptr;
    Find("curl_global_init", &global_init);
    Find("curl_easy_init", &easy_init);
    Find("curl_easy_setopt", &easy_setopt);
    Find("curl_easy_perform", &easy_perform);
    Find("curl_easy_getinfo", &easy_getinfo);
    Find("curl_easy_cleanup", &easy_cleanup);
    Find("curl_easy_strerror", &easy_strerror);
    Find("curl_slist_append", &slist_append);
    Find("curl_slist_free_all", &slist_free_all);
    if (global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
      Throw(ErrorKind::kConfig, "libcurl cannot be initialized");
  }
  // One request; a redirect is not followed but told in `next`.
  HttpEnd Perform(const HttpRequest& request, const HttpListener& listener,
                  std::string* next) const;

  // It stays open: what it has registered with the process would point to nothing.
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
};

namespace {

// One transfer, as libcurl's functions see it.
struct Transfer {
  const HttpListener& listener;
  HttpAnswer answer;
  std::function<void(HttpAnswer*)> read_status;  // status and length of the current answer
  std::string etag, last_modified;
  int64_t from = -1, total = -1;
  bool begun = false, stopped = false;
  std::exception_ptr thrown;

  // Calls a function that must not throw through C; false if it did.
  template <typename Function>
  bool Guarded(Function function) {
    try {
      function();
      return true;
    } catch (...) {
      thrown = std::current_exception();
      return false;
    }
  }
};

// The value of a header line, if it has this name.
std::optional<std::string> HeaderOf(std::string_view line, std::string_view name) {
  if (line.size() <= name.size() || line[name.size()] != ':' ||
      Lower(line.substr(0, name.size())) != name)
    return std::nullopt;
  return std::string(Trim(line.substr(name.size() + 1), " \t\r\n"));
}

size_t OnHeader(const char* data, size_t, size_t count, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  const std::string_view line(data, count);
  if (line.starts_with("HTTP/")) {  // of the next answer, after a redirect
    transfer.etag.clear();
    transfer.last_modified.clear();
    transfer.from = transfer.total = -1;
  }
  if (auto etag = HeaderOf(line, "etag")) transfer.etag = *etag;
  if (auto date = HeaderOf(line, "last-modified")) transfer.last_modified = *date;
  if (auto range = HeaderOf(line, "content-range")) {  // "bytes 100-199/200", "bytes */200"
    std::sscanf(range->c_str(), "bytes %" SCNd64 "-%*[0-9]/%" SCNd64, &transfer.from,
                &transfer.total);
    std::sscanf(range->c_str(), "bytes */%" SCNd64, &transfer.total);
  }
  return count;
}

size_t OnBytes(const char* data, size_t, size_t count, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  const bool good = transfer.Guarded([&] {
    if (!transfer.begun) {
      transfer.begun = true;
      transfer.read_status(&transfer.answer);
      if (transfer.answer.status == 200 || transfer.answer.status == 206)
        transfer.listener.on_begin(transfer.answer);
    }
    if (transfer.answer.status == 200 || transfer.answer.status == 206)
      transfer.listener.on_bytes({data, count});
  });
  return good ? count : 0;  // fewer end the transfer
}

int OnProgress(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  auto& transfer = *static_cast<Transfer*>(user);
  const bool good = transfer.Guarded([&] {
    transfer.stopped = transfer.stopped || (transfer.listener.stops && transfer.listener.stops());
  });
  return good && !transfer.stopped ? 0 : 1;
}

// It is sent back in a header, and kept in a file of JSON.
bool IsValidator(const std::string& text) {
  return text.size() <= kLongestValidator &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c < 0x7f; });
}

// While it exists, writing to a connection that the server has closed is an error, not a signal:
// libcurl lets its TLS library write, which knows no other way.
class NoBrokenPipes {
 public:
  NoBrokenPipes() {
    struct sigaction ignored = {};
    ignored.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &ignored, &before_);
  }
  ~NoBrokenPipes() { sigaction(SIGPIPE, &before_, nullptr); }
  NoBrokenPipes(const NoBrokenPipes&) = delete;
  NoBrokenPipes& operator=(const NoBrokenPipes&) = delete;

 private:
  struct sigaction before_ = {};
};

}  // namespace

std::string WhyNoDownloads() {
  return "";
}

HttpClient::HttpClient() : library_(std::make_unique<Library>()) {}
HttpClient::~HttpClient() = default;

HttpEnd HttpClient::Library::Perform(const HttpRequest& request, const HttpListener& listener,
                                     std::string* next) const {
  const Library& curl = *this;
  const std::unique_ptr<CURL, decltype(curl.easy_cleanup)> easy(curl.easy_init(),
                                                                curl.easy_cleanup);
  if (!easy) Throw(ErrorKind::kMemory, "out of memory for a download");
  const auto set = [&](const char* what, CURLoption option, auto value) {
    if (const CURLcode code = curl.easy_setopt(easy.get(), option, value); code != CURLE_OK) {
      Throw(ErrorKind::kConfig, "libcurl refuses the {} '{}': {}", what, request.url,
            curl.easy_strerror(code));
    }
  };
  Transfer transfer{listener, {}, {}, {}, {}, -1, -1, false, false, nullptr};
  transfer.read_status = [&](HttpAnswer* answer) {
    long status = 0;
    curl_off_t bytes = -1;
    curl.easy_getinfo(easy.get(), CURLINFO_RESPONSE_CODE, &status);
    curl.easy_getinfo(easy.get(), CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &bytes);
    answer->status = status;
    answer->from = transfer.from;
    answer->total = transfer.total;
    answer->bytes = bytes;
    const char* type = nullptr;
    curl.easy_getinfo(easy.get(), CURLINFO_CONTENT_TYPE, &type);
    answer->type = type ? type : "";
    const bool strong = !transfer.etag.empty() && !transfer.etag.starts_with("W/");
    answer->validator = strong ? transfer.etag : transfer.last_modified;
    if (!IsValidator(answer->validator)) answer->validator.clear();
  };
  char reason[CURL_ERROR_SIZE] = {};
  set("address", CURLOPT_URL, request.url.c_str());
  // Redirects are followed by the caller, who looks at each address.
  set("protocols for", CURLOPT_PROTOCOLS_STR, config::IsLocal(request.url) ? "http" : "https");
  if (config::IsLocal(request.url)) set("option for", CURLOPT_NOPROXY, "*");
  set("option for", CURLOPT_NOSIGNAL, 1L);
  set("option for", CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
  set("option for", CURLOPT_LOW_SPEED_LIMIT, kLeastBytesPerSecond);
  set("option for", CURLOPT_LOW_SPEED_TIME, kSlowSeconds);
  set("option for", CURLOPT_USERAGENT, "mxtrain");
  set("option for", CURLOPT_ERRORBUFFER, reason);
  set("option for", CURLOPT_HEADERFUNCTION, &OnHeader);
  set("option for", CURLOPT_HEADERDATA, &transfer);
  set("option for", CURLOPT_WRITEFUNCTION, &OnBytes);
  set("option for", CURLOPT_WRITEDATA, &transfer);
  set("option for", CURLOPT_NOPROGRESS, 0L);
  set("option for", CURLOPT_XFERINFOFUNCTION, &OnProgress);
  set("option for", CURLOPT_XFERINFODATA, &transfer);
  std::unique_ptr<curl_slist, decltype(curl.slist_free_all)> headers(nullptr, curl.slist_free_all);
  if (request.from > 0) {
    set("range of", CURLOPT_RANGE, (std::to_string(request.from) + "-").c_str());
    if (!request.validator.empty()) {
      headers.reset(curl.slist_append(nullptr, ("If-Range: " + request.validator).c_str()));
      set("headers for", CURLOPT_HTTPHEADER, headers.get());
    }
  }
  const CURLcode code = curl.easy_perform(easy.get());
  if (transfer.thrown) std::rethrow_exception(transfer.thrown);
  HttpEnd end;
  transfer.read_status(&transfer.answer);
  end.answer = transfer.answer;
  end.stopped = transfer.stopped;
  const bool good = code == CURLE_OK;
  char* redirect = nullptr;
  curl.easy_getinfo(easy.get(), CURLINFO_REDIRECT_URL, &redirect);
  if (redirect) *next = redirect;
  if (good && !transfer.begun && end.answer.status == 200) listener.on_begin(end.answer);
  if (!good) end.failure = reason[0] != '\0' ? reason : curl.easy_strerror(code);
  return end;
}

HttpEnd HttpClient::Get(const HttpRequest& request, const HttpListener& listener) {
  const NoBrokenPipes guard;
  HttpRequest hop = request;
  for (int hops = 0; hops <= kMostRedirects; ++hops) {
    std::string next;
    const HttpEnd end = library_->Perform(hop, listener, &next);
    if (next.empty() || end.stopped) return end;
    config::CheckRedirect(hop.url, next);
    hop.url = next;
  }
  HttpEnd end;
  end.failure = format("the server redirects more than {} times", kMostRedirects);
  return end;
}

}  // namespace mxtrain::fetch

// SPDX-License-Identifier: Apache-2.0
#include "app/config/address.h"

#include <algorithm>
#include <cctype>

#include "mxtrain/base/error.h"
#include "mxtrain/base/text.h"

namespace mxtrain::config {
namespace {

constexpr std::string_view kHttps = "https://", kHttp = "http://", kHub = "hf://";
constexpr std::string_view kPin = "#sha256=";
constexpr size_t kLongest = 8000;

// Of the name of a scheme, which begins with a letter (RFC 3986).
bool IsOfScheme(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '+' || c == '-' || c == '.';
}

// HOST or HOST:PORT of an https:// or http:// address.
std::string_view HostOf(std::string_view url) {
  const size_t begin = url.find("://") + 3;
  return url.substr(begin, url.find_first_of("/?#", begin) - begin);
}

// OWNER/REPO@REVISION/FILE in parts.
struct HubFile {
  std::string repository, revision = "main", file;
};

HubFile SplitHub(const std::string& address) {
  const std::string rest = address.substr(kHub.size());
  const size_t owner = rest.find('/'),
               repo = owner == std::string::npos ? owner : rest.find('/', owner + 1);
  HubFile hub;
  if (repo != std::string::npos) {
    hub.repository = rest.substr(0, repo);
    hub.file = rest.substr(repo + 1);
  }
  if (const size_t at = hub.repository.find('@'); at != std::string::npos) {
    hub.revision = hub.repository.substr(at + 1);
    hub.repository.resize(at);
  }
  const bool climbs = ("/" + rest + "/").find("/../") != std::string::npos;
  if (owner == 0 || hub.repository.size() <= owner + 1 || hub.revision.empty() ||
      hub.file.empty() || hub.file.ends_with('/') || climbs) {
    Throw(ErrorKind::kConfig,
          "'{}' is not the address of a file on the hub; expected hf://OWNER/REPO/FILE, or "
          "hf://OWNER/REPO@REVISION/FILE",
          address);
  }
  return hub;
}

}  // namespace

bool IsAddress(std::string_view text) {
  const size_t colon = text.find("://");
  return colon != std::string_view::npos && colon > 0 &&
         std::isalpha(static_cast<unsigned char>(text[0])) != 0 &&
         std::all_of(text.begin(), text.begin() + static_cast<ptrdiff_t>(colon), IsOfScheme);
}

void CheckRedirect(const std::string& from, const std::string& to) {
  constexpr size_t kMost = 200;
  try {
    CheckAddress(to);
    if (to.starts_with(kHttps) || (IsLocal(to) && IsLocal(from))) return;
  } catch (const Error&) {  // not an address at all
  }
  Throw(ErrorKind::kFileSystem,
        "{} leads to '{}', which is not an address of https; nothing is downloaded from there",
        from, Shortened(to, kMost));
}

bool IsLocal(std::string_view url) {
  if (!url.starts_with(kHttp)) return false;
  std::string_view host = HostOf(url);
  if (const size_t port = host.rfind(':'); port != std::string_view::npos && !host.ends_with(']'))
    host = host.substr(0, port);
  return host == "localhost" || host == "127.0.0.1" || host == "[::1]";
}

void CheckAddress(const std::string& address) {
  if (address.size() > kLongest)
    Throw(ErrorKind::kConfig, "an address of {} bytes is too long", address.size());
  const bool plain = std::all_of(address.begin(), address.end(), [](unsigned char c) {
    return c > ' ' && c < 0x7f && c != '"' && c != '<' && c != '>' && c != '\\';
  });
  if (!plain)
    Throw(ErrorKind::kConfig,
          "an address consists of letters, digits and signs; percent-encode other characters, a "
          "space as %20");
  if (address.starts_with(kHub)) {
    SplitHub(address);
    return;
  }
  if (!address.starts_with(kHttps) && !address.starts_with(kHttp)) {
    Throw(ErrorKind::kConfig,
          "'{}' is neither a path nor an address that begins with https:// or hf://", address);
  }
  const std::string_view host = HostOf(address);
  if (host.empty()) Throw(ErrorKind::kConfig, "'{}' names no host", address);
  if (host.find('@') != std::string_view::npos) {
    Throw(ErrorKind::kConfig,
          "an address with a user name or password would be kept in the run's configuration; give "
          "one without");
  }
  if (address.starts_with(kHttp) && !IsLocal(address)) {
    Throw(ErrorKind::kConfig,
          "'{}': what comes by http can be changed on its way; use https (http is for this machine "
          "alone)",
          address);
  }
}

std::string UrlOf(const std::string& address, const std::string& hub) {
  CheckAddress(address);
  if (!address.starts_with(kHub)) return address.substr(0, address.find('#'));
  std::string host = hub.empty() ? "https://huggingface.co" : hub;
  while (host.ends_with('/')) host.pop_back();
  const HubFile file = SplitHub(address);
  const std::string url =
      host + "/" + file.repository + "/resolve/" + file.revision + "/" + file.file;
  CheckAddress(url);
  return url;
}

std::string FileNameOf(const std::string& url) {
  const std::string path = url.substr(0, url.find_first_of("?#"));
  const bool has_path = path.find('/', path.find("://") + 3) != std::string::npos;
  return has_path ? path.substr(path.rfind('/') + 1) : "";
}

std::string SiblingOf(const std::string& address, const std::string& name) {
  const size_t end = std::min(address.find_first_of("?#"), address.size());
  const size_t begin = address.rfind('/', end) + 1;
  return address.substr(0, begin) + name + address.substr(end);
}

std::string ToSha256(const std::string& text) {
  std::string sum = Lower(text);
  if (sum.size() != 64 || sum.find_first_not_of("0123456789abcdef") != std::string::npos) {
    Throw(ErrorKind::kConfig,
          "'{}' is not a SHA-256: expected 64 hexadecimal digits, as sha256sum prints them",
          Shortened(text));
  }
  return sum;
}

PinnedFile SplitPin(const std::string& text) {
  const size_t pin = text.rfind(kPin);
  if (pin == std::string::npos) return {text, ""};
  return {text.substr(0, pin), ToSha256(text.substr(pin + kPin.size()))};
}

std::string WithPin(const std::string& text, const std::string& sha256) {
  const PinnedFile before = SplitPin(text);
  const std::string sum = ToSha256(sha256);
  if (!before.sha256.empty() && before.sha256 != sum)
    Throw(ErrorKind::kConfig, "'{}' is pinned to another SHA-256", text);
  return before.file + std::string(kPin) + sum;
}

}  // namespace mxtrain::config

// SPDX-License-Identifier: Apache-2.0
#include "app/config/address.h"

#include <doctest/doctest.h>

#include "mxtrain/base/error.h"

namespace mxtrain::test {
namespace {

std::string ErrorOf(const std::string& address) {
  try {
    config::CheckAddress(address);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kConfig);
    return error.what();
  }
  return "";
}

TEST_CASE("what is an address, and what a path") {
  for (const char* text :
       {"https://a.org/b", "hf://a/b/c", "s3://a/b", "http://localhost/x", "a://"}) {
    CAPTURE(text);
    CHECK(config::IsAddress(text));
  }
  for (const char* text : {"weights.pth", "/a/b", "C:\\a", "://a", "1a://b", "a/b://c", ""}) {
    CAPTURE(text);
    CHECK_FALSE(config::IsAddress(text));
  }
}

TEST_CASE("a file may be pinned to its contents") {
  const std::string sum(64, 'b');
  CHECK(config::SplitPin("a.pth").file == "a.pth");
  CHECK(config::SplitPin("a.pth").sha256 == "");
  CHECK(config::SplitPin("a#sha256=" + std::string(64, 'B')).sha256 == sum);
  CHECK(config::WithPin("https://a.org/b", sum) == "https://a.org/b#sha256=" + sum);
  CHECK(config::WithPin("a#sha256=" + sum, sum) == "a#sha256=" + sum);
  CHECK_THROWS_AS(config::WithPin("a#sha256=" + sum, std::string(64, 'c')), Error);
  CHECK_THROWS_AS(config::SplitPin("a#sha256=" + sum + "0"), Error);
  CHECK_THROWS_AS(config::ToSha256(std::string(63, '0')), Error);
  CHECK_THROWS_AS(config::ToSha256(std::string(64, 'g')), Error);
}

TEST_CASE("addresses that are refused say why") {
  CHECK(ErrorOf("https://example.org/a/b.pth?x=1") == "");
  CHECK(ErrorOf("http://127.0.0.1:8000/b.pth") == "");
  CHECK(ErrorOf("http://[::1]:8000/b.pth") == "");
  CHECK(ErrorOf("http://localhost/b.pth") == "");
  CHECK(ErrorOf("hf://owner/repo/a/b.safetensors") == "");
  CHECK(ErrorOf("http://example.org/b.pth").find("use https") != std::string::npos);
  CHECK(ErrorOf("http://localhost.example.org/b").find("use https") != std::string::npos);
  CHECK(ErrorOf("http://127.0.0.1.example.org/b").find("use https") != std::string::npos);
  CHECK(ErrorOf("s3://a/b").find("https:// or hf://") != std::string::npos);
  CHECK(ErrorOf("https:///b").find("names no host") != std::string::npos);
  CHECK(ErrorOf("https://me:secret@example.org/b").find("user name") != std::string::npos);
  CHECK(ErrorOf("https://example.org/a b").find("percent-encode") != std::string::npos);
  CHECK(ErrorOf("https://example.org/" + std::string(9000, 'a')).find("too long") !=
        std::string::npos);
  for (const char* text : {"hf://", "hf://owner", "hf://owner/repo", "hf://owner/repo/",
                           "hf:///repo/file", "hf://owner/@main/file", "hf://owner/repo@/file",
                           "hf://owner/repo/../file", "hf://owner/repo/folder/"}) {
    CAPTURE(text);
    CHECK(ErrorOf(text).find("expected hf://OWNER/REPO/FILE") != std::string::npos);
  }
}

TEST_CASE("a server leads to https alone, this machine also to itself") {
  const std::string far = "https://example.org/a", here = "http://127.0.0.1:80/a";
  CHECK_NOTHROW(config::CheckRedirect(far, "https://cdn.example.org/b?c=d"));
  CHECK_NOTHROW(config::CheckRedirect(here, "http://localhost:81/b"));
  CHECK_NOTHROW(config::CheckRedirect(here, far));
  for (const char* to :
       {"http://example.org/a", "http://127.0.0.1/a", "http://localhost/a", "http://[::1]/a",
        "hf://owner/repo/file", "file:///etc/passwd", "ftp://example.org/a", "//example.org/a", "",
        "https://me:secret@example.org/a", "https://example.org/a b"}) {
    CAPTURE(to);
    CHECK_THROWS_WITH_AS(config::CheckRedirect(far, to),
                         doctest::Contains("which is not an address of https"), Error);
  }
  CHECK_THROWS_AS(config::CheckRedirect(here, "http://example.org/a"), Error);
}

TEST_CASE("the hub's addresses become those of its server") {
  CHECK(config::UrlOf("hf://timm/resnet18.a1_in1k/model.safetensors", "") ==
        "https://huggingface.co/timm/resnet18.a1_in1k/resolve/main/model.safetensors");
  CHECK(config::UrlOf("hf://a/b@v1.0/c/d.pth", "http://localhost:80/") ==
        "http://localhost:80/a/b/resolve/v1.0/c/d.pth");
  CHECK(config::UrlOf("https://example.org/a?b#c", "") == "https://example.org/a?b");
  CHECK_THROWS_AS(config::UrlOf("hf://a/b/c", "http://example.org"), Error);
  CHECK(config::SiblingOf("https://example.org/a/b.json?c=/d", "x") ==
        "https://example.org/a/x?c=/d");
  CHECK(config::SiblingOf("hf://a/b/c/d.json", "x") == "hf://a/b/c/x");
  CHECK(config::FileNameOf("https://example.org/a/b.pth?c=/d") == "b.pth");
  CHECK(config::FileNameOf("https://example.org/a/") == "");
  CHECK(config::FileNameOf("https://example.org") == "");
  CHECK(config::FileNameOf("https://example.org/..") == "..");
}

}  // namespace
}  // namespace mxtrain::test

// SPDX-License-Identifier: Apache-2.0
#pragma once
// Addresses of files elsewhere: https://HOST/PATH, hf://OWNER/REPO/FILE for a file of the Hugging
// Face Hub (OWNER/REPO@REVISION for another than the branch main), and http:// for this machine
// alone (localhost, 127.0.0.1, [::1]). A file, wherever it is, may be pinned to its contents:
// FILE#sha256=DIGITS.
#include <string>
#include <string_view>

namespace mxtrain::config {

// Whether the text begins with a scheme, "NAME://".
bool IsAddress(std::string_view text);
// Throws kConfig for an address of another form, of another scheme, with a user name, or with
// characters that have to be percent-encoded.
void CheckAddress(const std::string& address);
// What to ask a server for: an https:// or http:// address. `hub`: in place of
// https://huggingface.co, if not empty. Throws as CheckAddress.
std::string UrlOf(const std::string& address, const std::string& hub);
// The last part of the path, "model.safetensors"; "" if it has none.
std::string FileNameOf(const std::string& url);
// The address with another name in place of its last part; what follows '?' stays.
std::string SiblingOf(const std::string& address, const std::string& name);
// Whether it is an http:// address of this machine.
bool IsLocal(std::string_view url);

// What a server may lead to: https:// from everywhere, and http:// of this machine only from
// there. Throws kFileSystem for all else.
void CheckRedirect(const std::string& from, const std::string& to);

// A file in parts: "FILE#sha256=DIGITS".
struct PinnedFile {
  std::string file, sha256;  // sha256: 64 digits in lower case; "": not pinned
};
// Throws kConfig for a pin that is not a SHA-256.
PinnedFile SplitPin(const std::string& text);
// Throws kConfig if `text` is pinned already, to another sum.
std::string WithPin(const std::string& text, const std::string& sha256);
// 64 hexadecimal digits in lower case; throws kConfig for another text.
std::string ToSha256(const std::string& text);

}  // namespace mxtrain::config

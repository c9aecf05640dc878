// SPDX-License-Identifier: Apache-2.0
#pragma once
// Addresses of files elsewhere: https://HOST/PATH, hf://OWNER/REPO/FILE for a file of the Hugging
// Face Hub (OWNER/REPO@REVISION for another than the branch main), and http:// for this machine
// alone (localhost, 127.0.0.1, [::1]).
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
// The last part of the path, "model.safetensors"; "file" if it has none.
std::string FileNameOf(const std::string& url);
// Whether it is an http:// address of this machine.
bool IsLocal(std::string_view url);

}  // namespace mxtrain::config

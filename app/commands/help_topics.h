// SPDX-License-Identifier: Apache-2.0
#pragma once
// Pages of `mxtrain help` on topics that are not generated from tables: how to write nets and data
// lists. Examples are indented by four spaces; examples of nets must be valid for `mxtrain plan`
// when `data` is added.
#include <span>
#include <string>
#include <vector>

namespace mxtrain::commands {

struct HelpTopic {
  std::vector<std::string> names;  // the first is the page's title
  std::string title, text;
};

std::span<const HelpTopic> HelpTopics();
// By any of its names; null if there is none.
const HelpTopic* FindHelpTopic(const std::string& word);

}  // namespace mxtrain::commands

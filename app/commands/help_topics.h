#pragma once
// Pages of `mxtrain help` on what no table of the program holds: how nets are written, and files that list data. Examples are indented by four
// spaces, and those of nets are what `mxtrain plan` takes, together with `data`.
#include <span>
#include <string>
#include <vector>

namespace mxtrain::commands {

struct HelpTopic {
  std::vector<std::string> names;  // the first is that of the page
  std::string title, text;
};

std::span<const HelpTopic> HelpTopics();
// By any of its names; null when there is none.
const HelpTopic* FindHelpTopic(const std::string& word);

}  // namespace mxtrain::commands

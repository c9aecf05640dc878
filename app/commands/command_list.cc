// SPDX-License-Identifier: Apache-2.0
#include "app/commands/command_list.h"

#include <algorithm>

namespace mxtrain::commands {

void CommandList::Add(HelpGroup group, int position, std::unique_ptr<Command> command) {
  const std::pair place(group, position);
  const auto after = std::ranges::upper_bound(entries_, place, {}, &Entry::place);
  entries_.insert(after, {place, std::move(command)});
}

void CommandList::Declare(CommandLine& line) {
  for (const Entry& entry : entries_) entry.command->Declare(line);
}

}  // namespace mxtrain::commands

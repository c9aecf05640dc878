// SPDX-License-Identifier: Apache-2.0
#include "app/commands/completion_scripts.h"

#include <algorithm>
#include <functional>
#include <map>

#include "app/config/schema.h"
#include "app/config/zoo.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/format.h"

namespace mxtrain::commands {
namespace {

void CollectKeys(const std::vector<config::Key>& keys, const std::string& prefix,
                 std::map<std::string, KeyWord>* words) {
  for (const config::Key& key : keys) {
    const std::string path = prefix + key.info.name;
    if (key.is_section()) {
      CollectKeys(key.keys, path + ".", words);
      continue;
    }
    KeyWord& word = words->try_emplace(path, KeyWord{path, key.info.help, {}}).first->second;
    word.values.insert(word.values.end(), key.info.choices.begin(), key.info.choices.end());
    if (!key.info.word.empty()) word.values.push_back(key.info.word);
    if (key.info.type == "boolean") word.values = {"true", "false"};
    for (const config::NamedKind& kind : key.kinds) {
      word.values.push_back(kind.name);
      if (key.info.type == "list") continue;
      for (const FieldInfo& param : kind.params)
        words->try_emplace(path + "." + param.name,
                           KeyWord{path + "." + param.name, param.help, {}});
    }
  }
}

std::string Joined(const std::vector<std::string>& words, const char* between = " ") {
  return format("{}", join(words, between));
}

// In single quotes, for every shell; `escaped` is how the shell writes a quote inside them.
std::string Quoted(const std::string& text, const std::string& escaped) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? escaped : std::string(1, c);
  return quoted + "'";
}

// The first sentence or clause of a help text, short enough for a completion list.
std::string Short(const std::string& help) {
  return help.substr(0, help.find_first_of(";\n"));
}

std::vector<std::string> FlagNames(const CommandInfo& command) {
  std::vector<std::string> names;
  for (const ArgumentInfo& argument : command.arguments) {
    if (!argument.positional())
      names.insert(names.end(), argument.names.begin(), argument.names.end());
  }
  return names;
}

std::vector<std::string> CommandNames(const CommandLine& line) {
  std::vector<std::string> names;
  for (const CommandInfo& command : line.commands()) names.push_back(command.name);
  return names;
}

// The values of a flag; none if it takes others than words, or files.
std::vector<std::string> ValuesOfFlag(const ArgumentInfo& argument) {
  const auto is = [&argument](const char* name) {
    return std::ranges::count(argument.names, name) > 0;
  };
  if (!argument.choices.empty()) return argument.choices;
  if (is("--device")) return {"auto", "cpu", "gpu", "gpu:0", "gpu:0,1"};
  const std::string key = is("--kvstore") ? "train.kvstore.type" : "";
  for (const config::KeyInfo& info : config::DescribeKeys()) {
    if (!key.empty() && info.path == key) return info.choices;
  }
  if (!is("--net")) return {};
  try {
    return config::NetNames();
  } catch (const Error&) {  // installed without its configurations
    return {};
  }
}

// How a positional argument is completed.
enum class Positional { kFiles, kKeys, kOperators, kTopics, kChoices };
Positional KindOf(const ArgumentInfo& argument) {
  if (!argument.choices.empty()) return Positional::kChoices;
  if (argument.takes == "key=value") return Positional::kKeys;
  if (argument.takes == "TOPIC") return Positional::kTopics;
  return argument.takes == "OPERATOR" ? Positional::kOperators : Positional::kFiles;
}

// The completions of a command's positional arguments, each once, in the shell's syntax.
std::string WordsOf(const CommandInfo& command,
                    const std::function<std::string(const ArgumentInfo&)>& in_shell) {
  std::string text;
  for (const ArgumentInfo& argument : command.arguments) {
    const std::string words = argument.positional() ? in_shell(argument) : "";
    if (text.find(words) == std::string::npos) text += words;
  }
  return text;
}

// The flags of the command and of every command, with the command's name or "*".
std::vector<std::pair<std::string, const CommandInfo*>> WithCommon(const CommandLine& line) {
  std::vector<std::pair<std::string, const CommandInfo*>> all;
  for (const CommandInfo& command : line.commands()) all.emplace_back(command.name, &command);
  all.emplace_back("*", &line.program());
  return all;
}

// --- bash

std::string BashFlagValues(const CommandLine& line) {
  std::string text;
  for (const auto& [name, command] : WithCommon(line)) {
    for (const ArgumentInfo& argument : command->arguments) {
      if (argument.positional() || argument.takes.empty()) continue;
      for (const std::string& flag : argument.names) {
        const std::string pattern =
            name == "*" ? format("*\" {}\"", flag) : format("\"{} {}\"", name, flag);
        const std::vector<std::string> known = ValuesOfFlag(argument);
        text += known.empty() ? format("    {}) files=1 ;;\n", pattern)
                              : format("    {}) reply='{}' ;;\n", pattern, Joined(known));
      }
    }
  }
  return text;
}

std::string BashWords(const ArgumentInfo& argument) {
  switch (KindOf(argument)) {
    case Positional::kFiles:
      return " files=1";
    case Positional::kKeys:
      return " reply=$keys";
    case Positional::kOperators:
      return " reply=$operators";
    case Positional::kTopics:
      return " reply=$topics";
    case Positional::kChoices:
      return format(" reply='{}'", Joined(argument.choices));
  }
  return "";
}

// --- zsh and fish

std::string ZshEntry(const std::string& word, const std::string& help) {
  std::string name;
  for (const char c : word) name += c == ':' ? "\\:" : std::string(1, c);
  return "    " + Quoted(help.empty() ? name : name + ":" + Short(help), "'\\''") + "\n";
}

std::string ZshFlags(const CommandInfo& command) {
  std::string text;
  for (const ArgumentInfo& argument : command.arguments) {
    if (argument.positional()) continue;
    for (const std::string& flag : argument.names) text += ZshEntry(flag, argument.help);
  }
  return text;
}

std::string ZshFlagValues(const CommandLine& line) {
  std::string text;
  for (const auto& [name, command] : WithCommon(line)) {
    for (const ArgumentInfo& argument : command->arguments) {
      if (argument.positional() || argument.takes.empty()) continue;
      for (const std::string& flag : argument.names) {
        const std::vector<std::string> known = ValuesOfFlag(argument);
        const std::string action = known.empty() ? "_files" : "compadd -- " + Joined(known);
        text += format("    ({}\\ {}) {}; return ;;\n", name, flag, action);
      }
    }
  }
  return text;
}

std::string ZshWords(const ArgumentInfo& argument) {
  switch (KindOf(argument)) {
    case Positional::kFiles:
      return " _files;";
    case Positional::kKeys:
      return " _mxtrain_keys;";
    case Positional::kOperators:
      return " compadd -- $operators;";
    case Positional::kTopics:
      return " compadd -- $topics;";
    case Positional::kChoices:
      return format(" compadd -- {};", Joined(argument.choices));
  }
  return "";
}

std::string FishQuoted(const std::string& text) {
  return Quoted(text, "\\'");
}

std::string FishFlag(const std::string& condition, const ArgumentInfo& argument) {
  std::string text = "complete -c mxtrain" + condition;
  for (const std::string& name : argument.names)
    text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  const std::vector<std::string> known = ValuesOfFlag(argument);
  if (!argument.takes.empty()) text += known.empty() ? " -rF" : " -xa " + FishQuoted(Joined(known));
  return text + " -d " + FishQuoted(Short(argument.help)) + "\n";
}

std::string FishKeys(const std::string& condition, const std::vector<KeyWord>& keys) {
  std::string text;
  for (const KeyWord& key : keys) {
    std::vector<std::string> words = {key.path + "="};
    for (const std::string& value : key.values) words.push_back(key.path + "=" + value);
    text += format("complete -c mxtrain{} -a {} -d {}\n", condition, FishQuoted(Joined(words)),
                   FishQuoted(Short(key.help)));
  }
  return text;
}

}  // namespace

std::vector<KeyWord> ConfigurationKeys() {
  std::map<std::string, KeyWord> words;
  CollectKeys(config::Schema(), "", &words);
  std::vector<KeyWord> keys;
  for (auto& [path, word] : words) keys.push_back(std::move(word));
  return keys;
}

std::string BashCompletion(const CommandLine& line, const CompletionWords& words) {
  std::string keys, values, flags, positionals;
  for (const KeyWord& key : words.keys) {
    keys += key.path + "= ";
    if (!key.values.empty())
      values += format("      {}) reply='{}' ;;\n", key.path, Joined(key.values));
  }
  for (const CommandInfo& command : line.commands()) {
    flags += format("      {}) reply+=' {}' ;;\n", command.name, Joined(FlagNames(command)));
    positionals += format("      {}){} ;;\n", command.name, WordsOf(command, BashWords));
  }
  const std::string commands = Joined(CommandNames(line), "|");
  return "# Completion of mxtrain for bash, made by `mxtrain completion bash`.\n_mxtrain() {\n  "
         "local keys='" +
         keys + "'\n  local operators='" + Joined(words.operators) + "'\n  local topics='" +
         Joined(words.topics) + "'\n" +
         R"(  local line=${COMP_LINE:0:COMP_POINT} command= reply= files= i
  local -a typed
  read -ra typed <<<"$line"
  [[ $line == *[[:space:]] ]] && typed+=('')
  local word=${typed[${#typed[@]}-1]} previous=${typed[${#typed[@]}-2]}
  for ((i = 1; i < ${#typed[@]} - 1; ++i)); do
    case ${typed[i]} in )" +
         commands + R"() command=${typed[i]}; break ;; esac
  done
  case "$command $previous" in
)" + BashFlagValues(line) +
         R"(  esac
  if [[ -n $reply$files ]]; then
    :
  elif [[ $word == -* ]]; then
    reply='-h --help )" +
         Joined(FlagNames(line.program())) + R"('
    case $command in
      '') reply+=' --version' ;;
)" + flags +
         R"(    esac
  elif [[ -z $command ]]; then
    reply=')" +
         Joined(CommandNames(line)) + R"('
  elif [[ $word == *=* ]]; then
    case ${word%%=*} in
)" + values +
         R"(      *) files=1 ;;
    esac
  else
    case $command in
)" + positionals +
         R"(    esac
  fi
  # Where bash breaks words at '=', what follows it is a word of its own.
  local prefix=
  if [[ $word == *=* && $word != -* ]]; then
    prefix=${word%%=*}=
    word=${word#*=}
    [[ $COMP_WORDBREAKS == *=* ]] && prefix=
  fi
  COMPREPLY=()
  [[ -n $reply ]] && mapfile -t COMPREPLY < <(compgen -P "$prefix" -W "$reply" -- "$word")
  if [[ -n $files ]]; then
    local -a found
    mapfile -t found < <(compgen -P "$prefix" -f -- "$word")
    COMPREPLY+=("${found[@]}")
    compopt -o filenames 2>/dev/null
  fi
  [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
  return 0
}
complete -F _mxtrain mxtrain
)";
}

std::string ZshCompletion(const CommandLine& line, const CompletionWords& words) {
  std::string keys, values, commands, flags, positionals;
  for (const KeyWord& key : words.keys) {
    keys += ZshEntry(key.path + "=", key.help);
    if (!key.values.empty())
      values += format("    {}) compset -P '*='; compadd -- {} ;;\n", key.path, Joined(key.values));
  }
  for (const CommandInfo& command : line.commands()) {
    commands += ZshEntry(command.name, command.description);
    flags += format("    {}) flags+=(\n{}    ) ;;\n", command.name, ZshFlags(command));
    positionals += format("    {}){} ;;\n", command.name, WordsOf(command, ZshWords));
  }
  return "#compdef mxtrain\n# Completion of mxtrain for zsh, made by `mxtrain completion zsh > "
         "DIR/_mxtrain`, DIR being a folder of $fpath.\n"
         "_mxtrain_keys() {\n  local -a keys=(\n" +
         keys + R"(  )
  case ${PREFIX%%=*} in
)" + values +
         R"(    *) if [[ $PREFIX == *=* ]]; then compset -P '*='; _files; else _describe -t keys key keys -S ''; fi ;;
  esac
}

_mxtrain() {
  local -a operators=()" +
         Joined(words.operators) + ")\n  local -a topics=(" + Joined(words.topics) + R"()
  local -a commands=(
)" + commands +
         R"(  )
  local -a flags=(
    '-h:help'
    '--help:help'
)" + ZshFlags(line.program()) +
         R"(  )
  local command= word
  for word in $words[2,CURRENT-1]; do
    if (( ${commands[(I)$word:*]} )); then command=$word; break; fi
  done
  case "$command $words[CURRENT-1]" in
)" + ZshFlagValues(line) +
         R"(  esac
  case $command in
)" + flags +
         R"(  esac
  if [[ $PREFIX == -* ]]; then _describe -t flags flag flags; return; fi
  if [[ -z $command ]]; then _describe -t commands command commands; return; fi
  case $command in
)" + positionals +
         R"(  esac
}
if [[ $funcstack[1] == _mxtrain ]]; then _mxtrain "$@"; else compdef _mxtrain mxtrain; fi
)";
}

std::string FishCompletion(const CommandLine& line, const CompletionWords& words) {
  std::string text =
      "# Completion of mxtrain for fish, made by `mxtrain completion fish > "
      "~/.config/fish/completions/mxtrain.fish`.\n";
  for (const CommandInfo& command : line.commands()) {
    text += format("complete -c mxtrain -n __fish_use_subcommand -f -a {} -d {}\n", command.name,
                   FishQuoted(command.description));
  }
  for (const ArgumentInfo& argument : line.program().arguments) text += FishFlag("", argument);
  std::vector<std::string> with_keys;
  for (const CommandInfo& command : line.commands()) {
    const std::string condition = " -n '__fish_seen_subcommand_from " + command.name + "'";
    for (const ArgumentInfo& argument : command.arguments) {
      if (!argument.positional()) {
        text += FishFlag(condition, argument);
        continue;
      }
      std::vector<std::string> offered;
      switch (KindOf(argument)) {
        case Positional::kFiles:
          break;  // fish's default
        case Positional::kKeys:
          with_keys.push_back(command.name);
          break;
        case Positional::kOperators:
          offered = words.operators;
          break;
        case Positional::kTopics:
          offered = words.topics;
          break;
        case Positional::kChoices:
          offered = argument.choices;
          break;
      }
      if (!offered.empty())
        text += format("complete -c mxtrain{} -f -a {}\n", condition, FishQuoted(Joined(offered)));
    }
  }
  return text + FishKeys(" -n '__fish_seen_subcommand_from " + Joined(with_keys) + "'", words.keys);
}

}  // namespace mxtrain::commands

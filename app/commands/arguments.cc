// SPDX-License-Identifier: Apache-2.0
#include "app/commands/arguments.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <charconv>
#include <concepts>
#include <iostream>
#include <limits>
#include <optional>
#include <utility>

#include "app/config/other_tools.h"
#include "app/config/printable.h"
#include "app/config/schema.h"
#include "app/report/text_width.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/suggest.h"

namespace mxtrain::commands {
namespace {

// Help that begins with examples: CLI11's footers, put before the usage.
class ExamplesFirst final : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App* app, std::string name) const override {
    return "\n" + app->get_footer() + "\n\n" + CLI::Formatter::make_usage(app, std::move(name));
  }
  std::string make_footer(const CLI::App*) const override { return ""; }
};

std::vector<std::string> FlagNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

std::string Unknown(const char* what, const std::string& word,
                    const std::vector<std::string>& known, const std::string& help) {
  const std::string guess = DidYouMean(word, known);
  return format("unknown {} '{}'{} `{}` lists them", what, word, guess.empty() ? ";" : guess, help);
}

// The form of a value of the key, if it needs a unit.
const char* FormOf(const config::KeyInfo& key) {
  if (key.type == "duration") return "TIME, such as 90min, 2h or 30s";
  if (key.type == "interval") return "INTERVAL, such as 1epoch, 500steps or 10min";
  return key.type == "bytes" ? "SIZE, such as 2GiB" : "VALUE";
}

// For "--epochs" where the configuration key train.epochs is meant: the assignment; "" otherwise.
std::string KeyOf(const std::string& flag) {
  std::string name = flag.substr(flag.find_first_not_of('-'));
  std::replace(name.begin(), name.end(), '-', '_');
  for (const config::KeyInfo& key : config::DescribeKeys()) {
    const bool also = std::find(key.also.begin(), key.also.end(), name) != key.also.end();
    if ((key.name == name || also) && key.type != "map")
      return format("; did you mean {}={}?", key.path, FormOf(key));
  }
  return "";
}

// The first word that is neither a common flag nor the value of one: the command.
size_t CommandAt(const CLI::App& app, const std::vector<std::string>& words) {
  size_t at = 0;
  for (; at < words.size() && words[at].starts_with("-"); ++at) {
    const CLI::Option* flag = app.get_option_no_throw(words[at]);
    if (flag && flag->get_items_expected_min() > 0) ++at;
  }
  return at;
}

// A parse error in one line, with the nearest valid word.
std::string UsageText(const CLI::App& app, const std::vector<CLI::App*>& commands,
                      const std::vector<std::string>& words, const CLI::ParseError& error) {
  if (words.empty()) return "no command given; `mxtrain --help` lists them";
  const CLI::App* named = nullptr;
  std::vector<std::string> names, flags = FlagNames(app);
  const size_t at = CommandAt(app, words);
  const std::string first = at < words.size() ? words[at] : "";
  for (const CLI::App* command : commands) {
    names.push_back(command->get_name());
    if (first == command->get_name()) named = command;
  }
  if (!named && !first.empty()) {
    const std::string other = config::CommandOfOtherTools(first);
    if (!other.empty())
      return format("unknown command '{}'; did you mean `mxtrain {}`?", first, other);
    return Unknown("command", first, names, "mxtrain --help");
  }
  if (named) {
    for (std::string& name : FlagNames(*named)) flags.push_back(std::move(name));
  }
  const std::string help = format("mxtrain{} --help", named ? " " + named->get_name() : "");
  const bool takes_keys = named && named->get_option_no_throw("overrides");
  for (const std::string& word : words) {
    const std::string flag = word.substr(0, word.find('='));
    if (flag == "--") break;
    const bool looks_so =
        flag.size() > 1 && flag[0] == '-' && !std::isdigit(static_cast<unsigned char>(flag[1]));
    if (!looks_so || std::find(flags.begin(), flags.end(), flag) != flags.end()) continue;
    if (!flag.starts_with("--") &&
        std::find(flags.begin(), flags.end(), flag.substr(0, 2)) != flags.end())
      continue;  // -cFILE, -qv
    const std::string key = takes_keys ? KeyOf(flag) : "";
    if (!key.empty() && DidYouMean(flag, flags).empty())
      return format("unknown flag '{}'{}", flag, key);
    return Unknown("flag", flag, flags, help);
  }
  if (!named) return "no command given; `mxtrain --help` lists them";
  return format("{}; see `{}`", error.what(), help);
}

// NaN, for which every comparison is false, if the text is not a number; the option's own type
// reports that.
double NumberOrNan(const std::string& text) {
  double number = 0;
  return CLI::detail::lexical_cast(text, number) ? number
                                                 : std::numeric_limits<double>::quiet_NaN();
}

template <typename T>
struct NumberIn {
  using type = T;
};
template <typename T>
struct NumberIn<std::optional<T>> {
  using type = T;
};

// "" if the text is a whole number in the argument's range, else what was expected.
template <std::integral Number>
std::string CheckWhole(const ArgumentInfo& info, const std::string& text) {
  Number number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool fits = status == std::errc() && end == text.data() + text.size() &&
                    std::cmp_greater_equal(number, info.least) &&
                    std::cmp_less_equal(number, info.most);
  return fits ? ""
              : format("expected a whole number from {} to {}, got '{}'", info.least, info.most,
                       text);
}

}  // namespace

Argument& Argument::Required() {
  info_->required = true;
  option_->required();
  return *this;
}
Argument& Argument::Repeats() {
  info_->repeats = true;
  option_->allow_extra_args(false);
  return *this;
}
Argument& Argument::ShowsDefault() {
  option_->capture_default_str();
  info_->default_text = option_->get_default_str();
  return *this;
}
Argument& Argument::Takes(const std::string& what) {
  info_->takes = what;
  option_->type_name(what);
  return *this;
}
Argument& Argument::OneOf(const std::vector<std::string>& words) {
  constexpr size_t kMostShown = 60;  // of the names, in one word; longer ones are for the help text
  info_->choices = words;
  CLI::IsMember member(words);
  if (format("{}", join(words, ",")).size() > kMostShown) member.description("");
  option_->check(member);
  return *this;
}
template <typename Number>
Argument& Argument::Within(Number least, Number most) {
  if constexpr (std::integral<Number>) {
    info_->least = least;
    info_->most = static_cast<uint64_t>(most);
  } else {
    option_->check([=](const std::string& text) {
      const double number = NumberOrNan(text);
      return number >= least && number <= most
                 ? ""
                 : format("expected a number from {} to {}, got '{}'", least, most, text);
    });
  }
  return *this;
}
template Argument& Argument::Within(int, int);
template Argument& Argument::Within(int64_t, int64_t);
template Argument& Argument::Within(double, double);
Argument& Argument::Positive() {
  if (info_->whole_number()) {
    info_->least = 1;
    return *this;
  }
  option_->check([](const std::string& text) {
    return NumberOrNan(text) > 0 ? "" : format("expected a number greater than 0, got '{}'", text);
  });
  return *this;
}
Argument& Argument::NotNegative() {
  if (info_->whole_number()) {
    info_->least = 0;
    return *this;
  }
  option_->check([](const std::string& text) {
    return NumberOrNan(text) >= 0 ? ""
                                  : format("expected a number that is at least 0, got '{}'", text);
  });
  return *this;
}

ArgumentInfo* Arguments::Note(const std::string& names, const std::string& help,
                              const std::string& takes) {
  ArgumentInfo& info = info_->arguments.emplace_back();
  for (size_t at = 0; at < names.size();) {
    const size_t end = std::min(names.find(',', at), names.size());
    info.names.push_back(names.substr(at, end - at));
    at = end + 1;
  }
  info.help = help;
  info.takes = takes;
  return &info;
}

Argument Arguments::Flag(const std::string& names, bool* target, const std::string& help) {
  return {app_->add_flag(names, *target, help), Note(names, help, "")};
}

template <typename T>
Argument Arguments::Option(const std::string& names, T* target, const std::string& help) {
  CLI::Option* option = app_->add_option(names, *target, help);
  ArgumentInfo* info = Note(names, help, option->get_type_name());
  using Number = typename NumberIn<T>::type;
  if constexpr (std::integral<Number>) {
    info->least = std::numeric_limits<Number>::min();
    info->most = static_cast<uint64_t>(std::numeric_limits<Number>::max());
    option->check([info](const std::string& text) { return CheckWhole<Number>(*info, text); });
  }
  return {option, info};
}
template Argument Arguments::Option(const std::string&, std::string*, const std::string&);
template Argument Arguments::Option(const std::string&, int*, const std::string&);
template Argument Arguments::Option(const std::string&, int64_t*, const std::string&);
template Argument Arguments::Option(const std::string&, double*, const std::string&);
template Argument Arguments::Option(const std::string&, std::optional<double>*, const std::string&);
template Argument Arguments::Option(const std::string&, std::optional<int64_t>*,
                                    const std::string&);
template Argument Arguments::Option(const std::string&, std::optional<uint64_t>*,
                                    const std::string&);
template Argument Arguments::Option(const std::string&, std::vector<std::string>*,
                                    const std::string&);

void Arguments::Examples(const std::string& lines) {
  info_->examples = lines;
  app_->footer("Examples:\n" + lines);
}

CommandLine::CommandLine(const std::string& program, const std::string& description,
                         std::function<std::string()> version)
    : version_(std::move(version)),
      app_(std::make_unique<CLI::App>(description, program)),
      program_{program, description, "", {}} {
  app_->set_version_flag("--version", version_);
  app_->formatter(std::make_shared<ExamplesFirst>());  // before the commands, which take it over
  app_->require_subcommand(1);
  app_->fallthrough();
}

CommandLine::~CommandLine() = default;

Arguments CommandLine::common() {
  return Arguments(app_.get(), &program_);
}

Arguments CommandLine::Add(const std::string& command, const std::string& description) {
  commands_.push_back(app_->add_subcommand(command, description));
  return Arguments(commands_.back(),
                   &infos_.emplace_back(CommandInfo{command, description, "", {}}));
}

std::string CommandLine::Help(const std::string& command) const {
  if (command.empty()) return app_->help();
  for (const CLI::App* known : commands_) {
    if (known->get_name() == command) return known->help(app_->get_name());
  }
  Throw(ErrorKind::kUsage, "unknown command '{}'", command);
}

int CommandLine::Parse(int argc, char** argv, int* exit_code) {
  try {
    app_->parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    std::cout << report::Fitted(app_->help(), report::HelpColumns());
    *exit_code = 0;
    return -1;
  } catch (const CLI::Success& asked) {  // version
    *exit_code = app_->exit(asked);
    return -1;
  } catch (const CLI::ParseError& e) {
    const std::string text = UsageText(*app_, commands_, {argv + 1, argv + argc}, e);
    std::cerr << "error: " << config::Printable(text) << "\n";
    *exit_code = static_cast<int>(ErrorKind::kUsage);
    return -1;
  }
  const auto named = std::find_if(commands_.begin(), commands_.end(),
                                  [](const CLI::App* command) { return command->parsed(); });
  return static_cast<int>(named - commands_.begin());
}

}  // namespace mxtrain::commands

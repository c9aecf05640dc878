// SPDX-License-Identifier: Apache-2.0
#include "app/commands/man_page.h"

#include <algorithm>
#include <cctype>

#include "app/commands/exit_codes.h"
#include "mxtrain/base/error.h"

namespace mxtrain::commands {
namespace {

// Escapes text so that roff does not read it as requests.
std::string Escape(const std::string& text) {
  std::string escaped;
  bool line_begins = true;
  for (const char c : text) {
    if (line_begins && (c == '.' || c == '\'')) escaped += "\\&";
    escaped += c == '\\' ? "\\e" : c == '-' ? "\\-" : std::string(1, c);
    line_begins = c == '\n';
  }
  return escaped;
}

std::string Bold(const std::string& text) {
  return "\\fB" + Escape(text) + "\\fR";
}
std::string Italic(const std::string& text) {
  return "\\fI" + Escape(text) + "\\fR";
}

std::string ValueOf(const ArgumentInfo& argument) {
  return argument.choices.empty() ? Italic(argument.takes)
                                  : Escape(format("{}", join(argument.choices, "|")));
}

// ".TP": the argument as it is typed, and its help.
std::string Paragraph(const ArgumentInfo& argument) {
  std::string head;
  for (const std::string& name : argument.names)
    head += (head.empty() ? "" : ", ") + (argument.positional() ? ValueOf(argument) : Bold(name));
  if (!argument.positional() && !argument.takes.empty()) head += " " + ValueOf(argument);
  const std::string default_text =
      argument.default_text.empty() ? "" : format(" (default: {})", argument.default_text);
  return format(".TP\n{}\n{}\n", head, Escape(argument.help + default_text));
}

std::string Section(const std::string& title, const std::string& body) {
  return body.empty() ? "" : format(".SH {}\n{}", title, body);
}

std::string Paragraphs(const CommandInfo& command, bool positional) {
  std::string text;
  for (const ArgumentInfo& argument : command.arguments) {
    if (argument.positional() == positional) text += Paragraph(argument);
  }
  return text;
}

std::string Verbatim(const std::string& lines) {
  return lines.empty() ? "" : format(".nf\n{}\n.fi\n", Escape(lines));
}

std::string Synopsis(const CommandInfo& command) {
  std::string text = Bold("mxtrain " + command.name);
  for (const ArgumentInfo& argument : command.arguments) {
    if (!argument.positional()) continue;
    const std::string value =
        argument.takes == "key=value" ? Italic(argument.takes) + " ..." : ValueOf(argument);
    text += argument.required ? " " + value : " [" + value + "]";
  }
  return text + " [" + Italic("options") + "]\n";
}

std::string ExitStatus() {
  std::string text;
  for (const ExitCode& code : ExitCodes())
    text += format(".TP\n{}\n{}: {}\n", Bold(std::to_string(code.code)), Escape(code.name),
                   Escape(code.meaning));
  return text + format(".PP\n{} explains each.\n", Bold("mxtrain help CODE"));
}

std::string Head(const CommandLine& line, std::string title) {
  std::transform(title.begin(), title.end(), title.begin(),
                 [](unsigned char c) { return std::toupper(c); });
  const std::string version = line.Version();
  return format(".TH {} 1 \"\" \"{}\" \"mxtrain\"\n", Escape(title),
                Escape(version.substr(0, version.find('\n'))));
}

std::string ProgramPage(const CommandLine& line) {
  const CommandInfo& program = line.program();
  std::string commands;
  for (const CommandInfo& command : line.commands())
    commands += format(".TP\n{}\n{}\n", Bold(command.name), Escape(command.description));
  return Head(line, program.name) +
         Section("NAME", format("mxtrain \\- {}\n", Escape(program.description))) +
         Section("SYNOPSIS",
                 Bold("mxtrain") + " " + Italic("COMMAND") + " [" + Italic("arguments") + "]\n") +
         Section("EXAMPLES", Verbatim(program.examples)) + Section("COMMANDS", commands) +
         Section("OPTIONS", Paragraphs(program, false)) + Section("EXIT STATUS", ExitStatus()) +
         Section("SEE ALSO",
                 "Each command has its own page, for example\n.BR mxtrain\\-train (1).\n");
}

}  // namespace

std::string ManPage(const CommandLine& line, const std::string& command) {
  if (command.empty()) return ProgramPage(line);
  for (const CommandInfo& info : line.commands()) {
    if (info.name != command) continue;
    const std::string name = "mxtrain-" + command;
    return Head(line, name) +
           Section("NAME", format("{} \\- {}\n", Escape(name), Escape(info.description))) +
           Section("SYNOPSIS", Synopsis(info)) + Section("EXAMPLES", Verbatim(info.examples)) +
           Section("ARGUMENTS", Paragraphs(info, true)) +
           Section("OPTIONS", Paragraphs(info, false)) +
           Section("OPTIONS OF EVERY COMMAND", Paragraphs(line.program(), false)) +
           Section("EXIT STATUS", ExitStatus()) + Section("SEE ALSO", ".BR mxtrain (1)\n");
  }
  Throw(ErrorKind::kUsage, "unknown command '{}'", command);
}

}  // namespace mxtrain::commands

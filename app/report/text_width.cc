// SPDX-License-Identifier: Apache-2.0
#include "app/report/text_width.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "app/report/plot/name_that_fits.h"
#include "app/report/plot/visual_text.h"

namespace mxtrain::report {
namespace {

constexpr size_t kMostColumns = 110;  // of a paragraph: longer lines are hard to follow
constexpr size_t kLeastText = 24;     // columns that are left for the text of a last column
constexpr size_t kBelow = 6;          // of a last column without room, below what it belongs to
constexpr size_t kCodeIndent = 4;
constexpr std::string_view kProgram = "mxtrain ";

// Of UTF-8; every character takes one.
size_t Width(std::string_view text) {
  return static_cast<size_t>(
      std::ranges::count_if(text, [](char c) { return (c & 0xc0) != 0x80; }));
}

// As a terminal shows it.
size_t WidthOfCharacter(char32_t c) {
  return (c >= 0x2E80 && c < 0xA4D0) || (c >= 0xAC00 && c < 0xD7A4) ||
                 (c >= 0xF900 && c < 0xFB00) || (c >= 0xFF01 && c < 0xFF61) ||
                 (c >= 0x1F300 && c < 0x1FB00) || c >= 0x20000
             ? 2
             : 1;
}

// An item of a list, "  - text".
bool IsItem(std::string_view text) {
  return text.starts_with("- ");
}

// How a long line is continued.
struct Continuation {
  std::string before;       // what continues a line, its indentation
  std::string_view behind;  // a line that is continued
};

// Where the text of the last column begins: behind the last two blanks or more; npos if there are
// none, or what is left of a line would be narrow.
size_t LastColumn(std::string_view line, size_t indent, size_t columns) {
  const size_t gap = line.find("  ", indent);
  if (gap == std::string_view::npos) return gap;
  const size_t column = line.find_first_not_of(' ', gap);
  return column == std::string_view::npos || column + kLeastText > columns ? std::string_view::npos
                                                                           : column;
}

// Nothing: the line stays as it is.
std::optional<Continuation> ContinuationOf(std::string_view line, size_t columns) {
  const size_t indent = std::min(line.find_first_not_of(' '), line.size());
  const std::string_view text = line.substr(indent);
  const bool command =
      indent >= 2 && (text.starts_with(kProgram) || text.find("| mxtrain ") != text.npos);
  if (const size_t column = LastColumn(line, indent, columns); column != std::string_view::npos) {
    if (line[column] == '#') return Continuation{std::string(column, ' ') + "# ", ""};
    return Continuation{std::string(column, ' '), ""};
  }
  if (command) return Continuation{std::string(indent + 4, ' '), " \\"};
  if (indent == kCodeIndent) return std::nullopt;
  // What is far to the right is the last column of the line before it.
  const bool is_column = indent + kLeastText > kUsualColumns / 2;
  return Continuation{std::string(indent + (is_column ? 0 : IsItem(text) ? 2 : 4), ' '), ""};
}

void AppendFitted(std::string_view line, size_t columns, std::string* out) {
  const auto whole = [&] { out->append(line).append("\n"); };
  if (Width(line) <= columns) return whole();
  std::optional<Continuation> next = ContinuationOf(line, columns);
  std::string moved;
  const size_t indent = line.find_first_not_of(' ');
  const bool is_column = next && next->before.size() == indent;
  if (is_column && indent > kBelow && indent + kLeastText > columns) {
    next->before = std::string(kBelow, ' ');
    line = moved = next->before + std::string(line.substr(indent));
  }
  if (!next || Width(next->before) + kLeastText > columns) return whole();
  const size_t room = columns - next->behind.size();
  // Blanks within a line are kept, so that its columns stay where they are.
  size_t begin = 0;
  std::string before;
  while (begin < line.size()) {
    size_t end = line.size();
    if (Width(before) + Width(line.substr(begin)) > columns) {
      const size_t first = begin == 0 ? std::max(next->before.size(), size_t{1}) : begin;
      for (size_t at = line.find(' ', first); at != std::string_view::npos;
           at = line.find(' ', at + 1)) {
        if (end != line.size() && Width(before) + Width(line.substr(begin, at - begin)) > room)
          break;
        // A flag of a command stays with its value.
        const size_t word = line.rfind(' ', at - 1) + 1;
        const bool parts = !next->behind.empty() && line[word] == '-' && end != line.size();
        if (at > begin && line[at - 1] != ' ' && !parts) end = at;
      }
    }
    out->append(before).append(line.substr(begin, end - begin));
    begin = std::min(line.find_first_not_of(' ', end), line.size());
    out->append(begin < line.size() ? next->behind : "").append("\n");
    before = next->before;
  }
}

// Calls work(line) for each line of the text.
template <typename Work>
void ForLines(std::string_view text, const Work& work) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    work(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

}  // namespace

size_t ColumnsOfName(std::string_view name) {
  size_t columns = 0;
  for (const char32_t c : plot::CharactersOf(name)) columns += WidthOfCharacter(c);
  return columns;
}

std::string NameInColumns(std::string_view name, size_t most) {
  return plot::NameThatFits(name,
                            [most](std::string_view text) { return ColumnsOfName(text) <= most; });
}

std::optional<size_t> ColumnsOf(int descriptor) {
  if (const char* columns = std::getenv("COLUMNS"); columns && std::atoi(columns) > 0)
    return static_cast<size_t>(std::atoi(columns));
  winsize size{};
  if (ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return std::nullopt;
}

size_t HelpColumns() {
  return ColumnsOf(STDOUT_FILENO).value_or(kUsualColumns);
}

std::string Fitted(std::string_view text, size_t columns) {
  std::string out;
  ForLines(text, [&](std::string_view line) { AppendFitted(line, columns, &out); });
  return out;
}

std::string Refilled(std::string_view text, size_t columns) {
  columns = std::min(columns, kMostColumns);
  std::string out, paragraph;
  const auto fill = [&] {
    // Without indentation, so that what continues it has none either.
    for (std::string_view rest = paragraph; !rest.empty();) {
      size_t end = rest.size();
      if (Width(rest) > columns) {
        for (size_t at = rest.find(' '); at != rest.npos; at = rest.find(' ', at + 1)) {
          if (end != rest.size() && Width(rest.substr(0, at)) > columns) break;
          end = at;
        }
      }
      out.append(rest.substr(0, end)).append("\n");
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    paragraph.clear();
  };
  ForLines(text, [&](std::string_view line) {
    if (!line.empty() && line[0] != ' ') {
      paragraph.append(paragraph.empty() ? "" : " ").append(line);
      return;
    }
    fill();
    AppendFitted(line, columns, &out);
  });
  fill();
  return out;
}

}  // namespace mxtrain::report

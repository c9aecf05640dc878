// SPDX-License-Identifier: Apache-2.0
#include "app/commands/trained_form.h"

#include <algorithm>
#include <set>

#include "app/report/output.h"
#include "mxtrain/base/format.h"
#include "mxtrain/base/text.h"
#include "mxtrain/io/token_position.h"
#include "mxtrain/operator/param_of.h"

namespace mxtrain::commands {
namespace {

// "'a', 'b' and 'c'", or "6 of them" in words of `what`.
std::string NamesOrCount(const std::vector<std::string>& names, const char* what) {
  constexpr size_t kMostNamed = 3;
  if (names.size() > kMostNamed) return Counted(std::ssize(names), what);
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    text += i == 0 ? "" : i + 1 < names.size() ? ", " : " and ";
    text += report::Printable(names[i]);
  }
  return text;
}

}  // namespace

TrainedForm FormOf(const Graph& trained, const Graph& written) {
  std::set<std::string> own;  // layers that are written with a loss in blocks
  for (const Node& node : written.nodes) {
    if (node.op && node.op->TypeString() == "linear_cross_entropy") own.insert(node.name);
  }
  const auto at = [&trained](const NodeEntry& entry) -> const Node& {
    return trained.nodes[static_cast<size_t>(entry.node)];
  };
  TrainedForm form;
  for (const Node& node : trained.nodes) {
    if (!node.op) continue;
    const std::string op = node.op->TypeString();
    if (op == "linear_cross_entropy" && !own.contains(node.name)) form.losses.push_back(node.name);
    if (node.inputs.empty()) continue;
    const Node& last = at(node.inputs.back());
    const bool reads_places = last.name.starts_with(kTokenPosition);
    if (!reads_places) continue;
    if (ParamOf(*node.op, "mask") == "segments") form.attention.push_back(node.name);
    if (op == "take") {
      const Node& table = at(node.inputs[0]);  // the constant, reshaped
      form.placed.push_back(at(table.inputs[0]).name);
    }
  }
  return form;
}

std::vector<std::string> LinesOf(const TrainedForm& form, int64_t length) {
  std::vector<std::string> lines;
  if (!form.attention.empty()) {
    lines.push_back(
        format("training: rows of {} tokens hold several documents; {} each alone", length,
               form.attention.size() == 1 ? report::Printable(form.attention[0]) + " sees"
                                          : NamesOrCount(form.attention, "layer") + " see"));
    if (!form.placed.empty()) {
      lines.push_back(format("  {} {} read at the tokens' places in their documents",
                             NamesOrCount(form.placed, "constant"),
                             form.placed.size() == 1 ? "is" : "are"));
    }
  }
  if (!form.losses.empty()) {
    lines.push_back(
        format("training: the loss of {} is computed in blocks of tokens, without the scores "
               "of all in memory",
               NamesOrCount(form.losses, "head")));
  }
  return lines;
}

Json ToJson(const TrainedForm& form) {
  return {{"attention_by_document", form.attention},
          {"read_at_places", form.placed},
          {"losses_in_blocks", form.losses}};
}

}  // namespace mxtrain::commands

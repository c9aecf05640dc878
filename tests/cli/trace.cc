// SPDX-License-Identifier: Apache-2.0
#include "trace.h"

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <map>
#include <set>
#include <vector>

#include "mxtrain/base/file.h"
#include "mxtrain/base/format.h"
#include "mxtrain/base/json.h"

namespace mxtrain::test {
namespace {

struct Span {
  std::string row, name;
  int priority = 0;
  double begin = 0, end = 0;  // microseconds
};

// In order of their start; without those of asynchronous functions.
std::vector<Span> ReadSpans(const std::string& file) {
  const Json trace = Json::parse(ReadFile(file));
  std::map<int, std::string> rows;
  std::vector<Span> spans;
  for (const Json& e : trace.at("traceEvents")) {
    if (e.at("ph") == "M" && e.at("name") == "thread_name")
      rows[e.at("tid")] = e.at("args").at("name");
  }
  for (const Json& e : trace.at("traceEvents")) {
    if (e.at("ph") != "X") continue;
    const double begin = e.at("ts");
    spans.push_back({rows.at(e.at("tid")), e.at("name"), e.at("args").at("priority"), begin,
                     begin + e.at("dur").get<double>()});
  }
  std::stable_sort(spans.begin(), spans.end(),
                   [](const Span& a, const Span& b) { return a.begin < b.begin; });
  return spans;
}

template <typename F>
std::vector<Span> Select(const std::vector<Span>& spans, F&& f) {
  std::vector<Span> result;
  std::copy_if(spans.begin(), spans.end(), std::back_inserter(result), f);
  return result;
}

// Kinds of work: prefixes of a row and of a name.
bool HasEveryKind(const std::vector<Span>& spans, const TraceNames& names) {
  const std::vector<std::array<std::string, 3>> kinds = {
      {"executor", "cpu compute", names.first_backward},
      {"KVStore", "cpu compute", names.update},
      {"NDArray", "cpu compute", "NDArray::"},
      {"copy", "cpu copy from device", ""},
      {"IO delivery", "cpu io", "batch"},
      {"decoding", "decode", "decode "},
  };
  bool all = true;
  for (const auto& [kind, row, name] : kinds) {
    const auto found = Select(
        spans, [&](const Span& s) { return s.row.starts_with(row) && s.name.starts_with(name); });
    std::cout << format("{}: {} spans\n", kind, found.size());
    all = all && !found.empty();
  }
  return all;
}

// The n-th span of each name belongs to step n.
bool UpdatesOverlap(const std::vector<Span>& spans, const TraceNames& names) {
  const auto update = Select(spans, [&](const Span& s) {
    return s.name == names.update && s.priority == -names.last_key;
  });
  const auto last = Select(spans, [&](const Span& s) { return s.name == names.last_backward; });
  const auto first = Select(spans, [&](const Span& s) { return s.name == names.first_backward; });
  if (update.empty() || update.size() != last.size() || update.size() != first.size()) {
    std::cout << format("{} updates, {} and {} backwards\n", update.size(), last.size(),
                        first.size());
    return false;
  }
  size_t ahead = 0;
  for (size_t n = 0; n < update.size(); ++n) {
    if (update[n].begin < last[n].end) {
      std::cout << format("step {}: the update of the last layer precedes its gradient\n", n);
      return false;
    }
    ahead += update[n].begin < first[n].begin;
  }
  std::cout << format(
      "in {} of {} steps the last layer's update begins before the first layer's backward\n", ahead,
      update.size());
  return 2 * ahead > update.size();
}

// Batches whose decoding happens, in part at least, while an earlier batch is computed. A step's
// compute reaches from the binding of its inputs to the end of the first layer's backward.
bool DecodingOverlaps(const std::vector<Span>& spans, const TraceNames& names) {
  const auto binds = Select(spans, [&](const Span& s) { return s.name == "bind_inputs"; });
  const auto ends = Select(spans, [&](const Span& s) { return s.name == names.first_backward; });
  std::map<std::pair<int, int>, std::vector<Span>> decodes;  // by epoch and batch
  for (const Span& s : spans) {
    int epoch = 0, batch = 0;
    if (std::sscanf(s.name.c_str(), "decode %d:%d", &epoch, &batch) == 2)
      decodes[{epoch, batch}].push_back(s);
  }
  size_t n = 0, overlapped = 0;
  for (const auto& [batch, parts] : decodes) {
    const bool overlaps = std::any_of(parts.begin(), parts.end(), [&](const Span& part) {
      for (size_t step = 0; step < std::min(n, ends.size()); ++step) {
        if (part.begin < ends[step].end && binds[step].begin < part.end) return true;
      }
      return false;
    });
    overlapped += overlaps;
    ++n;
  }
  std::cout << format("{} of {} batches are decoded while an earlier one is computed\n", overlapped,
                      n);
  return 4 * overlapped > n;  // the first batches of an epoch have nothing to overlap with
}

}  // namespace

bool CheckTrace(const std::string& file, const TraceNames& names) {
  const std::vector<Span> spans = ReadSpans(file);
  const bool kinds = HasEveryKind(spans, names), updates = UpdatesOverlap(spans, names),
             decoding = DecodingOverlaps(spans, names);
  return kinds && updates && decoding;
}

int CountOverlaps(const std::string& file, const std::string& a, const std::string& b) {
  const std::vector<Span> spans = ReadSpans(file);
  const auto others = Select(spans, [&](const Span& s) { return s.name == b; });
  const auto overlapped = Select(spans, [&](const Span& s) {
    return s.name == a && std::any_of(others.begin(), others.end(), [&](const Span& other) {
             return other.begin < s.end && s.begin < other.end;
           });
  });
  std::cout << format("{} of {} overlap\n", overlapped.size(), a);
  return static_cast<int>(overlapped.size());
}

}  // namespace mxtrain::test

// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/engine/internal/profiler.h"

#include <algorithm>
#include <iterator>

#include "mxtrain/base/clock.h"
#include "mxtrain/base/format.h"
#include "mxtrain/base/json.h"

namespace mxtrain::engine {
namespace {

constexpr std::string_view kUnnamed = "engine function";

std::string Quoted(std::string_view text) {
  return Json(text.empty() ? kUnnamed : text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

void Profiler::Start() {
  MutexLock lock(mutex_);
  spans_.clear();
  counters_.clear();
  start_ns_ = SteadyNanoseconds();
  on_.store(true, std::memory_order_relaxed);
}

int Profiler::Row(std::string_view name) {
  MutexLock lock(mutex_);
  const auto found = std::find(rows_.begin(), rows_.end(), name);
  if (found != rows_.end()) return static_cast<int>(found - rows_.begin());
  rows_.emplace_back(name);
  return static_cast<int>(rows_.size()) - 1;
}

void Profiler::Add(int row, std::string_view name, int priority, int64_t begin_ns, int64_t end_ns) {
  MutexLock lock(mutex_);
  if (on() && end_ns >= start_ns_)
    spans_.push_back({row, priority, std::max(begin_ns, start_ns_), end_ns, std::string(name)});
}

void Profiler::AddAsync(std::string_view name, int priority, int64_t begin_ns, int64_t end_ns) {
  Add(kAsyncRow, name, priority, begin_ns, end_ns);
}

void Profiler::AddCounter(std::string_view name, int64_t value, int64_t at_ns) {
  MutexLock lock(mutex_);
  if (on()) counters_.push_back({value, at_ns, std::string(name)});
}

std::string Profiler::Stop() {
  MutexLock lock(mutex_);
  on_.store(false, std::memory_order_relaxed);
  std::string text = R"({"displayTimeUnit":"ms","traceEvents":[)";
  auto out = std::back_inserter(text);
  fmt::format_to(
      out, R"({{"ph":"M","pid":1,"name":"process_name","args":{{"name":"mxtrain engine"}}}})");
  for (size_t row = 0; row < rows_.size(); ++row) {
    fmt::format_to(out,
                   ",\n"
                   R"({{"ph":"M","pid":1,"tid":{},"name":"thread_name","args":{{"name":{}}}}})",
                   row, Quoted(rows_[row]));
    fmt::format_to(
        out,
        ",\n"
        R"({{"ph":"M","pid":1,"tid":{0},"name":"thread_sort_index","args":{{"sort_index":{0}}}}})",
        row);
  }
  int async_id = 0;
  for (const Span& span : spans_) {
    const std::string name = Quoted(span.name);
    const double begin_us = static_cast<double>(span.begin_ns - start_ns_) / 1e3;
    const double end_us = static_cast<double>(span.end_ns - start_ns_) / 1e3;
    if (span.row == kAsyncRow) {
      ++async_id;
      fmt::format_to(
          out,
          ",\n"
          R"({{"ph":"b","cat":"async","id":{},"pid":1,"name":{},"ts":{:.3f},"args":{{"priority":{}}}}})",
          async_id, name, begin_us, span.priority);
      fmt::format_to(out,
                     ",\n"
                     R"({{"ph":"e","cat":"async","id":{},"pid":1,"name":{},"ts":{:.3f}}})",
                     async_id, name, end_us);
    } else {
      fmt::format_to(
          out,
          ",\n"
          R"({{"ph":"X","pid":1,"tid":{},"name":{},"ts":{:.3f},"dur":{:.3f},"args":{{"priority":{}}}}})",
          span.row, name, begin_us, end_us - begin_us, span.priority);
    }
  }
  for (const Counter& counter : counters_) {
    fmt::format_to(out,
                   ",\n"
                   R"({{"ph":"C","pid":1,"name":{},"ts":{:.3f},"args":{{"value":{}}}}})",
                   Quoted(counter.name), static_cast<double>(counter.at_ns - start_ns_) / 1e3,
                   counter.value);
  }
  text += "]}\n";
  spans_.clear();
  counters_.clear();
  return text;
}

}  // namespace mxtrain::engine

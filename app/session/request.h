// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a caller asks of a session: which configuration, and what computes it.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mxtrain::session {

// A configuration in files, and what overrides it.
struct ConfigFiles {
  std::string file;
  std::vector<std::string> overrides, more_files;  // key=value; files merged over the first
  bool trusts_plugins = true;         // load those that the file names; else only those named here
  std::vector<std::string> places{};  // GROUP=DEVICE, as ParsePlaces takes them
};

struct ComputeOptions {
  bool deterministic = false;  // only kernels whose results are reproducible to the bit
  bool strict_device = false;  // refuse operators without a kernel on the GPU
  std::string device = "auto", engine = "threaded";
  int threads = 0, cpu_workers = 1;  // threads: 0 for all CPUs
  int local_rank = 0;                // of several processes on this machine that train together
  std::optional<uint64_t> seed;      // in place of the configuration's
  std::vector<std::string> plugins;  // shared objects with operators
};

}  // namespace mxtrain::session

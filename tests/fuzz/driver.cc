// SPDX-License-Identifier: Apache-2.0
// A small stand-in for libFuzzer: runs a target over its corpus, over inputs too large to commit,
// and over mutations of the corpus that are the same in every run. It bounds the cost of an input:
// memory by its size, time by a limit that only quadratic behaviour reaches.
//
//   fuzz_TARGET MUTATIONS CORPUS_FOLDER...
//
//   MXTRAIN_FUZZ_SECONDS  CPU time for mutations, instead of a count
//   MXTRAIN_FUZZ_SEED     seed of their choice (1)
//
// The current input is in fuzz_TARGET.input in the working folder, and stays there if the program
// fails.
#include <fcntl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>

#include "mxtrain/base/file.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/support/allocation_count.h"

namespace mxtrain::fuzz {
namespace {

constexpr int64_t kMemoryBase = int64_t{64} << 20, kMemoryPerByte = 1024;
constexpr int64_t kResidentBase = int64_t{512} << 20;  // sanitizers keep freed memory
constexpr double kMostSeconds = 20;                    // CPU time of one input under a sanitizer
constexpr size_t kLongestMutant = size_t{1} << 16;

double ProcessorSeconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

int64_t PeakResidentBytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<int64_t>(usage.ru_maxrss) * 1024;
}

double SettingOf(const char* name, double otherwise) {
  const char* text = std::getenv(name);
  return text ? std::atof(text) : otherwise;
}

class Runner {
 public:
  explicit Runner(const std::string& program)
      : keep_(std::filesystem::path(program).filename().string() + ".input") {
    file_ = open(keep_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file_ < 0) Fail("cannot be written", 0);
  }
  ~Runner() {
    close(file_);
    std::filesystem::remove(keep_);
  }
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  void Run(const std::string& input) {
    Keep(input);
    const auto worth = [&input](int64_t base) {
      return base + kMemoryPerByte * static_cast<int64_t>(input.size());
    };
    const int64_t resident = PeakResidentBytes();
    const double start = ProcessorSeconds();
    test::PeakBytes peak;
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
    const double seconds = ProcessorSeconds() - start;
    ++num_inputs_;
    longest_ = std::max(longest_, seconds);
    if (peak.value() > worth(kMemoryBase))
      Fail("takes more memory than its size is worth: MiB", peak.value() >> 20);
    const int64_t grown = PeakResidentBytes() - resident;
    if (grown > worth(kResidentBase))
      Fail("takes more memory than its size is worth: resident MiB", grown >> 20);
    if (seconds > kMostSeconds) Fail("takes too long: seconds", static_cast<int64_t>(seconds));
  }
  size_t num_inputs() const { return num_inputs_; }
  double longest() const { return longest_; }

 private:
  void Keep(const std::string& input) const {
    if (pwrite(file_, input.data(), input.size(), 0) != static_cast<ssize_t>(input.size()) ||
        ftruncate(file_, static_cast<off_t>(input.size())) != 0) {
      Fail("cannot be written", 0);
    }
  }
  [[noreturn]] void Fail(const char* what, int64_t number) const {
    std::printf("%s %s %lld\n", keep_.c_str(), what, static_cast<long long>(number));
    std::fflush(stdout);
    std::_Exit(1);
  }

  const std::string keep_;
  int file_ = -1;
  size_t num_inputs_ = 0;
  double longest_ = 0;
};

class Mutator {
 public:
  Mutator(const std::vector<std::string>& corpus, uint32_t seed) : corpus_(corpus), random_(seed) {}

  std::string Next() {
    std::string text = corpus_[Below(corpus_.size())];
    for (size_t i = Below(6) + 1; i > 0; --i) Change(&text);
    text.resize(std::min(text.size(), kLongestMutant));
    return text;
  }

 private:
  size_t Below(size_t bound) { return bound ? random_() % bound : 0; }

  void Change(std::string* text) {
    const size_t at = Below(text->size()),
                 length = Below(std::min<size_t>(text->size() - at, size_t{1} << Below(10))) + 1;
    if (text->empty()) return text->push_back(static_cast<char>(random_()));
    switch (Below(8)) {
      case 0:
        (*text)[at] = static_cast<char>((*text)[at] ^ 1 << Below(8));
        break;
      case 1:
        (*text)[at] = static_cast<char>(random_());
        break;
      case 2:
        PutNumber(at, text);
        break;
      case 3:
        text->erase(at, length);
        break;
      case 4:
        text->insert(at, text->substr(Below(text->size()), length));
        break;
      case 5: {
        const std::string& other = corpus_[Below(corpus_.size())];
        text->insert(at, other.substr(Below(other.size()), length));
        break;
      }
      case 6:
        text->replace(at, length, text->substr(Below(text->size()), length));
        break;
      default:
        ChangeDigit(at, text);
    }
  }
  // A boundary value of counts and sizes, in one to eight bytes of either byte order.
  void PutNumber(size_t at, std::string* text) {
    static constexpr uint64_t kNumbers[] = {
        0,      1,          2,          0x7f,       0x80,       0xff,       0x7fff,
        0xffff, 0x7fffffff, 0x80000000, 0xffffffff, 1ull << 40, ~0ull >> 1, ~0ull};
    const uint64_t number = kNumbers[Below(std::size(kNumbers))];
    char bytes[sizeof number];
    std::memcpy(bytes, &number, sizeof number);
    const size_t width = std::min(size_t{1} << Below(4), text->size() - at);
    if (Below(2)) std::reverse(bytes, bytes + width);
    text->replace(at, width, bytes, width);
  }
  // Replaces the next digit by another one, or by the start of a long number.
  void ChangeDigit(size_t at, std::string* text) {
    const size_t digit = text->find_first_of("0123456789", at);
    if (digit == std::string::npos) return;
    (*text)[digit] = static_cast<char>('0' + Below(10));
    if (Below(4) == 0) text->insert(digit, std::string(Below(20), '9'));
  }

  const std::vector<std::string>& corpus_;
  std::mt19937 random_;
};

std::vector<std::string> ReadCorpus(int count, char** folders) {
  std::vector<std::string> files, corpus;
  for (int i = 0; i < count; ++i) {
    for (const auto& entry : std::filesystem::directory_iterator(folders[i]))
      files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  for (const std::string& file : files) corpus.push_back(ReadFile(file));
  return corpus;
}

int Main(int count, char** arguments) {
  const size_t mutations = count > 1 ? std::strtoull(arguments[1], nullptr, 10) : 0;
  const std::vector<std::string> corpus = ReadCorpus(count - 2, arguments + 2);
  if (corpus.empty()) {
    std::printf("usage: %s MUTATIONS CORPUS_FOLDER...\n", arguments[0]);
    return 2;
  }
  Runner runner(arguments[0]);
  for (const std::string& input : corpus) runner.Run(input);
  for (const std::string& input : LargeInputs()) runner.Run(input);
  Mutator mutator(corpus, static_cast<uint32_t>(SettingOf("MXTRAIN_FUZZ_SEED", 1)));
  const double seconds = SettingOf("MXTRAIN_FUZZ_SECONDS", 0), end = ProcessorSeconds() + seconds;
  const auto goes_on = [&](size_t i) {
    return seconds > 0 ? ProcessorSeconds() < end : i < mutations;
  };
  for (size_t i = 0; goes_on(i); ++i) runner.Run(mutator.Next());
  std::printf("%zu inputs; the longest took %.3f s of the processor\n", runner.num_inputs(),
              runner.longest());
  return 0;
}

}  // namespace
}  // namespace mxtrain::fuzz

int main(int count, char** arguments) {
  return mxtrain::fuzz::Main(count, arguments);
}

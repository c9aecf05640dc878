// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/text/partial_tokens.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/text/internal/journal_entry.h"

namespace mxtrain::text {
namespace {

std::vector<uint64_t> NumbersIn(std::string_view field) {
  std::vector<uint64_t> numbers(field.size() / sizeof(uint64_t));
  field.copy(reinterpret_cast<char*>(numbers.data()), numbers.size() * sizeof(uint64_t));
  return numbers;
}

// Of an entry behind the first one; false, and nothing changes, if it is not one.
bool AddMoment(const std::vector<std::string_view>& fields, PartialTokens::Recorded* to) {
  if (fields.size() != 3) return false;
  const std::vector<uint64_t> numbers = NumbersIn(fields[1]), more = NumbersIn(fields[2]);
  if (numbers.size() != 3 || numbers[2] > more.size()) return false;
  to->place = fields[0];
  to->tokens = numbers[0], to->rest_sum = numbers[1];
  const auto sums = more.begin() + static_cast<std::ptrdiff_t>(numbers[2]);
  to->ends.insert(to->ends.end(), more.begin(), sums);
  to->sums.insert(to->sums.end(), sums, more.end());
  return true;
}

}  // namespace

// The process that removed a journal may have had it open: then the lock is on a file that has no
// name any more, and is taken again.
class PartialTokens::Lock {
 public:
  Lock(const std::string& path, const std::string& called) {
    do {
      file_ = std::make_unique<const FileDescriptor>(
          path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK, "write", called);
      if (flock(file_->get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        Throw(ErrorKind::kFileSystem, "another process is writing {}; wait for it, or stop it",
              called);
    } while (!IsNamed(path));
  }

  void Truncate(int64_t bytes) const {
    if (ftruncate(file_->get(), bytes) != 0)
      Throw(ErrorKind::kFileSystem, "cannot write a journal: {}", ReasonOf(errno));
  }

 private:
  bool IsNamed(const std::string& path) const {
    struct stat opened {
    }, named{};
    return fstat(file_->get(), &opened) == 0 && lstat(path.c_str(), &named) == 0 &&
           opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
  }

  std::unique_ptr<const FileDescriptor> file_;
};

PartialTokens::PartialTokens(std::string path) : path_(std::move(path)) {
  // Of what could not be replaced it is said now, not when the tokens are written.
  { const FileWriter replaceable(path_); }
  lock_ = std::make_unique<const Lock>(journal_path(), path_);
  ReadJournal();
}

PartialTokens::~PartialTokens() {
  if (keep_) return;
  unlink(partial_path().c_str());
  unlink(journal_path().c_str());
}

void PartialTokens::ReadJournal() {
  // The tokens have their own name already if the process was killed between that and its end.
  if (access(partial_path().c_str(), F_OK) != 0) return;
  const std::string journal = ReadFile(journal_path());
  std::string_view rest = journal;
  const std::vector<std::string_view> first = TakeJournalEntry(&rest);
  if (first.size() != 3 || first[0] != kJournalMagic) return;
  Recorded recorded;
  recorded.request = first[1];
  recorded.tokenizer_text = first[2];
  for (; AddMoment(TakeJournalEntry(&rest), &recorded); keep_ = true)
    journal_bytes_ = std::ssize(journal) - std::ssize(rest);
  if (keep_) recorded_ = std::move(recorded);
}

void PartialTokens::Discard() {
  recorded_.reset();
  journal_bytes_ = 0;
  keep_ = false;
  lock_->Truncate(0);
  unlink(partial_path().c_str());
}

}  // namespace mxtrain::text

// SPDX-License-Identifier: Apache-2.0
#include "app/tasks/detection/box_doctor.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "app/tasks/scored_classes.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/format.h"
#include "mxtrain/io/boxes.h"
#include "mxtrain/io/image.h"

namespace mxtrain::tasks {
namespace {

constexpr int64_t kLooks = 500;  // images whose size is read

// How many there are of a kind, and the first.
struct Oddity {
  int64_t count = 0;
  std::string first;

  void Add(const std::string& where) {
    if (count++ == 0) first = where;
  }
  void TellTo(std::vector<std::string>* odd, const std::string& what) const {
    if (count == 0) return;
    odd->push_back(
        format("{} {} {} (first: {})", count, count == 1 ? "box" : "boxes", what, first));
  }
};

// The size of an example's image as it is shown; nothing if it cannot be read.
std::optional<std::pair<int, int>> SizeOf(const io::Source& source, int64_t index,
                                          io::Sample* sample) {
  try {
    source.Read(index, sample);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kData && error.kind() != ErrorKind::kFileSystem) throw;
    return std::nullopt;  // bad examples are told of elsewhere
  }
  const auto info = io::ProbeImage(sample->data[0].encoded);
  if (!info) return std::nullopt;
  return std::pair(info->height, info->width);
}

class Doctor {
 public:
  Doctor(const io::Source& source, size_t position, int64_t classes)
      : source_(source), position_(position), classes_(classes) {}

  std::vector<std::string> Look(bool training) {
    const int64_t step = std::max<int64_t>(1, source_.size() / kLooks);
    for (int64_t i = 0; i < source_.size(); ++i) LookAt(i, /*sized=*/i % step == 0);
    std::vector<std::string> odd;
    if (objects_ == 0) return {"none of the images has an object"};
    flat_.TellTo(&odd, "without an area, which is ignored");
    beyond_.TellTo(&odd,
                   "beyond the edges of the image; only what is inside counts. Were the images "
                   "resized after they were labelled?");
    twice_.TellTo(&odd, "given twice, with the same class and corners");
    unknown_.TellTo(&odd, format("of a class that the net's {} outputs do not have", classes_));
    std::vector<std::string> unseen;
    for (size_t k = 0; k < source_.class_names().size(); ++k) {
      if (!seen_.contains(static_cast<int>(k)))
        unseen.push_back(format("'{}'", source_.class_names()[k]));
    }
    if (training && !unseen.empty())
      odd.push_back(format("no object of {} {}", unseen.size() == 1 ? "class" : "the classes",
                           FirstOf(unseen, 8)));
    return odd;
  }

 private:
  void LookAt(int64_t index, bool sized) {
    const std::span<const float> rows = source_.LabelOf(index, position_, &labels_);
    const auto columns = static_cast<size_t>(source_.label_fields()[position_].shape[1]);
    std::set<std::tuple<float, float, float, float, float>> known;
    std::optional<std::pair<int, int>> size;
    if (sized && !rows.empty()) size = SizeOf(source_, index, &image_);
    for (size_t r = 0; r * columns < rows.size(); ++r) {
      const io::BoxRow box(&rows[r * columns]);
      const std::string where = format("box {} of {}", r + 1, source_.Name(index));
      ++objects_;
      seen_.insert(static_cast<int>(box.label));
      if (classes_ > 0 && box.label >= static_cast<float>(classes_)) unknown_.Add(where);
      if (!(box.right > box.left && box.bottom > box.top)) flat_.Add(where);
      if (!known.emplace(box.label, box.left, box.top, box.right, box.bottom).second)
        twice_.Add(where);
      // Tools round, and count pixels from 0 or from 1.
      constexpr float kTolerance = 1.5f;
      if (size && (box.left < -kTolerance || box.top < -kTolerance ||
                   box.right > static_cast<float>(size->second) + kTolerance ||
                   box.bottom > static_cast<float>(size->first) + kTolerance))
        beyond_.Add(where);
    }
  }

  const io::Source& source_;
  const size_t position_;
  const int64_t classes_;
  int64_t objects_ = 0;
  std::set<int> seen_;
  Oddity flat_, beyond_, twice_, unknown_;
  io::Sample labels_, image_;
};

}  // namespace

std::vector<std::string> OddBoxes(const io::Source& data, size_t position, int64_t classes,
                                  bool training) {
  return Doctor(data, position, classes).Look(training);
}

}  // namespace mxtrain::tasks

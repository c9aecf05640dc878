// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which points find which objects, in four steps: each point says whether it is a candidate and
// what all classes cost there, each object chooses its cheapest candidates, each image gives its
// points to objects, and the points with an object are counted. For both devices.
#include <cmath>

#include "mxtrain/operator/point_loss.h"
#include "mxtrain/operator/rows.h"
#include "mxtrain/operators/sim_ota_loss/sim_ota_loss.h"

namespace mxtrain::sim_ota_loss {

inline constexpr int32_t kWantedBySeveral = -3;  // until conflicts are resolved

// What is kept from forward to backward.
template <typename C>
struct Targets {
  int32_t* object;  // [images, points]: the object of a point, kBackground or kNothingLearnt
  C* overlap;       // [images, points]: of a point's box with its object's
  C* found;         // [images]: points with an object
  C* factor;        // [1]: images / max(sum found, 1)

  static int64_t Bytes(int64_t images, int64_t points) {
    return images * points * static_cast<int64_t>(sizeof(int32_t) + sizeof(C)) +
           (images + 1) * static_cast<int64_t>(sizeof(C));
  }
  Targets(void* bytes, int64_t images, int64_t points)
      : object(nullptr),
        overlap(static_cast<C*>(bytes)),
        found(overlap + images * points),
        factor(found + images) {
    object = reinterpret_cast<int32_t*>(factor + 1);
  }
};

// What the steps hand on.
template <typename C>
struct Offers {
  int candidates;
  C* none;         // [images, points]: the cost of all classes if none is there; -1: no candidate
  C* cost;         // [images, objects, candidates], in rising order
  int32_t* point;  // likewise; -1: none

  static int64_t Bytes(int64_t images, int64_t points, int64_t objects, int candidates) {
    return images * points * static_cast<int64_t>(sizeof(C)) +
           images * objects * candidates * static_cast<int64_t>(sizeof(C) + sizeof(int32_t));
  }
  Offers(void* bytes, int64_t images, int64_t points, int64_t objects, int count)
      : candidates(count), none(static_cast<C*>(bytes)), cost(none + images * points) {
    point = reinterpret_cast<int32_t*>(cost + images * objects * count);
  }
};

// What a point has to do with an object.
template <typename T>
struct Pairs {
  using C = ComputeOf<T>;
  using Object = typename LabelledObjects<T>::Object;
  using Place = typename PointMaps<T>::Place;
  PointMaps<T> maps;
  LabelledObjects<T> labels;
  C center_radius, overlap_cost;

  // The logarithms of BCE end at -100, as in PyTorch.
  MXTRAIN_HD static C Bounded(C log) { return log > C(-100) ? log : C(-100); }
  // sqrt(p_class p_object).
  MXTRAIN_HD C Probability(int64_t image, const Place& at, int64_t k) const {
    return std::sqrt(vector_math::Sigmoid(maps.Score(image, at, k)) *
                     vector_math::Sigmoid(maps.Objectness(image, at)));
  }
  MXTRAIN_HD static C CostOfAbsence(C p) { return -Bounded(vector_math::Log1p(-p)); }

  MXTRAIN_HD static bool IsInside(const Place& at, const Object& object) {
    return at.x > object.box.left && at.x < object.box.right && at.y > object.box.top &&
           at.y < object.box.bottom;
  }
  MXTRAIN_HD bool IsCentral(const Place& at, const Object& object) const {
    const C radius = center_radius * maps.level[at.level].stride,
            x = (object.box.left + object.box.right) / C(2),
            y = (object.box.top + object.box.bottom) / C(2);
    return at.x > x - radius && at.x < x + radius && at.y > y - radius && at.y < y + radius;
  }
  // `none`: of the point, as in Offers. Sets the intersection over union.
  MXTRAIN_HD C Cost(int64_t image, const Place& at, C none, const Object& object,
                    C* overlap) const {
    *overlap = IntersectionOverUnion(maps.Box(image, at), object.box);
    const C p = Probability(image, at, object.label);
    const C classes = none - CostOfAbsence(p) - Bounded(vector_math::Log(p));
    const C far = IsInside(at, object) && IsCentral(at, object) ? C(0) : C(1e5);
    return classes - overlap_cost * vector_math::Log(*overlap + C(1e-8)) + far;
  }
};

// For point i % points of an image.
template <typename T>
struct FindCandidates {
  using C = ComputeOf<T>;
  Pairs<T> pairs;
  Offers<C> offers;

  MXTRAIN_HD void operator()(int64_t i) const {
    const int64_t image = i / pairs.maps.points;
    const auto at = pairs.maps.PlaceOf(i % pairs.maps.points);
    C none = C(-1);
    if (IsNearAny(image, at)) {
      none = C(0);
      for (int64_t k = 0; k < pairs.maps.classes; ++k)
        none += pairs.CostOfAbsence(pairs.Probability(image, at, k));
    }
    offers.none[i] = none;
  }
  MXTRAIN_HD bool IsNearAny(int64_t image, const typename Pairs<T>::Place& at) const {
    for (int64_t m = 0; m < pairs.labels.most; ++m) {
      typename Pairs<T>::Object object;
      if (!pairs.labels.Get(image, m, &object) || !object.learnt) continue;
      if (pairs.IsInside(at, object) || pairs.IsCentral(at, object)) return true;
    }
    return false;
  }
};

// For object i % labels.most of an image, which looks at all points of it: the work of one member
// of a team.
template <typename T>
struct ChooseCheapest {
  using C = ComputeOf<T>;
  Pairs<T> pairs;
  Offers<C> offers;

  template <typename Team>
  MXTRAIN_HD void operator()(const Team& team, int64_t i) const {
    if (team.rank() != 0) return;
    const int64_t image = i / pairs.labels.most, points = pairs.maps.points;
    const int most = offers.candidates;
    C* const cost = offers.cost + i * most;
    int32_t* const chosen = offers.point + i * most;
    for (int j = 0; j < most; ++j) chosen[j] = -1;
    typename Pairs<T>::Object object;
    if (!pairs.labels.Get(image, i % pairs.labels.most, &object) || !object.learnt) return;
    C largest[SimOtaLossProperty::kMostCandidates];
    for (int j = 0; j < most; ++j) largest[j] = C(0);
    for (int64_t p = 0; p < points; ++p) {
      const C none = offers.none[image * points + p];
      if (none < C(0)) continue;
      C overlap;
      const C price = pairs.Cost(image, pairs.maps.PlaceOf(p), none, object, &overlap);
      int j = most;
      for (; j > 0 && overlap > largest[j - 1]; --j) {
        if (j < most) largest[j] = largest[j - 1];
      }
      if (j < most) largest[j] = overlap;
      for (j = most; j > 0 && (chosen[j - 1] < 0 || price < cost[j - 1]); --j) {
        if (j < most) cost[j] = cost[j - 1], chosen[j] = chosen[j - 1];
      }
      if (j < most) cost[j] = price, chosen[j] = static_cast<int32_t>(p);
    }
    C sum = C(0);
    for (int j = 0; j < most; ++j) sum += largest[j];
    for (int j = sum > C(1) ? static_cast<int>(sum) : 1; j < most; ++j) chosen[j] = -1;
  }
};

// Gives the points of an image to objects.
template <typename T>
struct AssignPoints {
  using C = ComputeOf<T>;
  Pairs<T> pairs;
  Offers<C> offers;
  Targets<C> targets;

  MXTRAIN_HD void operator()(int64_t image) const {
    const int64_t points = pairs.maps.points, most = pairs.labels.most;
    int32_t* const object = targets.object + image * points;
    for (int64_t p = 0; p < points; ++p) object[p] = kBackground;
    for (int64_t m = 0; m < most; ++m) {
      const int64_t first = (image * most + m) * offers.candidates;
      for (int64_t j = first; j < first + offers.candidates && offers.point[j] >= 0; ++j) {
        int32_t& its = object[offers.point[j]];
        its = its == kBackground ? static_cast<int32_t>(m) : kWantedBySeveral;
      }
    }
    C found = C(0);
    for (int64_t p = 0; p < points; ++p) {
      C overlap = C(0);
      if (object[p] != kBackground) Give(image, p, &object[p], &overlap), found += C(1);
      targets.overlap[image * points + p] = overlap;
    }
    targets.found[image] = found;
    IgnoreInside(pairs.maps, pairs.labels, image, object);
  }
  // To the one object that wants it, or to the cheapest of all.
  MXTRAIN_HD void Give(int64_t image, int64_t p, int32_t* its, C* overlap) const {
    const auto at = pairs.maps.PlaceOf(p);
    const C none = offers.none[image * pairs.maps.points + p];
    const bool one = *its >= 0;
    const int64_t first = one ? *its : 0, end = one ? first + 1 : pairs.labels.most;
    C least = C(0);
    for (int64_t m = first; m < end; ++m) {
      typename Pairs<T>::Object object;
      if (!pairs.labels.Get(image, m, &object) || !object.learnt) continue;
      C own;
      const C price = pairs.Cost(image, at, none, object, &own);
      if (*its != kWantedBySeveral && !one && !(price < least)) continue;
      least = price, *its = static_cast<int32_t>(m), *overlap = own;
    }
  }
};

template <typename C>
struct CountFound {
  Targets<C> targets;
  int64_t images;

  MXTRAIN_HD void operator()(int64_t) const {
    C sum = C(0);
    for (int64_t image = 0; image < images; ++image) sum += targets.found[image];
    *targets.factor = static_cast<C>(images) / (sum > C(1) ? sum : C(1));
  }
};

}  // namespace mxtrain::sim_ota_loss

// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the kinds of fields are called, and how a batch says that there is nothing. Private to io.
#include "mxtrain/io/internal/box_labels.h"
#include "mxtrain/io/internal/mask_labels.h"
#include "mxtrain/io/internal/point_labels.h"
#include "mxtrain/io/source.h"

namespace mxtrain::io {

// For messages: "the label 'x' is ...".
inline const char* WhatIs(FieldKind kind) {
  switch (kind) {
    case FieldKind::kImage:
      return "an image";
    case FieldKind::kPoints:
      return "points of an image";
    case FieldKind::kMask:
      return "a class for each pixel of an image";
    case FieldKind::kBoxes:
      return "boxes in an image";
    case FieldKind::kValues:
      break;
  }
  return "numbers";
}

// Of a label of a row that no example fills.
inline float NothingOf(FieldKind kind) {
  return kind == FieldKind::kPoints  ? kNoPoint
         : kind == FieldKind::kMask  ? kNoClassLabel
         : kind == FieldKind::kBoxes ? kNoBox
                                     : 0.0f;
}

}  // namespace mxtrain::io

// SPDX-License-Identifier: Apache-2.0
#include "opencv_decode.h"

cv::Mat DecodeForOpenCv(const std::string&, const std::function<cv::Mat()>& otherwise) {
  return otherwise();
}

const char* OpenCvDecoderName() {
  return "TurboJPEG decodes in OpenCV's place";
}

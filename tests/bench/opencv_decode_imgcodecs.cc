// SPDX-License-Identifier: Apache-2.0
#include <opencv2/imgcodecs.hpp>

#include "opencv_decode.h"

cv::Mat DecodeForOpenCv(const std::string& bytes, const std::function<cv::Mat()>&) {
  return cv::imdecode(
      cv::Mat(1, static_cast<int>(bytes.size()), CV_8U, const_cast<char*>(bytes.data())),
      cv::IMREAD_COLOR);
}

const char* OpenCvDecoderName() {
  return "OpenCV decodes with its imdecode";
}

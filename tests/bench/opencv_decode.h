// SPDX-License-Identifier: Apache-2.0
#pragma once
// Decoding for the OpenCV method: imdecode if the build has OpenCV's imgcodecs
// (opencv_decode_imgcodecs.cc), else the caller's decoder.
#include <functional>
#include <opencv2/core.hpp>
#include <string>

cv::Mat DecodeForOpenCv(const std::string& bytes, const std::function<cv::Mat()>& otherwise);
const char* OpenCvDecoderName();

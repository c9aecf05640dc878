#pragma once
// How the OpenCV way decodes: imdecode where the build has OpenCV's imgcodecs (opencv_decode_imgcodecs.cc), else what the caller gives.
#include <functional>
#include <opencv2/core.hpp>
#include <string>

cv::Mat DecodeForOpenCv(const std::string& bytes, const std::function<cv::Mat()>& otherwise);
const char* OpenCvDecoderName();

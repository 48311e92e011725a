// Reports of tests/unit/report/data as messages.
#pragma once

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "proto/report.pb.h"

namespace idlescope::report {

inline std::string file_text(const std::string& name) {
  const std::string path = std::string(IDLESCOPE_REPORT_DATA) + "/" + name;
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path;
  std::stringstream content;
  content << file.rdbuf();
  return content.str();
}

inline Report report_from(const std::string& name) {
  Report report;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(file_text(name), &report)) << name;
  return report;
}

}  // namespace idlescope::report

// Renders a report given as text proto or JSON: for looking at pages and for the browser test.
//   render_textproto html|html-zh|text|json FILE (text proto, or JSON as `report --json` writes it)
#include <google/protobuf/text_format.h>
#include <google/protobuf/util/json_util.h>

#include <fstream>
#include <iostream>
#include <sstream>

#include "analysis/report/html.h"
#include "analysis/report/json.h"
#include "analysis/report/text.h"

int main(int argc, char** argv) {
  using namespace idlescope::report;
  if (argc != 3) return 1;
  std::stringstream content;
  content << std::ifstream(argv[2]).rdbuf();
  Report report;
  const std::string text = content.str();
  const bool read = text[0] == '{' ? google::protobuf::util::JsonStringToMessage(text, &report).ok()
                                   : google::protobuf::TextFormat::ParseFromString(text, &report);
  if (!read) return 2;
  const std::string format = argv[1];
  if (format == "html") std::cout << to_html(report, Language::kEnglish);
  if (format == "html-zh") std::cout << to_html(report, Language::kChinese);
  if (format == "text") std::cout << render_text(report, TextOptions());
  if (format == "json") std::cout << to_json(report);
  return 0;
}

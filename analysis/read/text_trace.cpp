#include "analysis/read/text_trace.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <fmt/format.h>

#include "proto/messages.h"
#include "proto/trace.pb.h"

namespace idlescope::read {
namespace {

class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, google::protobuf::io::ColumnNumber column,
                const std::string& message) override {
    if (text_.empty())
      text_ = fmt::format("{} (line {}, column {})", message, line + 1, column + 1);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace

Expected<std::string> serialize_text_trace(std::string_view text, const std::string& path) {
  trace::Trace parsed;
  FirstError error;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  if (!parser.ParseFromString(std::string(text), &parsed)) {
    return tl::unexpected(Fault{messages::kNotATrace,
                                {{"path", path},
                                 {"offset", "0"},
                                 {"expected", "the text form of idlescope.trace.Trace"},
                                 {"found", error.text()}}});
  }
  return parsed.SerializeAsString();
}

}  // namespace idlescope::read

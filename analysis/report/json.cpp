#include "analysis/report/json.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/type_resolver.h>
#include <google/protobuf/util/type_resolver_util.h>

#include <memory>

namespace idlescope::report {

std::string to_json(const Report& report) {
  // MessageToJsonString serialises maps in hash order; the detour by deterministic bytes
  // keeps two runs on the same trace equal byte for byte.
  std::string serialised;
  {
    google::protobuf::io::StringOutputStream stream(&serialised);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    report.SerializeToCodedStream(&coded);
  }
  const std::unique_ptr<google::protobuf::util::TypeResolver> resolver(
      google::protobuf::util::NewTypeResolverForDescriptorPool(
          "type.googleapis.com", google::protobuf::DescriptorPool::generated_pool()));
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  std::string json;
  const auto status = google::protobuf::util::BinaryToJsonString(
      resolver.get(), "type.googleapis.com/" + report.GetDescriptor()->full_name(), serialised,
      &json, options);
  if (!status.ok()) return "";
  if (json.empty() || json.back() != '\n') json += '\n';
  return json;
}

}  // namespace idlescope::report

// Redaction: what must go goes, also from compressed packets; what is needed stays.
#include "analysis/export/redact.h"

#include <gtest/gtest.h>
#include <zstd.h>

#include "analysis/read/zstd_frame.h"
#include "proto/trace.pb.h"

namespace idlescope::exporting {
namespace {

TEST(Redactor, PathsAndUrls) {
  Redactor redactor;
  EXPECT_EQ(redactor.text("/home/me/job/train.py:41 loop"), "dir1/train.py:41 loop");
  EXPECT_EQ(redactor.text("/home/me/job/data.py:7 f"), "dir1/data.py:7 f") << "equal stays equal";
  EXPECT_EQ(redactor.text("read s3://bucket/a,b?token=x=y then"), "read url1 then");
  EXPECT_EQ(redactor.text("src/model.py:3"), "dir2/model.py:3");
  EXPECT_EQ(redactor.text("train.py:41 <module>"), "train.py:41 <module>");
  EXPECT_EQ(redactor.text("void at::native::kernel<float, (int)4>(Params)"),
            "void at::native::kernel<float, (int)4>(Params)");
  EXPECT_EQ(redactor.text("open(\"/data/x y/z\")"), "open(\"dir3/x dir4/z\")");
  EXPECT_EQ(redactor.host("node17"), "host1");
  EXPECT_EQ(redactor.text("lost contact to node17"), "lost contact to host1");
  EXPECT_EQ(redactor.text("rendezvous node17:29500, gpu-node17"),
            "rendezvous host1:29500, gpu-node17");
  EXPECT_EQ(redactor.text(""), "");
}

// What a name in a trace may hold beside a plain path.
TEST(Redactor, NothingOfAPersonIsLeft) {
  Redactor redactor;
  EXPECT_EQ(redactor.host("node17.cluster.example"), "host1");
  for (const char* text :
       {"/data/jane doe/job/train.py:41 loop", "/data/jane/test_x.py::test_y[1]", "~/jane/x.sh",
        "C:\\Users\\jane\\train.py:3", "mail jane@example.org now",
        "git@example.org:jane/private.git", "https://jane:secret@example.org/x?key=secret",
        "tcp://node17:29500", "store on node17.cluster.example:29500", "node17",
        "rank 0 at 10.1.2.3:29500", "load(/data/jane/a.pt)", "path=/data/jane/a.pt",
        "file:///data/jane/a.pt"}) {
    const std::string got = redactor.text(text);
    for (const char* leak : {"jane", "doe/", "node17", "cluster", "secret", "10.1.2.3", "data"}) {
      EXPECT_EQ(got.find(leak), std::string::npos) << text << " -> " << got;
    }
  }
  EXPECT_EQ(redactor.text("/data/jane doe/job/train.py:41 loop"), "dir1/train.py:41 loop");
  EXPECT_EQ(redactor.text("gemm_128x64 1.2.3"), "gemm_128x64 1.2.3") << "a version";
}

trace::Trace sample() {
  trace::Trace trace;
  trace::Header* header = trace.add_packet()->mutable_header();
  header->set_format_major(1);
  header->set_library_path("/srv/secret/libidlescope.so");
  header->set_boot_id("secret-boot");
  trace::Process* process = header->mutable_process();
  process->set_host("secret-host");
  process->set_pid(77);
  process->set_executable("/opt/secret/bin/python3");
  process->add_command_line("--token=secret");
  process->set_working_directory("/srv/secret/job");
  process->set_torch_version("2.11.0");
  trace::NameTable::Entry* name = trace.add_packet()->mutable_names()->add_entry();
  name->set_id(1);
  name->set_text("/srv/secret/job/train.py:41 loop");
  trace.add_packet()->mutable_status()->set_detail("cannot write /srv/secret/x: full");
  trace::Trace inner;
  inner.add_packet()->mutable_names()->add_entry()->set_text("s3://secret/bucket");
  inner.mutable_packet(0)->mutable_names()->mutable_entry(0)->set_id(2);
  const std::string content = inner.SerializeAsString();
  std::string frame(ZSTD_compressBound(content.size()), '\0');
  frame.resize(ZSTD_compress(frame.data(), frame.size(), content.data(), content.size(), 3));
  trace.add_packet()->set_zstd_trace(frame);
  trace::GpuOpBatch* ops = trace.add_packet()->mutable_gpu_ops();
  ops->set_window_id(1);
  ops->add_descriptor_id(4);
  ops->add_begin_delta_ns(123);
  ops->add_duration_ns(456);
  ops->add_correlation_delta(7);
  return trace;
}

TEST(RedactTrace, NothingSecretIsLeft) {
  Redactor redactor;
  const auto redacted = redact_trace(sample().SerializeAsString(), "x.istrace", &redactor);
  ASSERT_TRUE(redacted.has_value());
  trace::Trace out;
  ASSERT_TRUE(out.ParseFromString(*redacted));
  ASSERT_EQ(out.packet_size(), 5);
  std::string everything = out.DebugString();
  const auto inner = read::expand_zstd(out.packet(3).zstd_trace());
  ASSERT_TRUE(inner.has_value());
  trace::Trace nested;
  ASSERT_TRUE(nested.ParseFromString(*inner));
  everything += nested.DebugString();
  EXPECT_EQ(everything.find("secret"), std::string::npos) << everything;
  EXPECT_EQ(nested.packet(0).names().entry(0).text(), "url1");
  EXPECT_EQ(out.packet(1).names().entry(0).text(), "dir2/train.py:41 loop");
  EXPECT_EQ(out.packet(0).header().process().executable(), "dir1/python3");
  EXPECT_EQ(out.packet(0).header().process().torch_version(), "2.11.0");
  EXPECT_EQ(out.packet(0).header().process().pid(), 77);
  EXPECT_EQ(out.packet(4).gpu_ops().duration_ns(0), 456u) << "numbers stay";
}

TEST(RedactTrace, UnknownFieldsGo) {
  trace::Trace trace;
  trace.add_packet()->mutable_header()->set_format_major(1);
  trace.mutable_packet(0)
      ->mutable_header()
      ->GetReflection()
      ->MutableUnknownFields(trace.mutable_packet(0)->mutable_header())
      ->AddLengthDelimited(999, "secret");
  Redactor redactor;
  const auto redacted = redact_trace(trace.SerializeAsString(), "x", &redactor);
  ASSERT_TRUE(redacted.has_value());
  EXPECT_EQ(redacted->find("secret"), std::string::npos);
}

TEST(RedactTrace, CutAndForeignFiles) {
  const std::string whole = sample().SerializeAsString();
  for (size_t size = whole.size() - 1; size > 150; size -= 7) {
    Redactor redactor;
    const auto redacted = redact_trace(std::string_view(whole).substr(0, size), "x", &redactor);
    ASSERT_TRUE(redacted.has_value()) << size;
    trace::Trace out;
    EXPECT_TRUE(out.ParseFromString(*redacted));
    EXPECT_EQ(out.DebugString().find("secret"), std::string::npos);
  }
  Redactor redactor;
  const auto foreign = redact_trace("{\"traceEvents\": []}", "x.json", &redactor);
  ASSERT_FALSE(foreign.has_value());
  EXPECT_EQ(foreign.error().message.id, "not-a-trace");
}

}  // namespace
}  // namespace idlescope::exporting

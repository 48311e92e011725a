// Exports: every event is there, slices nest, flows tie launches to kernels, files parse.
#include "analysis/export/export.h"

#include <gtest/gtest.h>
#include <simdjson.h>
#include <zlib.h>

#include <map>
#include <set>
#include <sstream>

#include "analysis/export/perfetto_subset.pb.h"
#include "analysis/report/build.h"
#include "tests/unit/diagnose/scene.h"

namespace idlescope::exporting {
namespace {

diagnose::Analysis analysis() {
  test::Scene scene;
  scene.window(0, 400);
  for (int i = 0; i < 30; ++i) {
    const double t = 10.0 * i;
    scene.event(trace::EVENT_LOADER_NEXT, t, t + 4,
                {.iterator = 1, .batch = i, .a = i % 3, .b = 0});
    const uint32_t first = scene.launch(t + 4.1, t + 4.2);
    const uint32_t second = scene.launch(t + 4.3, t + 4.4);
    scene.kernel(t + 4.25, t + 6, first, 7, "gemm \"quoted\" <b>");
    scene.kernel(t + 6.01, t + 9, second);
    scene.range("forward", trace::RANGE_FORWARD, t + 4.05, t + 4.5);
    scene.step(t + 9.5);
  }
  // Two kernels of one stream that overlap without nesting.
  const uint32_t a = scene.launch(330, 330.1);
  const uint32_t b = scene.launch(330.2, 330.3);
  scene.kernel(331, 335, a, 9, "overlap_a");
  scene.kernel(333, 337, b, 9, "overlap_b");
  scene.here().counters.push_back({trace::COUNTER_RSS_BYTES, test::ms(5), 1'000'000, read::kNone});
  scene.here().counters.push_back({trace::COUNTER_RSS_BYTES, test::ms(6), 0, read::kNone});
  return diagnose::analyze(scene.take());
}

struct Parsed {
  std::map<uint64_t, perfetto::TrackDescriptor> tracks;
  std::map<uint64_t, std::string> names;
  size_t begins = 0;
  size_t ends = 0;
  size_t counters = 0;
  std::map<uint64_t, int> flows_out;
  std::map<uint64_t, int> flows_in;
  std::map<std::string, int> slices;  // by name
  std::set<std::string> track_names;
  std::map<std::string, std::string> notes;  // the last value of each
};

// The packets of an export, unpacked.
perfetto::Trace unpacked(const std::string& bytes) {
  perfetto::Trace packed;
  EXPECT_TRUE(packed.ParseFromString(bytes));
  perfetto::Trace trace;
  for (const perfetto::TracePacket& packet : packed.packet()) {
    const std::string& content = packet.compressed_packets();
    std::string plain(1 << 20, '\0');  // a bundle is half as large
    uLongf size = plain.size();
    EXPECT_EQ(uncompress(reinterpret_cast<Bytef*>(plain.data()), &size,
                         reinterpret_cast<const Bytef*>(content.data()), content.size()),
              Z_OK);
    perfetto::Trace bundle;
    EXPECT_TRUE(bundle.ParseFromArray(plain.data(), static_cast<int>(size)));
    trace.MergeFrom(bundle);
  }
  return trace;
}

Parsed parse(const std::string& bytes) {
  const perfetto::Trace trace = unpacked(bytes);
  std::map<uint64_t, std::string> notes;
  std::map<uint64_t, std::string> texts;
  Parsed out;
  std::map<uint64_t, std::vector<uint64_t>> open;  // per track, times
  std::map<uint64_t, uint64_t> last;
  bool first = true;
  for (const perfetto::TracePacket& packet : trace.packet()) {
    EXPECT_EQ(packet.trusted_packet_sequence_id(), 1u);
    EXPECT_EQ(packet.sequence_flags(), first ? 1u : 2u);
    first = false;
    for (const auto& name : packet.interned_data().event_names())
      out.names[name.iid()] = name.name();
    for (const auto& note : packet.interned_data().debug_annotation_names())
      notes[note.iid()] = note.name();
    for (const auto& text : packet.interned_data().debug_annotation_string_values())
      texts[text.iid()] = text.str();
    for (const auto& note : packet.track_event().debug_annotations()) {
      std::string& shown = out.notes[notes.at(note.name_iid())];
      shown = note.has_int_value() ? std::to_string(note.int_value())
                                   : texts.at(note.string_value_iid());
    }
    if (packet.has_track_descriptor()) {
      const perfetto::TrackDescriptor& track = packet.track_descriptor();
      EXPECT_TRUE(out.tracks.emplace(track.uuid(), track).second) << "declared twice";
      if (track.parent_uuid() != 0) {
        EXPECT_TRUE(out.tracks.count(track.parent_uuid()));
      }
      out.track_names.insert(track.has_thread() ? track.thread().thread_name() : track.name());
    }
    if (!packet.has_track_event()) continue;
    const perfetto::TrackEvent& event = packet.track_event();
    EXPECT_TRUE(out.tracks.count(event.track_uuid())) << "used before it was declared";
    EXPECT_TRUE(packet.has_timestamp());
    EXPECT_GE(packet.timestamp(), last[event.track_uuid()]) << "time runs backwards on a track";
    last[event.track_uuid()] = packet.timestamp();
    switch (event.type()) {
      case perfetto::TrackEvent::TYPE_SLICE_BEGIN:
        ++out.begins;
        ++out.slices[out.names.at(event.name_iid())];
        open[event.track_uuid()].push_back(packet.timestamp());
        for (const uint64_t flow : event.flow_ids()) ++out.flows_out[flow];
        for (const uint64_t flow : event.terminating_flow_ids()) ++out.flows_in[flow];
        break;
      case perfetto::TrackEvent::TYPE_SLICE_END:
        ++out.ends;
        EXPECT_FALSE(open[event.track_uuid()].empty()) << "an end without a begin";
        if (!open[event.track_uuid()].empty()) open[event.track_uuid()].pop_back();
        break;
      case perfetto::TrackEvent::TYPE_COUNTER:
        ++out.counters;
        EXPECT_TRUE(event.has_counter_value());
        EXPECT_TRUE(out.tracks.at(event.track_uuid()).has_counter());
        break;
      default:
        break;
    }
  }
  for (const auto& [track, left] : open) EXPECT_TRUE(left.empty()) << "never ended";
  return out;
}

TEST(Perfetto, HoldsEverythingAndNests) {
  std::ostringstream out;
  write_perfetto(analysis(), out);
  const Parsed parsed = parse(out.str());
  EXPECT_EQ(parsed.begins, parsed.ends);
  EXPECT_EQ(parsed.slices.at("gemm"), 30);
  EXPECT_EQ(parsed.slices.at("gemm \"quoted\" <b>"), 30);
  EXPECT_EQ(parsed.slices.at("cudaLaunchKernel"), 62);
  EXPECT_EQ(parsed.slices.at("next()"), 30);
  EXPECT_EQ(parsed.slices.at("forward"), 30);
  EXPECT_GE(parsed.slices.at("DATA_FETCH") +
                (parsed.slices.count("DATA_CPU") ? parsed.slices.at("DATA_CPU") : 0),
            25)
      << "the cause track";
  // The overlapping kernel got a lane of its own.
  EXPECT_EQ(parsed.slices.at("overlap_a") + parsed.slices.at("overlap_b"), 2);
  EXPECT_TRUE(parsed.track_names.count("stream 9 (2)"));
  EXPECT_TRUE(parsed.track_names.count("main thread"));
  EXPECT_TRUE(parsed.track_names.count("why idle"));
  // Counters: RSS twice (once zero) and the queue depth at every next().
  EXPECT_EQ(parsed.counters, 32u);
  EXPECT_EQ(parsed.notes.count("correlation"), 1u);
  EXPECT_EQ(parsed.notes.at("evidence").size(), 1u);
  // Every launch hands one flow to one kernel.
  EXPECT_EQ(parsed.flows_out.size(), 62u);
  EXPECT_EQ(parsed.flows_in, parsed.flows_out);
}

TEST(ChromeJson, ParsesAndKeepsNanoseconds) {
  std::ostringstream out;
  write_chrome_json(analysis(), out);
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  const simdjson::padded_string text(out.str());
  ASSERT_EQ(parser.parse(text).get(root), simdjson::SUCCESS);
  std::map<std::string, int> phases;
  int kernels = 0;
  bool quoted = false;
  for (const simdjson::dom::element event : root["traceEvents"].get_array()) {
    ++phases[std::string(event["ph"].get_string().value())];
    std::string_view category;
    if (event["cat"].get(category) != simdjson::SUCCESS || category != "kernel") continue;
    ++kernels;
    EXPECT_GT(event["dur"].get_double().value(), 0);
    quoted |= event["name"].get_string().value() == "gemm \"quoted\" <b>";
  }
  EXPECT_EQ(kernels, 62);
  EXPECT_TRUE(quoted);
  EXPECT_EQ(phases["s"], 62);
  EXPECT_EQ(phases["f"], 62);
  EXPECT_EQ(phases["C"], 32);
  EXPECT_NE(out.str().find("\"ts\":4250.000"), std::string::npos) << "us with three decimals";
}

TEST(Csv, QuotesAndCounts) {
  const diagnose::Analysis a = analysis();
  const report::Report report = report::build(a.diagnosis, a.model.recording);
  for (const std::string& table : csv_tables()) {
    std::ostringstream out;
    write_csv(table, a, report, out);
    std::istringstream lines(out.str());
    std::string header;
    std::getline(lines, header);
    const auto commas = [](const std::string& line) {
      int found = 0;
      bool inside = false;
      for (const char c : line) {
        inside ^= c == '"';
        found += c == ',' && !inside;
      }
      return found;
    };
    for (std::string line; std::getline(lines, line);) {
      EXPECT_EQ(commas(line), commas(header)) << table << ": " << line;
      EXPECT_EQ(line.back(), '\r');
    }
  }
  std::ostringstream ops;
  write_csv("ops", a, report, ops);
  const std::string text = ops.str();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 63);
  EXPECT_NE(text.find(",\"gemm \"\"quoted\"\" <b>\","), std::string::npos) << text.substr(0, 400);
  EXPECT_NE(text.find("4250000,6000000,0,4100000,4200000"), std::string::npos);
}

}  // namespace
}  // namespace idlescope::exporting

// Recordings for other viewers: Perfetto (native protobuf), Chrome JSON, CSV tables.
//
// In: an analysed recording (and its report for CSV). Out: a stream of bytes, written as it
// is made: memory does not grow with the output.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace idlescope::diagnose {
struct Analysis;
}
namespace idlescope::report {
class Report;
}

namespace idlescope::exporting {

void write_perfetto(const diagnose::Analysis& analysis, std::ostream& out);
void write_chrome_json(const diagnose::Analysis& analysis, std::ostream& out);

// One CSV table (RFC 4180, times in ns). Names: csv_tables().
std::vector<std::string> csv_tables();
void write_csv(const std::string& table, const diagnose::Analysis& analysis,
               const report::Report& report, std::ostream& out);

}  // namespace idlescope::exporting

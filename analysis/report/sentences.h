// The verdict in sentences, certainty first to last detail.
//
// In: Context. Out: Report.sentences; the first is the verdict in one sentence, the others
// give numbers, stage and limiter. Device names, sites and calls appear as recorded.
#pragma once

#include "analysis/report/context.h"

namespace idlescope::report {

void write_sentences(const Context& context, Report* report);

// Text of one of the longest waits: who waited in what, for which batch.
Text gap_words(const diagnose::Gap& gap);

}  // namespace idlescope::report

// The verdict in sentences, certainty first to last detail.
//
// In: Context. Out: Report.sentences; the first is the verdict in one sentence, the others
// give numbers, stage and limiter. Device names, sites and calls appear as recorded.
#pragma once

#include <vector>

#include "analysis/report/context.h"

namespace idlescope::report {

void write_sentences(const Context& context, Report* report);

// Why there is no verdict and what would give one; nothing of the numbers that are there.
std::vector<Text> unsure_sentences(const Context& context);
// Whether those numbers (how much of a step was compute) mean something all the same.
bool wants_numbers(diagnose::Reason reason);

// Text of one of the longest waits: who waited in what, for which batch.
Text gap_words(const diagnose::Gap& gap);
// The same inside the verdict's paragraph.
Text longest_wait_words(const diagnose::Gap& gap);
// Of one kind of stall: how often, how long, what share of the run.
Text stall_words(const diagnose::RunStall& stall);

}  // namespace idlescope::report

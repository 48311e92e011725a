// Why the main thread was not running, where HOST_BLOCKED says that it was not.
//
// In: the context of a report. Out: the call of the operating system in which it slept, or that
// it wanted a lock and no core. Used by the verdict's sentences and by the advice.
#pragma once

#include <string>

#include "analysis/report/context.h"

namespace idlescope::report {

// The call in which the thread slept most, of the longest waits; empty: none was recorded (then
// it wanted a core or the interpreter lock).
std::string sleeping_call(const Context& context);

// A thread that only wants a core would have had one.
bool cores_were_free(const Context& context);

// It is a large part of the step. Smaller parts have many reasons (waking up, the hand-over from
// the autograd thread) that no trace of ours tells apart.
bool much_blocked(const Context& context);

// It was in no call that sleeps, another thread of the process ran meanwhile, and either cores
// were free or the threads took turns on one.
bool waits_for_lock(const Context& context);

}  // namespace idlescope::report

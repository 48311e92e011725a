// One loader in numbers, and what limits it (A5): the stage is not the limiter.
//
// In: the loader history, the run's steps. Out: LoaderSummary of the loader that was waited
// for most, and its limiter. "Too few workers" is not a place where time passes: with two
// slow workers the main thread waits for a batch that is in fetch (stage), because both
// workers are always busy (limiter). Tests in order, first match wins.
#pragma once

#include "analysis/diagnose/diagnosis.h"
#include "analysis/model/model.h"

namespace idlescope::diagnose {

LoaderSummary summarize_loader(const model::Model& model, uint32_t process, Ns from_ns, Ns to_ns);

report::Limiter find_limiter(const model::Model& model, uint32_t process,
                             const LoaderSummary& loader, Ns from_ns, Ns to_ns);

// Mean number of CPUs in use between two times, from cumulative counters; 0: unknown.
double cores_in_use(const model::Model& model, uint32_t process, Ns from_ns, Ns to_ns);

// CPUs that the threads of this process used, without its children; -1: unknown.
double process_cpus(const model::Model& model, uint32_t process, Ns from_ns, Ns to_ns);

// Of the CPUs the job may use, how many nobody on the machine used, on average; -1: unknown.
double free_cores(const model::Model& model, uint32_t process, Ns from_ns, Ns to_ns);

}  // namespace idlescope::diagnose

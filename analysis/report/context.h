// What every part of the report builder needs to know about one diagnosis.
//
// In: Diagnosis and Recording, both outlive it. Out: the chosen device, the step as the unit
// of all sentences, leaf and verdict totals by lookup. Built once per report.
#pragma once

#include <cstdint>
#include <string>

#include "analysis/diagnose/diagnosis.h"
#include "analysis/read/recording.h"
#include "analysis/report/numbers.h"
#include "analysis/report/words.h"
#include "proto/report.pb.h"

namespace idlescope::report {

// No fix is offered, and no leaf named, below this share of the step.
inline constexpr double kWorthwhile = 0.02;

class Context {
 public:
  Context(const diagnose::Diagnosis& diagnosis, const read::Recording& recording);

  const diagnose::Diagnosis& d;
  const read::Recording& recording;
  const diagnose::DeviceDiagnosis* device = nullptr;  // chosen; null: host-only
  bool per_step = false;  // there are steps: times are per step, else of the window
  bool imported = false;  // a file of another profiler
  bool cpp = false;       // a recorded program without a Python interpreter
  double unit_ns = 0;     // mean step, or the window
  double steps = 1;       // steps the window holds; 1 without steps
  TimeScale scale{0};     // of unit_ns

  double leaf_ns(Leaf leaf) const;  // per step, or in the window
  double verdict_ns(Verdict verdict) const;
  double compute_ns() const { return verdict_ns(COMPUTE); }
  double absent_ns() const { return unit_ns - compute_ns(); }
  // Idle time that is charged to calls that wait for the device. Host work behind such a call
  // was hidden by it: without that work the wait would end in no gap either.
  double waits_ns() const;
  double share(double ns) const { return unit_ns > 0 ? ns / unit_ns : 0; }
  bool worthwhile(double ns) const { return share(ns) >= kWorthwhile; }
  std::string time(double ns) const;  // by `scale`, with unit
  // "/home/me/job/train.py:41 loop" -> "train.py:41": relative to the job's directory where
  // it is below it, else the file's name.
  std::string site(const std::string& recorded) const;
  // The same with the function behind it: "train.py:41 loop".
  std::string site_and_function(const std::string& recorded) const;
  // Upper limit of the speed-up when that much of a step goes away.
  double bound(double removed_ns) const;
};

}  // namespace idlescope::report

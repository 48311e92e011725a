// A resource with room for `capacity` users at full speed; more users share it evenly
// (processor sharing): cores of loader workers, a storage device. Integer arithmetic.
#pragma once

#include <vector>

#include "analysis/simulate/draws.h"

namespace idlescope::simulate {

class SharedResource {
 public:
  explicit SharedResource(int64_t capacity) : capacity_(capacity) {}

  // A user with `work_ns` of work at full speed arrives at time `now`.
  void add(uint32_t user, Ns work_ns, Ns now);

  // Time at which the next user is done if nobody arrives; -1: no users.
  Ns next_done(Ns now) const;

  // Removes and returns the users that are done at `now`, in order of arrival.
  std::vector<uint32_t> take_done(Ns now);

  bool idle() const { return jobs_.empty(); }

 private:
  struct Job {
    uint32_t user;
    int64_t left_q16;
  };
  void advance(Ns now);
  int64_t rate_q16() const;

  int64_t capacity_;
  Ns last_ns_ = 0;
  std::vector<Job> jobs_;
};

}  // namespace idlescope::simulate

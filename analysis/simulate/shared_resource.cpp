#include "analysis/simulate/shared_resource.h"

#include <algorithm>

namespace idlescope::simulate {
namespace {
constexpr int64_t kOne = 65536;
}

int64_t SharedResource::rate_q16() const {
  auto users = static_cast<int64_t>(jobs_.size());
  if (capacity_ <= 0 || users <= capacity_) return kOne;
  return std::max<int64_t>(1, kOne * capacity_ / users);
}

void SharedResource::advance(Ns now) {
  int64_t gone = (now - last_ns_) * rate_q16();
  for (Job& job : jobs_) job.left_q16 -= gone;
  last_ns_ = now;
}

void SharedResource::add(uint32_t user, Ns work_ns, Ns now) {
  advance(now);
  jobs_.push_back({user, std::max<Ns>(work_ns, 0) * kOne});
}

Ns SharedResource::next_done(Ns now) const {
  if (jobs_.empty()) return -1;
  int64_t least = jobs_.front().left_q16;
  for (const Job& job : jobs_) least = std::min(least, job.left_q16);
  int64_t rate = rate_q16();
  Ns done = last_ns_ + (std::max<int64_t>(least, 0) + rate - 1) / rate;
  return std::max(done, now);
}

std::vector<uint32_t> SharedResource::take_done(Ns now) {
  advance(now);
  std::vector<uint32_t> done;
  std::vector<Job> left;
  for (const Job& job : jobs_) {
    if (job.left_q16 <= 0) {
      done.push_back(job.user);
    } else {
      left.push_back(job);
    }
  }
  jobs_ = std::move(left);
  return done;
}

}  // namespace idlescope::simulate

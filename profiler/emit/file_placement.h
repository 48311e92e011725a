// Where a process's file lies and whether it may grow.
//
// In: the output directory, limits. Out: a newly made file (never an existing one), the kind
// of sink its file system bears, answers to "may I have N more bytes". Called under the
// process lock, rarely. No allocation; failures carry errno.
#pragma once

#include <cstddef>
#include <cstdint>

namespace idlescope::emit {

inline constexpr size_t kMaxPathBytes = 4096;

struct FileIdentity {
  uint64_t device;
  uint64_t inode;
};

// Makes DIR (with parents) and DIR/HOST.PID.START.N.istrace (O_EXCL, mode 0600). Returns an
// open descriptor and fills path and identity, or −errno.
int make_trace_file(const char* directory, const char* host, char* path, FileIdentity* identity);

// Opens the file again for writing if it is still the same one, or −errno.
int open_same_file(const char* path, const FileIdentity& identity);
bool is_same_file(int descriptor, const FileIdentity& identity);

// True on file systems where a shared mapping can stall at write-back, lose its room or be
// refused: NFS, SMB, Lustre, GPFS, Ceph, BeeGFS, 9p, FUSE.
bool needs_append_sink(int descriptor);

// RLIMIT_FSIZE: growing past it raises SIGXFSZ, which kills the job (tried: rc 153).
bool within_file_size_limit(uint64_t end_bytes);

enum class Booking {
  kGranted,
  kLimitReached,
  kStopped,  // somebody ended the recording of the whole job (end_job_recording)
};

// Books `bytes` more for this host's processes against the directory's limit, in the shared
// counter file DIR/HOST.usage. Where the counter cannot be mapped, only this file's own size
// counts.
Booking book_bytes(const char* directory, const char* host, uint64_t limit_bytes,
                   uint64_t own_bytes, uint64_t bytes);

// From now on no process of this host gets more room in the directory.
void end_job_recording(const char* directory, const char* host);

// fallocate(2) itself: glibc's posix_fallocate writes into every block where the file system
// has no such call. 0 or an errno.
int allocate_range(int descriptor, uint64_t offset, uint64_t bytes);

// pwrite until done. 0 or an errno.
int write_all_at(int descriptor, const void* bytes, size_t size, uint64_t offset);

}  // namespace idlescope::emit

// Steering the recorder from a program: a C API, exported by libidlescope.so.
//
// Link `idlescope::recorder`, or look the functions up with dlsym so that the program also
// starts without the library. Every function may be called from any thread at any time,
// returns quickly and never throws; without a recording it does nothing and says so.
#ifndef IDLESCOPE_RECORDER_H_
#define IDLESCOPE_RECORDER_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum idlescope_result {
  IDLESCOPE_OK = 0,
  IDLESCOPE_NOT_RECORDING = 1, /* disabled, dormant rank, or no output */
  IDLESCOPE_FAILED = 2
} idlescope_result;

/* What is being recorded. `size` is set by the caller to sizeof(idlescope_status), so that
 * later versions can add fields. */
typedef struct idlescope_status {
  size_t size;
  int recording;          /* events are kept */
  int window_open;        /* CUPTI is attached */
  uint32_t windows;       /* windows so far */
  uint64_t steps;         /* steps so far */
  uint64_t file_bytes;    /* of this process's file */
  char path[1024];        /* of this process's file; empty before the first event */
} idlescope_status;

/* Opens a device window now, or goes on with a stopped recording. */
idlescope_result idlescope_start(void);
/* Closes the open window. The host timeline goes on. */
idlescope_result idlescope_stop(void);
/* Makes what was recorded so far readable by another program. Host events always are. */
idlescope_result idlescope_flush(void);
idlescope_result idlescope_get_status(idlescope_status* status);

/* A training step ends here. Replaces the steps that the recorder finds by itself. */
void idlescope_step(void);

/* A range on the calling thread. `name` need not outlive the call; it is looked up once per
 * begin, so prefer few different names. Ranges nest; end closes the innermost. */
void idlescope_range_begin(const char* name);
void idlescope_range_end(void);

/* One event of a data loader, for loaders that the recorder does not follow by itself; used
 * by idlescope/loader.h. `kind` is a HostEventKind of trace.proto between 1 and 63, times are
 * CLOCK_MONOTONIC nanoseconds; `begin_ns` 0 means now. */
void idlescope_loader_event(uint32_t kind, int64_t begin_ns, uint32_t loader, int64_t batch,
                            int64_t a, int64_t b, int64_t c);

#ifdef __cplusplus
}
#endif

#endif  // IDLESCOPE_RECORDER_H_

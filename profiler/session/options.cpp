#include "profiler/session/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <cstring>

namespace idlescope::session {
namespace {

Options the_options;

const char* variable(const char* name) {
  const char* value = getenv(name);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

void complain(Options* out, const char* name, const char* value) {
  if (out->complaint[0] == '\0')
    snprintf(out->complaint, sizeof out->complaint, "%s=%s", name, value);
}

// The first variable that holds a number; −1: none.
int32_t first_number(const char* const* names, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const char* value = variable(names[i]);
    if (value == nullptr) continue;
    char* end = nullptr;
    const long number = strtol(value, &end, 10);
    if (end != value && *end == '\0' && number >= 0 && number <= INT32_MAX) {
      return static_cast<int32_t>(number);
    }
  }
  return -1;
}

template <size_t N>
int32_t first_number(const char* const (&names)[N]) {
  return first_number(names, N);
}

void read_ranks(emit::RankFacts* out) {
  static constexpr const char* kRank[] = {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK",
                                          "SLURM_PROCID"};
  static constexpr const char* kLocal[] = {"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK",
                                           "MPI_LOCALRANKID", "SLURM_LOCALID"};
  static constexpr const char* kWorld[] = {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
                                           "SLURM_NTASKS"};
  const int32_t rank = first_number(kRank);
  const int32_t world = first_number(kWorld);
  // Slurm sets its variables for one task too (and for interactive shells).
  out->known = rank >= 0 && (variable("RANK") != nullptr || world > 1);
  if (out->known) {
    out->rank = rank;
    const int32_t local = first_number(kLocal);
    out->local_rank = local < 0 ? 0 : local;
    out->world_size = world < 0 ? 0 : world;
  }
  const char* slurm = variable("SLURM_JOB_ID");
  const char* elastic = variable("TORCHELASTIC_RUN_ID");
  if (slurm != nullptr) {
    const char* step = variable("SLURM_STEP_ID");
    snprintf(out->job_id, sizeof out->job_id, "%s%s%s", slurm, step ? "." : "", step ? step : "");
  } else if (elastic != nullptr && strcmp(elastic, "none") != 0) {
    snprintf(out->job_id, sizeof out->job_id, "%s", elastic);
  }
}

class PathBuilder {
 public:
  PathBuilder(char* out, size_t capacity) : out_(out), capacity_(capacity) { out_[0] = '\0'; }
  void add(const char* text) { add(text, strlen(text)); }
  void add(const char* text, size_t size) {
    if (size >= capacity_ - size_) size = capacity_ - size_ - 1;
    memcpy(out_ + size_, text, size);
    size_ += size;
    out_[size_] = '\0';
  }

 private:
  char* out_;
  size_t capacity_;
  size_t size_ = 0;
};

// %h host, %p pid, %r rank, %q{VAR}, %% (as nsys).
void expand_output(const char* pattern, const Options& options, PathBuilder* out) {
  char number[24];
  for (const char* at = pattern; *at != '\0'; ++at) {
    if (*at != '%' || at[1] == '\0') {
      out->add(at, 1);
      continue;
    }
    ++at;
    if (*at == 'h') {
      out->add(emit::identity().host);
    } else if (*at == 'p') {
      snprintf(number, sizeof number, "%d", static_cast<int>(getpid()));
      out->add(number);
    } else if (*at == 'r') {
      snprintf(number, sizeof number, "%d", static_cast<int>(options.ranks.rank));
      out->add(number);
    } else if (*at == 'q' && at[1] == '{' && strchr(at, '}') != nullptr) {
      const char* close = strchr(at, '}');
      char name[128];
      snprintf(name, sizeof name, "%.*s", static_cast<int>(close - at - 2), at + 2);
      const char* value = variable(name);
      if (value != nullptr) out->add(value);
      at = close;
    } else if (*at == '%') {
      out->add("%");
    } else {
      out->add(at - 1, 2);
    }
  }
}

void place_output(Options* out, int argument_count, char* const* arguments) {
  PathBuilder path(out->output, sizeof out->output);
  const char* wanted = variable("IDLESCOPE_OUTPUT");
  out->output_was_set = wanted != nullptr;
  if (wanted == nullptr || wanted[0] != '/') {
    char directory[4096];
    if (getcwd(directory, sizeof directory) == nullptr) directory[0] = '\0';
    path.add(directory);
    path.add("/");
  }
  if (wanted != nullptr) {
    expand_output(wanted, *out, &path);
  } else {
    char name[256];
    default_directory_name(name, sizeof name, argument_count, arguments, time(nullptr),
                           out->ranks.job_id);
    path.add(name);
  }
}

bool looks_like_script(const char* argument) {
  const char* dot = strrchr(argument, '.');
  if (dot != nullptr && (strcmp(dot, ".py") == 0 || strcmp(dot, ".sh") == 0)) return true;
  return access(argument, F_OK) == 0;
}

}  // namespace

Options& options() { return the_options; }

bool parse_bytes(const char* text, uint64_t* out) {
  char* end = nullptr;
  const double value = strtod(text, &end);
  if (end == text || !(value >= 0)) return false;
  while (*end == ' ') ++end;
  double unit = 1;
  static constexpr char kUnits[] = "kmgt";
  if (*end != '\0') {
    const char lower = static_cast<char>(*end | 0x20);
    const char* found = strchr(kUnits, lower);
    if (found != nullptr) {
      ++end;
      const bool binary = end[0] == 'i';
      if (binary) ++end;
      for (const char* step = kUnits; step <= found; ++step) unit *= binary ? 1024 : 1000;
    }
    if ((*end | 0x20) == 'b') ++end;
  }
  if (*end != '\0' || value * unit > 9e18) return false;
  *out = static_cast<uint64_t>(value * unit);
  return true;
}

bool parse_duration(const char* text, int64_t* out) {
  char* end = nullptr;
  const double value = strtod(text, &end);
  if (end == text || !(value >= 0)) return false;
  double unit_s = 1;
  if (strcmp(end, "ms") == 0) {
    unit_s = 1e-3;
  } else if (strcmp(end, "m") == 0) {
    unit_s = 60;
  } else if (strcmp(end, "h") == 0) {
    unit_s = 3600;
  } else if (strcmp(end, "d") == 0) {
    unit_s = 86400;
  } else if (*end != '\0' && strcmp(end, "s") != 0) {
    return false;
  }
  if (value * unit_s > 9e9) return false;
  *out = static_cast<int64_t>(value * unit_s * 1e9);
  return true;
}

bool parse_ranks(const char* text, int32_t* out, size_t capacity, size_t* count) {
  *count = 0;
  for (const char* at = text;;) {
    char* end = nullptr;
    const long first = strtol(at, &end, 10);
    if (end == at || first < 0 || first > INT32_MAX) return false;
    long last = first;
    if (*end == '-') {
      at = end + 1;
      last = strtol(at, &end, 10);
      if (end == at || last < first || last > INT32_MAX) return false;
    }
    for (long rank = first; rank <= last; ++rank) {
      if (*count == capacity) return false;
      out[(*count)++] = static_cast<int32_t>(rank);
    }
    if (*end == '\0') return true;
    if (*end != ',') return false;
    at = end + 1;
  }
}

bool valid_window(const char* text) {
  if (strcmp(text, "auto") == 0 || strcmp(text, "full") == 0 || strcmp(text, "off") == 0) {
    return true;
  }
  const size_t start = strspn(text, "0123456789");
  if (start == 0 || text[start] != '+') return false;
  const char* length = text + start + 1;
  const size_t digits = strspn(length, "0123456789");
  return digits != 0 && length[digits] == '\0' && strtoul(length, nullptr, 10) != 0;
}

void default_directory_name(char* out, size_t capacity, int argument_count, char* const* arguments,
                            int64_t realtime_s, const char* job_id) {
  const char* script = argument_count > 0 ? arguments[0] : "job";
  for (int i = 1; i < argument_count; ++i) {
    if (strcmp(arguments[i], "-m") == 0 && i + 1 < argument_count) {
      script = arguments[i + 1];
      break;
    }
    if (arguments[i][0] != '-' && looks_like_script(arguments[i])) {
      script = arguments[i];
      break;
    }
  }
  const char* slash = strrchr(script, '/');
  if (slash != nullptr && slash[1] != '\0') script = slash + 1;
  char name[64];
  size_t size = 0;
  for (; script[size] != '\0' && size + 1 < sizeof name; ++size) {
    const char c = script[size];
    const bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                       c == '_' || c == '.';
    name[size] = plain ? c : '-';
  }
  name[size] = '\0';
  char* dot = strrchr(name, '.');
  if (dot != nullptr && dot != name && (strcmp(dot, ".py") == 0 || strcmp(dot, ".sh") == 0)) {
    *dot = '\0';
  }
  if (job_id != nullptr && *job_id != '\0') {
    snprintf(out, capacity, "idlescope-%s-%s", name, job_id);
    return;
  }
  const time_t now = realtime_s;
  tm local{};
  localtime_r(&now, &local);
  snprintf(out, capacity, "idlescope-%s-%02d%02d-%02d%02d%02d", name, local.tm_mon + 1,
           local.tm_mday, local.tm_hour, local.tm_min, local.tm_sec);
}

void read_options(Options* out, int argument_count, char* const* arguments) {
  memset(static_cast<void*>(out), 0, sizeof *out);
  const char* disable = variable("IDLESCOPE_DISABLE");
  out->disabled = disable != nullptr && strcmp(disable, "0") != 0;
  out->log = LogLevel::kError;
  out->sample_frames = true;
  out->rank_selected = true;
  out->header.budget = kDefaultBudget;
  out->header.max_size_bytes = kDefaultMaxSizeBytes;
  memcpy(out->header.window, "auto", sizeof "auto");
  memcpy(out->header.detail, "default", sizeof "default");
  if (out->disabled) return;

  read_ranks(&out->ranks);
  if (const char* value = variable("IDLESCOPE_WINDOW")) {
    if (valid_window(value) && strlen(value) < sizeof out->header.window) {
      snprintf(out->header.window, sizeof out->header.window, "%s", value);
    } else {
      complain(out, "IDLESCOPE_WINDOW", value);
    }
  }
  if (const char* value = variable("IDLESCOPE_BUDGET")) {
    char* end = nullptr;
    double budget = strtod(value, &end);
    if (end != value && *end == '%') {
      budget /= 100;
      ++end;
    }
    if (end != value && *end == '\0' && budget > 0 && budget <= 1) {
      out->header.budget = budget;
    } else {
      complain(out, "IDLESCOPE_BUDGET", value);
    }
  }
  if (const char* value = variable("IDLESCOPE_MAX_SIZE")) {
    if (!parse_bytes(value, &out->header.max_size_bytes)) {
      out->header.max_size_bytes = kDefaultMaxSizeBytes;
      complain(out, "IDLESCOPE_MAX_SIZE", value);
    }
  }
  if (const char* value = variable("IDLESCOPE_DETAIL")) {
    if (strcmp(value, "full") == 0) {
      memcpy(out->header.detail, "full", sizeof "full");
    } else if (strcmp(value, "default") != 0) {
      complain(out, "IDLESCOPE_DETAIL", value);
    }
  }
  if (const char* value = variable("IDLESCOPE_DURATION")) {
    if (!parse_duration(value, &out->duration_ns)) complain(out, "IDLESCOPE_DURATION", value);
  }
  if (const char* value = variable("IDLESCOPE_STEPS")) {
    char* end = nullptr;
    const unsigned long long steps = strtoull(value, &end, 10);
    if (end != value && *end == '\0' && *value != '-') {
      out->steps = steps;
    } else {
      complain(out, "IDLESCOPE_STEPS", value);
    }
  }
  if (const char* value = variable("IDLESCOPE_RANKS")) {
    emit::HeaderOptions& header = out->header;
    if (strcmp(value, "all") == 0) {
    } else if (parse_ranks(value, header.ranks, sizeof header.ranks / sizeof header.ranks[0],
                           &header.rank_count)) {
      out->rank_selected = !out->ranks.known;
      for (size_t i = 0; i < header.rank_count; ++i) {
        if (header.ranks[i] == out->ranks.rank) out->rank_selected = true;
      }
    } else {
      header.rank_count = 0;
      complain(out, "IDLESCOPE_RANKS", value);
    }
  }
  const char* sink = variable("IDLESCOPE_SINK");
  out->append_sink = sink != nullptr && strcmp(sink, "append") == 0;
  const char* frames = variable("IDLESCOPE_FRAMES");
  out->sample_frames = frames == nullptr || strcmp(frames, "0") != 0;
  if (const char* value = variable("IDLESCOPE_EXPERIMENT")) {
    if (strcmp(value, "graph-detach-held") == 0) {
      out->detach_graphs_held = true;
    } else {
      complain(out, "IDLESCOPE_EXPERIMENT", value);
    }
  }
  if (const char* value = variable("IDLESCOPE_LOG")) {
    if (strcmp(value, "warn") == 0) {
      out->log = LogLevel::kWarn;
    } else if (strcmp(value, "info") == 0) {
      out->log = LogLevel::kInfo;
    } else if (strcmp(value, "debug") == 0) {
      out->log = LogLevel::kDebug;
    } else if (strcmp(value, "error") != 0) {
      complain(out, "IDLESCOPE_LOG", value);
    }
  }
  place_output(out, argument_count, arguments);
}

}  // namespace idlescope::session

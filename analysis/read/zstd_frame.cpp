#include "analysis/read/zstd_frame.h"

#include <zstd.h>

#include <algorithm>
#include <memory>

namespace idlescope::read {

tl::expected<std::string, std::string> expand_zstd(std::string_view frame) {
  const uint64_t limit =
      std::min<uint64_t>(kMaxFrameBytes, 65'536 + kMaxFrameRatio * uint64_t{frame.size()});
  const std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context(ZSTD_createDCtx(),
                                                                     &ZSTD_freeDCtx);
  // Streaming: the declared size may be absent or a lie.
  std::string content;
  const unsigned long long declared = ZSTD_getFrameContentSize(frame.data(), frame.size());
  if (declared == ZSTD_CONTENTSIZE_ERROR) return tl::unexpected(std::string("not a zstd frame"));
  if (declared != ZSTD_CONTENTSIZE_UNKNOWN) {
    if (declared > limit) return tl::unexpected(std::string("it expands beyond every limit"));
    content.resize(static_cast<size_t>(declared));
  } else {
    content.resize(std::min<size_t>(frame.size() * 4 + 4096, static_cast<size_t>(limit)));
  }
  ZSTD_inBuffer in{frame.data(), frame.size(), 0};
  ZSTD_outBuffer out{content.data(), content.size(), 0};
  while (true) {
    const size_t left = ZSTD_decompressStream(context.get(), &out, &in);
    if (ZSTD_isError(left)) return tl::unexpected(std::string(ZSTD_getErrorName(left)));
    if (left == 0) break;
    if (out.pos < out.size) return tl::unexpected(std::string("the zstd frame is cut"));
    if (content.size() >= limit) {
      return tl::unexpected(std::string("it expands beyond every limit"));
    }
    content.resize(std::min<size_t>(content.size() * 2 + 4096, static_cast<size_t>(limit)));
    out.dst = content.data();
    out.size = content.size();
  }
  content.resize(out.pos);
  return content;
}

}  // namespace idlescope::read

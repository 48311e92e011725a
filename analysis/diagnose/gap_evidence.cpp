#include "analysis/diagnose/gap_evidence.h"

#include <algorithm>
#include <map>

namespace idlescope::diagnose {

std::string op_name(const read::Recording& recording, const read::Process& process,
                    const read::Op& op) {
  const read::OpDescriptor& descriptor = process.op_descriptors[op.descriptor];
  if (descriptor.name != 0) return recording.strings[descriptor.name];
  if (descriptor.kind == trace::OP_MEMSET) return "memset";
  if (descriptor.kind == trace::OP_GRAPH) return "CUDA graph";
  if (descriptor.kind != trace::OP_MEMCPY) return "";
  switch (descriptor.copy_kind) {
    case trace::COPY_H2D:
      return "H2D copy";
    case trace::COPY_D2H:
      return "D2H copy";
    case trace::COPY_D2D:
      return "D2D copy";
    case trace::COPY_P2P:
      return "peer copy";
    default:
      return "copy";
  }
}

std::string GapEvidence::thread_role(uint32_t t) const {
  const model::ProcessThreads& threads = model_.processes[device_.process].threads;
  if (t >= threads.threads.size()) return "";
  if (t == threads.main) return "main thread";
  const uint32_t id = threads.threads[t].thread_id;
  const auto name = process_.thread_names.find(id);
  if (name != process_.thread_names.end() && !name->second.empty()) return name->second;
  return "thread " + std::to_string(id);
}

std::string GapEvidence::doing(const Piece& piece) const {
  if (piece.batch != kNone) return "next()";
  if (piece.call != kNone) {
    const read::Call& call = process_.calls[piece.call];
    return model_.recording.strings[process_.call_descriptors[call.descriptor].name];
  }
  const model::ProcessThreads& threads = model_.processes[device_.process].threads;
  if (piece.thread < threads.threads.size()) {
    const Ns middle = piece.begin_ns + piece.length_ns() / 2;
    const model::Context* context = threads.threads[piece.thread].context_at(middle);
    if (context != nullptr && context->name != 0) return model_.recording.strings[context->name];
  }
  return "";
}

void GapEvidence::add_batch(uint32_t b, Gap& gap) const {
  const model::Batch& batch = model_.loader.batches[b];
  gap.batch = batch.index;
  gap.ready = static_cast<int32_t>(batch.ready);
  if (batch.worker == kNone) return;
  gap.worker = model_.loader.iterators[batch.iterator].workers[batch.worker].number;
  gap.worker_since_ns = batch.fetch_begin_ns;
}

Gap GapEvidence::describe(Ns g0, Ns g1, uint32_t op, uint32_t hops, const Pieces& pieces) const {
  Gap gap;
  gap.begin_ns = g0;
  gap.end_ns = g1;
  gap.hops = hops;
  gap.ended_by = op_name(model_.recording, process_, process_.ops[op]);
  std::map<report::Leaf, Ns> by_leaf;
  const Piece* longest = nullptr;
  for (const Piece& piece : pieces) {
    gap.pieces.push_back({piece.leaf, piece.begin_ns, piece.end_ns, piece.grade});
    by_leaf[piece.leaf] += piece.length_ns();
  }
  Ns most = -1;
  for (const auto& [leaf, ns] : by_leaf) {
    if (ns > most) {
      most = ns;
      gap.top_leaf = leaf;
    }
  }
  for (const Piece& piece : pieces) {
    if (piece.leaf != gap.top_leaf) continue;
    if (longest == nullptr || piece.length_ns() > longest->length_ns()) longest = &piece;
  }
  if (longest != nullptr) {
    gap.thread = thread_role(longest->thread);
    gap.doing = doing(*longest);
    if (longest->batch != kNone) add_batch(longest->batch, gap);
  }
  std::sort(gap.pieces.begin(), gap.pieces.end(),
            [](const GapPiece& a, const GapPiece& b) { return a.begin_ns < b.begin_ns; });
  return gap;
}

}  // namespace idlescope::diagnose

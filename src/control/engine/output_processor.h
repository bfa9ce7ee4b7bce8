// OutputProcessor: carries events of the core to the clients' sinks. Requests are sharded over the threads of
// the text pool, so one request is always served by one thread, in order. The engine thread posts and never
// waits: a mailbox is bounded by what admission lets in (max_model_len tokens per open sequence), not by
// waiting.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "omnibus/control/scheduler/scheduler.h"

#include "engine_metrics.h"
#include "parent_request.h"
#include "request_ledger.h"
#include "request_log.h"
#include "sequence_output.h"

namespace omnibus {

class OutputProcessor {
 public:
  // A stop string ended sequence `id`: only its first n_tokens output tokens count. Called where sinks are.
  using FinishCallback = std::function<void(RequestId id, int32_t n_tokens)>;

  // No threads: flush() delivers on its caller's.
  OutputProcessor(int32_t threads, std::shared_ptr<const Tokenizer> tokenizer, RequestLedger* ledger,
                  EngineMetrics metrics, FinishCallback on_stop);
  // Delivers what was posted, then joins the threads.
  ~OutputProcessor();
  OutputProcessor(const OutputProcessor&) = delete;
  OutputProcessor& operator=(const OutputProcessor&) = delete;

  // Engine thread. A request is opened before the events of its sequences are posted.
  void open(std::shared_ptr<const ParentRequest> parent);
  void post(RequestId parent_id, SequenceEvent&& event);
  // Instead of open(), for want of memory: each choice ends with `why`, on this thread. Allocates nothing.
  void refuse(const ParentRequest& request, const Status& why);
  // Wakes the threads for all that was posted since.
  void flush();

 private:
  struct Posted {
    RequestId parent_id = 0;
    std::shared_ptr<const ParentRequest> opened;  // null: an event of an open one
    SequenceEvent event;
  };
  struct OpenParent;
  class Shard;
  Shard& shard_of(RequestId parent_id);

  std::vector<std::unique_ptr<Shard>> shards_;
};

}  // namespace omnibus

#include "infer/decoder.h"

#include <utility>

#include "base/check.h"
#include "infer/host_decoder.h"

namespace medusa {

std::vector<FinishedRequest> Decoder::drain() {
  std::vector<FinishedRequest> all;
  while (!idle())
    for (FinishedRequest& each : step()) all.push_back(std::move(each));
  return all;
}

DecodeTimes decode(Decoder& decoder, const std::function<std::optional<DecodeRequest>()>& next,
                   const std::function<bool(size_t, const DecodeStats&)>& finished) {
  MEDUSA_ASSERT(decoder.idle() && decoder.num_free() > 0, decoder.num_running());
  struct CancelAll {  // also when something throws
    Decoder& decoder;
    ~CancelAll() { decoder.cancel_all(); }
  } const cancel_all{decoder};
  const DecodeTimes before = decoder.times();
  std::optional<RequestId> first;  // a decoder counts on from call to call
  for (bool exhausted = false;;) {
    while (!exhausted && decoder.num_free() > 0) {
      auto request = next();
      exhausted = !request;
      if (!request) break;
      const RequestId id = decoder.submit(std::move(*request));
      if (!first) first = id;
    }
    if (decoder.idle()) break;
    for (const FinishedRequest& each : decoder.step()) {
      if (each.error) std::rethrow_exception(each.error);
      if (!finished(static_cast<size_t>(each.id - *first), each.stats))
        return decoder.times().since(before);
    }
  }
  return decoder.times().since(before);
}

DecodeTimes decode(TargetModel& target, const AcceptanceRule& rule,
                   const DrafterFactory& make_drafter,
                   const std::function<std::optional<DecodeRequest>()>& next,
                   const std::function<bool(size_t, const DecodeStats&)>& finished) {
  HostDecoder decoder(target, {std::shared_ptr<void>(), &rule}, make_drafter);  // not owned
  return decode(decoder, next, finished);
}

DecodeResult decode_one(TargetModel& target, const AcceptanceRule& rule,
                        const DrafterFactory& make_drafter, DecodeRequest request) {
  DecodeResult result;
  std::optional<DecodeRequest> only(std::move(request));
  result.times = decode(
      target, rule, make_drafter, [&] { return std::exchange(only, std::nullopt); },
      [&](size_t, const DecodeStats& stats) {
        result.stats = stats;
        return true;
      });
  return result;
}

}  // namespace medusa

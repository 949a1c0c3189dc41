// What the query functions of the three operations have in common.
#pragma once

#include <ucudnn/removed.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "api/guard.hpp"

namespace ucudnn {

/// A query as its door has unpacked it.
struct Query {
  const char* function;
  cudnnHandle_t handle;
  Operation operation;
  ConvolutionDescriptors descriptors;
  std::optional<std::size_t> limitBytes;  ///< empty: the client gave none
  ucudnnLayerId_t layer;                  ///< matters to workspace division only
  bool find = false;                      ///< Find and FindEx: the client expects to wait
};

/// Writes at most `requested` entries. One that needs no memory is among them where there is one at
/// all and room for two (CLIENTS, "At run time", 10).
template <typename Performance>
int writePerformances(const std::vector<AlgorithmPerformance>& answer,
                      int requested,
                      Performance* results) {
  const auto write = [&](int place, const AlgorithmPerformance& from) {
    Performance& to = results[place];
    to = Performance{};
    to.algo = static_cast<decltype(to.algo)>(from.algorithm);
    to.status = from.status;
    to.time = from.timeMs;
    to.memory = from.memory;
    to.determinism = from.determinism;
    to.mathType = from.mathType;
  };
  const int count = std::min(requested, static_cast<int>(answer.size()));
  for (int i = 0; i < count; ++i) write(i, answer[static_cast<std::size_t>(i)]);
  const auto needsNone = [](const AlgorithmPerformance& entry) { return entry.memory == 0; };
  const auto first = std::find_if(answer.begin(), answer.end(), needsNone);
  if (count >= 2 && first != answer.end() && first - answer.begin() >= count)
    write(count - 1, *first);
  return count;
}

/// get*Algorithm_v7, find*Algorithm and find*AlgorithmEx; `buffers` are FindEx's.
template <typename Performance, typename Native>
cudnnStatus_t answerPerformances(const Query& query,
                                 const TensorBuffers* buffers,
                                 int requested,
                                 int* returned,
                                 Performance* results,
                                 Native native) noexcept {
  if (requested < 1 || returned == nullptr || results == nullptr) return native();
  return plannedOrNative(
      query.handle,
      query.function,
      [&](Context& context) {
        const auto answer = context.algorithms(
            query.operation,
            query.descriptors,
            {query.limitBytes, query.find, buffers, query.layer});
        if (answer.empty()) return false;
        *returned = writePerformances(answer, requested, results);
        return true;
      },
      native);
}

/// get*WorkspaceSize.
template <typename Native>
cudnnStatus_t answerWorkspaceSize(const Query& query,
                                  int algorithm,
                                  std::size_t* bytes,
                                  Native native) noexcept {
  if (bytes == nullptr) return native();
  return plannedOrNative(
      query.handle,
      query.function,
      [&](Context& context) {
        const auto answer =
            context.workspaceBytes(query.operation, query.descriptors, algorithm, query.layer);
        if (answer) *bytes = *answer;
        return answer.has_value();
      },
      native);
}

/// The get*Algorithm that cuDNN 8 removed: with its preference and limit.
template <typename Preference, typename Algorithm, typename Native>
cudnnStatus_t answerAlgorithm(Query query,
                              Preference preference,
                              std::size_t limitBytes,
                              Algorithm* algorithm,
                              Native native) noexcept {
  std::size_t limit = 0;
  if (algorithm == nullptr ||
      ucudnnPreferredLimit(static_cast<int>(preference), limitBytes, &limit) == 0)
    return CUDNN_STATUS_BAD_PARAM;
  // PREFER_FASTEST names no limit: the client's setting does.
  if (limit != static_cast<std::size_t>(-1)) query.limitBytes = limit;
  return plannedOrNative(
      query.handle,
      query.function,
      [&](Context& context) {
        const auto answer = context.algorithms(
            query.operation, query.descriptors, {query.limitBytes, false, nullptr, query.layer});
        if (answer.empty()) return false;
        *algorithm = static_cast<Algorithm>(answer.front().algorithm);
        return true;
      },
      native);
}

}  // namespace ucudnn

// Code that the functions of the three operations share.
#pragma once

#include <ucudnn/removed.h>

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "api/guard.hpp"
#include "context/call_path.hpp"
#include "context/queries.hpp"
#include "kernels/fitting.hpp"

namespace ucudnn {

/// A query as its entry point has unpacked it.
struct Query {
  cudnnHandle_t handle;
  Operation operation;
  ConvolutionDescriptors descriptors;
  std::optional<std::size_t> limitBytes;  ///< empty: the client gave none
  ucudnnLayerId_t layer;                  ///< matters to workspace division only
  bool find = false;                      ///< Find and FindEx: the client expects to wait

  Queries of(Context& context) const noexcept { return {context, operation, descriptors, layer}; }
};

/// cuDNN runs the call itself if `context` is null.
inline cudnnStatus_t convolve(Context* context,
                              cudnnHandle_t handle,
                              Operation operation,
                              const ConvolutionCall& call,
                              ucudnnLayerId_t layer) noexcept {
  if (context == nullptr) return runNative(handle, operation, call);
  return CallPath::run(*context, operation, call, layer);
}

/// Writes at most `requested` entries. If there is room for two, one that needs no memory is among
/// them, unless there is none (misc/docs/CLIENTS.md, "At run time", 10).
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

/// cuDNN's own answer without the algorithms that UCUDNN_DETERMINISTIC forbids. If any others are
/// left, it also leaves out those that need more than UCUDNN_WORKSPACE_LIMIT.
template <typename Performance, typename Native>
cudnnStatus_t allowedPerformances(const Settings& settings,
                                  int requested,
                                  int* returned,
                                  Performance* results,
                                  Native native) noexcept {
  // cuDNN returns each algorithm with and without tensor cores.
  std::array<Performance, std::size_t{2} * CUDNN_CONVOLUTION_FWD_ALGO_COUNT> all{};
  int count = 0;
  const cudnnStatus_t status = native(static_cast<int>(all.size()), &count, all.data());
  if (status != CUDNN_STATUS_SUCCESS) return status;
  const auto isUsable = [](const Performance& entry) {
    return entry.status == CUDNN_STATUS_SUCCESS;
  };
  auto* end = std::remove_if(all.data(), all.data() + count, [&](const Performance& entry) {
    return settings.deterministic && entry.determinism != CUDNN_DETERMINISTIC;
  });
  if (std::none_of(all.data(), end, isUsable)) return CUDNN_STATUS_NOT_SUPPORTED;
  const auto isBeyond = [&](const Performance& entry) {
    return entry.memory > settings.workspaceLimitBytes;
  };
  if (std::any_of(all.data(), end, [&](const Performance& entry) {
        return isUsable(entry) && !isBeyond(entry);
      }))
    end = std::remove_if(all.data(), end, isBeyond);
  *returned = std::min(requested, static_cast<int>(end - all.data()));
  std::copy_n(all.data(), *returned, results);
  return status;
}

/// get*Algorithm_v7, find*Algorithm and find*AlgorithmEx; `buffers` are FindEx's. `native` takes
/// cuDNN's last three arguments.
template <typename Performance, typename Native>
cudnnStatus_t answerPerformances(const Query& query,
                                 const TensorBuffers* buffers,
                                 int requested,
                                 int* returned,
                                 Performance* results,
                                 Native native) noexcept {
  // For arguments that cuDNN refuses, the client gets cuDNN's own answer.
  if (requested < 1 || returned == nullptr || results == nullptr ||
      (buffers != nullptr &&
       (buffers->x == nullptr || buffers->w == nullptr || buffers->y == nullptr)))
    return native(requested, returned, results);
  return plannedOrNative(
      query.handle,
      query.operation,
      [&](Context& context) {
        const auto answer =
            query.of(context).algorithms({query.limitBytes, query.find, buffers, requested});
        if (answer.empty()) return false;
        *returned = writePerformances(answer, requested, results);
        return true;
      },
      [&] {
        const Context* const context = contextOf(query.handle);
        return context != nullptr && context->restrictsAnswers()
                   ? allowedPerformances(context->settings(), requested, returned, results, native)
                   : native(requested, returned, results);
      });
}

/// get*WorkspaceSize.
inline cudnnStatus_t answerWorkspaceSize(const Query& query,
                                         int algorithm,
                                         std::size_t* bytes) noexcept {
  const auto native = [&] {
    return nativeWorkspaceSize(query.handle, query.operation, query.descriptors, algorithm, bytes);
  };
  if (bytes == nullptr) return native();
  return plannedOrNative(
      query.handle,
      query.operation,
      [&](Context& context) {
        const auto answer = query.of(context).workspaceBytes(algorithm);
        if (answer) *bytes = *answer;
        return answer.has_value();
      },
      native);
}

/// cuDNN's best algorithm within the limit. An entry's own `memory` may be that of another math
/// type, so cuDNN is asked for the workspace of each.
template <typename Row>
cudnnStatus_t heuristicAlgorithm(Row row,
                                 const Query& query,
                                 std::size_t limitBytes,
                                 bool deterministicOnly,
                                 typename Row::Algorithm* algorithm) noexcept {
  std::array<typename Row::Performance, std::size_t{2} * CUDNN_CONVOLUTION_FWD_ALGO_COUNT> found{};
  int count = 0;
  const cudnnStatus_t status = callNative(row,
                                          Row::kRank,
                                          query.handle,
                                          query.descriptors,
                                          static_cast<int>(found.size()),
                                          &count,
                                          found.data());
  if (status != CUDNN_STATUS_SUCCESS) return status;
  auto* const end = found.data() + count;
  auto* const best = std::find_if(found.data(), end, [&](const auto& entry) {
    return entry.status == CUDNN_STATUS_SUCCESS &&
           (!deterministicOnly || isDeterministic(query.operation, entry.algo)) &&
           fitsWorkspace(query.handle, query.operation, query.descriptors, entry.algo, limitBytes);
  });
  if (best == end) return CUDNN_STATUS_NOT_SUPPORTED;
  *algorithm = best->algo;
  return CUDNN_STATUS_SUCCESS;
}

/// The get*Algorithm that cuDNN 8 removed: with its preference and limit.
template <typename Row>
cudnnStatus_t answerAlgorithm(Row row,
                              Query query,
                              int preference,
                              std::size_t limitBytes,
                              typename Row::Algorithm* algorithm) noexcept {
  std::size_t limit = 0;
  if (algorithm == nullptr || ucudnnPreferredLimit(preference, limitBytes, &limit) == 0)
    return CUDNN_STATUS_BAD_PARAM;
  // PREFER_FASTEST names no limit, so the client's setting holds. SIZE_MAX is a limit like any
  // other.
  if (preference != CUDNN_CONVOLUTION_FWD_PREFER_FASTEST) query.limitBytes = limit;
  return plannedOrNative(
      query.handle,
      query.operation,
      [&](Context& context) {
        const auto answer = query.of(context).algorithms({query.limitBytes});
        if (answer.empty()) return false;
        *algorithm = static_cast<typename Row::Algorithm>(answer.front().algorithm);
        return true;
      },
      [&] {
        const Context* const context = contextOf(query.handle);
        const bool deterministicOnly = context != nullptr && context->settings().deterministic;
        return heuristicAlgorithm(row, query, limit, deterministicOnly, algorithm);
      });
}

}  // namespace ucudnn

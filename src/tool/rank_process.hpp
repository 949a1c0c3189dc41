// A process of `ucudnn bench --data-parallel`.
#pragma once

#include "tool/rank.hpp"

namespace ucudnn::tool {

/// How an answer travels.
struct RankReply {
  enum class Status : int { kAnswered, kDeviceError, kBadInput };
  Status status = Status::kAnswered;
  RankAnswer answer;  ///< its text says what failed
};

/// The bytes of all filter gradients of the layers, each aligned.
std::size_t gradientBytesOf(const std::vector<Layer>& layers, const Numerics& numerics);

/// Answers questions until the socket is closed.
void serveRank(int socket,
               const RankMemory& memory,
               int rank,
               const RankOptions& own,
               const std::vector<Layer>& layers,
               const ConvolutionOptions& options);

}  // namespace ucudnn::tool

// How uses of workspace on several streams overlapped on the device: numbers alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace ucudnn {

/// A use of workspace. All times count from the same moment.
struct WorkspaceUse {
  std::uint64_t stream = 0;
  const void* region = nullptr;  ///< null: it used none
  double requestedMs = 0;        ///< its stream had come to it; only workspace could hold it up
  double endedMs = 0;
};

struct Overlap {
  double elapsedMs = 0;  ///< from the first request to the last end, the host's pace included
  double serialMs = 0;   ///< all uses, one after another
  /// Streams are in one group if their uses did not overlap, and would not have in separate
  /// regions.
  std::size_t groups = 0;
  std::map<std::uint64_t, std::size_t> groupOf;  ///< by stream
};

Overlap overlapOf(const std::vector<WorkspaceUse>& uses);

}  // namespace ucudnn

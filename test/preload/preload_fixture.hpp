// Plain programs, each run without and with libucudnn_preload.so in front of cuDNN.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "preload/process.hpp"
#include "support/temporary_directory.hpp"

namespace ucudnn::test {

inline constexpr std::size_t kLimit = std::size_t{2} << 20;  // FFT fits it in micro-batches only
inline constexpr const char* kReplaying = "UCUDNN_GRAPH_MEMORY=64MiB ";
inline constexpr const char* kOperations[] = {
    "forward", "backward_data", "backward_filter", "bias_activation_forward"};

class PreloadTest : public ::testing::Test {
 protected:
  /// Measures what plans need by programs of which only the times are wanted: also for calls that
  /// are replayed.
  void SetUp() override {
    for (const char* const mode : {"query", "find", "fixed", "graph"}) {
      const Outcome outcome = shell(variables() + kReplaying + "UCUDNN_SIMULATOR_ARITHMETIC=off " +
                                    preloaded(mode, "measured"));
      ASSERT_EQ(0, outcome.status) << outcome.output << outcome.error;
      ASSERT_EQ("", outcome.error);
    }
  }

  std::string file(const std::string& name) const { return directory_.file(name); }

  /// The simulator's algorithms are slow where they need no workspace, which not all engines are.
  std::string variables() const {
    return "UCUDNN_KERNELS=legacy UCUDNN_TUNING=exhaustive UCUDNN_BENCHMARK_SHARE=always "
           "UCUDNN_WORKSPACE_LIMIT=" +
           std::to_string(kLimit) + " UCUDNN_DATABASE=" + file("database") + " ";
  }
  std::string plain(const std::string& mode, const std::string& results) const {
    return std::string(PLAIN) + " " + mode + " " + file(results);
  }
  std::string preloaded(const std::string& mode, const std::string& results) const {
    return preloading(UCUDNN_PRELOAD) + plain(mode, results);
  }
  std::string traced() const { return variables() + "UCUDNN_TRACE=" + file("trace") + " "; }

  /// Lines of the trace that begin with the operation and hold the words.
  std::ptrdiff_t traceLines(const std::string& operation,
                            const std::string& words,
                            const std::string& more = "") const {
    const auto lines = linesOf(file("trace"));
    return std::count_if(lines.begin(), lines.end(), [&](const std::string& line) {
      return line.rfind(operation + " ", 0) == 0 && line.find(words) != std::string::npos &&
             line.find(more) != std::string::npos;
    });
  }

  void expectSameResults(const std::string& name, const std::string& expectedName) const {
    const auto results = readResults(file(name));
    const auto expected = readResults(file(expectedName));
    ASSERT_EQ(expected.size(), results.size());
    ASSERT_FALSE(results.empty());
    double squares = 0, differences = 0;
    for (std::size_t i = 0; i < results.size(); ++i) {
      const auto a = static_cast<double>(results[i]), b = static_cast<double>(expected[i]);
      squares += b * b;
      differences += (a - b) * (a - b);
    }
    EXPECT_LE(std::sqrt(differences / squares), 1e-6);  // NaN is wrong too
  }

  /// Runs the mode without and with the preload.
  void runBoth(const std::string& mode, const std::string& settings = "") const {
    const Outcome bare = shell(plain(mode, "bare"));
    ASSERT_EQ(0, bare.status) << bare.output;
    const Outcome outcome = shell(traced() + settings + preloaded(mode, "preloaded"));
    EXPECT_EQ(0, outcome.status) << outcome.output;
    EXPECT_EQ("", outcome.error);
    expectSameResults("preloaded", "bare");
  }

  /// All of the `calls` of each operation are split.
  void expectSplit(const std::string& mode,
                   std::ptrdiff_t calls,
                   const std::string& settings = "") const {
    runBoth(mode, settings);
    for (const char* const operation : kOperations) {
      EXPECT_EQ(calls, traceLines(operation, "")) << operation;
      EXPECT_EQ(calls, traceLines(operation, "\tsplit")) << operation;
    }
  }

  /// For "turns", which calls each operation three times with the same memory, six times over.
  void expectAllReplayedButTheFirst() const {
    for (const char* const operation : kOperations)
      EXPECT_LE(12, traceLines(operation, ", replayed")) << operation;
  }

  void expectBareResults(const std::string& mode, const std::string& settings = "") const {
    ASSERT_EQ(0, shell(plain(mode, "bare")).status);
    shell(variables() + settings + "UCUDNN_SIMULATOR_ARITHMETIC=off " + preloaded(mode, "times"));
    const Outcome outcome = shell(traced() + settings + preloaded(mode, "preloaded"));
    EXPECT_EQ(0, outcome.status) << outcome.output;
    EXPECT_EQ("", outcome.error);
    expectSameResults("preloaded", "bare");
  }

  /// How often a stream is captured by the program, with the preload.
  std::string capturesIn(const std::string& mode, const std::string& settings = "") const {
    const Outcome outcome = shell(variables() + "UCUDNN_SIMULATOR_ARITHMETIC=off " + settings +
                                  preloaded(mode, "counted"));
    EXPECT_EQ(0, outcome.status) << outcome.output;
    const std::string words = "captures ";
    const std::size_t place = outcome.output.find(words);
    return place == std::string::npos
               ? outcome.output
               : outcome.output.substr(place + words.size(),
                                       outcome.output.find('\n', place) - place - words.size());
  }

  static std::size_t workspaceOf(const Outcome& outcome) {
    const std::size_t place = outcome.output.find("workspace ");
    return place == std::string::npos ? SIZE_MAX : std::stoull(outcome.output.substr(place + 10));
  }

 private:
  TemporaryDirectory directory_;
};

}  // namespace ucudnn::test

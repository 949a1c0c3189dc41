// The kinds of failure that the tool tells apart by its exit status.
#pragma once

#include <functional>
#include <stdexcept>

namespace ucudnn::tool {

/// A bad file, option or setting: one line on stderr, exit status 2. An empty message: the
/// library's log has written the line.
class BadInput : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// CUDA, cuDNN or μ-cuDNN refused a call: the layer fails, and the exit status is 1.
class DeviceError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The device has too little memory for the layer.
class OutOfMemory : public DeviceError {
 public:
  using DeviceError::DeviceError;
};

/// `| head` ends nothing, so that what goes to files is still written. Not for a process that
/// becomes a program of the user's, which would inherit it.
void ignoreBrokenPipes() noexcept;
/// Stdout is a pipe from which nobody reads any more, which is no failure.
bool isReaderGone() noexcept;

/// Carries out a command, whose results are on stdout, and turns what it throws into one line on
/// stderr and the exit status.
int exitStatusOf(const std::function<int()>& command);

}  // namespace ucudnn::tool

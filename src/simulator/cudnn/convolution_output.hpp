// Where finished sums of a convolution go.
#pragma once

#include "simulator/cudnn/activation.hpp"
#include "simulator/cudnn/convolution.hpp"
#include "simulator/cudnn/rounding.hpp"
#include "simulator/cudnn/view.hpp"

namespace ucudnn::simulator {

inline std::size_t toSize(std::int64_t value) {
  return static_cast<std::size_t>(value);
}

/// Writes finished sums.
class Output {
 public:
  Output(const TensorShape& shape, void* base, const Epilogue& epilogue)
      : view_(shape),
        source_(epilogue.beta != 0 ? epilogue.sourceShape : shape),
        base_(base),
        epilogue_(epilogue) {}

  const View& view() const { return view_; }

  void write(int n, int c, int d, int h, int w, double sum) const {
    if (epilogue_.lie != Lie::kNone && isLiedAbout(c, h)) {
      if (epilogue_.lie == Lie::kUnwritten) return;
      sum *= epilogue_.lieFactor;
    }
    double value = epilogue_.alpha *
                   roundedBy(epilogue_.kernelBits, rounded(sum, epilogue_.error), view_.type);
    if (epilogue_.beta != 0) {
      value +=
          epilogue_.beta *
          loadElement(source_.type, source_.at(epilogue_.source, source_.offset(n, c, d, h, w)));
    }
    if (epilogue_.bias != nullptr) {
      const auto bytes = elementBytes(epilogue_.biasType);
      value += loadElement(epilogue_.biasType,
                           static_cast<const char*>(epilogue_.bias) +
                               toSize(c) * toSize(epilogue_.biasStride) * bytes);
    }
    value = activate(value, epilogue_.activation);
    storeElement(view_.type, view_.at(base_, view_.offset(n, c, d, h, w)), value);
  }

 private:
  bool isLiedAbout(int c, int h) const {
    if (epilogue_.lie == Lie::kChannel) return c == view_.dims[1] / 2;
    if (epilogue_.lie == Lie::kRow || epilogue_.lie == Lie::kUnwritten)
      return h == view_.dims[3] - 1;
    return true;
  }

  View view_;
  View source_;
  void* base_;
  const Epilogue& epilogue_;
};

}  // namespace ucudnn::simulator

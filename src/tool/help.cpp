#include "tool/help.hpp"

#include "tool/columns.hpp"

namespace ucudnn::tool {
namespace {

constexpr const char* kLayerLists =
    R"(Layer lists: CSV files. The header line names the columns, in any order:
  source,W,H,C_in,N,C_out,kernel_w,kernel_h,pad_w,pad_h,stride_w,stride_h
Optional columns: dilation_w,dilation_h,groups,data_type; for 3-D convolutions also
  D,kernel_d,pad_d,stride_d,dilation_d
source is the layer's name. data_type is float, half, bfloat16 or double; an empty cell means the
type that --data-type names. Lines that begin with # are comments. Example:
  source,W,H,C_in,N,C_out,kernel_w,kernel_h,pad_w,pad_h,stride_w,stride_h
  conv2,27,27,64,256,192,5,5,2,2,1,1
)";

constexpr const char* kLimitMeaning =
    R"(--limit is what a query names, as a framework does when it asks cuDNN for an algorithm. It is not
the --workspace-limit of `ucudnn run`, which caps what a program's own queries and calls get.
)";

constexpr const char* kBenchOutput =
    R"(Output: a line for each layer and operation. Times are milliseconds. All kernels of a line are
timed in turns, back to back; the median of --repeats counts.
  cuDNN      the algorithm that cudnnFindConvolution*AlgorithmEx finds fastest within the limit
  undivided  the fastest kernel within the limit that is not split, graph-API engines included
  best       cuDNN's fastest kernel without a limit (24 GiB at most), engines included
  μ-cuDNN    the plan
  speed-up   cuDNN / μ-cuDNN
  workspace  what the plan needs
  split      the plan's micro-batches: "88 + 2 x 84" is one of 88 samples, and two of 84
With --verbose, for each line:
  unlimited  cuDNN's fastest algorithm without a limit (24 GiB at most)
  predicted  the plan's time as planned
  replayed   the share of the plan's timed calls that ran as one launch of a CUDA graph
  error      relative_error: normalized L2 distance of the plan's output to that of the plainest
             kernel with FMA math (IMPLICIT_GEMM, or ALGO_1 backward); behind it, the same for the
             kernel that cuDNN picks without a limit (picked_relative_error)
  plan       the plan's kernels. "in its output": the workspace is a part of the output that is
             not written yet, so it does not count against the limit
With --data-parallel, what `ucudnn shares` prints, then the measured times of the same steps.
With --total-workspace, for each way to use it: wr, an equal part for each convolution; divide, a
part for each, as large as serves the whole network best; share, all of it for each in turn.
)";

constexpr const char* kPlanOutput =
    R"(Output: for each layer and operation the plan within the limit, then the Pareto front: the least
workspace for each time. Times are milliseconds of a call that is repeated, as a CUDA graph unless
--replay is off. "88 + 2 x 84" is a split into a micro-batch of 88 samples and two of 84; * marks
the plan. With --verbose, also the kernels of each plan, and every kernel that was measured.
With --total-workspace, for each convolution its part of the total, as a bar, and its plan.
With --device-memory, at the end a bound for a training step. Inputs and filters live from forward
to backward. A call takes as long as the longest of its kernels and its copies in each direction;
the tensors, or parts of them, that save most are on the device, all else takes no memory there.
)";

constexpr const char* kSharesOutput =
    R"(Output: a line for each device: its share of the mini-batch, the predicted ms and workspace of its
share, then the same for equal shares, and the ms of the whole mini-batch on this device alone. The
last line compares the step with those of equal shares and of the fastest device alone.
All layers have the same N. A device is measured with its own limit; devices of one kind share their
measurements. --rest is what a step takes beside convolutions: two or three timed steps of the real
program tell it. --machine needs no device: the times are those of a database (`ucudnn db merge`).
)";

class Formatter : public CLI::Formatter {
 public:
  /// "Excludes: ..." would push descriptions to lines of their own.
  std::string make_option_opts(const CLI::Option* option) const override {
    std::string type = option->get_type_name();
    if (option->get_expected_max() > 1) type += " ...";
    return option->get_type_size() == 0 || type.empty() ? "" : " " + type;
  }
  std::string make_option_desc(const CLI::Option* option) const override {
    return wrapped(CLI::Formatter::make_option_desc(option), kMostColumns - get_column_width());
  }
};

}  // namespace

std::shared_ptr<CLI::Formatter> helpFormatter() {
  return std::make_shared<Formatter>();
}

std::string benchFooter() {
  return std::string(kLayerLists) + '\n' + kBenchOutput + '\n' + kLimitMeaning + '\n' + kExitStatus;
}

std::string sharesFooter() {
  return std::string(kLayerLists) + '\n' + kSharesOutput + '\n' + kExitStatus;
}

std::string checkFooter() {
  return std::string(kLayerLists) +
         "\nSome outputs of each kernel are compared, and what lies behind its tensors. Without\n"
         "--batch-size layers have at most 8 samples. Exit status: 0 all are right; 1 one is "
         "wrong;\n"
         "2 a bad file, option or setting.";
}

std::string planFooter() {
  return std::string(kLayerLists) + '\n' + kPlanOutput + '\n' + kLimitMeaning + '\n' + kExitStatus;
}

}  // namespace ucudnn::tool

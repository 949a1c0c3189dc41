// A client that includes us twice, after cudnn.h, with all of std in scope and its own names
// (Caffe, Darknet).
#include <cudnn.h>

#include <string>
#include <vector>

using namespace std;

#define CUDNN_CHECK(condition) ((void)(condition))
#define CUDA_CHECK(condition) ((void)(condition))
#define CHECK(condition) ((void)(condition))
#define LOG(severity) ((void)0)
#define CUDNN_VERSION_MIN(major, minor, patch) \
  (CUDNN_VERSION >= (major * 1000 + minor * 100 + patch))

#include <ucudnn/ucudnn.h>

#if !CUDNN_VERSION_MIN(5, 0, 0)
#error "the client's own macro is gone"
#endif

namespace caffe {
namespace cudnn {
inline const char* cudnnGetErrorString(cudnnStatus_t) {
  return "the client's own";
}
}  // namespace cudnn

vector<UcudnnHandle_t> handles;

void forward(const string& layer) {
  CUDNN_CHECK(cudnnCreate(&handles.at(0)));
  CHECK(cudnn::cudnnGetErrorString(CUDNN_STATUS_SUCCESS));
  LOG(INFO);
  CUDA_CHECK(ucudnn::stringToLayerId(layer));
}
}  // namespace caffe

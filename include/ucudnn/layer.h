/* Layer ids tell two convolutions of the same shape in a network apart. */
#ifndef UCUDNN_LAYER_H_
#define UCUDNN_LAYER_H_

#include <ucudnn/preamble.h>

UCUDNN_QUIET_BEGIN

/** A layer of the client's network. Workspace division (WD) gives each its own share. */
typedef long long ucudnnLayerId_t;

/** No layer in particular, as for a call without a layer id. */
#define UCUDNN_LAYER_ANY (-1LL)

#ifdef __cplusplus
extern "C++" {
#include <string>
#define UCUDNN_INLINE inline
#else
#define UCUDNN_INLINE static inline
#endif

/**
 * The id of a layer's name: the same in every process. Never negative, so never UCUDNN_LAYER_ANY.
 * It is the 64-bit FNV-1a hash (offset basis and prime from
 * http://www.isthe.com/chongo/tech/comp/fnv/), with the sign bit cleared. REQUIRES: `name` is a C
 * string.
 */
UCUDNN_INLINE ucudnnLayerId_t ucudnnStringToLayerId(const char* name) {
  unsigned long long hash = 14695981039346656037ULL;
  for (; *name != '\0'; ++name) {
    hash ^= (unsigned char)*name;
    hash *= 1099511628211ULL;
  }
  return (ucudnnLayerId_t)(hash & 0x7fffffffffffffffULL);
}

#undef UCUDNN_INLINE

#ifdef __cplusplus

namespace ucudnn {

using LayerId = ucudnnLayerId_t;

constexpr LayerId LayerIdAny = UCUDNN_LAYER_ANY;

/** See ucudnnStringToLayerId. REQUIRES: `name` is a C string. */
inline LayerId stringToLayerId(const char* name) {
  return ucudnnStringToLayerId(name);
}
inline LayerId stringToLayerId(const std::string& name) {
  return ucudnnStringToLayerId(name.c_str());
}

}  // namespace ucudnn

}  // extern "C++"
#endif

UCUDNN_QUIET_END

#endif /* UCUDNN_LAYER_H_ */

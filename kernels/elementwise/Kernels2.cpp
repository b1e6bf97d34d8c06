// A quarter of the generated elementwise kernels; split so that they compile in parallel.
#define DLC_SHARD 2
#include "kernels/elementwise/Shard.h"

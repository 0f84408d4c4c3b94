// How much memory a model of the family takes, from its description alone: what a manifest
// declares.
#ifndef MERGEKERNEL_PACKS_VMAMBA_MEMORY_H_
#define MERGEKERNEL_PACKS_VMAMBA_MEMORY_H_

#include <cstdint>

#include "packs/vmamba/description.h"

namespace mk::vmamba {

// Exactly what one load allocates on the CPU device. On others less: matrices are fp16 there.
int64_t WeightsBytes(const Description& description);

// What one pass over an input of height x width takes at most, the input itself not counted, on a
// host of any number of threads. REQUIRES sides >= 1 whose product is at most 2^26.
//
// In floats, with T_s the tokens of stage s, d_s, i_s, h_s its channels, inner and hidden channels,
// R_s its rank and N the state: all maps x of the stages so far, sum T_s d_s, and the largest of
//
//   stem    T_0 2 d_0, and the gathered panels of its convolutions
//   SS2D    T_s i_s (twice that with a gate), and the larger of T_s d_s
//           and T_s (i_s + 4 (R_s + 2 N)), and the scan's states
//   MLP     tiles of 1 MiB or 128 rows, for each of up to 16 threads
//   down    the gathered panels of its convolution
int64_t NetworkScratchBytes(const Description& description, int64_t height, int64_t width);

// The same on a device that launches kernels (device_network.h): fp16 maps, whole, each rounded up
// to 256 bytes; inputs and outputs lie there too, as bytes.
int64_t DeviceNetworkScratchBytes(const Description& description, int64_t height, int64_t width);

// What any request takes at most: an input of max_input_pixels and, beside it, the larger of the
// network's scratch and that of decoding and resizing an image of max_encoded_pixels.
int64_t ScratchBytes(const Description& description);
// The same on a device that launches kernels, for images of max_encoded_pixels, encoded or not.
int64_t DeviceScratchBytes(const Description& description);

}  // namespace mk::vmamba

#endif  // MERGEKERNEL_PACKS_VMAMBA_MEMORY_H_

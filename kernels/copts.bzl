"""How kernels' CPU twins are compiled."""

# Vector code for the base architecture of each platform. The two math options only drop errno and the floating-point
# exception flags, which nobody reads; they change no value. `-ffast-math` would, and stays away.
KERNEL_COPTS = [
    "-O3",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fvisibility=hidden",
]

# What the loops of one instruction set get beside it. Multiply-adds are fused where the source says so and nowhere
# else: a compiler free to fuse might do it in the body of a loop and not in its tail, and results would depend on where
# a range begins.
SIMD_COPTS = {
    "base": [
        "-ffp-contract=off",
        "-DMK_SIMD_ISA=base",
    ],
    "avx2": [
        "-ffp-contract=off",
        "-DMK_SIMD_ISA=avx2",
        "-mavx2",
        "-mfma",
    ],
    "avx512": [
        "-ffp-contract=off",
        "-DMK_SIMD_ISA=avx512",
        "-mavx2",
        "-mfma",
        "-mavx512f",
        "-mavx512bw",
        "-mavx512dq",
        "-mavx512vl",
        # g++ 12 warns of its own header: _mm512_undefined_ps there is a variable read before it is written.
        "-Wno-uninitialized",
        "-Wno-maybe-uninitialized",
    ],
}

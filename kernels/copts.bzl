"""How kernels' CPU twins are compiled."""

# Vector code for the base architecture of each platform. The two math options only drop errno and the floating-point
# exception flags, which nobody reads; they change no value. `-ffast-math` would, and stays away.
KERNEL_COPTS = [
    "-O3",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fvisibility=hidden",
]

/* Compiles the contract as strict C11, and pins the offsets that 1.0 has promised. */
#include "core/abi/mk_pack.h"

_Static_assert(offsetof(mk_pack, magic) == 0, "magic comes first");
_Static_assert(offsetof(mk_pack, abi_major) == 8, "1.0 layout");
_Static_assert(offsetof(mk_pack, abi_minor) == 12, "1.0 layout");
_Static_assert(offsetof(mk_pack, struct_size) == 16, "1.0 layout");
_Static_assert(MK_PACK_SIZE_1_0 == 88, "1.0 size");
_Static_assert(sizeof(mk_pack) >= 88, "a pack never shrinks");
_Static_assert(sizeof(mk_tensor) == 40, "1.0 layout");

int main(void) { return 0; }

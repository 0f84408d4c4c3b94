// The seam of the VMamba pack.
#include "packs/vmamba/model.h"

MK_PACK(mk::vmamba::VMamba, "vmamba", 1);

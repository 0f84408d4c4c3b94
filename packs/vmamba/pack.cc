// The seam of the VMamba pack.
#include "packs/vmamba/model.h"

MK_PACK_MINOR(mk::vmamba::VMamba, "vmamba", 1, 1);

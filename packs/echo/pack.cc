// The seam of the echo pack.
#include "packs/echo/echo.h"

MK_PACK(mk::echo::Echo, "echo", 1);

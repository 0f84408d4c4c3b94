#include "server/main/notify.h"

#include <systemd/sd-daemon.h>

namespace mk {

void NotifyReady(const std::string& status) { sd_notifyf(0, "READY=1\nSTATUS=%s", status.c_str()); }
void NotifyStopping() { sd_notify(0, "STOPPING=1\nSTATUS=draining"); }
void NotifyWatchdog() { sd_notify(0, "WATCHDOG=1"); }

uint64_t WatchdogMicros() {
  uint64_t micros = 0;
  return sd_watchdog_enabled(0, &micros) > 0 ? micros : 0;
}

}  // namespace mk

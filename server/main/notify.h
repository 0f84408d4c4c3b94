// Word to systemd (sd_notify), where it started us; nothing otherwise.
#ifndef MERGEKERNEL_SERVER_MAIN_NOTIFY_H_
#define MERGEKERNEL_SERVER_MAIN_NOTIFY_H_

#include <cstdint>
#include <string>

namespace mk {

void NotifyReady(const std::string& status);
void NotifyStopping();
void NotifyWatchdog();
// Microseconds between pings that the unit asks for; 0: no watchdog.
uint64_t WatchdogMicros();

}  // namespace mk

#endif  // MERGEKERNEL_SERVER_MAIN_NOTIFY_H_

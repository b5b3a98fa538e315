/* Bus errors on mapped files: a file that is made shorter, or a disk that fails.

   The handler puts a page of zeros in the place of the lost one, so that the reader goes on, and calls the handler that Python has: it ends
   the command as soon as the reader returns to Python. Other bus errors end the process as without it. */
#ifndef EXHUME_BUS_ERRORS_H
#define EXHUME_BUS_ERRORS_H

#if defined(__unix__) || defined(__APPLE__)
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

static void (*bus_of_python)(int);
static uintptr_t bus_page_bytes;
static volatile uintptr_t bus_lost_page;

static void bus_handle(int number, siginfo_t* fault, void* context) {
  (void)context;
  if (fault->si_code == BUS_ADRERR) {
    uintptr_t page = (uintptr_t)fault->si_addr & ~(bus_page_bytes - 1);
    void* zeros = mmap((void*)page, bus_page_bytes, PROT_READ, MAP_PRIVATE | MAP_ANON | MAP_FIXED, -1, 0);
    if (zeros == MAP_FAILED) {
      signal(number, SIG_DFL);
      return;
    }
    if (!bus_lost_page) bus_lost_page = page;
  } else if (fault->si_code > 0) {
    signal(number, SIG_DFL);
    return;
  }
  bus_of_python(number);
}

static inline long long native_can_survive_bus_errors(void) { return 1; }

static inline long long native_survive_bus_errors(void) {
  struct sigaction present;
  if (sigaction(SIGBUS, NULL, &present) || present.sa_flags & SA_SIGINFO || present.sa_handler == SIG_DFL || present.sa_handler == SIG_IGN)
    return 0;
  bus_of_python = present.sa_handler;
  bus_page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
  struct sigaction own;
  memset(&own, 0, sizeof own);
  own.sa_sigaction = bus_handle;
  own.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&own.sa_mask);
  return !sigaction(SIGBUS, &own, NULL);
}

static inline long long native_lost_page(void) { return (long long)bus_lost_page; }
#else
static inline long long native_can_survive_bus_errors(void) { return 0; }
static inline long long native_survive_bus_errors(void) { return 0; }
static inline long long native_lost_page(void) { return 0; }
#endif
#endif

// Makes the library load on glibc 2.28 although it was built on a newer one.
//
// glibc 2.34 merged libdl and libpthread into libc and gave their functions a second version.
// We name the first version, which every libc.so.6 still has, and declare the references
// weak: on an older system they are found when the process itself has libdl or libpthread
// (Python, CUDA and PyTorch all do), and are null in a process that cannot need us. Included
// by compiler option in every file of the recorder; tests/checks reads the result.
#pragma once

// clang weakens only what is declared.
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>

#if defined(__x86_64__)
#define IDLESCOPE_FIRST_GLIBC "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define IDLESCOPE_FIRST_GLIBC "GLIBC_2.17"
#endif

#if defined(IDLESCOPE_FIRST_GLIBC)
#define IDLESCOPE_OLD_SYMBOL(name) __asm__(".symver " #name "," #name "@" IDLESCOPE_FIRST_GLIBC)
IDLESCOPE_OLD_SYMBOL(dlsym);
IDLESCOPE_OLD_SYMBOL(dlopen);
IDLESCOPE_OLD_SYMBOL(dlclose);
IDLESCOPE_OLD_SYMBOL(dlerror);
IDLESCOPE_OLD_SYMBOL(pthread_create);
IDLESCOPE_OLD_SYMBOL(pthread_join);
IDLESCOPE_OLD_SYMBOL(pthread_detach);
IDLESCOPE_OLD_SYMBOL(pthread_sigmask);
IDLESCOPE_OLD_SYMBOL(pthread_mutex_trylock);
IDLESCOPE_OLD_SYMBOL(pthread_key_create);
IDLESCOPE_OLD_SYMBOL(pthread_setspecific);
IDLESCOPE_OLD_SYMBOL(pthread_attr_setstacksize);
#pragma weak dlsym
#pragma weak dlopen
#pragma weak dlclose
#pragma weak dlerror
#pragma weak pthread_create
#pragma weak pthread_join
#pragma weak pthread_detach
#pragma weak pthread_sigmask
#pragma weak pthread_key_create
#pragma weak pthread_setspecific
#pragma weak pthread_attr_setstacksize
#endif

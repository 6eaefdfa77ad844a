/* lock.h -- mutexes, condition variables and once flags, of POSIX or of Windows. */
#ifndef TERN_BASE_LOCK_H
#define TERN_BASE_LOCK_H
#include <stdbool.h>
#include <stdint.h>

#ifdef _WIN32

/* SRWLOCK, CONDITION_VARIABLE and INIT_ONCE, each a pointer that is NULL initially. */
typedef struct tern_mutex {
    void *lock;
} tern_mutex;
typedef struct tern_cond {
    void *condition;
} tern_cond;
typedef struct tern_once {
    void *state;
} tern_once;
#define TERN_MUTEX_INIT                                                                            \
    {                                                                                              \
        0                                                                                          \
    }
#define TERN_COND_INIT                                                                             \
    {                                                                                              \
        0                                                                                          \
    }
#define TERN_ONCE_INIT                                                                             \
    {                                                                                              \
        0                                                                                          \
    }

void tern_mutex_lock(tern_mutex *mutex);
void tern_mutex_unlock(tern_mutex *mutex);
bool tern_mutex_trylock(tern_mutex *mutex);
void tern_cond_wait(tern_cond *cond, tern_mutex *mutex);
void tern_cond_signal(tern_cond *cond);
void tern_cond_broadcast(tern_cond *cond);
void tern_call_once(tern_once *once, void (*run)(void));

static inline void tern_mutex_init(tern_mutex *mutex)
{
    mutex->lock = 0;
}

static inline void tern_mutex_init_short(tern_mutex *mutex)
{
    mutex->lock = 0;
}

static inline void tern_mutex_destroy(tern_mutex *mutex)
{
    (void)mutex;
}

static inline void tern_cond_init(tern_cond *cond)
{
    cond->condition = 0;
}

static inline void tern_cond_destroy(tern_cond *cond)
{
    (void)cond;
}

#else
#include <pthread.h>

typedef pthread_mutex_t tern_mutex;
typedef pthread_cond_t tern_cond;
typedef pthread_once_t tern_once;
#define TERN_MUTEX_INIT PTHREAD_MUTEX_INITIALIZER
#define TERN_COND_INIT  PTHREAD_COND_INITIALIZER
#define TERN_ONCE_INIT  PTHREAD_ONCE_INIT

static inline void tern_mutex_init(tern_mutex *mutex)
{
    pthread_mutex_init(mutex, 0);
}

/* Initialises a mutex that is held for some hundred instructions at most, like the caching
 * allocator's: a thread that finds it locked spins before it sleeps, because sleep costs more. */
void tern_mutex_init_short(tern_mutex *mutex);

static inline void tern_mutex_destroy(tern_mutex *mutex)
{
    pthread_mutex_destroy(mutex);
}

static inline void tern_mutex_lock(tern_mutex *mutex)
{
    pthread_mutex_lock(mutex);
}

static inline void tern_mutex_unlock(tern_mutex *mutex)
{
    pthread_mutex_unlock(mutex);
}

/* Returns whether the caller has locked the mutex, which was free. */
static inline bool tern_mutex_trylock(tern_mutex *mutex)
{
    return pthread_mutex_trylock(mutex) == 0;
}

static inline void tern_cond_init(tern_cond *cond)
{
    pthread_cond_init(cond, 0);
}

static inline void tern_cond_destroy(tern_cond *cond)
{
    pthread_cond_destroy(cond);
}

static inline void tern_cond_wait(tern_cond *cond, tern_mutex *mutex)
{
    pthread_cond_wait(cond, mutex);
}

static inline void tern_cond_signal(tern_cond *cond)
{
    pthread_cond_signal(cond);
}

static inline void tern_cond_broadcast(tern_cond *cond)
{
    pthread_cond_broadcast(cond);
}

static inline void tern_call_once(tern_once *once, void (*run)(void))
{
    pthread_once(once, run);
}
#endif

/* Waits until a time of tern_os_now(). Returns false if the time has passed; like tern_cond_wait,
 * it may also return true without a signal. */
bool tern_cond_wait_until(tern_cond *cond, tern_mutex *mutex, int64_t until);
/* Locks the mutex. Returns false if it could not be locked before that time. */
bool tern_mutex_lock_until(tern_mutex *mutex, int64_t until);

#endif

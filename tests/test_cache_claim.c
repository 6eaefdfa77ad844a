/* test_cache_claim.c -- of several processes one makes a program, the others wait for it. */
#include "device/cache.h"
#include "support.h"
#include <sys/wait.h>
#include <unistd.h>

static tern_cache_key key_of(const char *text)
{
    tern_cache_key key = tern_cache_key_start("test");
    tern_cache_key_add(&key, text);
    return key;
}

/* Another process: claims the key and tells through the pipe; 0 where it got it. */
static pid_t claims(const char *text, int told)
{
    pid_t child = fork();
    if (child)
        return child;
    tern_cache_key key = key_of(text);
    int claim = tern_cache_claim(&key);
    char got = claim >= 0 ? 'y' : 'n';
    _exit(write(told, &got, 1) == 1 && claim >= 0 ? 0 : 1); /* without letting go */
}

static int status_of(pid_t child)
{
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void others_wait(void **state)
{
    (void)state;
    int told[2];
    char got = 0;
    tern_cache_key key = key_of("one");
    assert_int_equal(pipe(told), 0);
    int claim = tern_cache_claim(&key);
    assert_true(claim >= 0);
    pid_t same = claims("one", told[1]);
    assert_int_equal(status_of(claims("another", told[1])), 0); /* at once */
    assert_int_equal(read(told[0], &got, 1), 1);
    assert_int_equal(waitpid(same, NULL, WNOHANG), 0);
    tern_cache_let_go(claim, &key);
    assert_int_equal(status_of(same), 0);
    claim = tern_cache_claim(&key); /* who ended holds nothing */
    assert_true(claim >= 0);
    tern_cache_let_go(claim, &key);
    close(told[0]);
    close(told[1]);
}

static const struct CMUnitTest tests[] = {
    TEST(others_wait),
};
TEST_MAIN(tests)

/* children.h -- what support.c has of limits and children on Windows, which forks nothing. */
void test_limit(unsigned seconds) /* of ctest alone */
{
    (void)seconds;
}

/* Files are bytes, as on other systems. */
__attribute__((constructor)) static void take_bytes(void)
{
    _fmode = _O_BINARY;
}

int test_child_begin(void)
{
    test_skipped("nothing is forked on Windows");
    return 0;
}

int test_child_end(void)
{
    return 0;
}

/* user_group.h -- what a kernel of the program's own sees of its work-group on the cpu device; C
 * and C++. */
typedef struct tern_user_group {
    size_t group[3], groups[3], local[3];
    size_t first[3], global[3]; /* ids of its first item, and how many items the launch has */
    unsigned dims;
    const unsigned long long *words; /* arguments; of local memory where it begins in shared */
    char *shared;
    void (*meet)(void *meeting); /* returns when all items of the group have called it */
    void *meeting;
} tern_user_group;

/* index_check.h -- an element of an index tensor as a place. */
#ifndef TERN_INDEX_CHECK_H
#define TERN_INDEX_CHECK_H
/* 0 <= index < size, or -1 after recording the fault; wrap: negative ones count from the end. */
INLINE idx tern_checked(i64 index, i64 size, i32 wrap, i32 code, GLOBAL i64 *fault)
{
    i64 at = index < 0 && wrap != 0 ? index + size : index;
    if (at >= 0 && at < size)
        return (idx)at;
    FAULT(fault, code, index, size);
    return -1;
}
#endif

/* structs.cl -- structures, enumerations, literals of them, members called like swizzles. */
typedef struct pair {
    float lo, hi;
    int2 xy;
} pair;
struct range {
    int from;
    int to;
};
enum kind { EVEN, ODD = 4, OTHER };

pair make(float a, float b)
{
    pair p = {a, b, (int2)(1, 2)};
    p.lo = fmin(a, b);
    p.hi = fmax(a, b);
    return p;
}

int size_of(struct range r)
{
    return r.to - r.from;
}

__kernel void structs(__global const float *x, __global float *y, int n)
{
    int i = get_global_id(0);
    if (i >= n)
        return;
    pair p = make(x[i], x[n - 1 - i]);
    p.xy.y += i;
    enum kind k = i % 2 ? ODD : EVEN;
    float more = 0;
    switch (k) {
    case EVEN:
        more = 1;
        break;
    case ODD:
        more = size_of((struct range){i, i + 3});
        break;
    default:
        more = 100;
    }
    y[i] = p.hi * 10 - p.lo + (float)(p.xy.x + p.xy.y) + more;
}

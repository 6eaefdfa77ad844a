/* grid.hpp -- behind a program's text: its kernel STANDIN_KERNEL as a function of an array of
 * pointers to arguments, over a grid. STANDIN_MEETS: whether its items wait for each other. */
alignas(16) char tern_shared[48 << 10];
namespace standin {
template <size_t... I> struct places {};
template <size_t N, size_t... I> struct places_below : places_below<N - 1, N - 1, I...> {};
template <size_t... I> struct places_below<0, I...> {
    using type = places<I...>;
};
template <class A> struct variable {
    using type = A;
};
template <class A> struct variable<const A> {
    using type = A;
};
template <class... A> struct entry_of {
    static const unsigned *sizes()
    {
        static const unsigned all[] = {unsigned(sizeof(A))..., 0};
        return all;
    }
    template <size_t... I> static void call(void (*f)(A...), void **args, places<I...>)
    {
        f(*(typename variable<A>::type *)args[I]...);
    }
    static void go(void (*f)(A...), void **args)
    {
        call(f, args, typename places_below<sizeof...(A)>::type());
    }
};
template <class... A> entry_of<A...> entry(void (*)(A...));
using made = decltype(entry(STANDIN_KERNEL));

static void **arguments;
static void enter(void *)
{
    made::go(STANDIN_KERNEL, arguments);
    wait(OVER);
}

static void begin(unsigned n, void **args)
{
    constexpr size_t bytes = 256 << 10;
    arguments = args;
    if (n > MOST)
        stop("a block is too large", "1024 items are the most");
    for (unsigned t = 0; t < n; t++) {
        item &one = items[t];
        if (!one.stack)
            one.stack = new char[bytes];
        tern_context_make(&one.at, one.stack, bytes, enter, nullptr);
        one.is = READY;
    }
}

/* Those from `from` to `to`, once none of them has to come to where the others wait. */
static bool release(unsigned from, unsigned to, state is)
{
    bool any = false;
    for (unsigned t = from; t < to; t++) {
        if (items[t].is != is && items[t].is != OVER)
            return false;
        any = any || items[t].is == is;
    }
    for (unsigned t = from; any && t < to; t++)
        if (items[t].is == is)
            items[t].is = READY;
    return any;
}
static void run(const unsigned g[3], const unsigned b[3], void **args)
{
    unsigned n = b[0] * b[1] * b[2];
    for (unsigned block = 0; block < g[0] * g[1] * g[2]; block++) {
        auto place = [&](unsigned t) {
            gridDim = {g[0], g[1], g[2]};
            blockDim = {b[0], b[1], b[2]};
            blockIdx = {block % g[0], block / g[0] % g[1], block / g[0] / g[1]};
            threadIdx = {t % b[0], t / b[0] % b[1], t / b[0] / b[1]};
        };
        if (!STANDIN_MEETS) {
            for (unsigned t = 0; t < n; t++) {
                place(t);
                made::go(STANDIN_KERNEL, args);
            }
            continue;
        }
        begin(n, args);
        for (bool goes_on = true; goes_on;) {
            goes_on = false;
            for (unsigned k = 0; k < n; k++) { /* in each second block the last goes first */
                unsigned t = block % 2 ? n - 1 - k : k;
                if (items[t].is != READY)
                    continue;
                place(current = t);
                tern_context_swap(&group, &items[t].at);
                goes_on = true;
            }
            for (unsigned t = 0; t < n; t += WARP)
                goes_on = release(t, t + WARP < n ? t + WARP : n, AT_WARP) || goes_on;
            goes_on = release(0, n, AT_BARRIER) || goes_on;
        }
        for (unsigned t = 0; t < n; t++)
            if (items[t].is != OVER)
                stop("items wait for others, who wait elsewhere", "a deadlock");
    }
}
} // namespace standin

extern "C" const unsigned *standin_sizes()
{
    return standin::made::sizes();
}

extern "C" void standin_run(const unsigned g[3], const unsigned b[3], void **args)
{
    standin::run(g, b, args);
}

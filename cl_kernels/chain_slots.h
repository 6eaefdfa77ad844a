/* chain_slots.h -- where a chain of rows (src/device/chain.h) may be part of a kernel that reduces.
 * What it stores goes to CHAIN_PUT, which is a store of v to element `at` of p, or CHAIN_PUT_UNIT,
 * one of EACH elements as NORM_STORE_ does it; what it loads comes from CHAIN_GET or
 * CHAIN_GET_UNIT. It goes through all elements once (pass 0), and may again (pass 1). The text of a
 * chain's program (src/device/chain_text.c) defines these before, for the tensors of the chain in
 * place of p. */
#ifndef CHAIN_BASE
#define CHAIN_BASE(p)     BASE(p)
#define CHAIN_ALIGNED4(p) ALIGNED4(p)
#endif
#ifndef CHAIN_PUT
#define CHAIN_PUT(p, at, v)      ST(p, at, v);
#define CHAIN_PUT_UNIT(p, at, v) NORM_STORE_(p, v)
#endif
#ifndef CHAIN_GET
#define CHAIN_GET(pass, p, at)         LD(p, at)
#define CHAIN_GET_UNIT(pass, v, p, at) NORM_LOAD_(v, p)
#endif

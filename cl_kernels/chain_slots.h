/* chain_slots.h -- where a chain of rows (src/device/chain.h) may be part of a kernel that reduces:
 * in place of a store to p, or of a load from p. The text of a chain's program
 * (src/device/chain_text.c) defines these before, for the tensors of the chain in place of p.
 *
 * CHAIN_PUT(p, at, v) stores v to element `at`, CHAIN_GET(pass, p, at) loads it; a kernel goes
 * through all elements in pass 0, and may again in pass 1. By units (NORM_UNITS_), CHAIN_DECLARE
 * has registers, CHAIN_LOAD_UNIT loads to them what CHAIN_PUT_UNIT needs beside v; CHAIN_GET_LOAD
 * loads what CHAIN_GET_USE makes v of. UNITS of them are under way. */
#ifndef CHAIN_BASE
#define CHAIN_BASE(p)     BASE(p)
#define CHAIN_ALIGNED4(p) ALIGNED4(p)
#define CHAIN_DECLARE
#endif
#ifndef CHAIN_PUT
#define CHAIN_LOAD_UNIT
#define CHAIN_PUT(p, at, v)      ST(p, at, v);
#define CHAIN_PUT_UNIT(p, at, v) NORM_STORE_(p, v)
#endif
#ifndef CHAIN_GET
#define CHAIN_GET(pass, p, at)     LD(p, at)
#define CHAIN_GET_LOAD(pass, v, p) NORM_LOAD_(v, p)
#define CHAIN_GET_USE(pass, v, at)
#endif

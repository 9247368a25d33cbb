// SPDX-License-Identifier: MIT
/* What atomic operations do to memory: of each datatype, one element after the other. */
#include <complex.h>
#include <string.h>

#include "endpoint/atomic.h"

/* Operands are the peer's memory, too: each is read once, wherever it is. */
struct elements {
	unsigned char *to;
	const unsigned char *from;
	const unsigned char *compare;
	unsigned char *result;		/* or NULL */
	size_t count;
};

/* In the widest unsigned type, where nothing overflows that the language leaves open. */
#define INTEGER_CASES(type)						\
	case FI_SUM: return (type)((uint64_t)was + (uint64_t)by);	\
	case FI_PROD: return (type)((uint64_t)was * (uint64_t)by);	\
	case FI_BOR: return (type)(was | by);				\
	case FI_BAND: return (type)(was & by);				\
	case FI_BXOR: return (type)(was ^ by);				\
	case FI_MSWAP: return (type)((by & compare) | (was & ~compare));

#define REAL_CASES(type)						\
	case FI_SUM: return was + by;					\
	case FI_PROD: return was * by;

#define ORDERED_CASES(type)						\
	case FI_MIN: return by < was ? by : was;			\
	case FI_MAX: return by > was ? by : was;			\
	case FI_CSWAP_LE: return compare <= was ? by : was;		\
	case FI_CSWAP_LT: return compare < was ? by : was;		\
	case FI_CSWAP_GE: return compare >= was ? by : was;		\
	case FI_CSWAP_GT: return compare > was ? by : was;

#define COMMON_CASES(type)						\
	case FI_LOR: return (type)(was || by);				\
	case FI_LAND: return (type)(was && by);				\
	case FI_LXOR: return (type)(!was != !by);			\
	case FI_ATOMIC_WRITE: return by;				\
	case FI_CSWAP: return compare == was ? by : was;		\
	case FI_CSWAP_NE: return compare != was ? by : was;

#define DEFINE(name, type, more)					\
static type name##_of(int op, type was, type by, type compare)		\
{									\
	(void)compare;							\
	switch (op) {							\
	COMMON_CASES(type)						\
	more								\
	default: return was;						\
	}								\
}									\
									\
static void name(int op, const struct elements *e)			\
{									\
	for (size_t i = 0; i < e->count; i++) {				\
		size_t at = i * sizeof(type);				\
		type was, by = 0, compare = 0;				\
									\
		memcpy(&was, e->to + at, sizeof(type));			\
		if (op != FI_ATOMIC_READ)				\
			memcpy(&by, e->from + at, sizeof(type));	\
		if (e->compare)						\
			memcpy(&compare, e->compare + at, sizeof(type)); \
		if (e->result)						\
			memcpy(e->result + at, &was, sizeof(type));	\
		if (op == FI_ATOMIC_READ)				\
			continue;					\
		was = name##_of(op, was, by, compare);			\
		memcpy(e->to + at, &was, sizeof(type));			\
	}								\
}

#define INTEGER(name, type)	DEFINE(name, type, ORDERED_CASES(type) INTEGER_CASES(type))
#define REAL(name, type)	DEFINE(name, type, ORDERED_CASES(type) REAL_CASES(type))
#define COMPLEX(name, type)	DEFINE(name, type, REAL_CASES(type))

INTEGER(int8, int8_t)
INTEGER(uint8, uint8_t)
INTEGER(int16, int16_t)
INTEGER(uint16, uint16_t)
INTEGER(int32, int32_t)
INTEGER(uint32, uint32_t)
INTEGER(int64, int64_t)
INTEGER(uint64, uint64_t)
REAL(real, float)
REAL(real_double, double)
REAL(real_long, long double)
COMPLEX(complex_float, float complex)
COMPLEX(complex_double, double complex)
COMPLEX(complex_long, long double complex)

static void apply(const struct hf_atomic *atomic, const struct elements *e)
{
	static void (*const types[FI_DATATYPE_LAST])(int op, const struct elements *e) = {
		[FI_INT8] = int8,
		[FI_UINT8] = uint8,
		[FI_INT16] = int16,
		[FI_UINT16] = uint16,
		[FI_INT32] = int32,
		[FI_UINT32] = uint32,
		[FI_INT64] = int64,
		[FI_UINT64] = uint64,
		[FI_FLOAT] = real,
		[FI_DOUBLE] = real_double,
		[FI_LONG_DOUBLE] = real_long,
		[FI_FLOAT_COMPLEX] = complex_float,
		[FI_DOUBLE_COMPLEX] = complex_double,
		[FI_LONG_DOUBLE_COMPLEX] = complex_long,
	};

	types[atomic->datatype](atomic->op, e);
}

void hf_atomic_apply(const struct hf_atomic *atomic, const struct hf_span *to,
		     const unsigned char *operands, unsigned char *result)
{
	size_t length = hf_atomic_bytes(atomic);
	unsigned char whole[HF_ATOMIC_BYTES];
	struct elements e = {
		.to = to->iov[0].iov_base,
		.from = operands,
		.compare = atomic->kind == HF_ATOMIC_COMPARE ? operands + length : NULL,
		.result = result,
		.count = atomic->count,
	};

	if (to->count == 1) {
		apply(atomic, &e);
		return;
	}
	/* An element may be in two places. */
	hf_span_get(to, whole);
	e.to = whole;
	apply(atomic, &e);
	if (atomic->op != FI_ATOMIC_READ)
		hf_span_put(to, 0, whole, length);
}

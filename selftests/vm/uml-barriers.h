/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Included first in every file of a module for UML. UML takes the general
 * definitions, with a full fence in each acquire and release, although it runs on
 * an x86. The engine would spend most of its time in them. So here is what an x86
 * kernel has: loads and stores are ordered there, but for a load after a store.
 */
#ifndef UML_BARRIERS_H
#define UML_BARRIERS_H

#ifndef __ASSEMBLY__
#define __smp_mb() \
	asm volatile("lock; addl $0,-4(%%rsp)" : : : "memory", "cc")
#define __smp_rmb()	barrier()
#define __smp_wmb()	barrier()
#define __smp_mb__before_atomic()	do { } while (0)
#define __smp_mb__after_atomic()	do { } while (0)
#define __smp_store_release(p, v) \
do { \
	barrier(); \
	WRITE_ONCE(*(p), v); \
} while (0)
#define __smp_load_acquire(p) \
({ \
	typeof(*(p)) value_ = READ_ONCE(*(p)); \
	barrier(); \
	value_; \
})
#endif

#endif /* UML_BARRIERS_H */

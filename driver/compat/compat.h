/* SPDX-License-Identifier: GPL-2.0-only */
/* The only file that knows kernel versions: 6.1 to 7.2. */
#ifndef HML_COMPAT_H
#define HML_COMPAT_H

#include <linux/backing-dev.h>
#include <linux/bvec.h>
#include <linux/device/class.h>
#include <linux/hrtimer.h>
#include <linux/io_uring.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/version.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 1, 0)
#error "hamlyn needs Linux 6.1 or later"
#endif
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 8, 0)
#include <linux/io_uring/cmd.h>
#endif
#include <net/genetlink.h>
#include <net/sock.h>
#include <net/tcp.h>

/* In struct class. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 4, 0)
#define HML_COMPAT_CLASS_OWNER
#else
#define HML_COMPAT_CLASS_OWNER	.owner = THIS_MODULE,
#endif
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 2, 0)
#define HML_COMPAT_CLASS_DEV	const struct device
#else
#define HML_COMPAT_CLASS_DEV	struct device
#endif

/* Addresses of sockets in the kernel, in a memory of any size from 6.19 on. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 19, 0)
#define HML_COMPAT_SOCKADDR(a)	((struct sockaddr_unsized *)(a))
#else
#define HML_COMPAT_SOCKADDR(a)	((struct sockaddr *)(a))
#endif

/* Memory of the socket's, not of the task's: for those that do not sleep. */
static inline void hml_compat_no_task_frag(struct sock *sk)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 2, 0)
	sk->sk_use_task_frag = false;
#endif
}

/*
 * Give bytes to TCP, which refers to their page, one of many maybe, and does not copy them. The
 * socket is locked, and nobody waits. Return: bytes that it took, or an error.
 */
static inline int hml_compat_give_pages(struct sock *sk, struct page *page, u32 offset, u32 n,
					bool more)
{
	/* Nobody changes what has been given. */
	int flags = MSG_DONTWAIT | MSG_NOSIGNAL | MSG_NO_SHARED_FRAGS | (more ? MSG_MORE : 0);
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 5, 0)
	struct msghdr msg = { .msg_flags = flags | MSG_SPLICE_PAGES };
	struct bio_vec vec;

	bvec_set_page(&vec, page, n, offset);
	iov_iter_bvec(&msg.msg_iter, ITER_SOURCE, &vec, 1, n);
	return tcp_sendmsg_locked(sk, &msg, n);
#else
	return tcp_sendpage_locked(sk, page, offset, n, flags);
#endif
}

static inline void hml_compat_timer_setup(struct hrtimer *timer,
					  enum hrtimer_restart (*fn)(struct hrtimer *timer))
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
	hrtimer_setup(timer, fn, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
#else
	hrtimer_init(timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
	timer->function = fn;
#endif
}

/* What its namespace() tells: the network namespace, or, in 7.x, what all namespaces begin with. */
#define HML_COMPAT_NS	typeof(((struct class *)NULL)->namespace(NULL))

static inline HML_COMPAT_NS hml_compat_ns(const struct net *net)
{
	return __builtin_choose_expr(__builtin_types_compatible_p(HML_COMPAT_NS,
								  const void *),
				     (const void *)net, &net->ns);
}

/* In struct device_type. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
#define HML_COMPAT_TYPE_DEV	const struct device
#else
#define HML_COMPAT_TYPE_DEV	struct device
#endif

static inline void hml_compat_vm_flags(struct vm_area_struct *vma,
				       vm_flags_t set, vm_flags_t clear)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
	vm_flags_mod(vma, set, clear);
#else
	vma->vm_flags = (vma->vm_flags | set) & ~clear;
#endif
}

/*
 * Before 6.2 a read-only pin of a private page that was never written pins
 * the page that the first write replaces: write to it now, where that can be,
 * without changing it. From the beginning of a page to that of another one.
 */
static inline void hml_compat_break_cow(unsigned long addr, unsigned long end)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0)
	/* One by one: what some 6.1 say of several, when one cannot be, is wrong. */
	for (; addr < end; addr += PAGE_SIZE)
		fault_in_safe_writeable((const char __user *)addr, 1);
#endif
}

/*
 * Before 6.5 a file's own pages can be pinned for writing, and its file system is not
 * told when they are written to behind its back: what comes may be lost.
 */
static inline bool hml_compat_may_write(struct folio *folio)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 5, 0)
	struct address_space *mapping;
	bool may;

	if (folio_test_anon(folio))
		return true;
	folio_lock(folio);
	mapping = folio_mapping(folio);
	may = !mapping || !mapping_can_writeback(mapping);
	folio_unlock(folio);
	return may;
#else
	return true;
#endif
}

/*
 * Mapping a huge page by one entry, with a reference and in the statistics as
 * every page: then GUP, O_DIRECT and munmap() of a part need nothing of us.
 * From 6.15 on .huge_fault does it. Before, what .fault answers with does, if it
 * is a part of a huge folio.
 */
#ifdef CONFIG_TRANSPARENT_HUGEPAGE
#define HML_COMPAT_HUGE		1
#else
#define HML_COMPAT_HUGE		0
#endif
#if HML_COMPAT_HUGE && LINUX_VERSION_CODE >= KERNEL_VERSION(6, 15, 0)
#define HML_COMPAT_HUGE_FAULT	1
#endif

/*
 * 6.12.y does not let it where the folio reaches behind the end of the file, and
 * a device is a file of no length: so it ends at 0. Nobody else asks for the
 * index of a folio that is in no file.
 */
static inline void hml_compat_set_huge(struct folio *folio)
{
#ifndef HML_COMPAT_HUGE_FAULT
	folio->index = -folio_nr_pages(folio);
#endif
}

/* What follows the request in its entry of the ring. */
#ifdef io_uring_sqe_cmd
#define hml_compat_uring_arg(request, type)	io_uring_sqe_cmd((request)->sqe, type)
#elif LINUX_VERSION_CODE >= KERNEL_VERSION(6, 5, 0)
#define hml_compat_uring_arg(request, type)	((const type *)io_uring_sqe_cmd((request)->sqe))
#else
#define hml_compat_uring_arg(request, type)	((const type *)(request)->cmd)
#endif

/* Attributes of the request that a dump answers. */
static inline struct nlattr **hml_compat_dump_attrs(struct netlink_callback *cb)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 6, 0)
	return genl_info_dump(cb)->attrs;
#else
	return (struct nlattr **)genl_dumpit_info(cb)->attrs;
#endif
}

/* In TP_fast_assign(), where the argument is called as the field is. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0)
#define HML_COMPAT_ASSIGN_STR(field)	__assign_str(field)
#else
#define HML_COMPAT_ASSIGN_STR(field)	__assign_str(field, field)
#endif

/*
 * Why a netlink request is refused. 6.1 cannot format it: a text without the
 * details has to do.
 */
#ifdef NL_SET_ERR_MSG_ATTR_FMT
#define HML_COMPAT_REFUSE(extack, attr, text, format, ...)		\
do {									\
	(void)(text);							\
	NL_SET_ERR_MSG_ATTR_FMT(extack, attr, format, ##__VA_ARGS__);	\
} while (0)
#else
#define HML_COMPAT_REFUSE(extack, attr, text, format, ...)		\
do {									\
	NL_SET_ERR_MSG_ATTR(extack, attr, text);			\
	no_printk(format "\n", ##__VA_ARGS__);				\
} while (0)
#endif

#endif /* HML_COMPAT_H */

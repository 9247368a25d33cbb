// SPDX-License-Identifier: GPL-2.0-only
/*
 * Processor time that is lent to a user.
 *
 * An engine is a kernel thread: what it does for a user no cgroup and no priority of that
 * user's tasks pays for. So it is lent to the user what its own tasks use: as much time of
 * engines, of all NICs together, as those of its tasks that ring doorbells have run, and a
 * trickle besides. Whoever spins beside an engine that works for it has as much as it can
 * use. When the account is overdrawn, termini of the user ask for a doorbell, and the work is
 * done in the system call of the task that rings, on that task's own time.
 *
 * A task's time is what the scheduler has counted: exact when it sleeps, and every tick while
 * it runs. So the burst must be longer than a tick.
 */
#include <linux/jiffies.h>
#include <linux/pid.h>
#include <linux/rbtree.h>
#include <linux/sched/cputime.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>
#include <linux/uidgid.h>

#include "hml.h"

#define BURST_NS	(20 * NSEC_PER_MSEC)	/* most that is saved up */
#define OVERDRAFT_NS	(2 * NSEC_PER_MSEC)	/* to end what was posted before */
#define DEEPEST_NS	(100 * NSEC_PER_MSEC)	/* more is not remembered */
#define PATIENCE_NS	(20 * NSEC_PER_MSEC)	/* overdrawn by more, wake-ups are late */
#define MOST_DELAY_NS	(100 * NSEC_PER_MSEC)
#define MOST_DEBIT_NS	(10 * NSEC_PER_MSEC)	/* more, and it was not the worker that ran */
#define PORTION_NS	NSEC_PER_MSEC		/* what an engine is given at a time */
#define SAMPLE_NS	NSEC_PER_MSEC		/* between two looks at the payers */
#define TRICKLE		100			/* 1/100 of a processor for nothing */
#define PAYERS		16
#define FORGET_BATCH	2			/* accounts looked at, each with its payers */

/**
 * struct payer - a task whose time counts
 * @pid: the task, or NULL
 * @seen: its time when it was looked at last, ns
 */
struct payer {
	struct pid *pid;
	u64 seen;
};

/**
 * struct hml_loan - processor time lent to a user
 * @node: in loans, by @uid; under loans_lock
 * @uid: the user that answers, as in struct hml_user; constant
 * @ref: contexts and clients of engines; under loans_lock
 * @lock: protects what follows. Leaf but for the scheduler's locks
 * @balance: ns that engines may still work; negative: overdrawn
 * @refilled: when the trickle was added last, ns
 * @sampled: when payers were looked at last, ns
 * @broke: too much overdrawn for an engine to go on; read without the lock
 * @next: the payer to be replaced next
 * @payers: tasks that rang of late
 */
struct hml_loan {
	struct rb_node node;
	kuid_t uid;
	u32 ref;
	raw_spinlock_t lock;
	s64 balance;
	u64 refilled;
	u64 sampled;
	bool broke;
	u32 next;
	struct payer payers[PAYERS];
};

static DEFINE_RAW_SPINLOCK(loans_lock);	/* what follows */
static struct rb_root loans = RB_ROOT;
static u32 loans_seen;			/* the uid where to look for one to be forgotten */

/* ---- what the user's tasks have spent ---- */

/* A task that has ended has nothing more to give. */
static u64 time_of(struct pid *pid)
{
	struct task_struct *task;
	u64 utime = 0, stime = 0;

	rcu_read_lock();
	task = pid_task(pid, PIDTYPE_PID);
	if (task)
		task_cputime_adjusted(task, &utime, &stime);
	rcu_read_unlock();
	return utime + stime;
}

static u64 earned_by(struct payer *p)
{
	u64 now, earned;

	if (!p->pid)
		return 0;
	now = time_of(p->pid);
	earned = now > p->seen ? now - p->seen : 0;
	if (now)
		p->seen = now;
	return earned;
}

static void earn(struct hml_loan *a, u64 ns)
{
	if (a->balance < BURST_NS)
		a->balance = min_t(s64, a->balance + (s64)min_t(u64, ns, NSEC_PER_SEC),
				   BURST_NS);
}

/* Account locked. There are few payers, and they are not looked at often. */
static void refill(struct hml_loan *a)
{
	u64 now = ktime_get_ns();
	u32 i;

	if (now - a->sampled < SAMPLE_NS)
		return;
	a->sampled = now;
	earn(a, (now - a->refilled) / TRICKLE);
	a->refilled = now;
	for (i = 0; i < PAYERS; i++) {
		hml_lock_step();
		earn(a, earned_by(&a->payers[i]));
	}
}

static bool pays_already(const struct hml_loan *a, const struct pid *pid)
{
	u32 i;

	for (i = 0; i < PAYERS; i++)
		if (READ_ONCE(a->payers[i].pid) == pid)
			return true;
	return false;
}

static void add_payer(struct hml_loan *a)
{
	struct pid *pid = get_task_pid(current, PIDTYPE_PID);
	struct payer *p;

	hml_lock(&a->lock);
	if (!pays_already(a, pid)) {
		p = &a->payers[a->next++ % PAYERS];
		earn(a, earned_by(p));
		swap(p->pid, pid);
		p->seen = time_of(p->pid);
	}
	hml_unlock(&a->lock);
	put_pid(pid);
}

/**
 * hml_loan_pay_in() - the current task works for a user
 * @a: the account of its context
 *
 * From now on what the task runs is added to the account.
 */
void hml_loan_pay_in(struct hml_loan *a)
{
	if (!pays_already(a, task_pid(current)))
		add_payer(a);
}

/**
 * hml_loan_affords() - may an engine begin to work for a user?
 * @a: the account of the current task's context
 *
 * For a doorbell: the current task counts as one of the user's from here on.
 *
 * Return: true if there is enough for a while.
 */
bool hml_loan_affords(struct hml_loan *a)
{
	bool affords;

	hml_loan_pay_in(a);
	hml_lock(&a->lock);
	if (a->balance < PORTION_NS)
		refill(a);
	affords = a->balance >= PORTION_NS;
	hml_unlock(&a->lock);
	return affords;
}

/**
 * hml_loan_draw() - what an engine was given is used up
 * @a: the account
 * @left: what is left of it, ns, not positive; out: what it has now
 *
 * Return: enum hml_credit.
 */
enum hml_credit hml_loan_draw(struct hml_loan *a, s64 *left)
{
	s64 want = PORTION_NS - *left;
	enum hml_credit credit;
	s64 got;

	hml_lock(&a->lock);
	if (a->balance < want)
		refill(a);
	got = clamp_t(s64, a->balance, 0, want);
	a->balance -= got;
	*left += got;
	if (*left > 0) {
		credit = HML_CREDIT_GOOD;
	} else {
		a->balance = max_t(s64, a->balance + *left, -DEEPEST_NS);
		*left = 0;
		credit = a->balance > -OVERDRAFT_NS ? HML_CREDIT_OWES :
						      HML_CREDIT_BROKE;
	}
	WRITE_ONCE(a->broke, credit == HML_CREDIT_BROKE);
	hml_unlock(&a->lock);
	return credit;
}

/* Somebody else than an engine has worked for the user. */
void hml_loan_debit(struct hml_loan *a, u64 ns)
{
	hml_lock(&a->lock);
	a->balance = max_t(s64, a->balance - (s64)min_t(u64, ns, MOST_DEBIT_NS),
			   -DEEPEST_NS);
	hml_unlock(&a->lock);
}

/**
 * hml_loan_delay() - how long what can wait must wait
 * @a: the account
 *
 * So long that the trickle pays for it, if nobody else does. An account that engines have
 * overdrawn is not that deep: receivers are woken at once.
 *
 * Return: jiffies.
 */
unsigned long hml_loan_delay(struct hml_loan *a)
{
	s64 debt;

	hml_lock(&a->lock);
	if (a->balance < -PATIENCE_NS)
		refill(a);
	debt = -PATIENCE_NS - a->balance;
	hml_unlock(&a->lock);
	if (debt <= 0)
		return 0;
	return 1 + nsecs_to_jiffies(min_t(s64, debt * TRICKLE, MOST_DELAY_NS));
}

/* Is there something of the user's that engines do by and by only? A hint. */
bool hml_loan_broke(const struct hml_loan *a)
{
	return READ_ONCE(a->broke);
}

/* ---- who has one ---- */

static void loan_free(struct hml_loan *a)
{
	u32 i;

	if (!a)
		return;
	for (i = 0; i < PAYERS; i++)
		put_pid(a->payers[i].pid);
	kfree(a);
}

/* Nobody uses it: whoever begins anew is no better off. */
static bool settled(struct hml_loan *a)
{
	bool settled;

	hml_lock(&a->lock);
	refill(a);
	settled = a->balance >= 0;
	hml_unlock(&a->lock);
	return settled;
}

/*
 * A debt outlives the user's last open file.
 * Return: @a if it is to be freed, without the lock; or NULL.
 */
static struct hml_loan *forget(struct hml_loan *a)
{
	lockdep_assert_held(&loans_lock);
	if (a->ref || !settled(a))
		return NULL;
	rb_erase(&a->node, &loans);
	return a;
}

/* The first whose uid is @from or more, or NULL. */
static struct hml_loan *loan_from(u32 from)
{
	struct rb_node *n = loans.rb_node;
	struct hml_loan *best = NULL;

	lockdep_assert_held(&loans_lock);
	while (n) {
		struct hml_loan *a = rb_entry(n, struct hml_loan, node);

		if (__kuid_val(a->uid) < from) {
			n = n->rb_right;
		} else {
			best = a;
			n = n->rb_left;
		}
	}
	return best;
}

static void forget_some(struct hml_loan **gone)
{
	struct hml_loan *a = loan_from(loans_seen);
	u32 n = 0, seen = 0;

	for (; a && seen < FORGET_BATCH; seen++) {
		struct rb_node *next = rb_next(&a->node);

		hml_lock_step();
		if (forget(a))
			gone[n++] = a;
		a = rb_entry_safe(next, struct hml_loan, node);
	}
	loans_seen = a ? __kuid_val(a->uid) : 0;
}

/* That of @fresh's user: @fresh, or the one that there was. */
static struct hml_loan *loan_find(struct hml_loan *fresh)
{
	struct rb_node **link = &loans.rb_node, *parent = NULL;

	lockdep_assert_held(&loans_lock);
	while (*link) {
		struct hml_loan *a = rb_entry(*link, struct hml_loan, node);

		if (uid_eq(fresh->uid, a->uid))
			return a;
		parent = *link;
		link = uid_lt(fresh->uid, a->uid) ? &parent->rb_left :
						    &parent->rb_right;
	}
	rb_link_node(&fresh->node, parent, link);
	rb_insert_color(&fresh->node, &loans);
	return fresh;
}

/* What a context costs that is the first one of its user. */
u32 hml_loan_price(void)
{
	return hml_price(sizeof(struct hml_loan));
}

/**
 * hml_loan_get() - the account of a user
 * @uid: the user that answers
 *
 * Return: the account, with a reference, or an ERR_PTR().
 */
struct hml_loan *hml_loan_get(kuid_t uid)
{
	struct hml_loan *fresh = kzalloc(sizeof(*fresh), GFP_KERNEL_ACCOUNT);
	struct hml_loan *gone[FORGET_BATCH] = {};
	struct hml_loan *a;
	u32 i;

	if (!fresh)
		return ERR_PTR(-ENOMEM);
	fresh->uid = uid;
	raw_spin_lock_init(&fresh->lock);
	fresh->refilled = ktime_get_ns();
	hml_lock(&loans_lock);
	forget_some(gone);
	a = loan_find(fresh);
	a->ref++;
	hml_unlock(&loans_lock);
	if (a != fresh)
		kfree(fresh);
	for (i = 0; i < FORGET_BATCH; i++)
		loan_free(gone[i]);
	return a;
}

/* One more, of who has one. */
void hml_loan_hold(struct hml_loan *a)
{
	hml_lock(&loans_lock);
	a->ref++;
	hml_unlock(&loans_lock);
}

void hml_loan_put(struct hml_loan *a)
{
	struct hml_loan *gone;

	hml_lock(&loans_lock);
	a->ref--;
	gone = forget(a);
	hml_unlock(&loans_lock);
	loan_free(gone);
}

/* There are no NICs any more. */
void hml_loans_exit(void)
{
	struct hml_loan *a, *next;

	rbtree_postorder_for_each_entry_safe(a, next, &loans, node)
		loan_free(a);
	loans = RB_ROOT;
}

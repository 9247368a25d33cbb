// SPDX-License-Identifier: GPL-2.0-only
/* Descriptors of names and calls: who pays for one, and who sleeps until there is something. */
#include <linux/anon_inodes.h>
#include <linux/err.h>
#include <linux/fcntl.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/poll.h>
#include <linux/sched/clock.h>

#include "hml.h"
#include "object/name.h"

/* As hml_nq_wake_polls(): all, without saying for what, and on the owner's account. */
static void wake(struct work_struct *work)
{
	struct hml_line *line = container_of(to_delayed_work(work), struct hml_line, waking);
	unsigned long delay = hml_loan_delay(line->loan);
	u64 begin = sched_clock();

	if (delay) {
		queue_delayed_work(hml_workers, &line->waking, delay);
		return;
	}
	wake_up_all(&line->wait);
	hml_loan_debit(line->loan, sched_clock() - begin);
}

/* By a worker: how many sleep is up to whoever has the descriptor. */
void hml_line_wake(struct hml_line *line)
{
	lockdep_assert_held(&hml_name_lock);
	queue_delayed_work(hml_workers, &line->waking, 0);
}

/**
 * hml_line_poll() - sleep at a descriptor
 * @line: the descriptor
 * @file: its file
 * @wait: who sleeps
 *
 * Return: false if too many do.
 */
bool hml_line_poll(struct hml_line *line, struct file *file, poll_table *wait)
{
	if (hml_nq_crowd(&line->wait, &line->crowded))
		return false;
	hml_loan_pay_in(line->loan);
	poll_wait(file, &line->wait, wait);
	return true;
}

/**
 * hml_line_open() - begin to pay for a descriptor
 * @c: whose
 * @line: gets a reference to the NIC, which is open as long as it is
 * @bytes: what the kernel has of it, besides an open file
 *
 * Return: 0, or -EDQUOT.
 */
int hml_line_open(struct hml_context *c, struct hml_line *line, u32 bytes)
{
	u32 price = bytes + hml_price(sizeof(struct file));
	int err = hml_user_charge_small(c, price);

	if (err)
		return err;
	line->device = c->device;
	line->payer = hml_payer(c);
	line->price = price;
	line->loan = c->loan;
	hml_loan_hold(line->loan);
	get_device(&c->device->dev);
	init_waitqueue_head(&line->wait);
	INIT_DELAYED_WORK(&line->waking, wake);
	hml_context_stay(c->device);
	return 0;
}

/**
 * hml_line_file() - the file behind a descriptor
 * @what: what it is called in /proc
 * @fops: its operations
 * @owner: of the line, whose release() frees it from then on
 * @flags: O_RDONLY or O_RDWR
 * @file: out: the file
 *
 * Return: a descriptor, reserved for it, or -EMFILE, -ENFILE, -ENOMEM.
 */
int hml_line_file(const char *what, const struct file_operations *fops, void *owner, int flags,
		  struct file **file)
{
	int fd = get_unused_fd_flags(O_CLOEXEC);

	if (fd < 0)
		return fd;
	*file = anon_inode_getfile(what, fops, owner, flags);
	if (IS_ERR(*file)) {
		put_unused_fd(fd);
		return PTR_ERR(*file);
	}
	return fd;
}

/* Nobody finds it any more. */
void hml_line_close(struct hml_line *line)
{
	struct hml_device *d = line->device;

	cancel_delayed_work_sync(&line->waking);
	hml_loan_put(line->loan);
	hml_user_uncharge_small(d, line->payer, line->price);
	hml_context_leave(d);
	put_device(&d->dev);
}

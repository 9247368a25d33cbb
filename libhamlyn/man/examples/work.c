// SPDX-License-Identifier: MIT
/*
 * h_work_create, h_work_add, h_work_run, h_work_stats, h_work_close, h_worker_create,
 * h_worker_take, h_worker_done, h_worker_close
 *
 * A hundred numbers to be squared, and three workers, one of which dies with its first item
 * in hand: that is squared by another.
 */
#include <err.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <hamlyn/work.h>

#define SECOND 1000000000LL

static int square_all(int mortal)
{
	const struct h_worker_attr attr = { .flags = H_CONNECT_WAIT };
	struct h_work_item item;
	struct h_worker *worker;
	uint64_t n, square;
	int ret;

	ret = h_worker_create("square.sock", &attr, &worker, 10 * SECOND);
	if (ret)
		errx(1, "no work: %s", strerror(-ret));
	while (!(ret = h_worker_take(worker, &item, H_FOREVER))) {
		if (mortal)
			raise(SIGKILL);
		memcpy(&n, item.data, sizeof(n));
		square = n * n;
		ret = h_worker_done(worker, &item, &square, sizeof(square),
				    SECOND);
		if (ret)
			break;
	}
	return h_worker_close(worker, SECOND) && ret != -ENODATA;
}

static void squared(uint64_t id, const void *result, size_t length, void *sum)
{
	uint64_t square;

	(void)id;
	if (length != sizeof(square))
		return;
	memcpy(&square, result, sizeof(square));
	*(uint64_t *)sum += square;
}

int main(void)
{
	uint64_t sum = 0;
	const struct h_work_attr attr = { .on_done = squared, .arg = &sum };
	struct h_work_counters now;
	struct h_work_queue *queue;
	uint64_t n;
	int ret, i;

	ret = h_work_create("square.sock", &attr, &queue);
	if (ret)
		errx(1, "queue: %s", strerror(-ret));
	for (i = 0; i < 3; i++) {
		pid_t pid = fork();

		if (pid < 0)
			err(1, "fork");
		if (!pid)
			exit(square_all(i == 0));
	}
	/* So that the first has something to die with */
	do {
		ret = h_work_dispatch(queue);
		h_work_stats(queue, &now);
	} while (!ret && now.workers < 3);
	for (n = 1; !ret && n <= 100; n++)
		ret = h_work_add(queue, &n, sizeof(n), NULL, 10 * SECOND);
	if (!ret)
		ret = h_work_run(queue, 30 * SECOND);
	if (ret)
		warnx("not all is done: %s", strerror(-ret));
	h_work_stats(queue, &now);
	printf("%llu done, their sum is %llu\n", (unsigned long long)now.done,
	       (unsigned long long)sum);
	printf("%llu handed out\n", (unsigned long long)now.deliveries);
	h_work_close(queue, SECOND);
	while (wait(NULL) > 0)
		;
	return ret ? 1 : 0;
}

/*
 * It prints:
 *
 * 100 done, their sum is 338350
 * 101 handed out
 */

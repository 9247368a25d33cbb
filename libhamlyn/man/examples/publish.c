// SPDX-License-Identifier: MIT
/*
 * h_publisher_create, h_publisher_reserve, h_publisher_commit, h_publisher_run,
 * h_publisher_close, h_subscriber_create, h_subscriber_receive, h_subscriber_release
 *
 * A thermometer, and two that read it: one wants every reading, and is waited for; one wants
 * to know how warm it is, and sleeps in between. Each reading is built where it leaves from.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <hamlyn/publish.h>

#define SECOND 1000000000LL
#define MILLI 1000000LL

struct reading {
	uint32_t number;
	int32_t degrees;
};

static int read_all(void)
{
	const struct h_subscriber_attr attr = { .policy = H_WAIT };
	struct h_subscriber *thermometer;
	struct h_publication p;
	uint64_t lost = 0;
	unsigned int n;
	int ret;

	ret = h_subscriber_create("warm.sock", &attr, &thermometer,
				  10 * SECOND);
	if (ret)
		errx(1, "no thermometer: %s", strerror(-ret));
	for (n = 0; !(ret = h_subscriber_receive(thermometer, &p,
						 H_FOREVER)); n++) {
		lost += p.lost;
		h_subscriber_release(thermometer, &p);
	}
	/* -ENODATA is the end; -ECONNRESET: the thermometer is broken */
	if (ret == -ENODATA)
		printf("%u readings, %llu lost\n", n, (unsigned long long)lost);
	return h_subscriber_close(thermometer);
}

static int look_now_and_then(void)
{
	const struct h_subscriber_attr attr = {
		.policy = H_DROP_OLDEST,
		.buffers = 2,
	};
	struct h_subscriber *thermometer;
	struct reading last = { 0, 0 };
	struct h_publication p;
	int ret;

	ret = h_subscriber_create("warm.sock", &attr, &thermometer,
				  10 * SECOND);
	if (ret)
		errx(1, "no thermometer: %s", strerror(-ret));
	while (!(ret = h_subscriber_receive(thermometer, &p, H_FOREVER))) {
		if (p.length == sizeof(last))
			memcpy(&last, p.data, sizeof(last));
		h_subscriber_release(thermometer, &p);
		usleep(100);
	}
	h_subscriber_close(thermometer);
	return last.degrees;
}

static pid_t start(int (*subscriber)(void))
{
	pid_t pid = fork();

	if (pid < 0)
		err(1, "fork");
	if (!pid)
		exit(subscriber());
	return pid;
}

static int publish(struct h_publisher *thermometer, uint32_t number)
{
	struct reading *reading;
	struct h_loan loan;
	int ret;

	ret = h_publisher_reserve(thermometer, sizeof(*reading), &loan);
	if (ret)
		return ret;
	reading = loan.data;
	reading->number = number;
	reading->degrees = 20 + (int32_t)number % 3;
	ret = h_publisher_commit(thermometer, &loan, sizeof(*reading),
				 10 * SECOND);
	if (ret)
		h_publisher_abandon(thermometer, &loan);
	return ret;
}

int main(void)
{
	/* Four readings are kept, and nobody keeps others waiting a second */
	const struct h_publisher_attr attr = {
		.history = 4,
		.patience_ns = SECOND,
	};
	struct h_publisher_counters now = { 0 };
	struct h_publisher *thermometer;
	pid_t all, some;
	uint32_t number;
	int ret, status;

	ret = h_publisher_create("warm.sock", &attr, &thermometer);
	if (ret)
		errx(1, "thermometer: %s", strerror(-ret));
	all = start(read_all);
	some = start(look_now_and_then);
	do {
		ret = h_publisher_run(thermometer, MILLI);
		h_publisher_stats(thermometer, &now);
	} while (ret == -ETIMEDOUT && now.subscribers < 2);
	if (ret == -ETIMEDOUT)
		ret = 0;
	for (number = 0; !ret && number < 1000; number++)
		ret = publish(thermometer, number);
	if (ret)
		warnx("thermometer: %s", strerror(-ret));
	h_publisher_close(thermometer, 10 * SECOND);
	waitpid(all, NULL, 0);
	if (waitpid(some, &status, 0) == some && WIFEXITED(status))
		printf("it was %d degrees at last\n", WEXITSTATUS(status));
	return ret ? 1 : 0;
}

/*
 * It prints:
 *
 * 1000 readings, 0 lost
 * it was 20 degrees at last
 */

// SPDX-License-Identifier: GPL-2.0-only
/*
 * A process that is none of a program's nodes, and means harm, on the device that they use. It has
 * what anybody has: <hamlyn.h> and <hamlyn/channel.h>. It goes on until its standard input ends.
 */
#include <errno.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include <hamlyn.h>
#include <hamlyn/channel.h>

#include "tempest/check.h"

#define NOBODY		65534
#define BYTES		448	/* that travel without an area */
#define AREA_BYTES	131072	/* about what a channel receives into */
#define NEAR_SLOTS	64	/* the lowest numbers are given first */
#define TERMINI		4
#define MOST_OBJECTS	8192
#define DEAD_SLOTS	32
#define CHILDREN	4

/* It is no node; check.c would say which one has failed. */
unsigned int TPPI_self_address;

static struct h_dev *dev;
static struct hamlyn_query query;
static char nonsense[BYTES];

static uint64_t by_chance(void)
{
	uint64_t word;

	CHECK_EQUAL(getrandom(&word, sizeof(word), 0), sizeof(word));
	return word;
}

static bool is_told_to_end(void)
{
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };

	return poll(&input, 1, 0) > 0;
}

static void open_device(void)
{
	CHECK_EQUAL(h_open(NULL, &dev), 0);
	CHECK_EQUAL(h_query(dev, &query), 0);
}

/* NULL if others have them all. */
static struct h_terminus *make_terminus(uint32_t entries)
{
	struct h_terminus_attr attr = { .entries = entries };
	struct h_terminus *terminus;

	return h_terminus_create(dev, &attr, &terminus) ? NULL : terminus;
}

/* Any kind of message: fast, with an entry, within a slot's area and not. */
static void send_forged(struct h_terminus *terminus, uint32_t slot, uint64_t key)
{
	uint64_t chance = by_chance();
	struct h_ticket ticket = {
		.host = query.host,
		.slot = slot,
		.key = key,
		.length = AREA_BYTES,
		.meta_index = chance % 8 > 1 ? 0 : chance % 8 ? 1 : HAMLYN_META_FAST,
	};
	struct h_msg message = { .ticket = &ticket };
	int64_t sent;

	if (ticket.meta_index == HAMLYN_META_FAST) {
		message.word = chance;
	} else {
		message.data = nonsense;
		message.length = chance / 8 % sizeof(nonsense) + 1;
		message.offset = chance >> 32 & (AREA_BYTES - 1024);
	}
	for (int i = 0; (sent = h_send(terminus, &message)) == -EAGAIN && i < 1000; i++)
		usleep(100);
	if (sent < 0 && sent != -EAGAIN)
		failed(__FILE__, __LINE__, "%lld: meta %u, %zu bytes", (long long)sent,
		       ticket.meta_index, message.length);
}

/* ---- keys ---- */

static void guess_keys(void)
{
	struct h_terminus *terminus = make_terminus(16);

	CHECK(terminus);
	/* Nearly all slots are nobody's: for each that is by chance, one that is not */
	for (uint32_t number = 0; number % 64 || !is_told_to_end(); number++) {
		static const uint64_t likely[] = { 0, ~UINT64_C(0), 1 };

		send_forged(terminus, number % query.max_slots, by_chance());
		send_forged(terminus, number % NEAR_SLOTS, number % 4 ? likely[number % 4 - 1] :
								       by_chance());
	}
}

/* Of a slot that it may send to: its ticket is changed to be another's. */
static struct h_ticket make_slot(void)
{
	struct h_slot_attr attr = { .meta_count = 1 };
	struct h_ticket ticket;
	struct h_slot *slot;

	if (h_area_alloc(dev, 4096, &attr.area) ||
	    h_area_alloc(dev, HAMLYN_METADATA_SIZE, &attr.meta_area) ||
	    h_slot_create(dev, &attr, &slot))
		failed(__FILE__, __LINE__, "no slot");
	CHECK_EQUAL(h_slot_ticket(slot, 0, 0, 0, &ticket), 0);
	return ticket;
}

static void use_own_keys(void)
{
	struct h_terminus *terminus = make_terminus(16);
	struct h_ticket own = make_slot();

	CHECK(terminus);
	while (!is_told_to_end()) {
		for (uint32_t slot = 0; slot < NEAR_SLOTS; slot++) {
			if (slot == own.slot)
				continue;
			send_forged(terminus, slot, own.key);
			send_forged(terminus, slot, own.key ^ slot ^ own.slot);
		}
	}
}

/* ---- what a process had that is dead ---- */

static void have_and_die(int output)
{
	struct h_ticket tickets[DEAD_SLOTS];

	open_device();
	for (int i = 0; i < DEAD_SLOTS; i++)
		tickets[i] = make_slot();
	CHECK_EQUAL(write(output, tickets, sizeof(tickets)), sizeof(tickets));
	raise(SIGKILL);
}

static void replay(void)
{
	struct h_terminus *terminus = make_terminus(16);
	struct h_ticket tickets[DEAD_SLOTS];
	int status, ends[2];

	CHECK(terminus);
	while (!is_told_to_end()) {
		pid_t pid;

		CHECK(!pipe(ends));
		pid = fork();
		CHECK(pid >= 0);
		if (!pid)
			have_and_die(ends[1]);
		close(ends[1]);
		CHECK_EQUAL(waitpid(pid, &status, 0), pid);
		CHECK(WIFSIGNALED(status));
		/* It may have found no room */
		if (read(ends[0], tickets, sizeof(tickets)) == sizeof(tickets)) {
			for (int i = 0; i < 100 * DEAD_SLOTS; i++) {
				const struct h_ticket *old = &tickets[i % DEAD_SLOTS];

				send_forged(terminus, old->slot, old->key);
				send_forged(terminus, i % NEAR_SLOTS, old->key);
			}
		}
		close(ends[0]);
	}
}

/* ---- seeds ---- */

/* Its own, in which each ticket that there is becomes one of another slot. */
static void forge_seed(struct h_channel_seed *seed, uint32_t slot, uint64_t key)
{
	struct h_ticket ticket;

	for (size_t at = 0; at + H_TICKET_BYTES <= sizeof(seed->bytes); at++) {
		if (h_ticket_import(seed->bytes + at, H_TICKET_BYTES, &ticket))
			continue;
		ticket.slot = (ticket.slot + slot) % query.max_slots;
		ticket.key ^= key;
		h_ticket_export(&ticket, seed->bytes + at);
		at += H_TICKET_BYTES - 1;
	}
}

/* What is joined so is no channel: nothing it says may get anywhere. */
static void join_forged(struct h_manager *manager, uint32_t slot)
{
	struct h_channel *own, *other;
	struct h_channel_seed seed;
	int result;

	if (h_channel_create(manager, NULL, &own))
		return;
	if (h_channel_create(manager, NULL, &other)) {
		h_channel_close(own, 0);
		return;
	}
	h_channel_seed(other, &seed);
	forge_seed(&seed, slot, slot % 2 ? 0 : by_chance());
	result = h_channel_join(own, &seed);
	if (!result)
		h_channel_send(own, nonsense, sizeof(nonsense), 0);
	h_channel_close(other, 0);
	h_channel_close(own, 0);
}

static void forge_seeds(void)
{
	struct h_manager *manager;

	CHECK_EQUAL(h_manager_create(dev, NULL, &manager), 0);
	while (!is_told_to_end()) {
		for (uint32_t slot = 1; slot <= NEAR_SLOTS && !is_told_to_end(); slot++)
			join_forged(manager, slot);
	}
}

/* ---- watches ---- */

/* Of what it has no key for: each is told of at once, as if there were nobody. */
static void watch_all(void)
{
	struct h_nq *nq;

	CHECK_EQUAL(h_nq_create(dev, 1024, &nq), 0);
	while (!is_told_to_end()) {
		for (uint32_t slot = 0; slot < NEAR_SLOTS; slot++) {
			struct h_ticket ticket = {
				.host = query.host, .slot = slot, .key = by_chance(),
			};
			struct hamlyn_nq_entry entry;
			struct h_watch *watch;

			if (h_watch(dev, &ticket, nq, slot, &watch))
				continue;
			CHECK_EQUAL(h_recv_block(nq, &entry, INT64_C(60000000000)), 0);
			CHECK_EQUAL(entry.data, slot);
			CHECK_EQUAL(h_unwatch(watch), 0);
		}
	}
}

/* ---- floods ---- */

static void flood_until_end(void)
{
	struct h_terminus *termini[TERMINI];
	struct h_ticket own = make_slot(), other = own;

	for (int i = 0; i < TERMINI; i++)
		termini[i] = make_terminus(256);
	for (uint64_t number = 0; number % 1024 || !is_told_to_end(); number++) {
		struct h_msg message = {
			.ticket = number / 256 % 2 ? &own : &other,
			.data = nonsense,
			.length = sizeof(nonsense),
		};
		struct h_terminus *terminus = termini[number % TERMINI];

		other.slot = number % NEAR_SLOTS;
		if (message.ticket == &other && other.slot == own.slot)
			continue;
		if (terminus && h_send(terminus, &message) == -EAGAIN)
			usleep(10);
	}
}

/* A number of them; each with what is done to it from time to time, and its end in the middle. */
static void disturb(void (*child)(void), int signal)
{
	pid_t pids[CHILDREN];
	int status;

	h_close(dev);
	while (!is_told_to_end()) {
		for (int i = 0; i < CHILDREN; i++) {
			pids[i] = fork();
			CHECK(pids[i] >= 0);
			if (!pids[i]) {
				prctl(PR_SET_PDEATHSIG, SIGKILL);
				open_device();
				child();
				_exit(0);
			}
		}
		for (int i = 0; i < CHILDREN; i++) {
			usleep(by_chance() % 50000);
			kill(pids[i], signal);
		}
		usleep(by_chance() % 200000);
		for (int i = 0; i < CHILDREN; i++) {
			kill(pids[i], SIGKILL);
			CHECK_EQUAL(waitpid(pids[i], &status, 0), pids[i]);
		}
	}
	open_device();
}

static void flood_and_die(void)
{
	disturb(flood_until_end, SIGKILL);
}

static void flood_and_stop(void)
{
	disturb(flood_until_end, SIGSTOP);
}

/* ---- all that there is ---- */

static void make_and_destroy(void)
{
	struct h_area *area;
	struct h_nq *nq;

	while (!is_told_to_end()) {
		struct h_terminus *terminus = make_terminus(16);

		if (terminus) {
			send_forged(terminus, by_chance() % NEAR_SLOTS, by_chance());
			CHECK_EQUAL(h_terminus_destroy(terminus), 0);
		}
		if (!h_nq_create(dev, 64, &nq))
			CHECK_EQUAL(h_nq_destroy(nq), 0);
		if (!h_area_alloc(dev, AREA_BYTES, &area)) {
			struct h_slot_attr attr = { .area = area };
			struct h_slot *slot;

			if (!h_slot_create(dev, &attr, &slot))
				CHECK_EQUAL(h_slot_destroy(slot), 0);
			CHECK_EQUAL(h_area_remove(area), 0);
		}
	}
}

/*
 * Until it is refused; what it has got it keeps. Not a machine's memory: without slots
 * nobody needs that.
 */
static void take_all(void)
{
	struct h_slot_attr attr = { 0 };
	struct h_area *area;
	struct h_slot *slot;
	struct h_nq *nq;

	CHECK_EQUAL(h_area_alloc(dev, 4096, &attr.area), 0);
	for (uint32_t i = 0; i < query.max_slots && !h_slot_create(dev, &attr, &slot); i++)
		;
	for (int i = 0; i < MOST_OBJECTS && make_terminus(16); i++)
		;
	for (int i = 0; i < MOST_OBJECTS && !h_nq_create(dev, 64, &nq); i++)
		;
	for (size_t bytes = query.max_area; h_dev_is_embedded(dev) && bytes >= 4096; bytes /= 2) {
		while (!h_area_alloc(dev, bytes, &area))
			;
	}
	printf("ready\n");
	fflush(stdout);
	while (!is_told_to_end())
		usleep(10000);
}

/* ---- */

static const struct attack {
	const char *name;
	void (*run)(void);
} attacks[] = {
	{ "guess-keys", guess_keys },
	{ "use-own-keys", use_own_keys },
	{ "replay", replay },
	{ "forge-seeds", forge_seeds },
	{ "watch-all", watch_all },
	{ "flood", flood_until_end },
	{ "flood-and-die", flood_and_die },
	{ "flood-and-stop", flood_and_stop },
	{ "make-and-destroy", make_and_destroy },
	{ "take-all", take_all },
};

#define ATTACKS	(sizeof(attacks) / sizeof(attacks[0]))

static int list(void)
{
	for (size_t i = 0; i < ATTACKS; i++)
		printf("%s\n", attacks[i].name);
	return 0;
}

static void become_another(void)
{
	CHECK(!setgroups(0, NULL) && !setgid(NOBODY) && !setuid(NOBODY));
}

int main(int argc, char **argv)
{
	size_t i = 0;

	if (argc == 2 && !strcmp(argv[1], "--list"))
		return list();
	while (argc > 1 && i < ATTACKS && strcmp(attacks[i].name, argv[1]))
		i++;
	if (argc < 2 || argc > 3 || i == ATTACKS || (argc == 3 && strcmp(argv[2], "--another"))) {
		fprintf(stderr, "Usage: %s --list | ATTACK [--another]\n", argv[0]);
		return 2;
	}
	if (argc == 3)
		become_another();
	open_device();
	memset(nonsense, 0xee, sizeof(nonsense));
	attacks[i].run();
	h_close(dev);
	return 0;
}

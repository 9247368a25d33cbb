// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the Hamlyn selftests share.
 */
#include "hamlyn_test.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <hamlyn/channel.h>

/* ---- time --------------------------------------------------------------- */

int64_t ht_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * HT_SEC + ts.tv_nsec;
}

int64_t ht_scale(void)
{
	static int64_t known;
	int64_t scale = __atomic_load_n(&known, __ATOMIC_RELAXED);
	const char *text;

	if (scale)
		return scale;
	text = getenv("HAMLYN_TEST_SCALE");
	scale = text && atoi(text) > 0 ? atoi(text) : 1;
	__atomic_store_n(&known, scale, __ATOMIC_RELAXED);
	return scale;
}

bool ht_is_brief(void)
{
	return getenv("HAMLYN_TEST_BRIEF") != NULL;
}

int64_t ht_patience_ns(void)
{
	return HT_PATIENCE_SECONDS * HT_SEC * ht_scale();
}

void ht_sleep_ns(int64_t ns)
{
	struct timespec ts = { ns / HT_SEC, ns % HT_SEC };

	nanosleep(&ts, NULL);
}

int64_t ht_thread_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * HT_SEC + t.tv_nsec;
}

int ht_by_size(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

void ht_poll_begin(struct ht_poll *poll)
{
	poll->end = 0;
	poll->polls = 0;
}

bool ht_poll_more(struct ht_poll *poll)
{
	unsigned int polls = poll->polls++;

	if (polls < 64)
		return true;
	if (!poll->end)
		poll->end = ht_now_ns() + ht_patience_ns();
	if (polls < 4096)
		sched_yield();
	else
		ht_sleep_ns(HT_MS / 10);
	return polls % 16 || ht_now_ns() < poll->end;
}

/* Behind the name, which may be anything. */
static char state_of(pid_t tid)
{
	char path[64], line[512], *name_end;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)tid);
	f = fopen(path, "re");
	name_end = f && fgets(line, sizeof(line), f) ? strrchr(line, ')') : NULL;
	if (f)
		fclose(f);
	return name_end && name_end[1] == ' ' ? name_end[2] : 0;
}

bool ht_task_is(pid_t tid, char state)
{
	struct ht_poll poll;
	char is;

	ht_poll_begin(&poll);
	do {
		is = state_of(tid);
	} while (is && is != state && ht_poll_more(&poll));
	return is == state;
}

int ht_forbid_call(unsigned int number)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(*filter), filter };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0))
		return -errno;
	return 0;
}

/* ---- numbers and patterns ----------------------------------------------- */

static uint64_t mix(uint64_t z)
{
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

uint64_t ht_random(uint64_t *state)
{
	*state += 0x9e3779b97f4a7c15ULL;
	return mix(*state);
}

uint64_t ht_seed(void)
{
	const char *seed = getenv("HAMLYN_TEST_SEED");

	return seed ? strtoull(seed, NULL, 0) : 19961029;
}

static uint64_t pattern_word(uint64_t seed, size_t word)
{
	return mix(mix(seed) + word * 0x9e3779b97f4a7c15ULL);
}

void ht_fill(void *p, size_t length, uint64_t seed)
{
	unsigned char *byte = p;
	uint64_t word;
	size_t i;

	for (i = 0; i + 8 <= length; i += 8) {
		word = pattern_word(seed, i / 8);
		memcpy(byte + i, &word, 8);
	}
	word = pattern_word(seed, i / 8);
	memcpy(byte + i, &word, length - i);
}

size_t ht_match(const void *p, size_t length, uint64_t seed)
{
	const unsigned char *byte = p;
	unsigned char want[8];
	uint64_t word;
	size_t i, j;

	for (i = 0; i < length; i += 8) {
		word = pattern_word(seed, i / 8);
		if (length - i >= 8 && !memcmp(byte + i, &word, 8))
			continue;
		memcpy(want, &word, 8);
		for (j = 0; j < 8 && i + j < length; j++)
			if (byte[i + j] != want[j])
				return i + j;
	}
	return length;
}

size_t ht_match_byte(const void *p, size_t length, unsigned char byte)
{
	const unsigned char *bytes = p;
	size_t i;

	if (!length || bytes[0] != byte)
		return 0;
	if (!memcmp(bytes, bytes + 1, length - 1))
		return length;
	for (i = 0; bytes[i] == byte; i++)
		;
	return i;
}

const char *ht_complain(const char *complaint)
{
	if (complaint)
		fprintf(stderr, "# %s\n", complaint);
	return complaint;
}

/* ---- processes ---------------------------------------------------------- */

/* The harness forks by itself: its children must not outlive it either. */
static void die_with_parent(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
}

/* Who has forked this process, by ht_fork(); 0 if by something else. */
static pid_t forked_by;

static void behind_fork(void)
{
	forked_by = 0;
	die_with_parent();
}

static void __attribute__((constructor)) watch_forks(void)
{
	pthread_atfork(NULL, NULL, behind_fork);
}

/* It may have died before the child asked to go with it. */
static void leave_if_orphaned(void)
{
	if (forked_by && getppid() != forked_by)
		_exit(1);
}

pid_t ht_fork(void)
{
	pid_t parent = getpid();
	pid_t pid = fork();

	if (!pid) {
		forked_by = parent;
		leave_if_orphaned();
	}
	return pid;
}

void ht_stay_child(void)
{
	die_with_parent();
	leave_if_orphaned();
}

int ht_reap(pid_t pid)
{
	struct ht_poll poll;
	int status;
	pid_t got;

	ht_poll_begin(&poll);
	while ((got = waitpid(pid, &status, WNOHANG)) == 0) {
		if (ht_poll_more(&poll))
			continue;
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
		return -ETIMEDOUT;
	}
	if (got < 0)
		return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) :
				   128 + WTERMSIG(status);
}

int ht_read_all(int fd, void *p, size_t length)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	char *to = p;
	ssize_t n;

	while (length) {
		if (poll(&pfd, 1, (int)(ht_patience_ns() / HT_MS)) <= 0)
			return -ETIMEDOUT;
		n = read(fd, to, length);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EPIPE;
		to += n;
		length -= (size_t)n;
	}
	return 0;
}

int ht_write_all(int fd, const void *p, size_t length)
{
	const char *from = p;
	ssize_t n;

	while (length) {
		n = write(fd, from, length);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		from += n;
		length -= (size_t)n;
	}
	return 0;
}

int ht_put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), ret;

	if (fd < 0)
		return -errno;
	ret = ht_write_all(fd, text, strlen(text));
	close(fd);
	return ret;
}

/* ---- a device ----------------------------------------------------------- */

void ht_tell_key(uint64_t key)
{
	const char *path = getenv("HAMLYN_TEST_KEYS");
	uint64_t n[] = { key, __builtin_bswap64(key), -key,
			 -__builtin_bswap64(key) };
	char text[256];
	int fd = path ? open(path, O_WRONLY | O_APPEND | O_CLOEXEC) : -1;
	int length;

	if (fd < 0)
		return;
	length = snprintf(text, sizeof(text),
			  "%jx\n%016jx\n%jx\n%016jx\n%ju\n%ju\n%ju\n%ju\n",
			  (uintmax_t)n[0], (uintmax_t)n[0], (uintmax_t)n[1],
			  (uintmax_t)n[1], (uintmax_t)n[0], (uintmax_t)n[1],
			  (uintmax_t)n[2], (uintmax_t)n[3]);
	ht_write_all(fd, text, (size_t)length);
	close(fd);
}

const char *ht_device(void)
{
	return getenv("HAMLYN_DEVICE");
}

int ht_open(struct h_dev **dev)
{
	return h_open(ht_device(), dev);
}

int ht_open_tx(struct h_dev **dev)
{
	const char *name = getenv("HAMLYN_TX_DEVICE");

	return h_open(name ? name : ht_device(), dev);
}

bool ht_is_remote(void)
{
	return getenv("HAMLYN_TX_DEVICE") != NULL;
}

bool ht_is_explained(struct h_dev *dev, const char *words)
{
	char why[HAMLYN_EXPLAIN_BYTES] = "";

	if (!h_explain(dev, why, sizeof(why)) && *why && strstr(why, words))
		return true;
	fprintf(stderr, "# \"%s\" is not in: %s\n", words, why);
	return false;
}

unsigned int ht_segment_uid(void)
{
	unsigned int uid = geteuid(), first, there, count;
	FILE *f = fopen("/proc/self/uid_map", "re");

	while (f && fscanf(f, "%u %u %u", &first, &there, &count) == 3)
		if (uid >= first && uid - first < count) {
			uid = there + (uid - first);
			break;
		}
	if (f)
		fclose(f);
	return uid;
}

int ht_pass_word(struct h_channel *from, struct h_channel *to)
{
	struct h_message m;
	int err = h_channel_send(from, "word", 4, ht_patience_ns());

	if (err)
		return err;
	err = h_channel_receive(to, &m, ht_patience_ns());
	if (err != 0)
		return err;
	err = m.length == 4 && !memcmp(m.data, "word", 4) ? 0 : -EBADMSG;
	return h_channel_release(to, &m) ?: err;
}

void ht_guess_keys(struct h_terminus *t, struct h_ticket ticket, int guesses)
{
	int i;

	ticket.meta_index = 0;
	ticket.key ^= 0x5555;
	for (i = 0; i < guesses; i++)
		while (h_send_msg(t, &ticket, "x", 1, NULL, 0) == -EAGAIN)
			ht_sleep_ns(HT_MS);
}

int ht_recv(struct h_nq *nq, struct hamlyn_nq_entry *entry)
{
	struct ht_poll poll;
	int ret;

	ht_poll_begin(&poll);
	while ((ret = h_recv(nq, entry)) == 0)
		if (!ht_poll_more(&poll))
			return -ETIMEDOUT;
	return ret;
}

int64_t ht_send(struct h_terminus *terminus, const struct h_msg *msg)
{
	struct ht_poll poll;
	int64_t handle;

	ht_poll_begin(&poll);
	while ((handle = h_send(terminus, msg)) == -EAGAIN)
		if (!ht_poll_more(&poll))
			return -ETIMEDOUT;
	return handle;
}

bool ht_send_msg(struct h_terminus *terminus, const struct h_msg *msg,
		 int64_t *handle)
{
	struct h_ticket ticket = *msg->ticket;
	struct ht_poll poll;

	if (msg->iov || msg->delta || msg->word || msg->flags ||
	    msg->offset > ticket.length)
		return false;
	ticket.base += msg->offset;
	ticket.length -= msg->offset;
	ht_poll_begin(&poll);
	while ((*handle = h_send_msg(terminus, &ticket, msg->data, msg->length,
				     msg->meta, msg->meta_length)) == -EAGAIN)
		if (!ht_poll_more(&poll))
			break;
	return true;
}

/* Pairs of two hosts: what has left has not landed yet. */
static struct ht_pair *far_pairs;
static pthread_mutex_t far_lock = PTHREAD_MUTEX_INITIALIZER;

static struct ht_pair *far_pair_of(const struct h_terminus *terminus)
{
	struct ht_pair *pair;

	for (pair = far_pairs; pair && pair->terminus != terminus; pair = pair->next)
		;
	return pair;
}

/*
 * One more message has landed, so those have that left before it: between two hosts all packets
 * keep their order. It leaves no trace in the NQ, and none at the pair's terminus.
 */
static int land(struct ht_pair *pair)
{
	const uint64_t *mark = h_area_addr(pair->mark_area);
	uint64_t word = ++pair->marks;
	struct h_msg msg = {
		.ticket = &pair->mark, .data = &word, .length = sizeof(word),
		.flags = HAMLYN_TRB_NO_NOTIFY,
	};
	int64_t handle = ht_send(pair->marker, &msg);
	struct ht_poll poll;

	if (handle < 0)
		return (int)handle;
	ht_poll_begin(&poll);
	while (__atomic_load_n(mark, __ATOMIC_ACQUIRE) != word)
		if (!ht_poll_more(&poll))
			return -ETIMEDOUT;
	return h_send_wait(pair->marker, handle, ht_patience_ns());
}

int ht_send_wait(struct h_terminus *terminus, int64_t handle)
{
	int ret = h_send_wait(terminus, handle, ht_patience_ns());
	struct ht_pair *pair;

	if (ret)
		return ret;
	pthread_mutex_lock(&far_lock);
	pair = far_pair_of(terminus);
	ret = pair ? land(pair) : 0;
	pthread_mutex_unlock(&far_lock);
	return ret ?: 1;
}

int ht_send_sync(struct h_terminus *terminus, const struct h_msg *msg)
{
	int64_t handle = ht_send(terminus, msg);

	return handle < 0 ? (int)handle : ht_send_wait(terminus, handle);
}

int ht_drain(struct h_manager *manager)
{
	static struct ht_pair marks;
	struct ht_pair_attr attr = { 0 };
	int ret = h_manager_drain(manager, ht_patience_ns());

	if (ret || !getenv("HAMLYN_TX_LANDS"))
		return ret;
	if (!marks.mark_area) {
		ret = ht_pair_open(&marks, &attr);
		if (ret)
			return ret;
	}
	ret = land(&marks);
	return ret < 0 ? ret : 0;
}

int ht_count_slots(struct h_dev *dev, struct h_area *area, unsigned int most)
{
	struct h_slot_attr attr = { .area = area };
	struct h_slot **slots;
	int n, ret;

	slots = calloc(most, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	for (n = 0; n < (int)most; n++)
		if (h_slot_create(dev, &attr, &slots[n]))
			break;
	ret = n;
	while (n--)
		if (h_slot_destroy(slots[n]))
			ret = -EIO;
	free(slots);
	return ret;
}

int ht_count_areas(struct h_dev *dev, size_t length, unsigned int most)
{
	struct h_area **areas;
	int n, ret;

	areas = calloc(most, sizeof(*areas));
	if (!areas)
		return -ENOMEM;
	for (n = 0; n < (int)most; n++)
		if (h_area_alloc(dev, length, &areas[n]))
			break;
	ret = n;
	while (n--)
		if (h_area_remove(areas[n]))
			ret = -EIO;
	free(areas);
	return ret;
}

/* ---- a sender and a receiver -------------------------------------------- */

static int open_receiver(struct ht_pair *pair, const struct ht_pair_attr *attr)
{
	struct h_slot_attr slot = { 0 };
	size_t bytes;
	int ret;

	pair->base = HT_GUARD_BYTES + attr->shift;
	bytes = pair->base + pair->length + HT_GUARD_BYTES;
	ret = h_area_alloc(pair->rx, bytes, &pair->area);
	if (ret)
		return ret;
	pair->data = (unsigned char *)h_area_addr(pair->area) + pair->base;
	if (attr->meta) {
		bytes = (attr->meta + 2 * HT_META_GUARDS) *
			sizeof(struct hamlyn_metadata);
		ret = h_area_alloc(pair->rx, bytes, &pair->meta_area);
		if (ret)
			return ret;
		pair->meta_count = attr->meta;
		pair->meta = (struct hamlyn_metadata *)
			     h_area_addr(pair->meta_area) + HT_META_GUARDS;
	}
	ret = h_nq_create(pair->rx, attr->nq_entries ? attr->nq_entries : 64,
			  &pair->nq);
	if (ret)
		return ret;
	slot.area = pair->area;
	slot.base = pair->base;
	slot.length = pair->length;
	slot.meta_area = pair->meta_area;
	slot.meta_base = attr->meta ? HT_META_GUARDS *
			 sizeof(struct hamlyn_metadata) : 0;
	slot.meta_count = attr->meta;
	slot.nq = pair->nq;
	ret = h_slot_create(pair->rx, &slot, &pair->slot);
	if (ret)
		return ret;
	ret = h_slot_ticket(pair->slot, 0, 0, 0, &pair->ticket);
	ht_tell_key(pair->ticket.key);
	return ret;
}

static int open_fence(struct ht_pair *pair)
{
	struct h_slot_attr slot = { 0 };
	int ret;

	ret = h_area_alloc(pair->rx, 1, &pair->fence_area);
	if (ret)
		return ret;
	slot.area = pair->fence_area;
	slot.nq = pair->nq;
	ret = h_slot_create(pair->rx, &slot, &pair->fence_slot);
	if (ret)
		return ret;
	ret = h_slot_ticket(pair->fence_slot, 0, 0, HAMLYN_META_FAST,
			    &pair->fence);
	ht_tell_key(pair->fence.key);
	return ret;
}

static int open_mark(struct ht_pair *pair)
{
	struct h_slot_attr attr = { 0 };
	struct h_slot *slot;
	int ret;

	ret = h_area_alloc(pair->rx, 1, &pair->mark_area);
	if (ret)
		return ret;
	attr.area = pair->mark_area;
	ret = h_slot_create(pair->rx, &attr, &slot);
	if (ret)
		return ret;
	ret = h_slot_ticket(slot, 0, 0, 0, &pair->mark);
	return ret ?: h_terminus_create(pair->tx, NULL, &pair->marker);
}

static int open_sender(struct ht_pair *pair, const struct ht_pair_attr *attr)
{
	int ret;

	pair->send_length = attr->send_length ? attr->send_length :
						pair->length;
	ret = h_area_alloc(pair->tx, pair->send_length, &pair->send_area);
	if (ret)
		return ret;
	pair->send = h_area_addr(pair->send_area);
	ret = h_terminus_create(pair->tx, &attr->terminus, &pair->terminus);
	if (ret)
		return ret;
	return h_terminus_bind(pair->terminus, 0, pair->send_area, 0,
			       pair->send_length);
}

int ht_pair_mark(struct ht_pair *pair)
{
	int ret;

	if (!getenv("HAMLYN_TX_LANDS") || pair->tx == pair->rx)
		return 0;
	ret = open_mark(pair);
	if (ret)
		return ret;
	pair->next = far_pairs;
	far_pairs = pair;
	return 0;
}

void ht_pair_unmark(const struct ht_pair *pair)
{
	struct ht_pair **p;

	for (p = &far_pairs; *p; p = &(*p)->next)
		if (*p == pair) {
			*p = pair->next;
			return;
		}
}

int ht_pair_open(struct ht_pair *pair, const struct ht_pair_attr *attr)
{
	int ret;

	memset(pair, 0, sizeof(*pair));
	ret = ht_open(&pair->rx);
	if (ret)
		return ret;
	ret = h_query(pair->rx, &pair->query);
	if (ret)
		goto err;
	pair->length = attr->length ? attr->length :
				      4 * (size_t)pair->query.packet_size;
	if (attr->one_context) {
		pair->tx = pair->rx;
	} else {
		ret = ht_open_tx(&pair->tx);
		if (ret)
			goto err;
	}
	pair->from = pair->query.host;
	if (pair->tx != pair->rx) {
		struct hamlyn_query query;

		ret = h_query(pair->tx, &query);
		if (ret)
			goto err;
		pair->from = query.host;
	}
	ret = open_receiver(pair, attr);
	if (ret)
		goto err;
	ret = open_fence(pair);
	if (ret)
		goto err;
	ret = open_sender(pair, attr);
	if (ret)
		goto err;
	ret = ht_pair_mark(pair);
	if (ret)
		goto err;
	ht_pair_clear(pair);
	return 0;
err:
	ht_pair_close(pair);
	return ret;
}

void ht_pair_close(struct ht_pair *pair)
{
	ht_pair_unmark(pair);
	if (pair->tx != pair->rx)
		h_close(pair->tx);
	h_close(pair->rx);
	pair->rx = NULL;
	pair->tx = NULL;
}

void ht_pair_clear(struct ht_pair *pair)
{
	memset(h_area_addr(pair->area), HT_GUARD, h_area_length(pair->area));
	if (!pair->meta_area)
		return;
	memset(h_area_addr(pair->meta_area), HT_GUARD,
	       h_area_length(pair->meta_area));
	memset(pair->meta, 0, pair->meta_count * sizeof(*pair->meta));
}

/* Guard bytes from the start of @area up to @from, and from @to on. */
static bool guarded(const struct h_area *area, const void *from, const void *to)
{
	const unsigned char *start = h_area_addr(area);
	const unsigned char *end = start + h_area_length(area);
	size_t before = (size_t)((const unsigned char *)from - start);
	size_t after = (size_t)(end - (const unsigned char *)to);

	return ht_match_byte(start, before, HT_GUARD) == before &&
	       ht_match_byte(to, after, HT_GUARD) == after;
}

bool ht_pair_guarded(const struct ht_pair *pair)
{
	return guarded(pair->area, pair->data, pair->data + pair->length) &&
	       (!pair->meta ||
		guarded(pair->meta_area, pair->meta,
			pair->meta + pair->meta_count));
}

bool ht_pair_untouched(const struct ht_pair *pair)
{
	size_t meta = pair->meta_count * sizeof(*pair->meta);

	return ht_pair_guarded(pair) &&
	       ht_match_byte(pair->data, pair->length, HT_GUARD) ==
	       pair->length &&
	       (!meta || ht_match_byte(pair->meta, meta, 0) == meta);
}

int ht_pair_fence(struct ht_pair *pair)
{
	uint64_t word = 0xfe9ce00000000000ULL + ++pair->fences;
	struct h_msg msg = { .ticket = &pair->fence, .word = word };
	uint32_t number = h_slot_number(pair->fence_slot);
	struct hamlyn_nq_entry entry;
	int others = 0;
	int ret;

	ret = ht_send_sync(pair->terminus, &msg);
	if (ret < 0)
		return ret;
	for (;;) {
		ret = ht_recv(pair->nq, &entry);
		if (ret < 0)
			return ret;
		if (entry.slot == number && entry.data == word &&
		    (entry.flags & HAMLYN_NQE_FAST))
			return others;
		others++;
	}
}

int ht_pair_rejects(struct ht_pair *pair, struct ht_rejects *rejects)
{
	struct hamlyn_stats stats;
	int ret;

	ret = h_slot_stats(pair->slot, &stats);
	if (ret)
		return ret;
	memcpy(rejects->slot, stats.rejects, sizeof(rejects->slot));
	ret = h_dev_stats(pair->rx, &stats);
	if (ret)
		return ret;
	memcpy(rejects->nic, stats.rejects, sizeof(rejects->nic));
	return 0;
}

/* ---- kernel device without the library ---------------------------------- */

int ht_raw_open(void)
{
	const char *name = ht_device();
	int fd = open(name ? name : "/dev/hamlyn0", O_RDWR | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* One that the driver made: those that tests give are numbers like any other. */
static __attribute__((noinline)) void tell_made_key(unsigned long request,
						    const void *arg)
{
	const struct hamlyn_slot_create *slot = arg;
	const struct hamlyn_slot_rekey *rekey = arg;

	/* Some tests give less than what is read here. */
	if (!getenv("HAMLYN_TEST_KEYS"))
		return;
	if (request == HAMLYN_IOC_SLOT_CREATE &&
	    !(slot->flags & HAMLYN_SLOT_KEY_GIVEN))
		ht_tell_key(slot->key);
	if (request == HAMLYN_IOC_SLOT_REKEY &&
	    !(rekey->flags & HAMLYN_SLOT_KEY_GIVEN))
		ht_tell_key(rekey->key);
}

static __thread struct {
	bool wanted;
	char text[HAMLYN_EXPLAIN_BYTES];
} raw_why;

void ht_raw_explain(bool wanted)
{
	raw_why.wanted = wanted;
	raw_why.text[0] = 0;
}

const char *ht_raw_why(void)
{
	return raw_why.text;
}

int ht_raw_explained(int fd, unsigned long request, void *arg, char *text, uint32_t size)
{
	struct hamlyn_explain explain = {
		.size = sizeof(explain), .argument = (uintptr_t)arg,
		.text = (uintptr_t)text, .text_size = size,
	};

	return ioctl(fd, HAMLYN_IOC_EXPLAINED(request), &explain) < 0 ? -errno : 0;
}

static int raw(int fd, unsigned long request, void *arg)
{
	if (!raw_why.wanted || request == HAMLYN_IOC_KICK || request & HAMLYN_EXPLAINED)
		return ioctl(fd, request, arg) < 0 ? -errno : 0;
	raw_why.text[0] = 0;
	return ht_raw_explained(fd, request, arg, raw_why.text, sizeof(raw_why.text));
}

int ht_raw(int fd, unsigned long request, void *arg)
{
	int ret = raw(fd, request, arg);

	if (ret)
		return ret;
	tell_made_key(request, arg);
	return 0;
}

int ht_raw_id(int fd, unsigned long request, uint32_t id)
{
	struct hamlyn_id arg = { .size = sizeof(arg), .id = id };

	return ht_raw(fd, request, &arg);
}

int ht_raw_query(int fd, struct hamlyn_query *query)
{
	memset(query, 0, sizeof(*query));
	query->size = sizeof(*query);
	return ht_raw(fd, HAMLYN_IOC_QUERY, query);
}

bool ht_raw_rings_by_fsync(int fd)
{
	struct hamlyn_query query;

	return !ht_raw_query(fd, &query) && query.doorbells & HAMLYN_DOORBELL_FSYNC;
}

static void *map_region(int fd, uint64_t length, uint64_t offset, int prot)
{
	void *map = mmap(NULL, length, prot, MAP_SHARED, fd, (off_t)offset);

	return map == MAP_FAILED ? NULL : map;
}

int ht_raw_area_alloc(int fd, size_t length, struct hamlyn_area_alloc *arg,
		      void **map)
{
	int ret;

	memset(arg, 0, sizeof(*arg));
	arg->size = sizeof(*arg);
	arg->length = length;
	ret = ht_raw(fd, HAMLYN_IOC_AREA_ALLOC, arg);
	if (ret || !map)
		return ret;
	*map = map_region(fd, arg->length, arg->mmap_offset,
			  PROT_READ | PROT_WRITE);
	return *map ? 0 : -errno;
}

int ht_raw_nq_create(int fd, uint32_t entries, struct ht_raw_nq *nq)
{
	struct hamlyn_nq_create *arg = &nq->arg;
	void *ring;
	int ret;

	memset(nq, 0, sizeof(*nq));
	arg->size = sizeof(*arg);
	arg->entries = entries;
	ret = ht_raw(fd, HAMLYN_IOC_NQ_CREATE, arg);
	if (ret)
		return ret;
	ring = map_region(fd, arg->ring_length, arg->ring_offset, PROT_READ);
	nq->control = map_region(fd, arg->control_length, arg->control_offset,
				 PROT_READ | PROT_WRITE);
	if (!ring || !nq->control)
		return -errno;
	nq->ring = ring;
	nq->entries = (void *)((char *)ring + arg->entries_offset);
	return 0;
}

void ht_raw_nq_unmap(struct ht_raw_nq *nq)
{
	munmap((void *)(uintptr_t)nq->ring, nq->arg.ring_length);
	munmap(nq->control, nq->arg.control_length);
}

int ht_raw_slot_create(int fd, uint32_t area, uint64_t length, uint32_t nq,
		       struct hamlyn_slot_create *arg)
{
	memset(arg, 0, sizeof(*arg));
	arg->size = sizeof(*arg);
	arg->area = area;
	arg->length = length;
	arg->meta_area = HAMLYN_NONE;
	arg->nq = nq;
	return ht_raw(fd, HAMLYN_IOC_SLOT_CREATE, arg);
}

int ht_raw_terminus_create(int fd, uint32_t entries, uint32_t entry_size,
			   struct ht_raw_terminus *terminus)
{
	struct hamlyn_terminus_create *arg = &terminus->arg;
	void *status;
	int ret;

	memset(terminus, 0, sizeof(*terminus));
	terminus->fd = fd;
	arg->size = sizeof(*arg);
	arg->entries = entries;
	arg->entry_size = entry_size;
	ret = ht_raw(fd, HAMLYN_IOC_TERMINUS_CREATE, arg);
	if (ret)
		return ret;
	terminus->wq = map_region(fd, arg->wq_length, arg->wq_offset,
				  PROT_READ | PROT_WRITE);
	status = map_region(fd, arg->status_length, arg->status_offset,
			    PROT_READ);
	if (!terminus->wq || !status)
		return -errno;
	terminus->entries = (unsigned char *)terminus->wq +
			    arg->entries_offset;
	terminus->status = status;
	terminus->codes = (const int32_t *)(terminus->status + 1);
	return 0;
}

void ht_raw_terminus_unmap(struct ht_raw_terminus *terminus)
{
	munmap(terminus->wq, terminus->arg.wq_length);
	munmap((void *)(uintptr_t)terminus->status,
	       terminus->arg.status_length);
}

int ht_raw_bind(int fd, uint32_t terminus, uint32_t tag, uint32_t area,
		uint64_t base, uint64_t length)
{
	struct hamlyn_terminus_bind arg = {
		.size = sizeof(arg),
		.terminus = terminus,
		.tag = tag,
		.area = area,
		.base = base,
		.length = length,
	};

	return ht_raw(fd, HAMLYN_IOC_TERMINUS_BIND, &arg);
}

struct hamlyn_trb *ht_raw_entry(struct ht_raw_terminus *terminus)
{
	size_t index = terminus->producer & (terminus->arg.entries - 1);

	return (void *)(terminus->entries + index * terminus->arg.entry_size);
}

static int kick_if_asked(struct ht_raw_terminus *terminus)
{
	if (!h__read_once(&terminus->status->need_kick))
		return 0;
	return ht_raw(terminus->fd, HAMLYN_IOC_KICK,
		      (void *)(uintptr_t)terminus->arg.terminus);
}

/* A @producer further ahead than there are entries posts nothing. */
int ht_raw_publish(struct ht_raw_terminus *terminus, uint32_t producer)
{
	uint32_t entries = terminus->arg.entries;
	struct hamlyn_trb *trb;

	while (terminus->published != producer &&
	       producer - terminus->published <= entries) {
		trb = (void *)(terminus->entries +
			       (size_t)(terminus->published & (entries - 1)) *
			       terminus->arg.entry_size);
		terminus->published++;
		h__store_release(&trb->sequence, terminus->published); /* B1 */
	}
	h__write_once(&terminus->wq->producer, producer);
	h__full_barrier();					/* B2 */
	return kick_if_asked(terminus);
}

int ht_raw_post(struct ht_raw_terminus *terminus)
{
	return ht_raw_publish(terminus, ++terminus->producer);
}

int ht_raw_done(struct ht_raw_terminus *terminus, uint32_t index, int *status)
{
	const uint32_t *completed = &terminus->status->completed;
	struct ht_poll poll;

	ht_poll_begin(&poll);
	while ((int32_t)(h__load_acquire(completed) - index) <= 0) { /* B6 */
		if (!ht_poll_more(&poll))
			return -ETIMEDOUT;
		/* One kick may leave some of the work to the next. */
		kick_if_asked(terminus);
	}
	*status = terminus->codes[index & (terminus->arg.entries - 1)];
	return 0;
}

bool ht_raw_recv(struct ht_raw_nq *nq, struct hamlyn_nq_entry *entry)
{
	uint32_t position = nq->control->consumer;
	const struct hamlyn_nq_entry *e;

	e = &nq->entries[position & (nq->arg.entries - 1)];
	if (h__load_acquire(&e->sequence) != position + 1)	/* B3 */
		return false;
	*entry = *e;
	h__store_release(&nq->control->consumer, position + 1);	/* B4 */
	return true;
}

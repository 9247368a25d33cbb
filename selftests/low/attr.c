// SPDX-License-Identifier: GPL-2.0-only
/*
 * Structures that programs fill may be shorter than the library's, of an older program, or
 * longer, of a newer one (Documentation/abi.rst, "Structures that grow"): in all calls.
 */
#include "kselftest_harness.h"
#include "hamlyn_test.h"

#include <hamlyn/publish.h>
#include <hamlyn/server.h>
#include <hamlyn/datagram.h>
#include <hamlyn/group.h>
#include <hamlyn/tagged.h>
#include <hamlyn/work.h>

#define MORE	16	/* bytes of a later version */

FIXTURE(attr) {
	struct h_dev *dev;
	struct h_manager *m;
	struct h_area *area;
	char path[64];
};

FIXTURE_SETUP(attr)
{
	ASSERT_EQ(0, ht_open(&self->dev));
	ASSERT_EQ(0, h_manager_create(self->dev, NULL, &self->m));
	ASSERT_EQ(0, h_area_alloc(self->dev, 4096, &self->area));
	snprintf(self->path, sizeof(self->path), "@hamlyn-attr.%d", getpid());
}

FIXTURE_TEARDOWN(attr)
{
	EXPECT_EQ(0, h_area_remove(self->area));
	EXPECT_EQ(0, h_manager_destroy(self->m));
	h_close(self->dev);
}

/*
 * One call for each structure: what it was given has to be what succeeds, and is undone. Those
 * that have nobody to talk to fail later, and say so by another error.
 */
typedef int call(FIXTURE_DATA(attr) *self, const void *attr, size_t size);

static int slot(FIXTURE_DATA(attr) *self, const void *attr, size_t size)
{
	struct h_slot *s;
	int ret = h__slot_create(self->dev, attr, size, &s);

	return ret ? ret : h_slot_destroy(s);
}

static int terminus(FIXTURE_DATA(attr) *self, const void *attr, size_t size)
{
	struct h_terminus *t;
	int ret = h__terminus_create(self->dev, attr, size, &t);

	return ret ? ret : h_terminus_destroy(t);
}

static int manager(FIXTURE_DATA(attr) *self, const void *attr, size_t size)
{
	struct h_manager *m;
	int ret = h__manager_create(self->dev, attr, size, &m);

	return ret ? ret : h_manager_destroy(m);
}

static void no_arrival(struct h_receiver *r, const struct hamlyn_nq_entry *entry)
{
	(void)r;
	(void)entry;
}

static bool nothing(const struct h_receiver *r)
{
	(void)r;
	return false;
}

static const struct h_receiver_class class = {
	.name = "attr", .process_arrival = no_arrival, .pending = nothing,
};

static int receiver(FIXTURE_DATA(attr) *self, const void *attr, size_t size)
{
	struct h_receiver r;
	int ret = h__receiver_init(&r, self->m, &class, sizeof(class), attr, size);

	return ret ? ret : h_receiver_exit(&r);
}

static int receiver_class(FIXTURE_DATA(attr) *self, const void *attr, size_t size)
{
	const struct h_receiver_attr none = { 0 };
	struct h_receiver r;
	int ret = h__receiver_init(&r, self->m, attr, size, &none, sizeof(none));

	return ret ? ret : h_receiver_exit(&r);
}

static int stream(FIXTURE_DATA(attr) *self, const void *attr, size_t size)
{
	struct h_stream_receiver *r;
	int ret = h__stream_receiver_create(self->m, attr, size, &r);

	return ret ? ret : h_stream_receiver_destroy(r);
}

static int listener(FIXTURE_DATA(attr) *self, const void *attr, size_t size)
{
	struct h_listener *l;
	int ret = h__listener_create(self->path, attr, size, &l);

	if (!ret)
		h_listener_destroy(l);
	return ret;
}

static int accept_streams(FIXTURE_DATA(attr) *self, const void *attr, size_t size)
{
	struct h_stream_pair pair;
	struct h_listener *l;
	int ret = h_listener_create(self->path, NULL, &l);

	if (ret)
		return ret;
	ret = h__listener_accept(l, self->m, attr, size, &pair, H_NOWAIT);
	h_listener_destroy(l);
	return ret == -EAGAIN ? 0 : ret;
}

static int connect_streams(FIXTURE_DATA(attr) *self, const void *attr, size_t size)
{
	struct h_stream_pair pair;
	int ret = h__connect(self->m, self->path, attr, size, &pair, H_NOWAIT);

	return ret == -ECONNREFUSED ? 0 : ret;
}

static int connect_channel(FIXTURE_DATA(attr) *self, const void *attr, size_t size)
{
	struct h_channel *ch;
	int ret = h__channel_connect(self->m, self->path, attr, size, &ch, H_NOWAIT);

	return ret == -ECONNREFUSED ? 0 : ret;
}

static int dial(FIXTURE_DATA(attr) *self, const void *attr, size_t size)
{
	struct h_channel *ch;
	int ret = h__channel_dial(self->path, attr, size, &ch, H_NOWAIT);

	return ret == -ECONNREFUSED ? 0 : ret;
}

static int not_called(struct h_channel *ch, const struct h_message *message, void *arg)
{
	(void)ch;
	(void)message;
	(void)arg;
	return 0;
}

static int server(FIXTURE_DATA(attr) *self, const void *attr, size_t size)
{
	struct h_server *s;
	int ret = h__server_create(self->path, not_called, NULL, attr, size, &s);

	return ret ? ret : h_server_close(s, H_NOWAIT);
}

static int publisher(FIXTURE_DATA(attr) *self, const void *attr, size_t size)
{
	struct h_publisher *p;
	int ret = h__publisher_create(self->path, attr, size, &p);

	return ret ? ret : h_publisher_close(p, H_NOWAIT);
}

static int subscriber(FIXTURE_DATA(attr) *self, const void *attr, size_t size)
{
	struct h_subscriber *s;
	int ret = h__subscriber_create(self->path, attr, size, &s, H_NOWAIT);

	return ret == -ECONNREFUSED ? 0 : ret;
}

static int work(FIXTURE_DATA(attr) *self, const void *attr, size_t size)
{
	struct h_work_queue *q;
	int ret = h__work_create(self->path, attr, size, &q);

	return ret ? ret : h_work_close(q, H_NOWAIT);
}

static int worker(FIXTURE_DATA(attr) *self, const void *attr, size_t size)
{
	struct h_worker *w;
	int ret = h__worker_create(self->path, attr, size, &w, H_NOWAIT);

	return ret == -ECONNREFUSED ? 0 : ret;
}

static int accept_channel(FIXTURE_DATA(attr) *self, const void *attr, size_t size)
{
	struct h_listener *l;
	struct h_channel *ch;
	int ret = h_listener_create(self->path, NULL, &l);

	if (ret)
		return ret;
	ret = h__channel_accept(l, self->m, attr, size, &ch, H_NOWAIT);
	h_listener_destroy(l);
	return ret == -EAGAIN ? 0 : ret;
}

static int channel(FIXTURE_DATA(attr) *self, const void *attr, size_t size)
{
	struct h_channel *ch;
	int ret = h__channel_create(self->m, attr, size, &ch);

	if (!ret)
		h_channel_close(ch, H_NOWAIT);
	return ret;
}

static int pair(FIXTURE_DATA(attr) *self, const void *attr, size_t size)
{
	struct h_channel *a, *b;
	int ret = h__channel_pair(self->m, self->m, attr, size, &a, &b);

	if (ret)
		return ret;
	h_channel_close(a, H_NOWAIT);
	h_channel_close(b, H_NOWAIT);
	return 0;
}

static int datagram(FIXTURE_DATA(attr) *self, const void *attr, size_t size)
{
	struct h_datagram_receiver *r;
	int ret = h__datagram_receiver_create(self->m, attr, size, &r);

	return ret ? ret : h_datagram_receiver_destroy(r);
}

static int tagged(FIXTURE_DATA(attr) *self, const void *attr, size_t size)
{
	struct h_tagged_receiver *r;
	int ret = h__tagged_receiver_create(self->m, attr, size, &r);

	return ret ? ret : h_tagged_receiver_destroy(r);
}

static int group(FIXTURE_DATA(attr) *self, const void *attr, size_t size)
{
	struct h_group *g;
	int ret = h__group_create(self->m, 64, attr, size, &g);

	return ret ? ret : h_group_destroy(g);
}

/* @least: how much of it an older program has to know for the call to succeed. */
static const struct kind {
	char name[16];
	call *call;
	size_t known, least;
	bool early;	/* explained without a device */
	bool held;	/* and not copied: what is not known of it is not asked for */
} kinds[] = {
#define KIND(call, structure, ...) \
	{ #call, call, sizeof(struct structure), 1, ##__VA_ARGS__ }
	{ "slot", slot, sizeof(struct h_slot_attr), sizeof(struct h_area *), false, false },
	KIND(terminus, h_terminus_attr, false, false),
	KIND(manager, h_manager_attr, false, false),
	KIND(receiver, h_receiver_attr, false, false),
	KIND(receiver_class, h_receiver_class, false, true),
	KIND(stream, h_stream_attr, false, false),
	KIND(listener, h_listener_attr, true, false),
	KIND(accept_streams, h_stream_attr, false, false),
	KIND(connect_streams, h_connect_attr, false, false),
	KIND(connect_channel, h_channel_attr, false, false),
	KIND(dial, h_channel_attr, true, false),
	KIND(accept_channel, h_channel_attr, false, false),
	KIND(channel, h_channel_attr, false, false),
	KIND(pair, h_channel_attr, false, false),
	KIND(datagram, h_datagram_attr, false, false),
	KIND(tagged, h_tagged_attr, false, false),
	KIND(group, h_group_attr, false, false),
	KIND(server, h_server_attr, true, false),
	KIND(publisher, h_publisher_attr, true, false),
	KIND(subscriber, h_subscriber_attr, true, false),
	KIND(work, h_work_attr, true, false),
	KIND(worker, h_worker_attr, true, false),
};

/* What a newer program has, with 0 behind all that is known. */
static unsigned char *filled(FIXTURE_DATA(attr) *self, const struct kind *k)
{
	static _Alignas(16) unsigned char bytes[256];

	memset(bytes, 0, sizeof(bytes));
	if (k->call == slot)
		memcpy(bytes, &self->area, sizeof(self->area));
	else if (k->call == receiver_class)
		memcpy(bytes, &class, sizeof(class));
	return bytes;
}

#define EACH_KIND(k) \
	for (k = kinds; k < kinds + sizeof(kinds) / sizeof(*kinds); k++)

TEST_F(attr, of_a_newer_program_is_taken_if_the_rest_is_0)
{
	const struct kind *k;

	EACH_KIND(k)
		EXPECT_EQ(0, k->call(self, filled(self, k), k->known + MORE))
			TH_LOG("%s", k->name);
}

TEST_F(attr, of_a_newer_program_is_refused_in_words_if_it_wants_more)
{
	const struct kind *k;
	unsigned char *bytes;
	char words[32];
	size_t at;

	EACH_KIND(k) {
		snprintf(words, sizeof(words), "knows %zu", k->known);
		for (at = 0; at < MORE; at++) {
			bytes = filled(self, k);
			bytes[k->known + at] = 1;
			EXPECT_EQ(-E2BIG, k->call(self, bytes, k->known + MORE))
				TH_LOG("%s", k->name);
			EXPECT_TRUE(ht_is_explained(k->early ? NULL : self->dev, words))
				TH_LOG("%s", k->name);
			/* Not read at all where it is not the program's. */
			if (at)
				EXPECT_EQ(0, k->call(self, bytes, k->known + at))
					TH_LOG("%s", k->name);
		}
	}
}

TEST_F(attr, of_an_older_program_has_0_in_what_that_does_not_know)
{
	const struct kind *k;
	unsigned char *bytes;
	size_t size;

	EACH_KIND(k) {
		if (k->held)
			continue;
		for (size = k->least; size < k->known; size++) {
			bytes = filled(self, k);
			memset(bytes + size, 0xff, sizeof(long) * 4);
			EXPECT_EQ(0, k->call(self, bytes, size))
				TH_LOG("%s, %zu bytes", k->name, size);
		}
	}
}

TEST_F(attr, of_no_bytes_is_refused)
{
	const struct kind *k;

	EACH_KIND(k) {
		if (k->held)
			continue;
		EXPECT_EQ(-EINVAL, k->call(self, filled(self, k), 0))
			TH_LOG("%s", k->name);
		EXPECT_TRUE(ht_is_explained(k->early ? NULL : self->dev, "0 bytes"))
			TH_LOG("%s", k->name);
	}
}

/* What is held is read where it is: all that the first version had has to be there. */
TEST_F(attr, of_less_than_the_first_version_is_refused_where_it_is_held)
{
	const struct kind *k;

	EACH_KIND(k) {
		if (!k->held)
			continue;
		EXPECT_EQ(-EINVAL, k->call(self, filled(self, k), 0)) TH_LOG("%s", k->name);
		EXPECT_TRUE(ht_is_explained(self->dev, "0 bytes"));
		EXPECT_EQ(-EINVAL, k->call(self, filled(self, k), k->known - 1))
			TH_LOG("%s", k->name);
	}
}

TEST_F(attr, that_is_not_there_is_all_0)
{
	const struct kind *k;

	EACH_KIND(k) {
		if (k->call != slot && !k->held)
			EXPECT_EQ(0, k->call(self, NULL, k->known)) TH_LOG("%s", k->name);
	}
	EXPECT_EQ(-EINVAL, slot(self, NULL, sizeof(struct h_slot_attr)));
}

/* What is reserved now is a member later: what is in it then was never nonsense. */
TEST_F(attr, reserved_members_are_0)
{
	struct h_slot *s;
	struct h_slot_attr slot_attr = { .area = self->area, .reserved = 1 };
	const struct h_manager_attr manager_attr = { .reserved = 1 };
	const struct h_connect_attr connect = { .reserved = 1 };
	const struct h_channel_attr ends = { .reserved = 1 };
	const struct h_datagram_attr datagrams = { .reserved = 1 };
	const struct h_tagged_attr tags = { .reserved = 1 };
	struct h_datagram_receiver *d;
	struct h_tagged_receiver *t;
	struct h_stream_pair streams;
	struct h_manager *m;
	struct h_channel *a, *b;

	EXPECT_EQ(-EINVAL, h_slot_create(self->dev, &slot_attr, &s));
	EXPECT_EQ(-EINVAL, h_manager_create(self->dev, &manager_attr, &m));
	EXPECT_EQ(-EINVAL, h_connect(self->m, self->path, &connect, &streams, H_NOWAIT));
	EXPECT_TRUE(ht_is_explained(self->dev, "reserved"));
	EXPECT_EQ(-EINVAL, h_channel_connect(self->m, self->path, &ends, &a, H_NOWAIT));
	EXPECT_EQ(-EINVAL, h_channel_create(self->m, &ends, &a));
	EXPECT_EQ(-EINVAL, h_channel_pair(self->m, self->m, &ends, &a, &b));
	EXPECT_EQ(-EINVAL, h_datagram_receiver_create(self->m, &datagrams, &d));
	EXPECT_EQ(-EINVAL, h_tagged_receiver_create(self->m, &tags, &t));
}

TEST_HARNESS_MAIN

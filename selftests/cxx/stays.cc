// SPDX-License-Identifier: GPL-2.0-only
/* End points that cannot be destroyed yet call nobody back any more. */
#include <cerrno>

#include <hamlyn/group.h>
#include <hamlyn/tagged.h>

/* As while a peer takes too long; the wrapper is a header, so that it calls these. */
static int tagged_stays(struct h_tagged_receiver *)
{
	return -ETIMEDOUT;
}

static int group_stays(struct h_group *)
{
	return -ETIMEDOUT;
}

#define h_tagged_receiver_destroy	tagged_stays
#define h_group_destroy			group_stays

#include "test.hh"

#undef h_tagged_receiver_destroy
#undef h_group_destroy

using hamlyn::status;

TEST(a_tagged_receiver_stays)
{
	hamlyn::device dev;
	hamlyn::manager m(dev);
	hamlyn::tagged_receiver r(m);
	h_tagged_receiver *stays = r.handle();
	auto to = hamlyn::tagged_address::resolve(r.seed());
	int calls = 0;

	r.on_ready([&] { calls++; });
	CHECK(to.send(m, "x", 0, 1) == status::ok);
	CHECK(m.drain(patience()) == status::ok);
	r.close();
	m.dispatch();
	CHECK(!calls);
	CHECK(!h_tagged_receiver_destroy(stays));
}

TEST(a_group_stays)
{
	hamlyn::device dev;
	hamlyn::manager m(dev);
	hamlyn::group g(m, 0);
	h_group *stays = g.handle();
	int calls = 0;

	g.on_ready([&] { calls++; });
	CHECK(g.share().send(m, "") == status::ok);
	CHECK(m.drain(patience()) == status::ok);
	g.close();
	m.dispatch();
	CHECK(!calls);
	CHECK(!h_group_destroy(stays));
}

// SPDX-License-Identifier: GPL-2.0-only
/* What cannot be destroyed yet stays, with all that it needs, and calls nobody back any more. */
#include <cerrno>

#include <hamlyn.h>
#include <hamlyn/barrier.h>
#include <hamlyn/datagram.h>
#include <hamlyn/gather.h>
#include <hamlyn/group.h>
#include <hamlyn/manager.h>
#include <hamlyn/stream.h>
#include <hamlyn/tagged.h>

/* As while a peer takes too long; the wrapper is a header, so that it calls these. */
static bool stay;
static int closed;

template <auto destroy>
constexpr auto unless_it_stays = [](auto *p) { return stay ? -ETIMEDOUT : destroy(p); };

static void close_counted(h_dev *dev)
{
	closed++;
	h_close(dev);
}

#define h_barrier_destroy		unless_it_stays<::h_barrier_destroy>
#define h_close				close_counted
#define h_datagram_receiver_destroy	unless_it_stays<::h_datagram_receiver_destroy>
#define h_gather_destroy		unless_it_stays<::h_gather_destroy>
#define h_gather_leave			unless_it_stays<::h_gather_leave>
#define h_group_destroy			unless_it_stays<::h_group_destroy>
#define h_slot_destroy			unless_it_stays<::h_slot_destroy>
#define h_stream_receiver_destroy	unless_it_stays<::h_stream_receiver_destroy>
#define h_tagged_receiver_destroy	unless_it_stays<::h_tagged_receiver_destroy>
#define h_unwatch			unless_it_stays<::h_unwatch>

#include "test.hh"

#undef h_close

using hamlyn::status;

/* What keeps something for ever is a leak; the devices are closed below. */
extern "C" const char *__asan_default_options()
{
	return "detect_leaks=0";
}

namespace {

/* Closing tells that it stays, and can be tried again. */
template <class T, class Close>
bool tells(T &object, Close closes)
{
	auto *p = object.handle();

	stay = true;
	bool told = ERRNO_OF(closes(object)) == ETIMEDOUT && object.handle() == p &&
		ERRNO_OF(closes(object)) == ETIMEDOUT;
	stay = false;
	closes(object);
	return told && !object.handle();
}

const auto closes = [](auto &o) { o.close(); };
const auto destroys = [](auto &o) { o.destroy(); };
const auto leaves = [](auto &o) { o.leave(); };

/* The destructors cannot tell: neither the manager nor the device may go, which have a thread. */
template <class Make, class Destroy>
bool keeps(Make make, Destroy destroy_it)
{
	int before = closed;
	h_manager *manager;
	h_dev *dev;

	{
		hamlyn::device d;
		hamlyn::manager m(d);

		dev = d.handle();
		manager = m.handle();
		m.fd();
		auto object = make(m);
		auto *p = object.handle();

		m.close();
		d.close();
		stay = true;
		{
			auto gone = std::move(object);
		}
		stay = false;
		if (closed != before)
			return false;
		destroy_it(p);
	}
	bool kept = closed == before && !h_manager_destroy(manager);

	h_close(dev);
	return kept;
}

} // namespace

TEST(a_tagged_receiver_stays)
{
	hamlyn::device dev;
	hamlyn::manager m(dev);
	hamlyn::tagged_receiver r(m);
	auto to = hamlyn::tagged_address::resolve(r.seed());
	int calls = 0;

	r.on_ready([&] { calls++; });
	CHECK(to.send(m, "x", 0, 1) == status::ok);
	CHECK(m.drain(patience()) == status::ok);
	stay = true;
	CHECK(ERRNO_OF(r.close()) == ETIMEDOUT);
	stay = false;
	m.dispatch();
	CHECK(!calls);
	r.close();
	CHECK(!r.handle());
}

TEST(a_group_stays)
{
	hamlyn::device dev;
	hamlyn::manager m(dev);
	hamlyn::group g(m, 0);
	int calls = 0;

	g.on_ready([&] { calls++; });
	CHECK(g.share().send(m, "") == status::ok);
	CHECK(m.drain(patience()) == status::ok);
	stay = true;
	CHECK(ERRNO_OF(g.close()) == ETIMEDOUT);
	stay = false;
	m.dispatch();
	CHECK(!calls);
	g.close();
	CHECK(!g.handle());
}

TEST(a_datagram_receiver_stays)
{
	hamlyn::device dev;
	hamlyn::manager m(dev);
	hamlyn::datagram_receiver r(m);
	int calls = 0;

	r.on_ready([&] { calls++; });
	CHECK(r.address().send(m, "x") == status::ok);
	CHECK(m.drain(patience()) == status::ok);
	stay = true;
	CHECK(ERRNO_OF(r.close()) == ETIMEDOUT);
	stay = false;
	m.dispatch();
	CHECK(!calls);
	r.close();
	CHECK(!r.handle());
}

TEST(closing_tells)
{
	hamlyn::device dev;
	hamlyn::manager m(dev);
	hamlyn::stream_receiver stream(m);
	hamlyn::datagram_receiver datagrams(m);
	hamlyn::gather root(m, 1, 1);
	hamlyn::gather_member member(m, root.seed(0));
	hamlyn::barrier barrier(m, 2);
	hamlyn::area area(dev, 4096);
	hamlyn::notification_queue nq(dev, 8);
	hamlyn::slot slot(area, nq);
	hamlyn::watch watch(nq, slot.ticket(), 1);

	CHECK(tells(stream, closes));
	CHECK(tells(datagrams, closes));
	CHECK(tells(member, leaves));
	CHECK(tells(root, closes));
	CHECK(tells(barrier, leaves));
	CHECK(tells(watch, closes));
	CHECK(tells(slot, destroys));
}

TEST(a_record_that_is_held)
{
	hamlyn::device dev;
	hamlyn::manager m(dev);
	hamlyn::stream_receiver to(m);
	hamlyn::stream_sender from(m, to.seed());

	CHECK(from.send("x", patience()));
	CHECK(from.flush(patience()) == status::ok);
	auto r = to.receive(patience());
	CHECK(r && r->text() == "x");
	/* It is not destroyed here, so there is nothing to tell. */
	stay = true;
	to.close();
	stay = false;
	CHECK(!to.handle() && r->text() == "x");
}

TEST(destructors_keep_what_it_needs)
{
	CHECK(keeps([](auto &m) { return hamlyn::stream_receiver(m); },
		    h_stream_receiver_destroy));
	CHECK(keeps([](auto &m) { return hamlyn::datagram_receiver(m); },
		    h_datagram_receiver_destroy));
	CHECK(keeps([](auto &m) { return hamlyn::tagged_receiver(m); },
		    h_tagged_receiver_destroy));
	CHECK(keeps([](auto &m) { return hamlyn::group(m, 1); }, h_group_destroy));
	CHECK(keeps([](auto &m) { return hamlyn::gather(m, 1, 1); }, h_gather_destroy));
	CHECK(keeps([](auto &m) { return hamlyn::barrier(m, 1); }, h_barrier_destroy));
}

TEST(a_manager_with_an_end_point_of_somebody_else)
{
	int before = closed;
	h_tagged_receiver *r;
	h_manager *manager;
	h_dev *dev;

	{
		hamlyn::device d;
		hamlyn::manager m(d);

		dev = d.handle();
		manager = m.handle();
		CHECK(!h_tagged_receiver_create(manager, nullptr, &r));
	}
	CHECK(closed == before);
	CHECK(!h_tagged_receiver_destroy(r) && !h_manager_destroy(manager));
	h_close(dev);
}

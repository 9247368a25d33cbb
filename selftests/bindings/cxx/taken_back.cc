// SPDX-License-Identifier: GPL-2.0-only
/*
 * A call back that is taken back while manager::dispatch() is about to call it, and a
 * channel that is closed while that goes on with it.
 */
#include <atomic>
#include <functional>
#include <thread>

#include "test.hh"

using hamlyn::status;

/*
 * What another thread does whenever the library has just let go of a lock: whoever counts
 * down from every number gets into each gap there is. Linked with a library that tells.
 */
static int gaps;
static std::function<void()> *other_thread;

extern "C" void h__lock_step(int by)
{
	thread_local int held;

	/* Whoever polls has a lock that is not told of, and may be in between as well. */
	held = held + by < 0 ? 0 : held + by;
	if (by < 0 && !held && gaps && !--gaps)
		(*other_thread)();
}

namespace {

const int most_gaps = 100;

struct on_device {
	hamlyn::device dev;
	hamlyn::manager m{ dev };
};

template <class T>
void count(T *, void *calls)
{
	++*static_cast<int *>(calls);
}

/* Something waits at the end point p, on whose calls on_ready decides. */
template <class T, class Set>
void taken_back(hamlyn::manager &m, T *p, Set on_ready)
{
	std::function<void()> take_back = [&] { on_ready(p, nullptr, nullptr); };
	int called = 0, passed = 0;

	other_thread = &take_back;
	for (int i = 1; i <= most_gaps; i++) {
		on_ready(p, count<T>, &called);
		gaps = i;
		m.dispatch();
		passed += gaps > 0;
		gaps = 0;
		on_ready(p, nullptr, nullptr);
	}
	/* From before the first gap to after the last one. */
	CHECK(called > 0 && called < most_gaps && passed > 0);
}

} // namespace

TEST(of_a_datagram_receiver)
{
	on_device d;
	hamlyn::datagram_receiver r(d.m);

	CHECK(r.address().send(d.m, "x") == status::ok);
	CHECK(d.m.drain(patience()) == status::ok);
	taken_back(d.m, r.handle(), h_datagram_receiver_on_ready);
	CHECK(r.receive(patience()));
}

TEST(of_a_tagged_receiver)
{
	on_device d;
	hamlyn::tagged_receiver r(d.m);
	auto to = hamlyn::tagged_address::resolve(r.seed());

	CHECK(to.send(d.m, "x", 0, 1) == status::ok);
	CHECK(d.m.drain(patience()) == status::ok);
	taken_back(d.m, r.handle(), h_tagged_receiver_on_ready);
	CHECK(r.receive(patience()));
}

TEST(of_a_group)
{
	on_device d;
	hamlyn::group g(d.m, 0);

	CHECK(g.share().send(d.m, "") == status::ok);
	CHECK(d.m.drain(patience()) == status::ok);
	taken_back(d.m, g.handle(), h_group_on_ready);
	CHECK(g.receive(patience()));
}

TEST(of_a_stream_receiver)
{
	on_device d;
	hamlyn::stream_receiver r(d.m);
	hamlyn::stream_sender s(d.m, r.seed());

	CHECK(s.send("x", patience()));
	CHECK(s.flush(patience()) == status::ok);
	CHECK(d.m.drain(patience()) == status::ok);
	taken_back(d.m, r.handle(), h_stream_receiver_on_ready);
	CHECK(r.receive(patience()));
}

namespace {

/* A channel that nobody has set a call back for, and that is to send on by itself. */
struct begun {
	on_device d;
	hamlyn::manager far{ d.dev };
	std::pair<hamlyn::channel, hamlyn::channel> ends = hamlyn::channel::pair(d.m, far);

	begun()
	{
		std::string much(1 << 20, 'm');

		CHECK(ends.first.send(much, hamlyn::nowait) == status::ok);
		/* Takes as much as there is, and so makes room for some of the rest. */
		CHECK(ends.second.receive(hamlyn::nowait).why() == status::again);
	}
};

/* It is closed by another thread in that gap, which may wait until dispatch() is out of it. */
bool closed_in_gap(int gap)
{
	std::atomic<bool> done{ false };
	std::thread closing;
	begun b;
	std::function<void()> close = [&] {
		closing = std::thread([&] {
			{
				hamlyn::channel gone(std::move(b.ends.first));
			}
			done = true;
		});
		for (int i = 0; i < 20 && !done; i++)
			std::this_thread::sleep_for(std::chrono::milliseconds(1));
	};

	other_thread = &close;
	gaps = gap;
	b.d.m.dispatch();
	bool passed = gaps > 0;
	gaps = 0;
	if (closing.joinable())
		closing.join();
	return !passed;
}

} // namespace

/* For the address sanitizer. */
TEST(of_a_channel_that_is_closed)
{
	int gap = 1;

	while (gap < 1000 && closed_in_gap(gap))
		gap++;
	/* The library was inside, and left it. */
	CHECK(gap > 3 && gap < 1000);
}

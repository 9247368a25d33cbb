// SPDX-License-Identifier: GPL-2.0-only
/* Publishers and subscribers: what all get, what is lost, loans, ends. */
#include <atomic>
#include <cstring>
#include <thread>

#include <poll.h>
#include <unistd.h>

#include "test.hh"

using hamlyn::status;

static_assert(!std::is_copy_constructible_v<hamlyn::subscriber>);
static_assert(!std::is_copy_constructible_v<hamlyn::publication>);
static_assert(std::is_nothrow_move_constructible_v<hamlyn::publication>);

namespace {

std::string here(const char *what)
{
	return "@hamlyn-cxx-" + std::to_string(::getpid()) + "-" + what;
}

/* Sees to subscribers until the end of the scope. */
struct running {
	explicit running(const std::string &path, const hamlyn::publisher_options &o = {})
		: publisher(path, o), thread([this] {
			while (!stop)
				(void)publisher.run(std::chrono::milliseconds(1));
		})
	{
	}
	~running() { end(); }
	void end()
	{
		stop = true;
		if (thread.joinable())
			thread.join();
	}

	hamlyn::publisher publisher;
	std::atomic<bool> stop{ false };
	std::thread thread;
};

} // namespace

TEST(all_get_it)
{
	const std::string path = here("publish");
	running r(path);
	hamlyn::subscriber_options with_history;

	with_history.history = 1;
	CHECK(r.publisher.send("before") == status::ok);
	auto a = hamlyn::subscriber::dial(path, patience());
	auto b = hamlyn::subscriber::dial(path, patience(), with_history);
	CHECK(a && b);
	auto early = b->receive(patience());
	CHECK(early && early->text() == "before" && early->number() == 1);
	auto l = r.publisher.reserve(100);
	CHECK(l.size() == 100);
	std::memcpy(l.data(), "hello", 5);
	CHECK(ERRNO_OF((void)l.commit(101)) == EINVAL);
	CHECK(l.commit(5) == status::ok && !l.size());
	for (auto *s : { &*a, &*b }) {
		auto p = s->receive(patience());

		CHECK(p && p->text() == "hello" && p->number() == 2 && !p->lost());
	}
	/* Held, and then its subscriber is closed. */
	b->close();
	CHECK(early->text() == "before");
	CHECK(r.publisher.stats().published == 2);
}

TEST(those_that_are_waited_for)
{
	const std::string path = here("waits");
	hamlyn::publisher_options options;
	hamlyn::subscriber_options waits;

	waits.policy = hamlyn::policy::wait;
	waits.stream.buffers = 2;
	{
		running r(path);

		CHECK(ERRNO_OF((void)hamlyn::subscriber::dial(path, patience(), waits)) ==
		      EOPNOTSUPP);
	}
	options.patience = std::chrono::hours(1);
	options.history = 4;
	running r(path, options);
	auto s = hamlyn::subscriber::dial(path, patience(), waits);
	CHECK(s);
	int sent = 0;
	while (r.publisher.send("x", hamlyn::nowait) == status::ok)
		sent++;
	CHECK(sent >= 4);
	for (int i = 0; i < sent; i++)
		CHECK(s->receive(patience()));
	CHECK(r.publisher.send("y", patience()) == status::ok);
	CHECK(s->receive(patience())->text() == "y");
}

TEST(the_end)
{
	const std::string path = here("ends");
	running r(path);
	auto s = hamlyn::subscriber::dial(path, patience());
	struct pollfd p = {};

	CHECK(s);
	p.fd = s->fd();
	p.events = POLLIN;
	r.end();
	std::thread closes([&] { (void)r.publisher.close(patience()); });
	status why = status::again;
	while (why == status::again && ::poll(&p, 1, 60000) == 1)
		why = s->receive(hamlyn::nowait).why();
	closes.join();
	CHECK(why == status::end);
	CHECK(ERRNO_OF((void)r.publisher.send("x")) == EBADF);
}

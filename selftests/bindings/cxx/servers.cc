// SPDX-License-Identifier: GPL-2.0-only
/* Servers: echoes, ends, what a handler throws. */
#include <cerrno>
#include <atomic>
#include <stdexcept>
#include <thread>

#include <poll.h>
#include <unistd.h>

#include "test.hh"

using hamlyn::status;

static_assert(!std::is_copy_constructible_v<hamlyn::server>);
static_assert(std::is_nothrow_move_constructible_v<hamlyn::server>);

namespace {

std::string here(const char *what)
{
	return "@hamlyn-cxx-" + std::to_string(::getpid()) + "-" + what;
}

status echo(const hamlyn::incoming &m)
{
	if (m.text() == "bye")
		return m.send(m.view()) == status::ok ? status::end : status::again;
	if (m.text() == "nonsense")
		throw hamlyn::error(EPROTO, "nonsense");
	if (m.text() == "bug")
		throw std::runtime_error("bug");
	return m.is_request() ? m.reply(m.view()) : m.send(m.view());
}

/* Runs until the end of the scope; what it threw that is no error of ours is counted. */
struct running {
	explicit running(const std::string &path, hamlyn::server::ended end = {})
		: server(path, echo, {}, std::move(end)), thread([this] { run(); })
	{
	}
	~running()
	{
		server.stop();
		thread.join();
	}
	void run()
	{
		for (;;) {
			try {
				if (server.run() == status::ok)
					return;
			} catch (const std::runtime_error &) {
				thrown++;
			}
		}
	}

	hamlyn::server server;
	std::atomic<int> thrown{ 0 };
	std::thread thread;
};

bool asks(hamlyn::channel &c, const std::string &text)
{
	auto reply = c.request(text, patience());

	return reply && reply->text() == text;
}

bool has_ended(hamlyn::channel &c)
{
	try {
		return c.receive(patience()).why() == status::end;
	} catch (const hamlyn::error &e) {
		return e.number() == ECONNRESET;
	}
}

} // namespace

TEST(a_server_answers_requests_and_messages)
{
	running r(here("answers"));
	auto one = hamlyn::channel::dial(here("answers"), patience());
	auto two = hamlyn::channel::dial(here("answers"), patience());

	CHECK(one && two);
	CHECK(asks(*one, "hello") && asks(*two, "there"));
	CHECK(one->send(std::string(100000, 'x'), patience()) == status::ok);
	auto m = one->receive(patience());
	CHECK(m && m->size() == 100000);
	m->release();
	CHECK(one->close(patience()) == status::ok);
	CHECK(asks(*two, "still here"));
}

TEST(a_server_ends_clients_as_its_handler_says)
{
	std::atomic<int> ends{ 0 }, last{ 0 };
	running r(here("ends"), [&](h_channel *, int reason) { last = reason; ends++; });
	auto good = hamlyn::channel::dial(here("ends"), patience());
	int expected = 0;

	CHECK(good);
	for (const char *word : { "bye", "nonsense", "bug" }) {
		auto c = hamlyn::channel::dial(here("ends"), patience());

		CHECK(c && c->send(std::string(word), patience()) == status::ok);
		if (std::string(word) == "bye") {
			auto m = c->receive(patience());
			CHECK(m && m->text() == "bye");
		}
		CHECK(has_ended(*c));
		c->close(hamlyn::nowait);
		expected++;
		while (ends != expected)
			std::this_thread::yield();
		CHECK(asks(*good, "still here"));
	}
	CHECK(last == -ECANCELED);
	CHECK(r.thrown == 1);
}

TEST(a_server_in_an_event_loop)
{
	hamlyn::server s(here("loop"), echo);
	std::thread client([] {
		auto c = hamlyn::channel::dial(here("loop"), patience());

		if (c && asks(*c, "hello"))
			c->close(patience());
	});
	struct pollfd p = { s.fd(), POLLIN, 0 };
	bool had_one = false;

	while (!had_one || s.clients()) {
		::poll(&p, 1, -1);
		s.dispatch();
		had_one = had_one || s.clients();
	}
	client.join();
	CHECK(s.close(patience()) == status::ok);
	CHECK(!s.handle());
}

TEST(a_server_that_cannot_be)
{
	hamlyn::server_options options;

	CHECK(ERRNO_OF(hamlyn::channel::dial(here("nobody"), hamlyn::nowait)) == ECONNREFUSED);
	options.device = "shm:no/name";
	CHECK(ERRNO_OF(hamlyn::server(here("none"), echo, options)) == EINVAL);
	CHECK(ERRNO_OF(hamlyn::server("/nonexistent/path", echo)) == ENOENT);
}

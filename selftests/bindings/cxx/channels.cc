// SPDX-License-Identifier: GPL-2.0-only
/* Channels and listeners: echoes, ends, call backs, two processes. */
#include <cstring>
#include <stdexcept>
#include <thread>

#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.hh"

using namespace std::chrono_literals;
using hamlyn::status;

static_assert(!std::is_copy_constructible_v<hamlyn::channel>);
static_assert(std::is_nothrow_move_constructible_v<hamlyn::channel>);
static_assert(std::is_nothrow_move_assignable_v<hamlyn::channel>);
static_assert(!std::is_copy_constructible_v<hamlyn::message>);
static_assert(std::is_nothrow_move_constructible_v<hamlyn::message>);
static_assert(std::is_trivially_copyable_v<hamlyn::channel_seed>);
static_assert(sizeof(hamlyn::channel_seed) == H_CHANNEL_SEED_BYTES);

namespace {

struct ends {
	hamlyn::device dev;
	hamlyn::manager m{ dev };
	std::pair<hamlyn::channel, hamlyn::channel> both = hamlyn::channel::pair(m, m);
	hamlyn::channel &a = both.first;
	hamlyn::channel &b = both.second;
};

std::string here(const char *what)
{
	return "@hamlyn-cxx-" + std::to_string(::getpid()) + "-" + what;
}

void send(hamlyn::channel &c, hamlyn::bytes data)
{
	CHECK(c.send(data, patience()) == status::ok);
}

/* Sends back what comes, until the end. */
void echo(hamlyn::channel &c)
{
	while (auto m = c.receive(patience()))
		send(c, m->view());
}

} // namespace

TEST(what_channels_and_managers_tell)
{
	ends e;

	send(e.a, "four");
	{
		auto m = e.b.receive(patience());

		CHECK(m && e.b.stats().held == 1);
	}
	CHECK(e.a.stats().sent == 1 && e.a.stats().sent_bytes == 4);
	CHECK(e.b.stats().received == 1 && e.b.stats().held == 0);
	CHECK(e.m.stats().arrivals > 0 && e.m.stats().receivers > 0);
}

TEST(messages_both_ways)
{
	ends e;

	CHECK(e.b.receive(hamlyn::nowait).why() == status::again);
	CHECK(e.b.receive(1ms).why() == status::again);
	send(e.a, "there");
	send(e.a, "");
	CHECK(e.a.send({ "in ", std::string("three "), "pieces" }, patience()) == status::ok);
	send(e.b, "back");
	auto one = e.b.receive(patience());
	auto two = e.b.receive(patience());
	auto three = e.b.receive(patience());
	CHECK(one && one->text() == "there");
	CHECK(two && two->empty());
	CHECK(three && three->text() == "in three pieces");
	/* In any order. */
	two->release();
	CHECK(one->text() == "there");
	hamlyn::message moved = *std::move(one);
	CHECK(moved.text() == "there" && one->size() == 0);
	auto back = e.a.receive(patience());
	CHECK(back && back->text() == "back");
	CHECK(!e.a.peer());
}

TEST(receive_by_copying)
{
	ends e;
	char small[2], large[100];

	send(e.a, "hello");
	CHECK(ERRNO_OF((void)e.b.receive(small, patience())) == EMSGSIZE);
	auto n = e.b.receive(large, patience());
	CHECK(n && *n == 5 && !std::memcmp(large, "hello", 5));
	CHECK(e.b.receive(large, hamlyn::nowait).why() == status::again);
	CHECK(e.a.shutdown(patience()) == status::ok);
	CHECK(e.b.receive(large, patience()).why() == status::end);
}

TEST(a_request_gets_its_own_reply)
{
	ends e;
	auto late = e.a.request("late", std::chrono::milliseconds(1));

	CHECK(!late && late.why() == status::unanswered);
	auto first = e.a.request_send("1", patience()), second = e.a.request_send("2", patience());
	CHECK(first && second);
	auto none = e.b.receive(patience());
	CHECK(none && none->is_request());
	CHECK(e.b.reply(*none, "late", patience()) == status::ok);
	none->release();
	CHECK(!none->is_request() && ERRNO_OF((void)e.b.reply(*none, "x")) == EINVAL);
	CHECK(e.a.request_wait(*first, hamlyn::nowait).why() == status::again);
	auto one = e.b.receive(patience()), two = e.b.receive(patience());
	CHECK(one && two && one->text() == "1" && two->text() == "2");
	send(e.b, std::string("plain"));
	CHECK(e.b.reply(*two, "to 2", patience()) == status::ok);
	CHECK(e.b.reply(*one, "to 1", patience()) == status::ok);
	auto reply = e.a.request_wait(*first, patience());
	CHECK(reply && reply->text() == "to 1" && !reply->is_request());
	e.a.request_cancel(*second);
	CHECK(ERRNO_OF((void)e.a.request_wait(*second, hamlyn::nowait)) == EINVAL);
	auto plain = e.a.receive(patience());
	CHECK(plain && plain->text() == "plain");
	CHECK(e.a.receive(hamlyn::nowait).why() == status::again);
	e.b.reply_only();
}

TEST(echo_of_all_sizes_between_threads)
{
	hamlyn::device dev;
	hamlyn::manager ma(dev), mb(dev);
	std::pair<hamlyn::channel, hamlyn::channel> both = hamlyn::channel::pair(ma, mb);
	hamlyn::channel &a = both.first, &b = both.second;
	std::exception_ptr failed;
	std::thread other([&failed, c = std::move(b)]() mutable {
		try {
			echo(c);
			c.close(patience());
		} catch (...) {
			failed = std::current_exception();
		}
	});

	CHECK(ERRNO_OF((void)b.send("moved away")) == EBADF);
	std::string wrong;
	for (std::size_t size : { 0, 1, 100, 4000, 5000, 100000, 3000000 }) {
		std::string data(size, 'd');

		for (std::size_t i = 0; i < size; i++)
			data[i] = static_cast<char>(i * 7 + size);
		auto reply = a.request(data, patience());
		if (!reply || reply->text() != data)
			wrong += std::to_string(size) + " ";
	}
	CHECK(a.shutdown(patience()) == status::ok);
	CHECK(a.receive(patience()).why() == status::end);
	other.join();
	if (failed)
		std::rethrow_exception(failed);
	CHECK(wrong.empty());
}

namespace {

int calls;

/* Receives only what it has thrown at. */
void throw_at_first(h_channel *c, void *)
{
	h_message m;

	if (++calls % 2)
		throw std::runtime_error("not now");
	while (h_channel_receive(c, &m, H_NOWAIT) == 0)
		h_channel_release(c, &m);
}

int throws(h_manager *m)
{
	try {
		h_manager_dispatch(m);
	} catch (const std::runtime_error &) {
		return 1;
	}
	return 0;
}

} // namespace

/* Of the C interface, which keeps nothing on the stack that was left. */
TEST(a_call_back_that_throws_is_called_again)
{
	h_dev *dev = nullptr;
	h_manager *m = nullptr;
	h_channel *a = nullptr, *b = nullptr;

	CHECK(!h_open(nullptr, &dev) && !h_manager_create(dev, nullptr, &m));
	CHECK(!h_channel_pair(m, m, nullptr, &a, &b));
	h_channel_on_ready(a, throw_at_first, nullptr);
	pollfd p = { h_manager_fd(m), POLLIN, 0 };
	int thrown = 0, readable = 0;
	for (int i = 0; i < 3; i++) {
		CHECK(!h_channel_send(b, "x", 1, hamlyn::timeout(patience()).ns()));
		for (int tries = 0; calls < 2 * i + 2 && tries < 100; tries++) {
			readable += ::poll(&p, 1, 1000) == 1;
			thrown += throws(m);
		}
		CHECK(calls == 2 * i + 2);
	}
	CHECK(thrown == 3 && readable >= 6);
	h_channel_close(a, 0);
	h_channel_close(b, 0);
	CHECK(!h_manager_destroy(m));
	h_close(dev);
}

TEST(a_message_outlives_its_channel)
{
	std::optional<hamlyn::message> m;

	{
		ends e;

		send(e.a, "still here");
		m = e.b.receive(patience());
	}
	CHECK(m && m->text() == "still here");
	m.reset();
}

TEST(ends_and_errors)
{
	ends e;

	CHECK(e.a.close(patience()) == status::ok);
	CHECK(!e.a.handle());
	CHECK(ERRNO_OF(e.a.close()) == EBADF);
	CHECK(e.b.receive(patience()).why() == status::end);
	CHECK(ERRNO_OF((void)e.b.send("x")) == EPIPE);
	/* Both ends may be closed, one after the other; and what never had another end. */
	CHECK(e.b.close(patience()) == status::ok);
	CHECK(hamlyn::channel(e.m).close(hamlyn::nowait) == status::ok);

	hamlyn::channel_options options;
	options.max_message = 10;
	auto both = hamlyn::channel::pair(e.m, e.m, options);
	hamlyn::channel &c = both.first;
	CHECK(ERRNO_OF((void)c.send("longer than that")) == EMSGSIZE);
	{
		hamlyn::channel gone = std::move(both.second);
	}
	int err = 0;
	for (int i = 0; i < 1000 && !err; i++)
		err = ERRNO_OF((void)c.send("x", 1ms));
	CHECK(err == EPIPE);
}

TEST(seeds)
{
	hamlyn::device dev;
	hamlyn::manager m(dev);
	hamlyn::channel a(m), b(m);

	a.join(hamlyn::channel_seed::from_bytes(b.seed().to_bytes()));
	b.join(a.seed());
	CHECK(ERRNO_OF(b.join(a.seed())) == EISCONN);
	send(a, "by seeds");
	auto got = b.receive(patience());
	CHECK(got && got->text() == "by seeds");
	hamlyn::channel c(m);
	CHECK(ERRNO_OF(c.join(hamlyn::channel_seed())) == EINVAL);
	CHECK(ERRNO_OF(c.join(a.seed())) == EALREADY);
	CHECK(ERRNO_OF(hamlyn::channel_seed::from_bytes("short")) == EINVAL);
}

TEST(call_backs_of_channels)
{
	ends e;
	std::string got;
	hamlyn::channel b = std::move(e.b);

	CHECK(e.m.fd() >= 0);
	b.on_ready([&] {
		while (auto m = b.receive(hamlyn::nowait))
			got += m->text();
	});
	hamlyn::channel moved = std::move(b);
	b = std::move(moved);
	send(e.a, "one");
	send(e.a, "two");
	for (int i = 0; i < 1000 && got.size() < 6; i++) {
		CHECK(e.m.wait(patience()) == status::ok);
		e.m.dispatch();
	}
	CHECK(got == "onetwo");
	b.on_ready([&] { hamlyn::channel(std::move(b)); });
	send(e.a, "three");
	for (int i = 0; i < 1000 && b.handle(); i++) {
		CHECK(e.m.wait(patience()) == status::ok);
		e.m.dispatch();
	}
	CHECK(!b.handle());
}

TEST(listener_and_client)
{
	const std::string path = here("listener");
	hamlyn::device dev;
	hamlyn::manager server(dev), client(dev);

	CHECK(ERRNO_OF((void)hamlyn::channel::connect(client, path, 1s)) == ECONNREFUSED);
	hamlyn::listener listener(path);
	CHECK(listener.fd() >= 0);
	CHECK(ERRNO_OF(hamlyn::listener(path)) == EADDRINUSE);
	CHECK(listener.accept(server, 1ms).why() == status::again);
	std::optional<hamlyn::channel> c;
	std::thread other([&] {
		try {
			c = hamlyn::channel::connect(client, path, patience());
		} catch (const std::exception &) {
		}
	});
	auto s = listener.accept(server, patience());
	other.join();
	CHECK(s && c);
	CHECK(s->peer() && s->peer()->pid == ::getpid() && s->peer()->uid == ::geteuid());
	send(*c, "hello");
	auto m = s->receive(patience());
	CHECK(m && m->text() == "hello");
	hamlyn::listener moved = std::move(listener);
	CHECK(ERRNO_OF((void)listener.accept(server, 1ms)) == EBADF);
	moved.close();
	CHECK(ERRNO_OF((void)hamlyn::channel::connect(client, path, 1s)) == ECONNREFUSED);
}

TEST(listener_with_streams)
{
	const std::string path = here("streams");
	hamlyn::device dev;
	hamlyn::manager server(dev), client(dev);
	hamlyn::listener listener(path);
	std::optional<hamlyn::stream_pair> c;
	std::thread other([&] {
		try {
			c = hamlyn::stream_pair::connect(client, path, patience());
		} catch (const std::exception &) {
		}
	});
	auto s = listener.accept_streams(server, patience());
	other.join();
	CHECK(s && c && s->peer.pid == ::getpid());
	CHECK(c->sender.send("x", patience()) && c->sender.flush(patience()) == status::ok);
	CHECK(s->receiver.receive(patience()));
	/* The receiver first: the sender keeps it. */
	hamlyn::stream_sender sender = std::move(s->sender);
	s->receiver.close();
	CHECK(sender.send("y", patience()));
}

TEST(loans)
{
	hamlyn::device dev;
	hamlyn::manager m(dev);
	auto [a, b] = hamlyn::channel::pair(m, m);
	auto l = a.reserve(5000);

	CHECK(l.size() == 5000 && l.data());
	std::memset(l.data(), 'x', l.size());
	CHECK(ERRNO_OF((void)l.commit(5001)) == EINVAL);
	CHECK(l.commit(4000, patience()) == status::ok);
	CHECK(!l.size() && !l.data());
	CHECK(ERRNO_OF((void)l.commit()) == EBADF);
	{
		auto got = b.receive(patience());

		CHECK(got && got->text() == std::string(4000, 'x'));
	}
	/* Given back at the end, moved into, and kept by nobody when the channel is closed. */
	l = a.reserve(10);
	l = a.reserve(20);
	CHECK(l.size() == 20);
	hamlyn::loan other = std::move(l);
	CHECK(!l.size() && other.size() == 20);
	other.abandon();
	CHECK(!other.size());
	b.close(patience());
	l = a.reserve(5000);
	auto commit_all = [&, &sender = a] {
		while (l.commit(patience()) == status::ok)
			l = sender.reserve(5000);
		return false;
	};
	CHECK(ERRNO_OF(commit_all()) == EPIPE);
	CHECK(l.size() == 5000);
}

TEST(checked_memory)
{
	hamlyn::device dev;
	hamlyn::manager m(dev);
	auto [a, b] = hamlyn::channel::pair(m, m);
	auto *p = static_cast<char *>(::mmap(nullptr, 8192, PROT_READ | PROT_WRITE,
					     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));

	CHECK(p != MAP_FAILED);
	std::memset(p, 'x', 8192);
	CHECK(!::munmap(p + 4096, 4096));
	CHECK(ERRNO_OF((void)a.send_checked({ p, 8192 }, patience())) == EFAULT);
	CHECK(a.send_checked({ p, 4096 }, patience()) == status::ok);
	{
		auto got = b.receive(patience());

		CHECK(got && got->text() == std::string(4096, 'x'));
	}
	::munmap(p, 4096);
}

TEST(two_processes)
{
	const std::string path = here("processes");
	pid_t child = ::fork();

	CHECK(child >= 0);
	if (!child) {
		int rc = 1;

		try {
			hamlyn::connect_options connect;
			hamlyn::channel_options options;
			connect.flags = H_CONNECT_WAIT;
			options.connect = connect;
			hamlyn::device dev;
			hamlyn::manager m(dev);
			auto c = hamlyn::channel::connect(m, path, patience(), options);
			if (c) {
				echo(*c);
				rc = c->close(patience()) != status::ok;
			}
		} catch (const std::exception &e) {
			std::fprintf(stderr, "# child: %s\n", e.what());
		}
		::_exit(rc);
	}
	int status_of_child = -1;
	{
		hamlyn::device dev;
		hamlyn::manager m(dev);
		hamlyn::listener listener(path);
		auto c = listener.accept(m, patience());

		if (c && c->peer()->pid == child) {
			for (int i = 0; i < 1000; i++) {
				auto reply = c->request(std::to_string(i), patience());

				CHECK(reply && reply->text() == std::to_string(i));
			}
			CHECK(c->shutdown(patience()) == status::ok);
			CHECK(c->receive(patience()).why() == status::end);
		}
		::waitpid(child, &status_of_child, 0);
	}
	CHECK(status_of_child == 0);
}

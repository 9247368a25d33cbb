// SPDX-License-Identifier: GPL-2.0-only
/* Managers, streams, call backs, listeners. */
#include <cstring>
#include <thread>

#include "test.hh"

using namespace std::chrono_literals;
using hamlyn::status;

namespace {

struct stream {
	hamlyn::device dev;
	hamlyn::manager m{ dev };
	hamlyn::stream_receiver to{ m };
	hamlyn::stream_sender from{ m, to.seed() };

	void send(std::string_view text)
	{
		auto sent = from.send(text, patience());

		CHECK(sent && *sent == text.size());
		CHECK(from.flush(patience()) == status::ok);
	}
};

} // namespace

TEST(send_and_receive)
{
	stream s;
	char buffer[16];

	CHECK(s.to.receive(hamlyn::nowait).why() == status::again);
	CHECK(s.to.receive(1ms).why() == status::again);
	s.send("hello");
	auto r = s.to.receive(patience());
	CHECK(r && r->text() == "hello");
	r->release();
	CHECK(r->size() == 0 && !r->data());
	s.send("world");
	auto n = s.to.read(buffer, patience());
	CHECK(n && *n == 5 && !std::memcmp(buffer, "world", 5));
}

TEST(shut_down_in_several_tries)
{
	hamlyn::device dev;
	hamlyn::manager here{ dev }, there{ dev };
	hamlyn::stream_receiver to{ there };
	hamlyn::stream_sender from{ here, to.seed() };

	CHECK(from.send("all", patience()));
	CHECK(from.shutdown(hamlyn::nowait) == status::again);
	auto r = to.receive(patience());
	CHECK(r && r->text() == "all");
	r->release();
	CHECK(to.receive(patience()).why() == status::end);
	CHECK(from.shutdown(patience()) == status::ok);
	CHECK(ERRNO_OF((void)from.send("more", patience())) == EPIPE);
	CHECK(from.close(hamlyn::nowait) == status::ok);
}

TEST(the_end)
{
	stream s;
	std::string all(100, 'a');

	s.send(all);
	std::thread closing([&] { s.from.close(patience()); });
	std::string got;
	for (;;) {
		auto r = s.to.receive(patience());

		if (!r) {
			CHECK(r.why() == status::end);
			break;
		}
		got += r->text();
	}
	closing.join();
	CHECK(got == all);
	CHECK(!s.from.handle());
	CHECK(ERRNO_OF(s.from.close()) == EBADF);
	CHECK(ERRNO_OF(s.from.send("x")) == EBADF);
	char c;
	CHECK(s.to.read(hamlyn::mutable_bytes(&c, 1)).why() == status::end);
}

TEST(reading_gives_back_no_record_that_is_held)
{
	stream s;
	std::byte room[4];

	s.send("a");
	s.send("b");
	{
		auto r = s.to.receive(patience());
		CHECK(r);
		CHECK(ERRNO_OF(s.to.read(room, patience())) == EBUSY);
		CHECK(r->text() == "a");
	}
	CHECK(ERRNO_OF(s.to.read({}, patience())) == EINVAL);
	CHECK(*s.to.read(room, patience()) == 1);
	CHECK(room[0] == std::byte('b'));
}

TEST(records_are_released_in_order)
{
	stream s;
	std::vector<hamlyn::record> held;

	for (int i = 0; i < 8; i++) {
		s.send(std::to_string(i));
		auto r = s.to.receive(patience());
		CHECK(r);
		held.push_back(*std::move(r));
	}
	/* The last one first: those before it stay as they are. */
	for (int i = 7; i > 0; i--)
		held.pop_back();
	for (int i = 0; i < 12; i++)
		(void)s.from.send("xxxxxxxxxxxxxxxx", hamlyn::nowait), s.from.flush(hamlyn::nowait);
	CHECK(held[0].text() == "0");
	held.clear();
	for (int i = 0; i < 200; i++) {
		(void)s.to.receive(hamlyn::nowait);
		s.from.flush(hamlyn::nowait);
	}
	s.send("again");
}

TEST(a_record_outlives_its_receiver)
{
	std::optional<stream> s(std::in_place);
	s->send("still here");
	auto r = s->to.receive(patience());

	CHECK(r);
	s.reset();
	CHECK(r->text() == "still here");
}

TEST(receiver_gone)
{
	stream s;

	{
		hamlyn::stream_receiver gone = std::move(s.to);
	}
	CHECK(ERRNO_OF(s.to.receive(1ms)) == EBADF);
	int err = 0;
	for (int i = 0; i < 1000 && !err; i++)
		err = ERRNO_OF((void)s.from.send("x"), s.from.flush(1ms));
	CHECK(err == EPIPE);
}

TEST(sender_gone)
{
	stream s;

	s.send("x");
	CHECK(s.to.receive(patience()));
	s.from.close(patience());
	CHECK(s.to.receive(patience()).why() == status::end);
	hamlyn::stream_receiver broken(s.m);
	hamlyn::manager other(s.dev);
	{
		hamlyn::stream_sender from(other, broken.seed());
		CHECK(from.send("y", patience()));
		CHECK(from.flush(patience()) == status::ok);
		CHECK(broken.receive(patience()));
	}
	int err = ERRNO_OF(broken.receive(patience()));
	CHECK(err == ECONNRESET || !err);
}

TEST(errors_of_streams)
{
	stream s;
	hamlyn::stream_options options = {};

	options.buffers = 3;
	try {
		hamlyn::stream_receiver r(s.m, options);
		CHECK(!"three buffers");
	} catch (const hamlyn::error &e) {
		CHECK(e.number() == EINVAL && std::strstr(e.explanation(), "power of two"));
	}
	CHECK(ERRNO_OF(hamlyn::stream_sender(s.m, hamlyn::seed())) == EINVAL);
	hamlyn::manager closed(s.dev);
	closed.close();
	CHECK(ERRNO_OF(closed.poll()) == EBADF);
	CHECK(ERRNO_OF(hamlyn::stream_receiver(closed)) == EBADF);
}

TEST(megabytes_between_threads)
{
	constexpr std::size_t length = 8 << 20;
	hamlyn::device dev;
	hamlyn::manager receiving(dev), sending(dev);
	hamlyn::stream_receiver to(receiving);
	hamlyn::seed seed = hamlyn::seed::from_bytes(to.seed().to_bytes());

	std::thread sender([&] {
		hamlyn::stream_sender from(sending, seed);
		hamlyn::buffer memory = sending.allocate(length);
		std::vector<std::uint32_t> own(1000);
		hamlyn::registration registered = sending.register_memory(own);
		std::size_t done = 0;

		for (std::size_t i = 0; i < length; i++)
			memory.data()[i] = static_cast<std::byte>(i * 31);
		while (done < length) {
			auto n = from.send(hamlyn::bytes(memory.memory()).subview(done), patience());
			if (!n)
				return;
			done += *n;
		}
		from.close(patience());
	});
	std::size_t got = 0;
	bool good = true;
	while (auto r = to.receive(patience())) {
		for (std::byte b : r->view())
			good = good && b == static_cast<std::byte>(got++ * 31);
	}
	sender.join();
	CHECK(got == length);
	CHECK(good);
}

TEST(call_backs)
{
	stream s;
	hamlyn::stream_receiver to = std::move(s.to);
	int called = 0;

	to.on_ready([&] {
		called++;
		while (to.receive(hamlyn::nowait))
			;
	});
	hamlyn::stream_receiver moved = std::move(to);
	moved.on_ready([&] {
		called += 100;
		while (moved.receive(hamlyn::nowait))
			;
	});
	CHECK(s.m.fd() >= 0);
	CHECK(hamlyn::manager(s.dev).wait(1ms) == status::again);
	s.send("x");
	CHECK(s.m.wait(patience()) == status::ok);
	for (int i = 0; i < 1000 && !called; i++) {
		s.m.dispatch();
		std::this_thread::sleep_for(1ms);
	}
	CHECK(called >= 100 && called % 100 == 0);
	called = 0;
	moved.on_ready({});
	s.send("y");
	std::this_thread::sleep_for(5ms);
	s.m.dispatch();
	CHECK(called == 0);
}

TEST(a_kick_ends_a_wait)
{
	hamlyn::device dev;
	hamlyn::manager m(dev);

	m.kick();
	m.kick();
	CHECK(m.wait() == status::ok);
	CHECK(m.wait(hamlyn::nowait) == status::again);
	std::thread other([&] {
		std::this_thread::sleep_for(20ms);
		m.kick();
	});
	CHECK(m.wait() == status::ok);
	other.join();
}

TEST(exceptions_of_call_backs)
{
	stream s;

	s.to.on_ready([&] { throw std::runtime_error("from a call back"); });
	s.send("x");
	CHECK(s.m.wait(patience()) == status::ok);
	std::string what;
	for (int i = 0; i < 1000 && what.empty(); i++) {
		try {
			s.m.dispatch();
		} catch (const std::runtime_error &e) {
			what = e.what();
		}
	}
	CHECK(what == "from a call back");
}

TEST(a_call_back_destroys_its_end_point)
{
	stream s;
	auto to = std::make_unique<hamlyn::stream_receiver>(s.m);
	hamlyn::stream_sender from(s.m, to->seed());
	std::string kept = "captured";
	std::string seen;

	to->on_ready([&, kept] {
		to.reset();
		seen = kept;
	});
	CHECK(from.send("x", patience()) && from.flush(patience()) == status::ok);
	for (int i = 0; i < 1000 && to; i++) {
		s.m.dispatch();
		std::this_thread::sleep_for(1ms);
	}
	CHECK(!to && seen == "captured");
}

TEST(a_call_back_destroys_its_manager)
{
	struct session {
		hamlyn::manager m;
		hamlyn::stream_receiver to{ m };

		explicit session(const hamlyn::device &dev) : m(dev) {}
	};
	stream s;
	auto one = std::make_unique<session>(s.dev);
	hamlyn::stream_sender from(s.m, one->to.seed());
	int called = 0;

	one->to.on_ready([&] {
		one.reset();
		called++;
	});
	CHECK(from.send("x", patience()) && from.flush(patience()) == status::ok);
	for (int i = 0; i < 1000 && one; i++) {
		CHECK(one->m.dispatch() == called);
		std::this_thread::sleep_for(1ms);
	}
	CHECK(!one && called == 1);
}

TEST(sending_goes_on)
{
	stream s;
	bool ready = false;
	std::string much(65536, 'm');

	s.from.on_ready([&] { ready = true; });
	while (auto n = s.from.send(much, hamlyn::nowait))
		if (*n < much.size())
			break;
	for (int i = 0; i < 5000 && !ready; i++) {
		(void)s.to.receive(hamlyn::nowait);
		s.m.dispatch();
	}
	CHECK(ready);
}

TEST(raw_sends_through_a_manager)
{
	hamlyn::device dev;
	hamlyn::manager m(dev);
	hamlyn::area area(dev, 4096);
	hamlyn::notification_queue nq(dev, 8);
	hamlyn::slot slot(area, nq);
	hamlyn::terminus_view t = m.terminus();
	auto sent = t.send(slot.ticket(), "raw");

	CHECK(sent && t.wait(*sent, patience()) && nq.receive(patience()));
}
